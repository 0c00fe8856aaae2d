"""Custom training loops with PyTorch whose workers add up their gradients. Owns: the
published controller and optimizer. Does not know about: rounds (`sums`)."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch

from .loop_controller import AllReduceController, Distributed, distribute
from .sums import Model
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
        self._check(model)
        # The optimizer checks its groups before it takes over any, the module nothing.
        self._optimizer.load_state_dict(optimizer)
        self._module.load_state_dict(model)

    def _check(self, given: Dict[str, Any]) -> None:
        """Raises ValueError if the state of a module is of another one."""
        own = self._module.state_dict()
        names = sorted(given.keys() ^ own.keys())
        if names:
            raise ValueError(f"names of another module: {', '.join(names)}")
        for name, one in own.items():
            if torch.is_tensor(one) and one.is_floating_point():
                shape, here = list(np.shape(given[name])), list(one.shape)
                if shape != here:
                    raise ValueError(f"{name}: shape {shape}, and {here} here")


class _Distributed(Distributed):
    """Methods of a distributed optimizer before those of its own class."""

    def own_step(self) -> None:
        """The update of the optimizer itself, with the gradients that the parameters have."""
        super().step()  # type: ignore[misc]

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Adds the gradients of a minibatch up with those of the other workers, and makes the
        update."""
        self.joined()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.add_up()
        return loss


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
    is_new = distribute(
        optimizer,
        _Distributed,
        backward_passes_per_step,
        global_batch_num_per_step,
        fixed_global_batch_size,
    )
    if is_new:
        _rebind_step(optimizer)
    return optimizer


class PyTorchAllReduceController(AllReduceController):
    """Runs the steps of a script so that they survive workers that come and go."""

    def _distribute(self, optimizer: Any) -> None:
        DistributedOptimizer(optimizer)

    def _pair(self) -> Model:
        return _TorchModel(self._module, self._optimizer)

    def _forget_gradients(self) -> None:
        # A script may set the gradients of the attempt to zero only after its step.
        self._optimizer.zero_grad()


create_elastic_controller = PyTorchAllReduceController.create
