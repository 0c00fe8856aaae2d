"""A model that each worker has whole. Owns: its values as one vector, and what an optimizer makes of
a gradient. Does not know about: where gradients come from, files, connections.

The rules are those of the parameter servers (`Optimizer` in elastic.proto). All workers compute them
from the same bits, so the values stay the same in all.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Tuple

import numpy as np

from .backends import Arrays
from .optimizers import Optimizer, make

Shape = Tuple[int, ...]


class Layout:
    """Where the arrays of a model are in one vector: by name."""

    def __init__(self, shapes: Dict[str, Shape]) -> None:
        self.shapes = {name: tuple(shapes[name]) for name in sorted(shapes)}
        self._places: Dict[str, slice] = {}
        self.floats = 0
        for name, shape in self.shapes.items():
            end = self.floats + math.prod(shape)
            self._places[name] = slice(self.floats, end)
            self.floats = end

    @classmethod
    def of(cls, arrays: Arrays) -> "Layout":
        """That of these arrays."""
        return cls({name: value.shape for name, value in arrays.items()})

    def write(self, arrays: Arrays, into: np.ndarray) -> None:
        """Puts arrays, all of the layout, into a vector."""
        for name, place in self._places.items():
            into[place] = np.asarray(arrays[name], np.float32).ravel()

    def vector(self, arrays: Arrays) -> np.ndarray:
        """A vector of these arrays."""
        out = np.empty(self.floats, np.float32)
        self.write(arrays, out)
        return out

    def arrays(self, vector: np.ndarray) -> Arrays:
        """Views of a vector in the shapes of the layout."""
        return {name: vector[self._places[name]].reshape(s) for name, s in self.shapes.items()}


def _slots(optimizer: Optimizer, floats: int) -> List[np.ndarray]:
    """State of the optimizer before the first update."""
    numbers = optimizer.arguments
    if optimizer.kind == "adam":
        return [np.zeros(floats, np.float32) for _ in range(3 if numbers["amsgrad"] else 2)]
    if optimizer.kind == "adagrad":
        return [np.full(floats, numbers["initial_accumulator"], np.float32)]
    return [np.zeros(floats, np.float32)] if numbers["momentum"] > 0 else []


class Replica:
    """The values of a model, and what its optimizer keeps of them."""

    def __init__(
        self,
        trained: Layout,
        carried: Layout,
        optimizer: Optimizer,
        life: int = 0,
        instance: int = 0,
        version: int = 0,
        steps: int = 0,
    ) -> None:
        self.trained, self.carried, self.optimizer = trained, carried, optimizer
        # The model generation, and a random number that it has instead of a server's.
        self.life, self.instance = life, instance
        self.version, self.steps = version, steps
        self.values = np.zeros(trained.floats, np.float32)
        self.state = np.zeros(carried.floats, np.float32)
        self.slots = _slots(optimizer, trained.floats)

    @classmethod
    def begin(cls, parameters: Arrays, state: Arrays, optimizer: Optimizer) -> "Replica":
        """A replica that was not trained yet."""
        made = cls(Layout.of(parameters), Layout.of(state), optimizer)
        made.trained.write(parameters, made.values)
        made.carried.write(state, made.state)
        return made

    def vectors(self) -> List[np.ndarray]:
        """All of its numbers."""
        return [self.values, self.state, *self.slots]

    def copy(self) -> "Replica":
        """As it is now."""
        made = Replica.described(self.description())
        for own, into in zip(self.vectors(), made.vectors()):
            into[:] = own
        return made

    def description(self) -> bytes:
        """All but its numbers."""
        return json.dumps(
            {
                "life": self.life,
                "instance": self.instance,
                "version": self.version,
                "steps": self.steps,
                "optimizer": [self.optimizer.kind, self.optimizer.arguments],
                "trained": self.trained.shapes,
                "carried": self.carried.shapes,
            }
        ).encode()

    @classmethod
    def described(cls, description: bytes) -> "Replica":
        """One whose numbers come afterwards."""
        found: Dict[str, Any] = json.loads(description)
        optimizer = make(*found.pop("optimizer"))
        trained, carried = Layout(found.pop("trained")), Layout(found.pop("carried"))
        return cls(trained, carried, optimizer, **found)

    def update(self, gradient: np.ndarray, rate: float) -> None:
        """A step of the optimizer by the mean gradient; version and steps rise."""
        self.version += 1
        self.steps += 1
        numbers = self.optimizer.arguments
        if self.optimizer.kind == "adam":
            self._adam(gradient, rate, numbers)
        elif self.optimizer.kind == "adagrad":
            (sums,) = self.slots
            sums += gradient * gradient
            root = np.sqrt(sums) + np.float32(numbers["epsilon"])
            self.values -= np.float32(rate) * gradient / root
        elif self.slots:
            (velocity,) = self.slots
            momentum = np.float32(numbers["momentum"])
            velocity *= momentum
            velocity += gradient
            step = gradient + momentum * velocity if numbers["nesterov"] else velocity
            self.values -= np.float32(rate) * step
        else:
            self.values -= np.float32(rate) * gradient

    def _adam(self, gradient: np.ndarray, rate: float, numbers: Dict[str, float]) -> None:
        first, second = self.slots[:2]
        beta_1, beta_2 = numbers["beta_1"], numbers["beta_2"]
        first *= np.float32(beta_1)
        first += np.float32(1 - beta_1) * gradient
        second *= np.float32(beta_2)
        second += np.float32(1 - beta_2) * gradient * gradient
        divisor = second
        if len(self.slots) > 2:
            divisor = np.maximum(self.slots[2], second, out=self.slots[2])
        # Both means begin at 0 and are too small at first.
        factor = math.sqrt(1 - beta_2**self.steps) / (1 - beta_1**self.steps)
        root = np.sqrt(divisor) + np.float32(numbers["epsilon"])
        self.values -= np.float32(rate * factor) * first / root
