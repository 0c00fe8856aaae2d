"""Custom training loops with PyTorch whose workers add up their gradients. Owns: the
published controller and optimizer. Does not know about: rounds (`sums`)."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np
import torch

from .indices import RecordIndexService
from .loop import Loop, LoopError
from .shards import DataShardService
from .sums import Again, Model, Sums
from .trees import pack, unpack


def _array(value: Any) -> np.ndarray:
    """The values of a tensor; numpy has no bfloat16."""
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


class _TorchModel(Model):
    """A module and an optimizer of PyTorch."""

    def __init__(self, module: Any, optimizer: Any) -> None:
        self._module, self._optimizer = module, optimizer
        self._parameters = [
            one for group in optimizer.param_groups for one in group["params"] if one.requires_grad
        ]
        count = sum(one.numel() for one in [*self._parameters, *self._buffers()])
        self.floats = count + len(optimizer.param_groups)

    def _buffers(self) -> List[Any]:
        return [one for one in self._module.buffers() if one.is_floating_point()]

    def read(self) -> np.ndarray:
        gradients = (
            torch.zeros_like(one) if one.grad is None else one.grad for one in self._parameters
        )
        parts = [_array(one).ravel() for one in [*gradients, *self._buffers()]]
        rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        return np.concatenate([*parts, rates]).astype(np.float32)

    def update(self, mean: np.ndarray) -> None:
        at = 0
        # As after a step of one process the parameters have the gradients of the script.
        gradients = [one.grad for one in self._parameters]
        with torch.no_grad():
            for one in self._parameters:
                one.grad = self._at(mean, at, one)
                at += one.numel()
            for one in self._buffers():
                one.copy_(self._at(mean, at, one))
                at += one.numel()
        groups = self._optimizer.param_groups
        # A schedule may have gone on in some workers only; an update is the same in all.
        own = [group["lr"] for group in groups]
        for group, rate in zip(groups, mean[at:]):
            group["lr"] = float(rate)
        self._optimizer.own_step()
        for group, rate in zip(groups, own):
            group["lr"] = rate
        for one, gradient in zip(self._parameters, gradients):
            one.grad = gradient

    @staticmethod
    def _at(mean: np.ndarray, at: int, like: Any) -> Any:
        part = mean[at : at + like.numel()].reshape(tuple(like.shape))
        return torch.from_numpy(part.copy()).to(like)

    def pack(self) -> Tuple[bytes, List[np.ndarray]]:
        tree = [self._module.state_dict(), self._optimizer.state_dict()]
        return pack(tree, lambda of: _array(of) if torch.is_tensor(of) else None)

    def unpack(self, description: bytes, fill: Any) -> None:
        model, optimizer = unpack(description, fill, torch.from_numpy)
        self._module.load_state_dict(model)
        self._optimizer.load_state_dict(optimizer)


class _Distributed:
    """Methods of a distributed optimizer before those of its own class."""

    sums: Optional[Sums] = None
    fixed_global_batch_size = False
    backward_passes_per_step = 1
    global_batch_num_per_step = 1
    update_gradients = True

    def own_step(self) -> None:
        """The update of the optimizer itself, with the gradients that the parameters have."""
        super().step()  # type: ignore[misc]

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Adds the gradients of a minibatch up with those of the other workers, and makes the
        update. `update_gradients` is False if it waits for further minibatches."""
        if self.sums is None:
            raise LoopError(
                "the optimizer is of no controller: call set_broadcast_model and "
                "set_broadcast_optimizer of create_elastic_controller(...)"
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.update_gradients = self.sums.step(self._per_update())
        return loss

    def _per_update(self) -> int:
        if not self.fixed_global_batch_size:
            return self.backward_passes_per_step
        assert self.sums is not None, "step looks at that"
        each, more = divmod(self.global_batch_num_per_step, self.sums.size)
        return max(1, each + (self.sums.rank < more))


def _rebind_step(optimizer: Any) -> None:
    """Replaces the attribute `step` that a schedule has set, which calls that of the own class."""
    noting = optimizer.__dict__.pop("step", None)
    if noting is None:
        return

    @functools.wraps(getattr(noting, "__func__", noting))
    def step(*arguments: Any, **named: Any) -> Any:
        # By these the schedules of this and of earlier releases know of the step.
        optimizer._opt_called = True
        optimizer._step_count = getattr(optimizer, "_step_count", 0) + 1
        return type(optimizer).step(optimizer, *arguments, **named)

    optimizer.step = step


def DistributedOptimizer(
    optimizer: Any,
    named_parameters: Any = None,
    compression: Any = None,
    backward_passes_per_step: int = 1,
    op: Any = None,
    gradient_predivide_factor: float = 1.0,
    global_batch_num_per_step: Optional[int] = None,
    fixed_global_batch_size: bool = False,
) -> Any:
    """The optimizer, which now adds gradients up over the workers, as their mean over minibatches.

    Args:
        optimizer: one of `torch.optim`.
        named_parameters: not needed here.
        backward_passes_per_step: minibatches of a worker to an update.
        global_batch_num_per_step: minibatches of all workers to an update, with
            `fixed_global_batch_size` (the number of workers at the start, `WORKER_NUM`).
        fixed_global_batch_size: workers add up further minibatches while there are fewer of them.
        compression, op, gradient_predivide_factor: only as they are.

    Raises ValueError for what cannot be had.
    """
    if compression is not None or op is not None or gradient_predivide_factor != 1.0:
        raise ValueError(
            "DistributedOptimizer sends float32 and takes the mean: leave out compression, op and "
            "gradient_predivide_factor"
        )
    if backward_passes_per_step < 1:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}; at least 1")
    own = type(optimizer)
    if not issubclass(own, _Distributed):
        # Of its own class still: schedules look at that.
        optimizer.__class__ = type(own.__name__, (_Distributed, own), {})
        _rebind_step(optimizer)
    optimizer.fixed_global_batch_size = fixed_global_batch_size
    optimizer.backward_passes_per_step = backward_passes_per_step
    optimizer.global_batch_num_per_step = global_batch_num_per_step or int(
        os.environ.get("WORKER_NUM") or 1
    )
    return optimizer


