"""Custom training loops that add up their gradients. Owns: the contributions of such a worker to
rounds, and what becomes of a minibatch when another comes or goes. Does not know about: what rounds
have in common (`rounds`), frameworks (`Model`), how bytes go round (`ring`), records (`shards`).

A minibatch is reported once a later header has shown that all have its update. A worker without a
minibatch takes part with none while it waits for records. The first worker makes checkpoints
between two updates: then all have the same model, and each says how many records of its tasks are
in it.
"""

from __future__ import annotations

import struct
import threading
import time
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .loop import Loop, LoopError
from .loop_saving import LoopLeader, Snapshot
from .meeting import Meeting
from .protocol import messages as pb
from .ring import Broken, Ring
from .rounds import IDLE_S, Rounds
from .shards import DataShardService
from .sharing import log

_HEADER = struct.Struct(">IQQQQ")
_HAS_MODEL, _LEAVES, _DONE, _SAVES = 1, 2, 4, 8
# How many tasks of a worker may have records in a checkpoint. It holds a few at a time.
_PARTS_MAX = 32
_PARTS = struct.Struct(f">Q{2 * _PARTS_MAX}Q")
_LOOK_S = 0.2


class Again(Exception):
    """The worker has another model now than its gradient was computed with."""


class Model:
    """A model and its optimizer, of some framework. A subclass has all of these."""

    floats = 0
    """Length of the vector."""

    def read(self) -> np.ndarray:
        """Vector that an update averages, of float32: the gradients of a minibatch, buffers,
        learning rates."""
        raise NotImplementedError

    def update(self, mean: np.ndarray) -> None:
        """Makes an update by the mean of such vectors."""
        raise NotImplementedError

    def pack(self) -> Tuple[bytes, List[np.ndarray]]:
        """All of the model and its optimizer, as in `trees`."""
        raise NotImplementedError

    def unpack(self, description: bytes, fill: Any) -> None:
        """Takes over a model that was packed."""
        raise NotImplementedError


class Header(NamedTuple):
    """Header of a worker at the beginning of a round."""

    flags: int
    life: int
    version: int
    floats: int
    batches: int
    """Minibatches of its vector."""

    @property
    def has_model(self) -> bool:
        """True if the worker has the model."""
        return bool(self.flags & _HAS_MODEL)

    @property
    def can_begin(self) -> bool:
        """True if it could make a new one."""
        return self.floats > 0

    @property
    def leaves(self) -> bool:
        """True if it leaves after this round."""
        return bool(self.flags & _LEAVES)


class Part(NamedTuple):
    """The sum of the vectors of minibatches."""

    vector: np.ndarray
    count: int


