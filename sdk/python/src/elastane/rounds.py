"""Rounds of the workers of a job without parameter servers. Owns: what rounds of all kinds have in
common: the header of each worker, the owner of the newest model, and what becomes of a round that
ends early. Does not know about: gradients (a subclass), how bytes go round (`ring`).

A round begins with a header of each worker, which all get. The rest depends on the headers alone,
so all do the same:

    no worker has the model  the first that can makes it, and hands it on
    some have an older one   the first of those with the newest hands it on
    a worker leaves          the others wait for the next world
    else                     an update of all

Once the headers of a round are there, each worker has the update of the round before: only then is
it safe, and reported.
"""

from __future__ import annotations

import time
from typing import Any, List, Protocol, Sequence

from .meeting import Meeting
from .ring import Broken, Ring
from .sharing import log

# While no worker has a minibatch: between two rounds.
IDLE_S = 0.05


class Header(Protocol):
    """Header of a worker at the beginning of a round."""

    @property
    def life(self) -> int:
        """Generation of its model."""

    @property
    def version(self) -> int:
        """Version of its model."""

    @property
    def floats(self) -> int:
        """Length of the vector that is added up."""

    @property
    def has_model(self) -> bool:
        """True if the worker has the model."""

    @property
    def can_begin(self) -> bool:
        """True if it could make a new one."""

    @property
    def leaves(self) -> bool:
        """True if it leaves after this round."""


class Rounds:
    """The rounds of a worker. `step` is the contribution of the worker to one, if it has any."""

    def __init__(self) -> None:
        self._meeting: Meeting
        self._is_safe = False

    # Methods of a subclass, for its kind of rounds.

    def _packed(self, step: Any, flags: int) -> bytes:
        """The header of this worker."""
        raise NotImplementedError

    def _unpacked(self, block: bytes) -> Any:
        """The header of a worker."""
        raise NotImplementedError

    def _begin_model(self) -> None:
        """This worker makes the model, which no worker has."""
        raise NotImplementedError

    def _hand_on(self, ring: Ring, source: int, step: Any) -> bool:
        """Gives the model of one worker to all. Returns True if the contribution is in it."""
        raise NotImplementedError

    def _differ(self, headers: Sequence[Any], newest: int) -> Exception:
        """The error of models that differ in size from that of this rank."""
        raise NotImplementedError

    def _agreed(self, ring: Ring, headers: Sequence[Any], all_leave: bool) -> None:
        """All have the same model, and each what the others have trained."""

    def _reduce(self, ring: Ring, headers: Sequence[Any], step: Any) -> bool:
        """Makes the update of all. Returns True if the contribution is in it."""
        raise NotImplementedError

    # Methods of all kinds of rounds.

    def _break(self) -> None:
        """The next round has another ring."""
        # A later part of a round may fail, such as the checkpoint of workers that all leave.
        self._is_safe = False
        self._meeting.dissolve()

    def _round(self, step: Any, flags: int = 0) -> bool:
        """Runs one round. Returns True if the contribution is part of the model now."""
        self._is_safe = False
        try:
            ring = self._meeting.ring()
            if ring is None:
                return False
            headers = [self._unpacked(one) for one in ring.gather(self._packed(step, flags))]
            return self._follow(ring, headers, step)
        except Broken as error:
            if self._meeting.rank is not None:
                log(f"a round has ended early: {error}")
            self._break()
            return False
        except BaseException:
            # The others do not wait for what this worker does not do.
            self._break()
            raise

    def _follow(self, ring: Ring, headers: List[Any], step: Any) -> bool:
        having = [rank for rank, one in enumerate(headers) if one.has_model]
        if not having:
            able = [rank for rank, one in enumerate(headers) if one.can_begin]
            if not able:
                time.sleep(IDLE_S)
                return False
            if ring.rank == able[0]:
                self._begin_model()
            return self._hand_on(ring, able[0], step)
        source = max(having, key=lambda rank: (headers[rank].life, headers[rank].version, -rank))
        newest = headers[source]
        if any((one.life, one.version) != (newest.life, newest.version) for one in headers):
            return self._hand_on(ring, source, step)
        if any(one.floats != newest.floats for one in headers):
            raise self._differ(headers, source)
        self._is_safe = True
        leaving = [one.leaves for one in headers]
        self._agreed(ring, headers, all(leaving))
        if any(leaving):
            if not all(leaving):
                self._meeting.await_next(ring)
            return False
        return self._reduce(ring, headers, step)
