"""The model on the parameter servers. Owns: the order in which servers are read and written, and
numbers of pushes. Does not know about: what computes gradients, tasks.

Writing goes to servers 1 to N-1 first and to server 0, the leader, last; reading begins with the
leader. So an update is made on all servers or on none.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple

from .backends import Arrays
from .connection import Connection
from .optimizers import Optimizer
from .protocol import messages as pb
from .tensors import from_variables, part, to_variables

_WAIT_MS = 1_000


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

    def __init__(self, servers: List[Connection], interrupted: Callable[[], bool]) -> None:
        self._servers = servers
        self._interrupted = interrupted
        self._sequence = 0

    def _call(self, index: int, name: str, request: Any, wait_ms: int = 0) -> Any:
        return self._servers[index].call(name, request, wait_ms, self._interrupted)

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
    ) -> Pulled:
        """The model, of at least this version; waits for it a second at most."""
        request = pb.PullRequest(
            worker_id=worker,
            model_generation=generation,
            version=version,
            wait_ms=_WAIT_MS,
            for_training=for_training,
            flush=flush,
            known_version_plus_1=known_version_plus_1,
        )
        reply = self._call(0, "Pull", request, _WAIT_MS)
        parameters, state = from_variables(reply.trainable), from_variables(reply.state)
        found = Pulled(reply.outcome, reply.version, reply.model_generation, parameters, state)
        if reply.outcome != pb.PULL_OUTCOME_READY:
            return found
        for index in range(1, len(self._servers)):
            other = self._other(index, worker, reply, known_version_plus_1)
            if other.outcome != pb.PULL_OUTCOME_READY:
                return found._replace(outcome=pb.PULL_OUTCOME_WAIT)
            parameters.update(from_variables(other.trainable))
            state.update(from_variables(other.state))
        return found

    def _other(self, index: int, worker: int, leader: Any, known_version_plus_1: int) -> Any:
        request = pb.PullRequest(
            worker_id=worker,
            model_generation=leader.model_generation,
            version=leader.version,
            wait_ms=_WAIT_MS,
            known_version_plus_1=known_version_plus_1,
        )
        return self._call(index, "Pull", request, _WAIT_MS)

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
        positions: Dict[int, int],
    ) -> Any:
        """The gradients of a step to all servers; the leader's answer."""
        reply = None
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
            )
            reply = self._call(index, "PushGradients", request)
        return reply
