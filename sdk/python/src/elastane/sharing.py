"""How the workers of a job share its model. Owns: what a worker asks of the way in which they do, and
the way by parameter servers. Does not know about: tasks and how they are reported."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Callable, Optional, Sequence

import numpy as np

from . import backends
from .backends import Batch
from .connection import CallError, Connection, Interrupted
from .contract import ContractError
from .embedding import Embedding
from .master import Work
from .parameters import Moved, ParameterServers, Pulled
from .protocol import messages as pb

if TYPE_CHECKING:
    from .worker import Worker

# How long a worker that has to leave repeats a push without an answer: a part of its grace period.
_PUSH_S = 5.0
_REJECTIONS_MAX = 64


def log(text: str) -> None:
    """A line for people, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Leaving(Exception):
    """The worker is to hand back and go."""


class Dropped(Exception):
    """The task in hand is not this worker's any more."""


class Stuck(Exception):
    """A minibatch was rejected again and again."""


class Unshared(Exception):
    """The model cannot be made or shared, whatever the task: the worker ends."""


class Sharing:
    """Base of the ways. `version` is that of the model that the backend has."""

    version = 0
    patience_s = 0.2
    """Seconds that a worker without a task waits for one before it calls `idle`."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker

    def serve(self, tables: Sequence[Embedding]) -> None:
        """Declares the embedding tables of the model."""
        if tables:
            raise Unshared(
                f"the model has the embedding table {tables[0].name!r}, whose rows are on parameter "
                "servers: use the strategy ParameterServerStrategy"
            )

    def begin(self) -> None:
        """The worker is ready for tasks."""

    def fetch(self, work: Work, batch: Optional[Batch], flush: bool = False) -> int:
        """Gives the backend the newest model, of the version that the task measures at least, and
        returns its version. Rows of embedding tables are of that version until the next call."""
        raise NotImplementedError

    def mixed(self) -> str:
        """Versions that were read since the last `fetch`, if more than one; else empty."""
        return ""

    def step(self, work: Work, batch: Batch, visited: int) -> Optional[float]:
        """Trains the model on a minibatch, after which `visited` records of the task are visited,
        and returns the loss; None once a callback has ended the training."""
        raise NotImplementedError

    def when_safe(self, report: Callable[[], None]) -> None:
        """Calls this once what was trained so far survives the end of this worker."""
        report()

    def idle(self, is_done: bool) -> bool:
        """The worker has no task, and gets none any more if `is_done`. Returns True if it may
        leave."""
        return is_done

    def forget(self) -> None:
        """The others have another model now than the backend."""

    def leave(self) -> None:
        """The worker has to hand back its tasks."""

    def stop(self) -> None:
        """The worker ends, or has to join again."""


class ByParameterServers(Sharing):
    """The model is on the parameter servers, which apply the optimizer."""

    def __init__(self, worker: "Worker") -> None:
        super().__init__(worker)
        servers = range(worker.settings.message.parameter_servers)
        connections = [self._server(n) for n in servers]
        self._servers = ParameterServers(connections, worker.is_leaving, self._gives_push_up)
        self._leaving_since: Optional[float] = None
        # Contents of the backend: the life of the model, and its version plus 1 (0: nothing).
        self._generation = self._version_known = self._steps_since_pull = 0

    def serve(self, tables: Sequence[Embedding]) -> None:
        self._servers.serve(tables)

    def _gives_push_up(self) -> bool:
        """True once a worker that has to leave does not wait for the answer to a push any more. The
        push may be accepted already: then its records are trained."""
        if not self._worker.is_leaving():
            self._leaving_since = None
            return False
        if self._leaving_since is None:
            self._leaving_since = time.monotonic()
        return time.monotonic() - self._leaving_since > _PUSH_S

    def _server(self, index: int) -> Connection:
        worker = self._worker
        limit = worker.settings.message.message_bytes_max or 256 * 1024 * 1024
        members = worker.members
        return worker.connection("ParameterServer", lambda: members.server(index), limit)

    def fetch(self, work: Work, batch: Optional[Batch], flush: bool = False) -> int:
        version = work.task.model_version if work.task.HasField("model_version") else 0
        return self._await_model(work, batch, flush=flush, version=version, keeps_rows=True).version

    def mixed(self) -> str:
        oldest, newest = self._servers.versions
        return "" if oldest == newest else f"versions {oldest} to {newest}"

    def _await_model(
        self,
        work: Work,
        batch: Optional[Batch],
        for_training: bool = False,
        flush: bool = False,
        version: int = 0,
        keeps_rows: bool = False,
    ) -> Pulled:
        """Pulls until the model is there; creates it if there is none."""
        self._worker.initial(batch)
        while True:
            self._worker.check_task(work)
            generation = work.task.model_generation
            if generation != self._generation:
                self._generation, self._version_known = generation, 0
            pulled = self._servers.pull(
                self._worker.id,
                generation,
                version,
                for_training,
                flush,
                self._version_known,
                keeps_rows,
            )
            if pulled.outcome == pb.PULL_OUTCOME_UNINITIALIZED:
                self._init(pulled.generation)
            elif pulled.outcome == pb.PULL_OUTCOME_READY:
                break
        if pulled.parameters:
            self._take(pulled)
        self._version_known = pulled.version + 1
        self.version = pulled.version
        return pulled

    def _give_place_up(self) -> None:
        """There is no gradient for the place that was kept in the next update: others wait for it."""
        try:
            self._servers.pull(self._worker.id, known_version_plus_1=self._version_known)
        except (CallError, Interrupted) as error:
            log(f"the place of this worker in the next update is kept until it leaves: {error}")

    def _init(self, generation: int) -> None:
        if self._worker.settings.mode != "training":
            raise ContractError(
                "the parameter servers have no model: give --checkpoint_dir_for_init"
            )
        initial = self._worker.initial(None)
        if initial is None:
            raise ContractError("the task has no record to build the model with")
        optimizer = self._worker.backend.optimizer()
        self._servers.init(self._worker.id, generation, *initial, optimizer)

    def _take(self, pulled: Pulled) -> None:
        mine = self._worker.backend.parameters()
        wrong = backends.check_names(mine, pulled.parameters, "parameter")
        if wrong:
            raise ContractError(f"another model than the job's: {wrong}")
        self._worker.backend.assign(pulled.parameters, pulled.state)

    def forget(self) -> None:
        self._version_known = 0

    def step(self, work: Work, batch: Batch, visited: int) -> Optional[float]:
        backend = self._worker.backend
        sequence = self._servers.next_push()
        for _ in range(_REJECTIONS_MAX):
            if self._steps_since_pull == 0 or work.task.model_generation != self._generation:
                self._await_model(work, batch, for_training=True)
            began = time.monotonic()
            try:
                backend.callbacks.batch_begin(self.version)
                if backend.callbacks.has_stopped:
                    self._give_place_up()
                    return None
                step = backend.step(batch)
            except Moved:
                # As a gradient that is too old.
                self._steps_since_pull = 0
                continue
            except Exception:
                self._give_place_up()
                raise
            self._worker.took(time.monotonic() - began)
            # 0 would mean the optimizer's own rate: a schedule that returns 0 gets the least there
            # is.
            rate = max(backend.learning_rate(self.version), float(np.finfo(np.float32).tiny))
            reply = self._servers.push(
                self._worker.id,
                work.task.model_generation,
                sequence,
                self.version,
                step.gradients,
                backend.state(),
                rate,
                len(batch.records),
                {work.task.task_id: visited},
            )
            if reply.outcome == pb.PUSH_OUTCOME_ACCEPTED:
                every = max(1, self._worker.settings.message.get_model_steps)
                self._steps_since_pull = (self._steps_since_pull + 1) % every
                work.visited = visited
                return step.loss
            self._steps_since_pull = 0
        raise Stuck(f"a minibatch was rejected {_REJECTIONS_MAX} times, each time as too old")
