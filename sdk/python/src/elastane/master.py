"""Messages between a worker and the master. Owns: the heartbeat thread, and the thread that gets
tasks and reads their records ahead. Does not know about: models, gradients."""

from __future__ import annotations

import threading
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from .backends import Record
from .connection import CallError, Connection, Interrupted, Outdated
from .protocol import messages as pb

_POLL_MS = 2_000


class Membership:
    """The heartbeat: always one Watch under way, and what it said last.

    `leaving` is set when the worker is to hand back and go, `ended` when the job is over, `failure`
    when the master cannot be reached or refuses this worker.
    """

    def __init__(
        self,
        connection: Connection,
        worker: int,
        registered: Any,
        given_up: Callable[["Membership"], None] = lambda members: None,
    ) -> None:
        self._connection = connection
        self.worker = worker
        self._given_up = given_up
        self._revision = 0
        self._servers = list(registered.parameter_servers)
        self.stopped = False
        self.generation = registered.model_generation
        self.leaving = threading.Event()
        self.leave_within_ms = 0
        # For `leaving`: this worker and another do not reach each other.
        self.parted = False
        self.ended = threading.Event()
        # World of the workers that train together, if this worker is in it (`pb.World`).
        self.world: Optional[Any] = None
        self.on_change: Callable[[], None] = lambda: None
        self.failure: Optional[CallError] = None
        self.changed = threading.Condition()
        self.report: Any = pb.WorkerReport()
        # The worker that this one cannot connect to (`pb.Unreached`).
        self.unreached: Optional[Any] = None
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def server(self, index: int) -> Optional[str]:
        """The address of a parameter server, if it is known."""
        return self._servers[index] if index < len(self._servers) else None

    def stop(self) -> None:
        """No further Watch."""
        self.stopped = True

    def _watch(self) -> None:
        while not self.stopped:
            request = pb.WatchRequest(
                worker_id=self.worker,
                revision=self._revision,
                wait_ms=_POLL_MS,
                report=self.report,
                unreached=self.unreached,
            )
            try:
                reply = self._connection.call("Watch", request, _POLL_MS, lambda: self.stopped)
            except Interrupted:
                return
            except CallError as error:
                self.failure = error
                with self.changed:
                    self.changed.notify_all()
                self.on_change()
                if isinstance(error, Outdated) and not self.stopped:
                    self._given_up(self)
                return
            self._take(reply)

    def _take(self, reply: Any) -> None:
        self._revision = reply.revision
        if reply.parameter_servers:
            self._servers = list(reply.parameter_servers)
        with self.changed:
            self.generation = max(self.generation, reply.model_generation)
            self.world = reply.world if reply.HasField("world") else None
            self.changed.notify_all()
        self.on_change()
        if reply.leaving and not self.leaving.is_set():
            self.leave_within_ms, self.parted = reply.leave_within_ms, reply.parted
            self.leaving.set()
        if reply.ended:
            self.ended.set()

    def await_generation(self, above: int, seconds: float) -> None:
        """Waits until the model generation is above this one, or something else has happened."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.generation > above or self.failure is not None, seconds
            )


class Work:
    """A task in the hands of this worker, with its records."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.records: List[Record] = []
        self.bad: Dict[int, str] = {}
        self.visited = 0
        """Records from its start on whose gradients were accepted."""
        self.error: Optional[str] = None
        """The trace, if its records could not be read."""

    @property
    def count(self) -> int:
        """How many records it has."""
        return int(self.task.end - self.task.start)

    def note_bad(self, position: int, reason: str) -> None:
        """A record that is skipped."""
        self.bad[position] = reason


ReadTask = Callable[[Work], None]
"""Fills in the records of a task."""


class Prefetch:
    """Asks for tasks ahead, as many as the worker may hold, and reads their records."""

    def __init__(
        self,
        connection: Connection,
        worker: int,
        held_max: int,
        read: ReadTask,
        interrupted: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._held_max = max(1, held_max)
        self._read = read
        self._interrupted = interrupted
        self._held: Dict[int, Work] = {}
        self._ready: List[Work] = []
        self._done = False
        self._stopped = False
        self.failure: Optional[CallError] = None
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._fetch, name="prefetch", daemon=True)
        self._thread.start()

    def next(self, patience_s: float) -> Tuple[Optional[Work], bool]:
        """The next task, or none yet, and whether there will be no more. Waits so long at most."""
        with self._change:
            self._change.wait_for(
                lambda: self._ready or self._done or self.failure is not None, patience_s
            )
            if self._ready:
                return self._ready.pop(0), False
            return None, self._done

    def drop(self, work: Work) -> None:
        """The worker has it no more: finished, handed back or taken away."""
        with self._change:
            self._held.pop(work.task.task_id, None)
            if work in self._ready:
                self._ready.remove(work)
            self._change.notify_all()

    def held(self) -> List[Work]:
        """All tasks in hand, those that are read ahead included."""
        with self._change:
            return list(self._held.values())

    def stop(self) -> None:
        """Asks for no more tasks, and waits for the call that is under way: a task that it
        brings is in `held` then, to be handed back."""
        self._stopped = True
        with self._change:
            self._change.notify_all()
        self._thread.join(timeout=_POLL_MS / 1000 + 1)

    def _fetch(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._stopped or len(self._held) < self._held_max)
                holding = sorted(self._held)
            if self._stopped:
                return
            request = pb.GetTaskRequest(
                worker_id=self._worker, holding=holding, wait_ms=_POLL_MS // 4
            )
            try:
                reply = self._connection.call(
                    "GetTask", request, _POLL_MS // 4, lambda: self._stopped or self._interrupted()
                )
            except Interrupted:
                return
            except CallError as error:
                with self._change:
                    self.failure = error
                    self._change.notify_all()
                return
            if reply.kind == pb.TASK_KIND_DONE:
                with self._change:
                    self._done = True
                    self._change.notify_all()
                return
            if reply.kind != pb.TASK_KIND_WAIT:
                self._take(Work(reply.task))

    def _take(self, work: Work) -> None:
        with self._change:
            self._held[work.task.task_id] = work
        if not self._stopped:
            try:
                self._read(work)
            except Exception:
                work.error = traceback.format_exc()
        with self._change:
            # A task that was dropped while it was read is not worked on.
            if work.task.task_id in self._held:
                self._ready.append(work)
            self._change.notify_all()


def report(
    connection: Connection, worker: int, work: Work, outcome: int, message: str = "", **counts: int
) -> bool:
    """Progress, the end or the failure of a task. False: the worker does not have it any more."""
    bad = [pb.BadRecord(position=at, message=why) for at, why in sorted(work.bad.items())]
    request = pb.ReportTaskRequest(
        worker_id=worker,
        task_id=work.task.task_id,
        outcome=outcome,
        finished_records=work.visited,
        message=message,
        bad_records=bad,
        exec_counters=counts,
    )
    return bool(connection.call("ReportTask", request).held)


__all__ = ["Membership", "Outdated", "Prefetch", "Work", "report"]