class Sums(Rounds):
    """The rounds of this worker."""

    def __init__(self, loop: Loop, service: DataShardService) -> None:
        super().__init__()
        self._loop, self._service = loop, service
        self._meeting = Meeting(loop)  # type: ignore[arg-type]
        self._leader = LoopLeader(loop)
        self._lock = threading.RLock()
        self.model: Optional[Model] = None
        self._has_model = False
        self._life = self._instance = self.version = 0
        self.batches = 0
        """Minibatches of all workers that are in the model."""
        # Minibatches of this worker that are not in it yet, and their sum; and minibatches that are
        # in it, and perhaps not in the models of all workers yet.
        self._waiting, self._sum = 0, np.zeros(0, np.float32)
        self._unsafe = 0
        # Minibatches of a round that may have ended for others, and the version before it.
        self._in_flight: Optional[Tuple[int, int]] = None
        # A minibatch of the script is trained now; whether it is noted.
        self._is_training = self._is_noted = False
        self._is_ended = self._has_left = False
        self._has_joined = threading.Event()
        loop.at_end(self._leave)
        service.before_first = self._await_model
        service.while_waiting = self._idle
        service.when_done = self._finish

    @property
    def size(self) -> int:
        """Workers of the present round; 1 before the first."""
        ring = self._meeting.present
        return ring.size if ring is not None else 1

    @property
    def rank(self) -> int:
        """The place of this worker among them."""
        return self._meeting.rank or 0

    # Requests of the script.

    def join(self, model: Model) -> None:
        """This worker has the model that it begins with, and takes part in rounds."""
        self.model = self._leader.model = model
        self._meeting.begin()
        self._has_joined.set()

    def begin(self) -> None:
        """A minibatch begins, once the workers have the same model: until its end only its step
        changes the model."""
        self._await_same()
        with self._lock:
            self._is_training, self._is_noted = True, False

    def end(self) -> None:
        """The minibatch that has begun is trained, or has failed."""
        self._is_training = False

    def _await_same(self) -> None:
        while not self._has_model:
            self._loop.check()
            with self._lock:
                if not self._has_model:
                    self._round(None)

    def _await_model(self) -> None:
        """Tasks are asked for once the life of the model is known that they are of."""
        while not self._has_joined.wait(_LOOK_S):
            self._loop.check()
        self._await_same()

    def step(self, per_update: int) -> bool:
        """Takes the gradients of a minibatch, and makes an update with those of the other workers
        once there are `per_update` of this one. Returns True if it has made one.

        Raises Again if the minibatch has to be computed again, and LoopError outside of one.
        """
        if self.model is None or not self._is_training:
            raise LoopError("call the step of the optimizer in the function for elastic_run")
        with self._lock:
            vector = self.model.read()
            if not self._is_noted:
                self._service.note_trained()
                self._is_noted = True
            if self._waiting + 1 < per_update:
                self._sum = self._sum + vector if self._waiting else vector.copy()
                self._waiting += 1
                return False
            whole = self._sum + vector if self._waiting else vector
            count = self._waiting + 1
        while True:
            self._loop.check()
            with self._lock:
                if self._round(Part(whole, count)):
                    return True

    # Rounds.

    def _packed(self, step: Optional[Part], flags: int) -> bytes:
        return _HEADER.pack(*self._header(step.count if step is not None else 0, flags))

    def _unpacked(self, block: bytes) -> Header:
        return Header(*_HEADER.unpack(block))

    def _header(self, count: int, flags: int) -> Header:
        floats = self.model.floats if self.model is not None else 0
        if not self._has_model:
            return Header(flags, 0, 0, floats, 0)
        if self._meeting.rank == 0 and self._leader.is_due(self._snapshot([])):
            flags |= _SAVES
        return Header(flags | _HAS_MODEL, self._life, self.version, floats, count)

    def _differ(self, headers: Sequence[Header], newest: int) -> Exception:
        sizes = ", ".join(f"{rank}: {one.floats}" for rank, one in enumerate(headers))
        return ValueError(f"the models of the workers differ in size; numbers by rank: {sizes}")

    def _agreed(self, ring: Ring, headers: Sequence[Header], all_leave: bool) -> None:
        # No worker has made the update that this one has not.
        self._in_flight = None
        self._confirm()
        if self._leader.keeps and (all_leave or headers[0].flags & _SAVES):
            self._save(ring, all_leave)

    def _begin_model(self) -> None:
        """No worker has the model: it begins, and the master gives all records out again that were
        in one that is lost, and are not in the checkpoint that the model is of now."""
        if self._life:
            raise LoopError("an update failed halfway, and no other worker has the whole model")
        found = self._leader.begin()
        self._life, self._instance, self._has_model = found.life, found.instance, True
        self.version, self.batches = found.version, found.batches

    def _snapshot(self, arrays: List[np.ndarray], description: bytes = b"") -> Snapshot:
        made = Snapshot(self.version, self.batches, description, arrays)
        made.life, made.instance = self._life, self._instance
        return made

    def _save(self, ring: Ring, all_leave: bool) -> None:
        """Saves the model, with the records that are in it by the reports of all workers."""
        own = self._service.positions()
        numbers = [number for part in own[:_PARTS_MAX] for number in part]
        numbers += [0] * (2 * _PARTS_MAX - len(numbers))
        blocks = ring.gather(_PARTS.pack(len(own), *numbers))
        if ring.rank != 0:
            return
        positions = []
        for count, *parts in map(_PARTS.unpack, blocks):
            if count > _PARTS_MAX:
                log(f"no checkpoint of version {self.version}: a worker holds {count} tasks")
                return
            of_one = zip(parts[0 : 2 * count : 2], parts[1 : 2 * count : 2])
            positions += [pb.Position(task_id=t, finished_records=n) for t, n in of_one]
        snapshot = self._whole_snapshot()
        if all_leave:
            self._leader.save_at_end(snapshot, positions)
        else:
            self._leader.save(snapshot, positions)

    def _whole_snapshot(self) -> Snapshot:
        assert self.model is not None, "only workers with a model have rounds"
        description, arrays = self.model.pack()
        return self._snapshot(arrays, description)

    def _hand_on(self, ring: Ring, source: int, step: Optional[Part]) -> bool:
        """Gives the model of one worker to all."""
        assert self.model is not None, "a header without one has no floats"
        is_source = ring.rank == source
        description, arrays = self.model.pack() if is_source else (b"", [])
        numbers = np.array([self._life, self._instance, self.version, self.batches], np.uint64)
        before = (self._life, self.version)
        ring.hand_on(source, numbers)
        description = ring.hand_on_message(source, description)
        for one in arrays:
            ring.hand_on(source, one.reshape(-1))
        if is_source:
            return False
        self.model.unpack(description, lambda flat: ring.hand_on(source, flat))
        self._life, self._instance, self.version, self.batches = map(int, numbers)
        log(f"world {ring.generation}: version {self.version} of the model from rank {source}")
        is_of_life, self._has_model = before[0] == self._life, True
        flight, self._in_flight = self._in_flight, None
        if flight is not None and is_of_life and flight[1] == before[1] < self.version:
            self._note(flight[0])
            return True
        if before[0] and not is_of_life:
            raise LoopError("the other workers restarted training without this worker; it exits")
        if step is not None:
            raise Again()
        return False

    def _reduce(self, ring: Ring, headers: Sequence[Header], step: Optional[Part]) -> bool:
        assert self.model is not None, "all have it"
        self._is_ended = all(one.flags & _DONE for one in headers)
        total = sum(one.batches for one in headers)
        if total == 0:
            time.sleep(IDLE_S)
            return False
        count = step.count if step is not None else 0
        sums = np.zeros(self.model.floats, np.float32) if step is None else step.vector.copy()
        self._in_flight = (count, self.version) if count else None
        ring.reduce(sums)
        sums /= np.float32(total)
        # An update that fails halfway leaves no model to hand on or to save.
        self._has_model = False
        self.model.update(sums)
        self._has_model = True
        self._in_flight = None
        self.version += 1
        self.batches += total
        self._note(count)
        return count > 0

    def _note(self, count: int) -> None:
        """Adds to the number of minibatches of this worker that are in its model."""
        self._unsafe += count
        self._waiting = 0

    def _confirm(self) -> None:
        """All workers have what this one has trained."""
        count, self._unsafe = self._unsafe, 0
        if count:
            self._service.confirm(count)

    # While there are no records, and at the end.

    def _idle(self) -> None:
        self._loop.check()
        with self._lock:
            if self.model is None or self._is_training or self._has_left:
                return
            try:
                # Records that wait for others are not given to other workers.
                self._round(Part(self._sum, self._waiting) if self._waiting else None)
            except Again:
                # Their minibatches cannot be computed again: the sum is in the next update.
                pass

    def _finish(self) -> None:
        """All records are trained: waits until all workers know of it."""
        while self._has_model and self._loop.members.failure is None:
            self._loop.check()
            with self._lock:
                if self._has_left or not self._meeting.is_in_world:
                    return
                if not self._is_training:
                    self._round(None, _DONE)
                    if self._is_ended and self._has_told():
                        return
                    continue
            time.sleep(IDLE_S)

    def _has_told(self) -> bool:
        """The first worker reports the end to the master, then all leave. If it dies meanwhile,
        another does."""
        ring = self._meeting.present
        if self._meeting.rank == 0:
            keeps = self._leader.keeps
            self._leader.finish(self._whole_snapshot() if keeps else self._snapshot([]))
        try:
            if ring is None or self._meeting.ring() is not ring:
                return False
            ring.gather(self._packed(None, _DONE))
        except Broken:
            self._meeting.dissolve()
            return False
        return True

    def _leave(self) -> None:
        """Before this worker leaves: its training is in the models of others, or if all leave in a
        checkpoint."""
        is_over = self._loop.has_until()
        with self._lock:
            self._has_left = True
            waits = self._leader.keeps and self._has_model and not self._is_ended
            try:
                while waits or self._unsafe or self._in_flight:
                    if not self._meeting.is_in_world or is_over() or self._meeting.is_ended:
                        break
                    if self._loop.members.failure is not None:
                        break
                    self._round(None, _LEAVES)
                    waits = waits and not self._is_safe
            finally:
                self._leader.stop()
                self._meeting.stop()
