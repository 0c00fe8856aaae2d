"""Single records of a data set for a custom training loop. Owns: giving them to the processes of a
loader, in minibatches and in turn. Does not know about: tasks and their reports (`shards`).
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from .loop import EXIT_TERMINATED
from .protocol import messages as pb
from .shards import DataShardService

_LOOK_S = 0.2
# Without a task for so long, what is left of a minibatch is given out.
_REST_AFTER_S = 1.0


class RecordIndexService(DataShardService):
    """Single records for this worker: a map-style data set asks for one in each `__getitem__`, in
    this process or in those of a `DataLoader` of PyTorch.

    A minibatch of a loader is always whole: the last one of this worker may repeat records of it.
    Minibatches that processes of a loader have read ahead count as not trained.
    """

    _live: "weakref.WeakSet[RecordIndexService]" = weakref.WeakSet()

    def __init__(self, *arguments: Any, starts: bool = True, **named: Any) -> None:
        """Arguments of `DataShardService`; with `starts=False` it waits for `start()`."""
        super().__init__(*arguments, **named)
        self._taken: List[int] = []
        self._at = 0
        # Of the system, as loaders fork or spawn processes; each item is a minibatch.
        self._batches: Any = multiprocessing.Queue()
        # A script that ends does not wait until its minibatches are taken.
        self._batches.cancel_join_thread()
        # Of each minibatch that was put there: what is left of its size, and its records.
        self._sizes: Deque[List[int]] = deque()
        self._has_ended = multiprocessing.Event()
        # A loader gives the minibatches of its processes out in turn, and waits for the next one
        # although another is there. So the processes take them in turn too.
        self._turn = multiprocessing.Condition()
        self._number = multiprocessing.Value("Q", 0, lock=False)
        self._own_turn = 0
        # Processes of a loader end with the one that started them.
        self._owner, self._parent = os.getpid(), 0
        RecordIndexService._live.add(self)
        self._error: Optional[BaseException] = None
        if starts:
            self.start()

    def start(self) -> None:
        """Begins to give records out."""
        threading.Thread(target=self._feed, name="shards", daemon=True).start()

    def __getstate__(self) -> Dict[str, Any]:
        """For a process of a loader, which only takes records."""
        taken = {"_taken": [], "_at": 0, "loop": None, "_error": None}
        own = ("batch_size", "_batches", "_has_ended", "_turn", "_number", "_owner")
        found = {name: self.__dict__[name] for name in own}
        return {**taken, **found, "_own_turn": self._number.value, "_parent": 0}

    def _feed(self) -> None:
        self.loop.add_own_thread()
        is_complete = False
        try:
            self._give_out()
            self.when_done()
            # A signal that comes now finds nothing to hand back: the script ends by itself.
            is_complete = True
        except SystemExit:
            # The worker has to leave.
            pass
        except BaseException as error:
            # The script ends with it, also if a loader takes it for the end of the data.
            self._error = error
            self.loop.fail(error)
        if self.loop.is_leaving() and not is_complete:
            self._leave()
        self._has_ended.set()

    def _leave(self) -> None:
        """Ends the process once no minibatch is given out: its main thread may wait for a process
        of a loader, which does not know of the signal, and would take this end for that of the
        data."""
        while True:
            with self._lock:
                if not self._sizes:
                    break
            time.sleep(_LOOK_S)
        self.loop.leave(pb.LEAVE_REASON_PREEMPTED)
        sys.stdout.flush()
        os._exit(EXIT_TERMINATED)

    def _give_out(self) -> None:
        rest: List[int] = []
        since = time.monotonic()
        while True:
            self.loop.check()
            try:
                found = self._next()
            except StopIteration:
                self._put(rest)
                return
            if found is not None:
                shard = found.shard
                rest += shard.indices or range(shard.start, shard.end)
                while len(rest) >= self.batch_size:
                    self._put(rest[: self.batch_size])
                    rest = rest[self.batch_size :]
                since = time.monotonic()
                continue
            if rest and time.monotonic() - since > _REST_AFTER_S:
                self._put(rest)
                rest = []
            with self._lock:
                is_idle = not self._given
            if is_idle:
                self.while_waiting()

    def _put(self, records: List[int]) -> None:
        if records:
            with self._lock:
                self._sizes.append([self.batch_size, len(records)])
            self._batches.put(records)

    def _records_of(self, batch_size: int) -> int:
        """Number of records of the minibatches that are trained to their end."""
        count = 0
        while batch_size and self._sizes:
            first = self._sizes[0]
            here = min(batch_size, first[0])
            first[0] -= here
            batch_size -= here
            if not first[0]:
                count += self._sizes.popleft()[1]
        return count

    def fetch_record_index(self) -> int:
        """The next record. Raises StopIteration when all are trained."""
        if self._at == self.batch_size:
            self._taken, self._at = [], 0
        while not self._taken:
            is_last = self._has_ended.is_set()
            if self._error is not None:
                raise self._error
            if not is_last:
                self._check_process()
            self._taken = self._take()
            if is_last and not self._taken:
                raise StopIteration
        record = self._taken[self._at % len(self._taken)]
        self._at += 1
        return record

    def _check_process(self) -> None:
        """Ends a process of a loader whose worker is gone."""
        if os.getpid() == self._owner:
            self.check_ready()
            self.loop.check()
            return
        # 0 in a process that was not forked from the worker, until here.
        self._parent = self._parent or os.getppid()
        if os.getppid() != self._parent:
            os._exit(EXIT_TERMINATED)

    def _take(self) -> List[int]:
        """The next minibatch; none if there is none yet, or another process has its turn."""
        every = _processes()
        with self._turn:
            if every and self._number.value != self._own_turn + every[0]:
                self._turn.wait(_LOOK_S)
                return []
        try:
            found: List[int] = self._batches.get(timeout=_LOOK_S)
        except queue.Empty:
            return []
        with self._turn:
            self._number.value += 1
            self._turn.notify_all()
        if every:
            self._own_turn += every[1]
        return found

    @classmethod
    def _forks(cls) -> None:
        """Before a new process: its loader begins with the minibatch that is next now. The process
        itself may look so late that another one of the loader has taken some."""
        for service in cls._live:
            service._own_turn, service._parent = service._number.value, os.getpid()


os.register_at_fork(before=RecordIndexService._forks)


def _processes() -> Optional[Tuple[int, int]]:
    """The number of this process in a loader of PyTorch, and how many it has; None outside."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    return None if info is None else (info.id, info.num_workers)