class PyTorchAllReduceController:
    """Runs the steps of a script so that they survive workers that come and go.

    Args: the data shard service, or as in the earlier form a master client and the service.
    """

    def __init__(self, *of: Any) -> None:
        self.data_shard_service: DataShardService = of[-1]
        self._loop: Loop = self.data_shard_service.loop
        if self._loop.settings.message.parameter_servers:
            raise LoopError(
                "the workers of this job do not add up their gradients: submit it with "
                "--distribution_strategy=AllreduceStrategy"
            )
        self._sums = Sums(self._loop, self.data_shard_service)
        self._module: Any = None
        self._optimizer: Any = None
        self._resumed = 0
        self.data_shard_service.check_ready = self._check_joined

    def set_broadcast_model(self, model: Any) -> None:
        """The model that all workers get."""
        self._module = model
        self._join()

    def set_broadcast_optimizer(self, optimizer: Any) -> None:
        """The optimizer whose state all workers get; it adds gradients up from now on."""
        if not isinstance(optimizer, _Distributed):
            DistributedOptimizer(optimizer)
        self._optimizer = optimizer
        self._join()

    def _join(self) -> None:
        if self._module is None or self._optimizer is None or self._sums.model is not None:
            return
        self._optimizer.sums = self._sums
        self._sums.join(_TorchModel(self._module, self._optimizer))

    @property
    def global_completed_batch_num(self) -> int:
        """Minibatches of all workers that are in the model."""
        return self._sums.batches

    def set_resume_epoch(self, epoch: int) -> None:
        """The epoch that the training resumes in, for `get_current_epoch`."""
        self._resumed = epoch

    def get_current_epoch(self) -> int:
        """The epoch that the model has reached, from 0."""
        records = self._sums.batches * self.data_shard_service.batch_size
        return self._resumed + records // self.data_shard_service.dataset_size

    def _check_joined(self) -> None:
        if self._sums.model is None:
            raise LoopError(
                "call set_broadcast_model and set_broadcast_optimizer of the controller before the "
                "loop"
            )

    def elastic_run(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function that trains one minibatch, to be called in its place: it is called again if
        the model has changed meanwhile. Then the minibatch is reported."""

        @functools.wraps(func)
        def run(*arguments: Any, **named: Any) -> Any:
            self._check_joined()
            self._sums.begin()
            try:
                return self._repeated(lambda: func(*arguments, **named), func.__name__)
            finally:
                self._sums.end()

        return run

    def _repeated(self, train: Callable[[], Any], name: str) -> Any:
        self._optimizer.update_gradients = None
        while True:
            try:
                result = train()
                break
            except Again:
                # Those of the attempt, which a script may set to zero only after its step.
                self._optimizer.zero_grad()
        if self._optimizer.update_gradients is None:
            raise LoopError(f"{name} made no step of the optimizer")
        return result

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Around the loop. Raises LoopError without a model and an optimizer."""
        self._check_joined()
        yield


def create_elastic_controller(
    batch_size: int,
    num_epochs: Optional[int] = None,
    dataset_size: Optional[int] = None,
    shuffle: bool = False,
    **named: Any,
) -> PyTorchAllReduceController:
    """A controller with a `RecordIndexService` of these numbers, as `data_shard_service`."""
    service = RecordIndexService(
        batch_size, num_epochs, dataset_size, shuffle, starts=False, **named
    )
    controller = PyTorchAllReduceController(service)
    service.start()
    return controller
