"""Layers of PyTorch. Owns: the embedding table as a module. Does not know about: calls."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import torch

from . import embedding
from .embedding import Initializer


class Embedding(torch.nn.Module):
    """`torch.nn.Embedding` whose rows are on the parameter servers: any 64-bit id has a row.

    It has no parameters of its own, so the optimizer of the model does not see it; the servers apply
    the same rule to its rows.
    """

    def __init__(
        self,
        name: str,
        embedding_dim: int,
        initializer: Union[str, Initializer] = "normal",
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.table = embedding.Embedding(name, embedding_dim, initializer, seed)

    def forward(self, ids: Any) -> Any:
        """The vectors of these ids, of their shape and one axis more."""
        unique, places, rows = self.table.pull(ids.detach().cpu().numpy())
        weight = torch.from_numpy(rows).to(ids.device)
        if self.training and torch.is_grad_enabled():
            weight.requires_grad_()
            weight.register_hook(lambda g: self._note(unique, g))
        found = torch.from_numpy(places.astype(np.int64)).to(ids.device)
        return torch.nn.functional.embedding(found, weight).reshape(*ids.shape, self.table.dim)

    def _note(self, ids: np.ndarray, gradient: Any) -> None:
        self.table.add(ids, gradient.detach().cpu().numpy().astype(np.float32))
