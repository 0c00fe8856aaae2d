"""The model on the parameter servers. Owns: the order in which servers are read and written, and
numbers of pushes; which has which row of an embedding table. Does not know about: what computes
gradients, tasks.

Writing goes to servers 1 to N-1 first and to server 0, the leader, last; reading begins with the
leader. So an update is made on all servers or on none.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .backends import Arrays
from .connection import Connection
from .embedding import Embedding, EmbeddingError
from .optimizers import Optimizer
from .protocol import messages as pb
from .tensors import from_variables, part, to_variables

_WAIT_MS = 1_000

Stopped = Callable[[], bool]
"""Function that returns true once a call is not to be repeated any more."""


class Moved(Exception):
    """The servers have gone on, and do not keep the version of the requested rows."""


class Pulled(NamedTuple):
    """An answer of the servers."""

    outcome: int
    """PULL_OUTCOME_READY, _UNINITIALIZED or _WAIT."""
    version: int
    generation: int
    parameters: Arrays
    """Empty if the caller has this version already."""
    state: Arrays


def optimizer_message(optimizer: Optimizer) -> Any:
    """The optimizer as the servers know it."""
    numbers: Dict[str, Any] = dict(optimizer.arguments)
    out = pb.Optimizer(learning_rate=numbers.pop("learning_rate"))
    for switch in ("nesterov", "amsgrad"):
        if switch in numbers:
            numbers[switch] = bool(numbers[switch])
    rules = {"sgd": pb.Sgd, "adam": pb.Adam, "adagrad": pb.Adagrad}
    getattr(out, optimizer.kind).CopyFrom(rules[optimizer.kind](**numbers))
    return out


class ParameterServers:
    """All servers of a job."""

    def __init__(
        self,
        servers: List[Connection],
        interrupted: Callable[[], bool],
        push_interrupted: Optional[Callable[[], bool]] = None,
    ) -> None:
        self._servers = servers
        self._interrupted = interrupted
        # A push that was accepted counts, also if its answer is lost.
        self._push_interrupted = push_interrupted or interrupted
        self._sequence = 0
        self._tables: List[Embedding] = []
        # The last pull: its servers, the life of the model, and the version of each server.
        self._at = (0, 0)
        self._versions: List[int] = []
        self.versions = (0, 0)
        """The oldest and the newest version that were read since the last pull began; they are
        equal in the synchronous modes."""
        self._threads: Optional[ThreadPoolExecutor] = None

    def serve(self, tables: Sequence[Embedding]) -> None:
        """Serves the rows of these embedding tables."""
        self._tables = list(tables)
        for table in tables:
            table.source = self

    def _call(
        self,
        index: int,
        name: str,
        request: Any,
        wait_ms: int = 0,
        stopped: Optional[Stopped] = None,
    ) -> Any:
        return self._servers[index].call(name, request, wait_ms, stopped or self._interrupted)

    def _part(self, arrays: Arrays, index: int) -> List[Any]:
        return to_variables(part(arrays, index, len(self._servers)))

    def init(
        self,
        worker: int,
        generation: int,
        parameters: Arrays,
        state: Arrays,
        optimizer: Optimizer,
    ) -> None:
        """Offers these values as the model; the first worker wins."""
        for index in [*range(1, len(self._servers)), 0]:
            request = pb.InitModelRequest(
                worker_id=worker,
                model_generation=generation,
                trainable=self._part(parameters, index),
                state=self._part(state, index),
                optimizer=optimizer_message(optimizer),
                tables=[table.message() for table in self._tables],
            )
            self._call(index, "InitModel", request)

    def pull(
        self,
        worker: int,
        generation: int = 0,
        version: int = 0,
        for_training: bool = False,
        flush: bool = False,
        known_version_plus_1: int = 0,
        keeps_rows: bool = False,
    ) -> Pulled:
        """The model, of at least this version; waits for it a second at most. In the synchronous modes
        it is of one version. With `keeps_rows` rows are of that version too, until the next pull or
        push."""
        keeps_rows = keeps_rows and bool(self._tables)
        request = pb.PullRequest(
            worker_id=worker,
            model_generation=generation,
            version=version,
            wait_ms=_WAIT_MS,
            for_training=for_training,
            flush=flush,
            known_version_plus_1=known_version_plus_1,
            keeps_rows=keeps_rows,
        )
        reply = self._call(0, "Pull", request, _WAIT_MS)
        parameters, state = from_variables(reply.trainable), from_variables(reply.state)
        found = Pulled(reply.outcome, reply.version, reply.model_generation, parameters, state)
        if reply.outcome != pb.PULL_OUTCOME_READY:
            return found
        is_known = known_version_plus_1 == reply.version + 1
        versions = [reply.version]
        for index in range(1, len(self._servers)):
            if is_known and not keeps_rows:
                # The caller has all parts of it.
                versions.append(reply.version)
                continue
            other = self._other(index, worker, reply, keeps_rows)
            if other.outcome != pb.PULL_OUTCOME_READY:
                return found._replace(outcome=pb.PULL_OUTCOME_WAIT)
            versions.append(other.version)
            if not is_known:
                parameters.update(from_variables(other.trainable))
                state.update(from_variables(other.state))
        self._at, self._versions = (worker, reply.model_generation), versions
        self.versions = (min(versions), max(versions))
        return found

    def _other(self, index: int, worker: int, leader: Any, keeps_rows: bool) -> Any:
        request = pb.PullRequest(
            worker_id=worker,
            model_generation=leader.model_generation,
            version=leader.version,
            wait_ms=_WAIT_MS,
            exact=True,
            keeps_rows=keeps_rows,
        )
        return self._call(index, "Pull", request, _WAIT_MS)

    def _rows(self, index: int, request: Any, stopped: Stopped) -> Any:
        """The reply to a call for rows of the version of the last pull."""
        if index < len(self._versions):
            request.version_plus_1 = self._versions[index] + 1
        reply = self._call(index, "PullRows", request, stopped=stopped)
        if reply.moved:
            raise Moved(f"parameter server {index} is at version {reply.version}")
        oldest, newest = self.versions
        self.versions = (min(oldest, reply.version), max(newest, reply.version))
        return reply

    def _shares(self, ids: np.ndarray) -> Iterator[Tuple[int, np.ndarray]]:
        """Servers, and which of these ids are theirs."""
        of = ids % np.uint64(len(self._servers))
        for index in range(len(self._servers)):
            mine = np.flatnonzero(of == index)
            if len(mine):
                yield index, mine

    def rows(self, table: Embedding, ids: np.ndarray) -> np.ndarray:
        """The rows of these ids in the version of the last pull; zeros as long as there is no model.

        Raises Moved if that version is not kept any more.
        """
        worker, generation = self._at
        out = np.zeros((len(ids), table.dim), np.float32)
        if generation == 0:
            return out

        def pull(share: Tuple[int, np.ndarray], stopped: Stopped) -> None:
            index, mine = share
            request = pb.PullRowsRequest(
                worker_id=worker,
                model_generation=generation,
                table=table.name,
                ids=ids[mine].astype("<u8", copy=False).tobytes(),
            )
            reply = self._rows(index, request, stopped)
            out[mine] = _matrix(table, reply.rows)

        self._at_once(pull, list(self._shares(ids)))
        return out

    def _at_once(self, call: Callable[[Any, Stopped], Any], each: Sequence[Any]) -> List[Any]:
        """Calls several servers at the same time; the answers in this order, or the first error, after
        which no other call is repeated."""
        if len(each) < 2:
            return [call(one, self._interrupted) for one in each]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(len(self._servers), "rows")
        has_failed = threading.Event()

        def stopped() -> bool:
            return has_failed.is_set() or self._interrupted()

        futures = [self._threads.submit(call, one, stopped) for one in each]
        for future in wait(futures, return_when=FIRST_EXCEPTION).done:
            error = future.exception()
            if error is not None:
                has_failed.set()
                for other in futures:
                    other.cancel()
                raise error
        return [future.result() for future in futures]

    def stored_rows(self, table: Embedding) -> Tuple[np.ndarray, np.ndarray]:
        """All rows that were trained: rising ids and their rows."""
        worker, generation = self._at

        def pull(index: int, stopped: Stopped) -> Tuple[List[np.ndarray], List[np.ndarray]]:
            ids, rows = [np.empty(0, np.uint64)], [np.empty((0, table.dim), np.float32)]
            start, more = 0, True
            while more:
                request = pb.PullRowsRequest(
                    worker_id=worker, model_generation=generation, table=table.name, stored=True
                )
                request.stored_from = start
                reply = self._rows(index, request, stopped)
                ids.append(np.frombuffer(reply.rows.ids, "<u8"))
                rows.append(_matrix(table, reply.rows))
                more = reply.more
                start = int(ids[-1][-1]) + 1 if more else 0
            return ids, rows

        found = self._at_once(pull, range(len(self._servers)))
        all_ids = np.concatenate([part for ids, _ in found for part in ids])
        all_rows = np.concatenate([part for _, rows in found for part in rows])
        order = np.argsort(all_ids)
        return all_ids[order], all_rows[order]

    def _gradients_of_rows(self) -> List[List[Any]]:
        """Gradients of rows by server, in the last step of the tables."""
        out: List[List[Any]] = [[] for _ in self._servers]
        for table in self._tables:
            ids, rows = table.gradient()
            for index, mine in self._shares(ids):
                out[index].append(
                    pb.Rows(
                        table=table.name,
                        dim=table.dim,
                        ids=ids[mine].astype("<u8", copy=False).tobytes(),
                        values=rows[mine].astype("<f4", copy=False).tobytes(),
                    )
                )
        return out

    def next_push(self) -> int:
        """The number of the next push; one that is rejected keeps its number."""
        self._sequence += 1
        return self._sequence

    def push(
        self,
        worker: int,
        generation: int,
        sequence: int,
        version: int,
        gradients: Arrays,
        state: Arrays,
        learning_rate: float,
        records: int,
        positions: Dict[int, int],
    ) -> Any:
        """The gradients of a step, those of embedding tables with them, to all servers; the leader's
        answer."""
        reply, rows = None, self._gradients_of_rows()
        for index in [*range(1, len(self._servers)), 0]:
            request = pb.PushGradientsRequest(
                worker_id=worker,
                model_generation=generation,
                sequence=sequence,
                version=version,
                gradients=self._part(gradients, index),
                state=self._part(state, index),
                learning_rate=learning_rate,
                positions=[
                    pb.Position(task_id=task, finished_records=finished)
                    for task, finished in positions.items()
                ],
                rows=rows[index],
                records=records,
            )
            reply = self._call(index, "PushGradients", request, 0, self._push_interrupted)
        return reply


def _matrix(table: Embedding, rows: Any) -> np.ndarray:
    """The rows of a message."""
    if rows.dim != table.dim:
        raise EmbeddingError(
            f"embedding table {table.name!r} has rows of {table.dim} numbers here and of {rows.dim} "
            "on the servers: another model than the job's"
        )
    return np.frombuffer(rows.values, "<f4").reshape(-1, table.dim)
