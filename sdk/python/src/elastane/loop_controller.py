"""The published controller of custom training loops whose workers add up their gradients. Owns:
joining with a model and an optimizer, and repeating a minibatch. Does not know about: frameworks (a
subclass), rounds (`sums`)."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Type, TypeVar

from .indices import RecordIndexService
from .loop import Loop, LoopError
from .shards import DataShardService
from .sums import Again, Model, Sums


class Distributed:
    """The numbers of a distributed optimizer."""

    sums: Optional[Sums] = None
    fixed_global_batch_size = False
    backward_passes_per_step = 1
    global_batch_num_per_step = 1
    update_gradients: Optional[bool] = True

    def add_up(self) -> None:
        """Adds the gradients of a minibatch up with those of the other workers, and makes the
        update. `update_gradients` is False if it waits for further minibatches."""
        self.update_gradients = self.joined().step(self._per_update())

    def joined(self) -> Sums:
        """The rounds of the worker. Raises LoopError without a controller."""
        if self.sums is None:
            raise LoopError(
                "the optimizer is of no controller: call set_broadcast_model and "
                "set_broadcast_optimizer of create_elastic_controller(...)"
            )
        return self.sums

    def _per_update(self) -> int:
        if not self.fixed_global_batch_size:
            return self.backward_passes_per_step
        sums = self.joined()
        each, more = divmod(self.global_batch_num_per_step, sums.size)
        return max(1, each + (sums.rank < more))


def distribute(
    optimizer: Any,
    kind: Type[Any],
    backward_passes_per_step: int,
    global_batch_num_per_step: Optional[int],
    fixed_global_batch_size: bool,
) -> bool:
    """Puts the methods of a kind before those of the optimizer's own class. Returns True if they
    were not there before."""
    if backward_passes_per_step < 1:
        raise ValueError(f"backward_passes_per_step is {backward_passes_per_step}; at least 1")
    own = type(optimizer)
    is_new = not issubclass(own, kind)
    if is_new:
        # Schedules check that the optimizer is still an instance of its own class.
        optimizer.__class__ = type(own.__name__, (kind, own), {})
    optimizer.fixed_global_batch_size = fixed_global_batch_size
    optimizer.backward_passes_per_step = backward_passes_per_step
    optimizer.global_batch_num_per_step = global_batch_num_per_step or int(
        os.environ.get("WORKER_NUM") or 1
    )
    return is_new


Made = TypeVar("Made", bound="AllReduceController")


class AllReduceController:
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

    @classmethod
    def create(
        cls: Type[Made],
        batch_size: int,
        num_epochs: Optional[int] = None,
        dataset_size: Optional[int] = None,
        shuffle: bool = False,
        training_data: Optional[str] = None,
        **named: Any,
    ) -> Made:
        """A controller with a `RecordIndexService` of these numbers, or of the records of
        `training_data`, as `data_shard_service`; its published name is
        `create_elastic_controller`."""
        named.update(training_data=training_data, starts=False)
        service = RecordIndexService(batch_size, num_epochs, dataset_size, shuffle, **named)
        controller = cls(service)
        service.start()
        return controller

    # Methods of a subclass, for its framework.

    def _distribute(self, optimizer: Any) -> None:
        """Has an optimizer of no loop yet add gradients up."""
        raise NotImplementedError

    def _pair(self) -> Model:
        """The model and the optimizer of the script as one."""
        raise NotImplementedError

    def _forget_gradients(self) -> None:
        """The gradients of an attempt that is repeated do not count."""

    # The published methods.

    def set_broadcast_model(self, model: Any) -> None:
        """The model that all workers get."""
        self._module = model
        self._join()

    def set_broadcast_optimizer(self, optimizer: Any) -> None:
        """The optimizer whose state all workers get; it adds gradients up from now on."""
        if not isinstance(optimizer, Distributed):
            self._distribute(optimizer)
        self._optimizer = optimizer
        self._join()

    def _join(self) -> None:
        if self._module is None or self._optimizer is None or self._sums.model is not None:
            return
        self._optimizer.sums = self._sums
        self._sums.join(self._pair())

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
                self._forget_gradients()
        if self._optimizer.update_gradients is None:
            raise LoopError(f"{name} made no step of the optimizer")
        return result

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Around the loop. Raises LoopError without a model and an optimizer."""
        self._check_joined()
        yield
