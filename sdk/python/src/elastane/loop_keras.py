"""Custom training loops with TensorFlow whose workers add up their gradients. Owns: the published
controller and optimizer, for Keras of either generation. Does not know about: rounds (`sums`)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from .loop import LoopError
from .loop_controller import AllReduceController, Distributed, distribute
from .sums import Model
from .trees import pack, unpack


class _KerasModel(Model):
    """A model and an optimizer of Keras."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._model, self._optimizer = model, optimizer
        if not model.built and not model.variables:
            raise LoopError("build the model before set_broadcast_model: it has no variables yet")
        self.trainable: List[Any] = list(model.trainable_variables)
        self._numbers = {id(one): number for number, one in enumerate(self.trainable)}
        # Weights, unlike variables, are without the states of seed generators and metrics.
        kept = [one for one in model.non_trainable_weights if "string" not in str(one.dtype)]
        self._carried = [one for one in kept if "float" in str(one.dtype)]
        # Counters have no mean: they are handed on and saved.
        self._counters = [one for one in kept if "float" not in str(one.dtype)]
        self._make_slots()
        shapes = [one.shape for one in [*self.trainable, *self._carried]]
        self._sizes = [int(np.prod(tuple(shape))) for shape in shapes]
        # A rate that is a number of its own is averaged; that of a schedule follows the iterations.
        rate = getattr(optimizer, "_learning_rate", None)
        if rate is None:
            rate = optimizer.learning_rate
        self._has_rate = not callable(rate) or hasattr(rate, "numpy")
        self.floats = sum(self._sizes) + self._has_rate
        self._gradients: List[np.ndarray] = []

    def _make_slots(self) -> None:
        """Makes what the optimizer keeps of each variable, which Keras does with the first step."""
        for name in ("build", "_create_all_weights"):
            make = getattr(self._optimizer, name, None)
            if make is not None and not getattr(self._optimizer, "built", False):
                make(self.trainable)
                return

    def note(self, pairs: List[Tuple[Any, Any]]) -> None:
        """Takes the gradients of a minibatch; a variable without one has zeros."""
        found: Dict[int, np.ndarray] = {}
        for gradient, variable in pairs:
            number = self._numbers.get(id(variable))
            if number is None:
                raise LoopError(f"{variable.name} is no trainable variable of the broadcast model")
            if gradient is not None:
                found[number] = tf.convert_to_tensor(gradient).numpy().astype(np.float32).ravel()
        zeros = [np.zeros(size, np.float32) for size in self._sizes[: len(self.trainable)]]
        self._gradients = [found.get(number, zero) for number, zero in enumerate(zeros)]

    def read(self) -> np.ndarray:
        state = [np.asarray(one.numpy(), np.float32).ravel() for one in self._carried]
        rate = [np.array([float(self._optimizer.learning_rate)], np.float32)] * self._has_rate
        return np.concatenate([*self._gradients, *state, *rate])

    def update(self, mean: np.ndarray) -> None:
        at, parts = 0, []
        for size in self._sizes:
            parts.append(mean[at : at + size])
            at += size
        count = len(self.trainable)
        for one, part in zip(self._carried, parts[count:]):
            one.assign(part.reshape(tuple(one.shape)).astype(one.numpy().dtype))
        # A callback may have changed the rate in some workers only; an update is the same in all.
        own = float(self._optimizer.learning_rate) if self._has_rate else None
        if own is not None:
            self._optimizer.learning_rate = float(mean[at])
        gradients = [
            tf.cast(tf.reshape(tf.constant(part), one.shape), one.dtype)
            for part, one in zip(parts, self.trainable)
        ]
        self._optimizer.own_step(list(zip(gradients, self.trainable)))
        if own is not None:
            self._optimizer.learning_rate = own

    def _variables(self) -> List[Any]:
        """All variables that are handed on; not the seeds of layers, which are each worker's
        own."""
        of_optimizer = self._optimizer.variables
        kept = of_optimizer() if callable(of_optimizer) else of_optimizer
        return [*self.trainable, *self._carried, *self._counters, *kept]

    def pack(self) -> Tuple[bytes, List[np.ndarray]]:
        values = [np.asarray(one.numpy()) for one in self._variables()]
        return pack(values, lambda of: of if isinstance(of, np.ndarray) else None)

    def unpack(self, description: bytes, fill: Any) -> None:
        values, variables = unpack(description, fill, lambda array: array), self._variables()
        if len(values) != len(variables):
            raise ValueError(f"{len(values)} variables, and here {len(variables)}")
        for variable, value in zip(variables, values):
            shape, here = list(np.shape(value)), list(variable.shape)
            if shape != here:
                raise ValueError(f"{variable.name}: shape {shape}, and {here} here")
        for variable, value in zip(variables, values):
            variable.assign(value)


class _Distributed(Distributed):
    """Methods of a distributed optimizer before those of its own class."""

    def own_step(self, pairs: List[Tuple[Any, Any]]) -> None:
        """The update of the optimizer itself."""
        super().apply_gradients(pairs)  # type: ignore[misc]

    def apply_gradients(self, grads_and_vars: Any, *_: Any, **__: Any) -> Any:
        """Adds the gradients up with those of the other workers, and makes the update."""
        if not tf.executing_eagerly():
            raise LoopError(
                "apply_gradients of a loop that adds up gradients is called in a graph: leave out "
                "tf.function around the function for elastic_run"
            )
        sums = self.joined()
        assert isinstance(sums.model, _KerasModel), "the controller of Keras has given it"
        sums.model.note(list(grads_and_vars))
        self.add_up()
        return self.iterations  # type: ignore[attr-defined]


def DistributedOptimizer(
    optimizer: Any,
    backward_passes_per_step: int = 1,
    global_batch_num_per_step: Optional[int] = None,
    fixed_global_batch_size: bool = False,
) -> Any:
    """The optimizer of Keras, whose `apply_gradients` now adds gradients up over the workers, as
    their mean over minibatches.

    Args:
        optimizer: one of `tf.keras.optimizers`.
        backward_passes_per_step: minibatches of a worker to an update.
        global_batch_num_per_step: minibatches of all workers to an update, with
            `fixed_global_batch_size` (the number of workers at the start, `WORKER_NUM`).
        fixed_global_batch_size: workers add up further minibatches while there are fewer of them.

    Raises ValueError for an optimizer that is not of Keras.
    """
    if not hasattr(optimizer, "apply_gradients") or not hasattr(optimizer, "iterations"):
        raise ValueError(
            f"the optimizer is a {type(optimizer).__name__}: take one of tf.keras.optimizers"
        )
    distribute(
        optimizer,
        _Distributed,
        backward_passes_per_step,
        global_batch_num_per_step,
        fixed_global_batch_size,
    )
    return optimizer


class TensorFlowV2AllReduceController(AllReduceController):
    """Runs the steps of a script so that they survive workers that come and go."""

    def _distribute(self, optimizer: Any) -> None:
        DistributedOptimizer(optimizer)

    def _pair(self) -> Model:
        return _KerasModel(self._module, self._optimizer)


create_elastic_controller = TensorFlowV2AllReduceController.create
