"""Models of plain numpy. Owns: their contract. Does not know about: any framework.

    class Model:
        parameters: dict of name to float32 array
        state: such a dict of what has no gradient (optional)
        embeddings: list of embedding tables (optional); see `elastane.embedding`
        def forward(self, features, training): returns outputs, first axis the records
        def backward(self, d_outputs): returns gradients by name, after a forward in training

`loss(labels, outputs)` returns the loss and its derivative by the outputs: `(value, d_outputs)`.
`feed(records, mode, metadata)` gets the records of a minibatch as a list.
"""

from __future__ import annotations

import os
from typing import Any, List, Optional, Tuple

import numpy as np

from ..contract import Contract, ContractError
from ..embedding import Embedding, check
from ..labels import Shaped, choose
from ..optimizers import Optimizer
from . import Arrays, Backend, Batch, Step, float32, need_optimizer, stored


def is_plain(model: Any) -> bool:
    """True if it is a model of this contract."""
    methods = (getattr(model, name, None) for name in ("forward", "backward"))
    return all(map(callable, methods)) and isinstance(getattr(model, "parameters", None), dict)


class PlainBackend(Backend):
    """Computes with numpy."""

    name = "numpy"

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self._model = contract.model
        # What the loss gets, once it is known.
        self._shaped: Optional[Shaped] = None

    def parameters(self) -> Arrays:
        return float32(self._model.parameters)

    def state(self) -> Arrays:
        return float32(getattr(self._model, "state", {}))

    def embeddings(self) -> List[Embedding]:
        return check(getattr(self._model, "embeddings", []))

    def assign(self, parameters: Arrays, state: Arrays) -> None:
        self._model.parameters.update(parameters)
        if state:
            self._model.state.update(state)

    def _loss(self, labels: Any, outputs: Any) -> Tuple[float, Any]:
        assert self.contract.loss is not None, "a contract of training has it"
        found = self.contract.loss(labels, outputs)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ContractError(
                f"loss of the model {self.contract.path} returned {type(found).__name__}: a model "
                "of numpy returns the loss and its derivative by the outputs"
            )
        return float(found[0]), found[1]

    def _shape_for_loss(self, labels: Any, outputs: Any) -> Tuple[Any, Any]:
        """Both in the shape that the loss takes; see `labels`."""
        shaped = self._shaped
        if shaped is None:
            shaped, is_certain = choose(lambda *of: self._loss(*of)[0], labels, outputs)
            self._shaped = shaped if is_certain else None
        return shaped(labels, outputs)

    def step(self, batch: Batch) -> Step:
        for table in self.embeddings():
            table.begin()
        outputs = self._model.forward(batch.features, True)
        value, d_outputs = self._loss(*self._shape_for_loss(batch.labels, outputs))
        if isinstance(outputs, np.ndarray) and np.size(d_outputs) == outputs.size:
            d_outputs = np.reshape(d_outputs, outputs.shape)
        gradients = float32(self._model.backward(d_outputs))
        missing = set(self._model.parameters) - set(gradients)
        if missing:
            raise ContractError(
                f"backward of the model {self.contract.path} gave no gradient of {min(missing)!r}"
            )
        return Step(value, gradients)

    def predict(self, batch: Batch) -> Any:
        return self._model.forward(batch.features, False)

    def optimizer(self) -> Optimizer:
        found = need_optimizer(self.contract)()
        if not isinstance(found, Optimizer):
            raise ContractError(
                f"optimizer of the model {self.contract.path} returned {type(found).__name__}: "
                "return one of elastane.optimizers"
            )
        return found

    def save(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        arrays = {**self.parameters(), **self.state(), **stored(self.embeddings())}
        np.savez(os.path.join(path, "model.npz"), **arrays)
