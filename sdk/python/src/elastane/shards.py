"""Shards of a data set for a custom training loop. Owns: which records this worker gets, and
how many of them are trained. Does not know about: what a record is, gradients.

The script says how many records there are and how often they are trained; the master divides them
among the workers, and gives what a worker did not finish to others. Records are counted, not named:
the first ones of a task count as trained, as many as were reported.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Tuple

import numpy as np

from . import master
from .connection import CallError, Interrupted
from .loop import Loop, LoopError, of_environment
from .master import Prefetch, Work
from .protocol import messages as pb
from .readers import open_reader
from .sharing import log

TRAINING = 1
_PROGRESS_EVERY_S = 0.5
_LOOK_S = 0.2


class Shard(NamedTuple):
    """Records of the data set."""

    name: str
    """Name of the data set; empty."""
    start: int
    end: int
    """Exclusive."""
    indices: List[int]
    """The records in their order, if they are shuffled; else empty: from `start` to `end`."""


class Task(NamedTuple):
    """A task of this worker."""

    task_id: int
    shard: Shard
    type: int
    """`TRAINING`."""


class _Pending:
    """A task in hand, and how many of its records are reported."""

    def __init__(self, work: Work, shard: Shard) -> None:
        self.work, self.shard = work, shard
        self.task = Task(int(work.task.task_id), shard, TRAINING)


class _Part:
    """Records of a task that follow each other. Those of a task that this worker has no more are
    trained like others, and count for nothing."""

    def __init__(self, work: Work, count: int) -> None:
        self.work, self.count = work, count


class Order:
    """Positions of all epochs, as the master counts them, and the records there.

    Without `--num_epochs` of the job the data of each epoch follow each other: position
    `epoch * size + n`. All workers compute the same order.
    """

    def __init__(
        self, job_id: str, size: int, block: int, shuffle: bool, shuffle_shards: bool
    ) -> None:
        self._job_id, self._size, self._block = job_id, size, max(1, block)
        self._shuffle, self._shuffle_shards = shuffle, shuffle_shards
        self._epoch = -1
        self._permutation: Any = None

    def _of(self, epoch: int, count: int) -> Any:
        if self._epoch != epoch:
            digest = hashlib.sha256(f"{self._job_id}/{epoch}".encode()).digest()
            random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            self._epoch, self._permutation = epoch, random.permutation(count)
        return self._permutation

    def shard(self, epoch: int, start: int, end: int) -> Shard:
        """The records at these positions, which are of one epoch."""
        before = start // self._size * self._size
        epoch, start, end = epoch + start // self._size, start - before, end - before
        if self._shuffle:
            return Shard("", start, end, self._of(epoch, self._size)[start:end].tolist())
        whole = self._size // self._block
        at = start // self._block
        if self._shuffle_shards and at < whole:
            # The last block may be smaller, and stays where it is.
            shift = (int(self._of(epoch, whole)[at]) - at) * self._block
            return Shard("", start + shift, end + shift, [])
        return Shard("", start, end, [])


class DataShardService:
    """Shards for this worker, and the report of what was trained.

    Args:
        batch_size: records of a minibatch.
        num_epochs: how often all records are trained. It is that of the job, or the job has none.
        dataset_size: number of records; without it, those of training_data.
        shuffle: in each epoch all records are in another order; `Shard.indices` has it.
        shuffle_shards: in each epoch shards are in another order.
        task_type: `TRAINING`.
        num_minibatches_per_shard: the job sets it, with `--num_minibatches_per_task`; here it is
            for the published form only.
        dataset_name, master_client: for the published forms only.
        training_data: a file or a folder of RecordIO or CSV; its records are numbered from the first
            file to the last, by name, as `RecordIOReader` numbers them.

    Raises:
        LoopError: outside of a job, or if num_epochs is not that of the job. The first worker
            reports the data set to the master; in another one `fetch_shard` raises LoopError if its
            dataset_size, num_epochs, shuffle or shuffle_shards is another.
        ValueError: for numbers that are none.
    """

    def __init__(
        self,
        batch_size: int,
        num_epochs: Optional[int] = None,
        dataset_size: Optional[int] = None,
        shuffle: bool = False,
        shuffle_shards: bool = False,
        task_type: int = TRAINING,
        num_minibatches_per_shard: int = 0,
        dataset_name: str = "",
        master_client: Any = None,
        training_data: Optional[str] = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it is at least 1")
        if task_type != TRAINING:
            raise ValueError(f"task_type is {task_type}; a custom training loop has {TRAINING}")
        if training_data and dataset_size is None:
            dataset_size = sum(shard.count for shard in open_reader(training_data).create_shards())
        if not dataset_size or dataset_size < 1:
            raise ValueError(
                "dataset_size is missing: the number of records of the data set, or training_data, "
                "the path of its files"
            )
        self.batch_size, self.dataset_size = batch_size, dataset_size
        self.loop: Loop = master_client or of_environment()
        self._name = dataset_name
        # Name of the shards at the master: tasks bring it to the workers that have not reported it.
        epochs = num_epochs or self.loop.settings.number("num_epochs", 1)
        self._described = (
            f"{dataset_size} records, {epochs} epochs, shuffle={shuffle}, "
            f"shuffle_shards={shuffle_shards}"
        )
        message = self.loop.settings.message
        block = self.loop.settings.number("records_per_task", 0)
        self._order = Order(message.job_id, dataset_size, block, shuffle, shuffle_shards)
        if self.loop.needs_data:
            self._report_data(num_epochs, dataset_size)
        self._lock = threading.RLock()
        self._pending: Deque[_Pending] = deque()
        # Records that were given out and are not trained, and the minibatches that were trained and
        # are not counted.
        self._given: Deque[_Part] = deque()
        self._uncounted: Deque[List[_Part]] = deque()
        self._reported_at = 0.0
        self.while_waiting: Callable[[], None] = lambda: None
        """Called again and again while this worker has no minibatch to train and others may."""
        self.when_done: Callable[[], None] = lambda: None
        """Called once all records of all workers are trained."""
        self.before_first: Callable[[], None] = lambda: None
        """Called before this worker asks for its first task."""
        self.check_ready: Callable[[], None] = lambda: None
        """Called before the script waits for records; raises if it can get none."""
        self._prefetched: Optional[Prefetch] = None
        self.loop.at_end(self._hand_back)

    def _report_data(self, epochs: Optional[int], size: int) -> None:
        of_job = self.loop.settings.number("num_epochs", 1)
        epochs = epochs or of_job
        if of_job not in (1, epochs):
            raise LoopError(
                f"num_epochs of the script is {epochs}, and that of the job {of_job}: leave out "
                "--num_epochs, or give the same number"
            )
        passes = 1 if of_job == epochs else epochs
        name = self._described
        shards = [pb.Shard(name=name, start=number * size, count=size) for number in range(passes)]
        request = pb.ReportDataRequest(worker_id=self.loop.id, shards=shards)
        self.loop.master.call("ReportData", request, interrupted=self.loop.is_leaving)

    # Shards.

    @property
    def _prefetch(self) -> Prefetch:
        """The thread that asks for tasks."""
        if self._prefetched is None:
            self.before_first()
            self._prefetched = Prefetch(
                self.loop.master,
                self.loop.id,
                self.loop.settings.message.held_max,
                lambda work: None,
                self.loop.is_leaving,
            )
        return self._prefetched

    def _next(self) -> Optional[_Pending]:
        """The next task; None if there is none yet. Raises StopIteration when there is no more."""
        while True:
            work, is_done = self._prefetch.next(_LOOK_S)
            if self._prefetch.failure is not None:
                raise self._prefetch.failure
            if is_done or self.loop.members.ended.is_set():
                raise StopIteration
            if work is None:
                return None
            task = work.task
            if task.kind == pb.TASK_KIND_TRAIN:
                self._compare(task.shard)
                shard = self._order.shard(task.epoch, int(task.start), int(task.end))
                pending = _Pending(work, shard._replace(name=self._name))
                with self._lock:
                    self._pending.append(pending)
                    self._given.append(_Part(work, work.count))
                return pending
            log(f"task {task.task_id}: a custom training loop saves its model itself")
            work.visited = work.count
            self._report(work, pb.TASK_OUTCOME_FINISHED)
            self._prefetch.drop(work)

    def _compare(self, described: str) -> None:
        """Raises LoopError if the worker that has reported the data set has another one."""
        if described not in ("", self._described):
            raise LoopError(
                f"the data set of this worker has {self._described}, and that of the job has "
                f"{described}: all workers run the same script with the same numbers"
            )

    def fetch_shard(self) -> Optional[Shard]:
        """The next shard; None when all records of all epochs are trained."""
        self.check_ready()
        with self._lock:
            # The script has stopped with what is left of a failed task.
            self._given = deque(part for part in self._given if self._is_held(part.work))
        while True:
            self.loop.check()
            try:
                found = self._next()
            except StopIteration:
                self.when_done()
                return None
            if found is not None:
                return found.shard
            with self._lock:
                is_idle = not self._given
            if is_idle:
                self.while_waiting()

    def get_current_task(self) -> Optional[Task]:
        """The task whose records are trained now; None without one."""
        with self._lock:
            return self._pending[0].task if self._pending else None

    # Reports.

    def _report(self, work: Work, outcome: int, message: str = "") -> bool:
        return master.report(self.loop.master, self.loop.id, work, outcome, message)

    def report_batch_done(self, batch_size: Optional[int] = None, err_msg: str = "") -> bool:
        """A minibatch is trained, of `batch_size` records (that of the service). With `err_msg` it
        has failed: its task is given out again. Returns True if a task has ended with it."""
        with self._lock:
            parts = self._take_given(batch_size)
            has_ended = self._fail(parts, err_msg) if err_msg else self._count(parts)
        self.loop.check()
        return has_ended

    def note_trained(self) -> None:
        """A minibatch is trained, and is not in the models of all workers yet."""
        with self._lock:
            self._uncounted.append(self._take_given(None))

    def confirm(self, batches: int) -> None:
        """Adds the next noted minibatches, this many, to those that all models have."""
        with self._lock:
            for _ in range(batches):
                self._count(self._uncounted.popleft())

    def positions(self) -> List[Tuple[int, int]]:
        """The tasks in hand that have trained records, and how many."""
        with self._lock:
            works = [one.work for one in self._pending if one.work.visited]
            return [(int(work.task.task_id), int(work.visited)) for work in works]

    def _take_given(self, batch_size: Optional[int]) -> List[_Part]:
        """The first records that were given out, as many as a minibatch of this size has."""
        count = self._records_of(self.batch_size if batch_size is None else batch_size)
        parts = []
        while count and self._given:
            first = self._given[0]
            parts.append(_Part(first.work, min(count, first.count)))
            first.count -= parts[-1].count
            count -= parts[-1].count
            if not first.count:
                self._given.popleft()
        return parts

    def _records_of(self, batch_size: int) -> int:
        """Number of records that a minibatch of this size has."""
        return batch_size

    def _is_held(self, work: Work) -> bool:
        return any(one.work is work for one in self._pending)

    def _count(self, parts: List[_Part]) -> bool:
        has_ended = False
        for part in parts:
            work = part.work
            if not self._is_held(work):
                continue
            work.visited += part.count
            if work.visited == work.count:
                self._end(work, pb.TASK_OUTCOME_FINISHED)
                has_ended = True
        if self._pending and time.monotonic() - self._reported_at > _PROGRESS_EVERY_S:
            self._reported_at = time.monotonic()
            work = self._pending[0].work
            if not self._report(work, pb.TASK_OUTCOME_PROGRESS):
                self._lost(work)
        return has_ended

    def _end(self, work: Work, outcome: int, message: str = "") -> None:
        if self._report(work, outcome, message):
            self._forget(work)
        else:
            self._lost(work)

    def _lost(self, work: Work) -> None:
        log(f"task {work.task.task_id}: dropped, it was given to another")
        self._forget(work)

    def _forget(self, work: Work) -> None:
        self._pending = deque(one for one in self._pending if one.work is not work)
        self._prefetch.drop(work)

    def _fail(self, parts: List[_Part], message: str) -> bool:
        held = [part.work for part in parts if self._is_held(part.work)]
        if held:
            self._end(held[0], pb.TASK_OUTCOME_FAILED, message)
        return bool(held)

    def _hand_back(self) -> None:
        """All tasks in hand, with the number of their trained records."""
        if self._prefetched is None:
            return
        self._prefetched.stop()
        is_over = self.loop.has_until()
        for work in self._prefetched.held():
            request = pb.HandBackRequest(
                worker_id=self.loop.id,
                task_id=work.task.task_id,
                finished_records=work.visited,
            )
            try:
                self.loop.master.call("HandBack", request, interrupted=is_over)
            except (CallError, Interrupted) as error:
                log(f"task {work.task.task_id}: the master gives it out again by itself: {error}")


def build_data_shard_service(*arguments: Any, **named: Any) -> DataShardService:
    """The published way to make a `DataShardService`."""
    return DataShardService(*arguments, **named)
