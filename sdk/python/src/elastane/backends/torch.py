"""Models of PyTorch. Owns: gradients by autograd, names of parameters and buffers. Does not know
about: processes that train together; each worker computes for itself.

`feed(records, mode, metadata)` gets the records of a minibatch as a list and returns tensors or
arrays; `optimizer(parameters)` returns one of `torch.optim` or of `elastane.optimizers`.
"""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any, List, Optional, Tuple

import numpy as np
import torch

from ..contract import Contract
from ..embedding import Embedding, check
from ..labels import Shaped, choose
from ..optimizers import Optimizer, OptimizerError, from_torch
from ..torch import Embedding as Layer
from . import Arrays, Backend, Batch, Step, Unconnected, float32, need_optimizer, stored


def _tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, dict):
        return {name: _tensor(one) for name, one in value.items()}
    return value


def _array(value: Any) -> np.ndarray:
    """The values of a tensor; numpy has no bfloat16."""
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def _wide(value: Any) -> Any:
    """A tensor of half precision as float32: means of it are compared."""
    is_half = torch.is_tensor(value) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if is_half else value


def _optimizer(contract: Contract) -> Any:
    """The optimizer of the file: one of PyTorch, or one of the servers."""
    make = need_optimizer(contract)
    wanted = inspect.signature(make).parameters.values()
    takes = [p for p in wanted if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    found = make(contract.model.parameters()) if takes else make()
    if not isinstance(found, (Optimizer, torch.optim.Optimizer)):
        raise OptimizerError(
            f"optimizer of the model {contract.path} returned {type(found).__name__}: return one "
            "of torch.optim or elastane.optimizers"
        )
    return found


class TorchBackend(Backend):
    """Computes with PyTorch."""

    name = "torch"

    def __init__(self, contract: Contract) -> None:
        self._optimizer = _optimizer(contract) if contract.optimizer else None
        super().__init__(contract, self._optimizer)
        self._model = contract.model
        self._unconnected = Unconnected(contract.path)
        # What the loss gets, once it is known.
        self._shaped: Optional[Shaped] = None

    def feed(self, records: Any, mode: str) -> Tuple[Any, Any]:
        features, labels = super().feed(records, mode)
        return _tensor(features), _tensor(labels)

    def parameters(self) -> Arrays:
        named = self._model.named_parameters()
        return float32({name: _array(p) for name, p in named if p.requires_grad})

    def _buffers(self) -> Any:
        return ((n, b) for n, b in self._model.named_buffers() if b.is_floating_point())

    def state(self) -> Arrays:
        return float32({name: _array(buffer) for name, buffer in self._buffers()})

    def embeddings(self) -> List[Embedding]:
        return check([m.table for m in self._model.modules() if isinstance(m, Layer)])

    def assign(self, parameters: Arrays, state: Arrays) -> None:
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                if name in parameters:
                    parameter.copy_(torch.from_numpy(np.array(parameters[name])))
            for name, buffer in self._buffers():
                if name in state:
                    buffer.copy_(torch.from_numpy(np.array(state[name])))

    def _shape_for_loss(self, labels: Any, outputs: Any) -> Tuple[Any, Any]:
        """Both in the shape that the loss takes; see `labels`."""
        if self._shaped is not None:
            return self._shaped(labels, outputs)
        loss = self.contract.loss
        assert loss is not None, "a contract of training has it"
        with torch.no_grad(), warnings.catch_warnings():
            # PyTorch warns of a shape that is only tried.
            warnings.simplefilter("ignore")
            shaped, is_certain = choose(
                lambda *of: _array(loss(*of).mean()), _wide(labels), _wide(outputs)
            )
        self._shaped = shaped if is_certain else None
        return shaped(labels, outputs)

    def step(self, batch: Batch) -> Step:
        assert self.contract.loss is not None, "a contract of training has it"
        self._model.train()
        self._model.zero_grad()
        for table in self.embeddings():
            table.begin()
        labels, outputs = self._shape_for_loss(batch.labels, self._model(batch.features))
        loss = self.contract.loss(labels, outputs).mean()
        if loss.requires_grad:
            loss.backward()
        trained = {n: p for n, p in self._model.named_parameters() if p.requires_grad}
        has_rows = any(len(table.gradient()[0]) for table in self.embeddings())
        connected = [parameter.grad is not None for parameter in trained.values()]
        self._unconnected.check(list(trained), connected, has_rows)
        gradients = {}
        for name, parameter in trained.items():
            gradient = parameter.grad
            found = torch.zeros_like(parameter) if gradient is None else gradient
            gradients[name] = _array(found).copy()
        return Step(float(loss.detach()), float32(gradients))

    def predict(self, batch: Batch) -> Any:
        self._model.eval()
        with torch.no_grad():
            return _array(self._model(batch.features))

    def optimizer(self) -> Optimizer:
        found = self._optimizer
        return found if isinstance(found, Optimizer) else from_torch(found)

    def save(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        torch.save(self._model.state_dict(), os.path.join(path, "model.pt"))
        tables = stored(self.embeddings())
        if tables:
            np.savez(os.path.join(path, "embeddings.npz"), **tables)
