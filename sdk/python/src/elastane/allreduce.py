"""Training without parameter servers: each worker has the whole model, and each step adds up the
gradients of all. Owns: the contributions of a worker to rounds, and what becomes of them when
workers come and go. Does not know about: what rounds have in common (`rounds`), the update itself
(`replica`), the files (`leading`).

Gradients are summed up, weighted by their records, and each worker makes the same update. A worker
without a task takes part with the weight 0. If a worker dies within a round, some may have the
update and others not. In the next world the others get it from those that have it; a minibatch that
is part of it counts, and is not trained again.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import backends
from .backends import Batch, Step
from .leading import Leader
from .master import Work
from .meeting import Meeting
from .protocol import messages as pb
from .replica import Replica
from .ring import Broken, Ring
from .rounds import IDLE_S, Rounds
from .sharing import Dropped, Leaving, Sharing, Unshared, log

if TYPE_CHECKING:
    from .worker import Worker

_HEADER = struct.Struct(">IQQQddQQ")
HAS_MODEL, CAN_BUILD, LEAVES, DONE, SAVES = 1, 2, 4, 8, 16


class Header(NamedTuple):
    """Header of a worker at the beginning of a round."""

    flags: int
    life: int
    version: int
    floats: int
    weight: float
    """Records of its minibatch."""
    rate: float
    """The learning rate for it; that of the first worker with a minibatch counts."""
    task: int
    visited: int
    """Records of the task that are in this version."""

    def has(self, flag: int) -> bool:
        """True if it has this flag."""
        return bool(self.flags & flag)

    @property
    def has_model(self) -> bool:
        """True if the worker has the model."""
        return self.has(HAS_MODEL)

    @property
    def can_begin(self) -> bool:
        """True if it could make a new one."""
        return self.has(CAN_BUILD)

    @property
    def leaves(self) -> bool:
        """True if it leaves after this round."""
        return self.has(LEAVES)


def _positions(headers: Sequence[Header]) -> List[Any]:
    """The records of each task that are in this version."""
    return [
        pb.Position(task_id=one.task, finished_records=one.visited)
        for one in headers
        if one.task and one.visited
    ]


class Contribution(NamedTuple):
    """A minibatch and its gradient."""

    step: Step
    weight: int
    task: int
    visited: int
    count: Callable[[], None]
    """Called once the update with it is safe."""


class ByAllReduce(Rounds, Sharing):
    """The model is in every worker."""

    def __init__(self, worker: "Worker") -> None:
        Sharing.__init__(self, worker)
        Rounds.__init__(self)
        self._meeting = Meeting(worker)
        self._leader = Leader(worker)
        self._replica: Optional[Replica] = None
        self._batch: Optional[Batch] = None
        # Version of the values in the backend.
        self._given: Optional[Any] = None
        self._checked_life = 0
        # Contribution to a round that may have ended for others, with the version before it.
        self._in_flight: Optional[Tuple[Contribution, int]] = None
        # Calls to make once the contribution is safe.
        self._when_safe: List[Callable[[], None]] = []
        self._task = self._visited = 0
        self._headers: List[Header] = []
        self.patience_s = IDLE_S
        self.loss = float("nan")

    def begin(self) -> None:
        self._meeting.begin()

    def stop(self) -> None:
        self._meeting.stop()
        self._leader.stop()

    # Requests of the worker.

    def fetch(self, work: Work, batch: Optional[Batch], flush: bool = False) -> int:
        self._batch = batch or self._batch
        while self._replica is None:
            self._worker.check_task(work)
            self._round(None)
        self._give(self._replica)
        return self._replica.version

    def step(self, work: Work, batch: Batch, visited: int) -> Optional[float]:
        self._batch = batch
        step: Optional[Contribution] = None
        computed: Optional[Any] = None
        self._in_flight = None
        while True:
            self._worker.check_task(work)
            replica = self._replica
            if replica is not None:
                if 0 < work.task.model_generation < replica.life:
                    raise Dropped()
                if computed != (replica.life, replica.version):
                    callbacks = self._worker.backend.callbacks
                    callbacks.batch_begin(replica.version)
                    if callbacks.has_stopped:
                        return None
                    step = self._compute(replica, work, batch, visited)
                    computed = (replica.life, replica.version)
            if self._round(step):
                return self.loss

    def _compute(
        self, replica: Replica, work: Work, batch: Batch, visited: int
    ) -> Contribution:
        self._give(replica)
        began = time.monotonic()
        step = self._worker.backend.step(batch)
        self._worker.took(time.monotonic() - began)

        def count() -> None:
            work.visited = visited

        return Contribution(step, len(batch.records), work.task.task_id, visited, count)

    def when_safe(self, report: Callable[[], None]) -> None:
        self._when_safe.append(report)

    def forget(self) -> None:
        self._given = None

    def idle(self, is_done: bool) -> bool:
        if is_done and self._worker.members.failure is not None:
            return True
        if self._meeting.is_ended:
            raise Leaving()
        self._round(None, DONE if is_done else 0)
        if not is_done:
            return False
        if not self._meeting.is_in_world:
            return True
        is_agreed = self._is_safe or self._replica is None
        if not is_agreed or not all(one.has(DONE) for one in self._headers):
            time.sleep(IDLE_S)
            return False
        return self._end()

    def _end(self) -> bool:
        """The first saves the model, then all leave. If it dies meanwhile, another does."""
        agreed = self._meeting.present
        if self._meeting.rank == 0 and self._replica is not None:
            with self._worker.unhurried():
                self._leader.finish(self._replica)
        try:
            # In another world others are the first, and may have work.
            if agreed is None or self._meeting.ring() is not agreed:
                return False
            agreed.gather(self._packed(None, DONE))
        except Broken:
            self._break()
            return False
        return True

    def leave(self) -> None:
        while not self._meeting.is_ended and self._worker.members.failure is None:
            if not self._meeting.is_in_world or self._replica is None:
                return
            self._round(None, LEAVES)
            if self._is_safe:
                return

    # Rounds.

    def _break(self) -> None:
        self._headers = []
        super()._break()

    def _packed(self, step: Optional[Contribution], flags: int) -> bytes:
        return _HEADER.pack(*self._header(step, flags))

    def _header(self, step: Optional[Contribution], flags: int) -> Header:
        replica = self._replica
        if self._batch is not None:
            flags |= CAN_BUILD
        if replica is None:
            return Header(flags, 0, 0, 0, 0.0, 0.0, 0, 0)
        if self._meeting.rank == 0 and self._leader.is_due(replica):
            flags |= SAVES
        floats = replica.trained.floats + replica.carried.floats
        weight = rate = 0.0
        if step is not None:
            weight = float(step.weight)
            rate = self._worker.backend.learning_rate(replica.version)
        return Header(
            flags | HAS_MODEL,
            replica.life,
            replica.version,
            floats,
            weight,
            rate,
            self._task,
            self._visited,
        )

    def _unpacked(self, block: bytes) -> Header:
        return Header(*_HEADER.unpack(block))

    def _follow(self, ring: Ring, headers: List[Header], step: Optional[Contribution]) -> bool:
        self._headers = headers
        return super()._follow(ring, headers, step)

    def _begin_model(self) -> None:
        with self._worker.unhurried():
            self._worker.initial(self._batch)
            self._replica = self._leader.begin()

    def _differ(self, headers: Sequence[Header], newest: int) -> Exception:
        found = headers[newest].floats
        rank, one = next((r, one) for r, one in enumerate(headers) if one.floats != found)
        return Unshared(
            f"rank {rank} has a model of {one.floats} floats, and rank {newest} one of {found}"
        )

    def _agreed(self, ring: Ring, headers: Sequence[Header], all_leave: bool) -> None:
        waiting, self._when_safe = self._when_safe, []
        for report in waiting:
            report()
        if all_leave and ring.rank == 0 and self._replica is not None:
            self._leader.save_at_end(self._replica, _positions(headers))

    def _counted(self) -> bool:
        """Counts the contribution to the round as part of the model of this worker."""
        if self._in_flight is None:
            return False
        (step, _), self._in_flight = self._in_flight, None
        self._task, self._visited = step.task, step.visited
        self._when_safe.append(step.count)
        return True

    def _hand_on(self, ring: Ring, source: int, step: Optional[Contribution]) -> bool:
        """Gives the model of one to all. If it has the update that this worker lacks, the minibatch
        is in it."""
        own = self._replica
        description = own.description() if own is not None and ring.rank == source else b""
        description = ring.hand_on_message(source, description)
        taken = own if ring.rank == source else Replica.described(description)
        assert taken is not None, "the source has it"
        for vector in taken.vectors():
            ring.hand_on(source, vector)
        if ring.rank != source:
            log(f"world {ring.generation}: version {taken.version} of the model from rank {source}")
        self._replica, self.version = taken, taken.version
        if self._in_flight is None or own is None or own.life != taken.life:
            return False
        return self._in_flight[1] == own.version < taken.version and self._counted()

    def _reduce(
        self, ring: Ring, headers: Sequence[Header], step: Optional[Contribution]
    ) -> bool:
        replica = self._replica
        assert replica is not None, "all have it"
        total = sum(one.weight for one in headers)
        self.patience_s = 0.0 if total > 0 else IDLE_S
        if headers[0].has(SAVES) and ring.rank == 0:
            self._leader.save(replica, _positions(headers))
        if total == 0:
            return False
        trained, carried = replica.trained.floats, replica.carried.floats
        sums = np.zeros(trained + carried + 1, np.float32)
        if step is not None:
            replica.trained.write(step.step.gradients, sums[:trained])
            state = self._worker.backend.state()
            replica.carried.write(state, sums[trained : trained + carried])
            sums[-1] = step.step.loss
            sums *= np.float32(step.weight)
            self._in_flight = (step, replica.version)
        ring.reduce(sums)
        sums /= np.float32(total)
        replica.state[:] = sums[trained : trained + carried]
        rate = next(one.rate for one in headers if one.weight > 0)
        replica.update(sums[:trained], rate)
        self.version, self.loss = replica.version, float(sums[-1])
        # First: what fails afterwards does not take the update back.
        is_counted = self._counted()
        if ring.rank == 0:
            self._leader.reached(replica)
        return is_counted

    # The backend.

    def _give(self, replica: Replica) -> None:
        """The values of the model to the backend."""
        self._worker.initial(self._batch)
        mark = (replica.life, replica.version)
        if self._given == mark:
            return
        backend = self._worker.backend
        parameters = replica.trained.arrays(replica.values)
        if self._checked_life != replica.life:
            wrong = backends.check_names(backend.parameters(), parameters, "parameter")
            if wrong:
                raise Unshared(f"another model than that of the other workers: {wrong}")
            self._checked_life = replica.life
        backend.assign(parameters, replica.carried.arrays(replica.state))
        self._given = mark
