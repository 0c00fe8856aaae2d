"""The ring of the present world. Owns: making one for each generation that the master names, and
ending a call in it once a worker is gone, or this one has to leave. Does not know about: what goes
round."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, List, Optional, Tuple

from . import ring
from .links import Listener
from .protocol import messages as pb
from .ring import Ring
from .sharing import log

if TYPE_CHECKING:
    from .worker import Worker

# Seconds for one attempt to connect to the others.
_FORM_S = 5.0
# Seconds between two checks for a world that is not there yet.
_WAIT_S = 0.2
# Most of the grace that rounds may take after SIGTERM or the order to leave; the rest is for
# handing back.
_ROUNDS_PART, _GRACE_S = 0.5, 20.0


class Meeting:
    """Where workers that train together find each other."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._listener = Listener(worker.host, worker.token)
        self._ring: Optional[Ring] = None
        self._addresses: List[str] = []
        # The last generation that is over although the master has not named the next one yet.
        self._over = 0
        # Since when the next worker cannot be connected to, in which generation.
        self._unreached: Optional[Tuple[int, float]] = None
        self._is_stopped = threading.Event()
        self.is_ended = False
        """True if this worker has to leave so soon that it takes part in no round any more."""

    def begin(self) -> None:
        """Lets others connect from now on."""
        self._worker.members.on_change = self._look
        self._worker.reachable(self._listener.address)
        threading.Thread(target=self._end_in_time, name="leave", daemon=True).start()

    def stop(self) -> None:
        """Ends all connections."""
        self._is_stopped.set()
        self._worker.members.on_change = lambda: None
        self.dissolve()
        self._listener.close()

    @property
    def is_in_world(self) -> bool:
        """True if the master counts this worker among those that train together."""
        return self._worker.members.world is not None

    @property
    def present(self) -> Optional[Ring]:
        """The ring of the last round, if it was not dissolved."""
        return self._ring

    @property
    def rank(self) -> Optional[int]:
        """The rank in the ring, if there is one."""
        return self._ring.rank if self._ring is not None else None

    def dissolve(self) -> None:
        """Ends the ring; the next one may be of the same generation."""
        if self._ring is not None:
            self._ring.close()
            self._ring = None

    def await_next(self, current: Ring) -> None:
        """A worker of this ring leaves: there is none until the master names the next world."""
        self._over = current.generation

    def ring(self) -> Optional[Ring]:
        """The ring of the present world. None if there is no world yet; raises Broken if not all of
        it are there yet."""
        members = self._worker.members
        world = members.world
        if self.is_ended:
            self.dissolve()
            return None
        if world is None or world.generation <= self._over:
            self.dissolve()
            with members.changed:
                members.changed.wait(_WAIT_S)
            return None
        if self._ring is not None and self._ring.generation == world.generation:
            return self._ring
        self.dissolve()
        generation, rank = int(world.generation), int(world.rank)
        self._addresses = [one.host for one in world.members]
        began = time.monotonic()
        try:
            self._ring = ring.form(
                self._listener,
                self._worker.token,
                generation,
                rank,
                self._addresses,
                _FORM_S,
                lambda: self._is_over(generation),
            )
        except ring.Broken as error:
            if not self._is_over(generation):
                log(f"world {generation}: {error}")
                following = world.members[(rank + 1) % world.size].worker_id
                is_unreached = isinstance(error, ring.Unreached)
                self._note(generation, following if is_unreached else None, began)
            raise
        self._note(generation, None, began)
        log(f"world {generation}: rank {rank} of {world.size}")
        self._look()
        return self._ring

    def _note(self, generation: int, unreached: Optional[int], began: float) -> None:
        """Has the master know of a worker that cannot be connected to, if there is one."""
        if unreached is None:
            self._unreached = self._worker.members.unreached = None
            return
        if self._unreached is None or self._unreached[0] != generation:
            self._unreached = (generation, began)
        for_ms = int((time.monotonic() - self._unreached[1]) * 1000)
        self._worker.members.unreached = pb.Unreached(
            generation=generation, worker_id=unreached, for_ms=for_ms
        )

    def _is_over(self, generation: int) -> bool:
        members = self._worker.members
        world = members.world
        is_other = world is None or world.generation != generation
        return self.is_ended or members.failure is not None or is_other

    def _end_in_time(self) -> None:
        """By a thread of its own: a round takes as long as the slowest worker, and this one is
        killed if it waits for that beyond its grace."""
        while not self._worker.is_leaving():
            if self._is_stopped.wait(_WAIT_S):
                return
        since = time.monotonic()
        while True:
            # The order of the master, which names the grace, may come after the signal.
            grace_s = self._worker.members.leave_within_ms / 1000 or _GRACE_S
            left = since + grace_s * _ROUNDS_PART - time.monotonic()
            if left <= 0:
                break
            if self._is_stopped.wait(min(left, _WAIT_S)):
                return
        self.is_ended = True
        self._look()

    def _look(self) -> None:
        """By any thread: a call that cannot end any more is ended. One in a world that has only
        got more workers ends by itself."""
        members, current = self._worker.members, self._ring
        if current is None:
            return
        world = members.world
        present = {one.host for one in world.members} if world is not None else set()
        is_over = self.is_ended or members.failure is not None
        if is_over or not present.issuperset(self._addresses):
            current.abort()
