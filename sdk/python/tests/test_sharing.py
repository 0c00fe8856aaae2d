"""Behaviour of a worker of parameter servers when a step fails."""

from types import SimpleNamespace

import grpc
import pytest

from elastane.callbacks import Callbacks, MaxStepsStopping
from elastane.connection import CallError
from elastane.protocol import messages as pb
from elastane.sharing import ByParameterServers


class Servers:
    """Has the model, and remembers what each pull was for."""

    def __init__(self, error=None):
        self.pulls, self._error = [], error

    def next_push(self):
        return 1

    def pull(self, worker, *arguments, known_version_plus_1=0):
        self.pulls.append(bool(arguments) and arguments[2])
        if not arguments and self._error is not None:
            raise self._error
        return SimpleNamespace(outcome=pb.PULL_OUTCOME_READY, version=4, parameters={}, state={})


def sharing(servers, callbacks=()):
    def step(batch):
        raise ZeroDivisionError("the code of the model")

    made = ByParameterServers.__new__(ByParameterServers)
    made._servers, made._generation, made._version_known, made._steps_since_pull = servers, 0, 0, 0
    made._worker = SimpleNamespace(
        id=7,
        backend=SimpleNamespace(step=step, callbacks=Callbacks(list(callbacks), Model(), None)),
        initial=lambda batch: None,
        check_task=lambda work: None,
    )
    return made


class Model:
    pass


WORK = SimpleNamespace(task=SimpleNamespace(model_generation=1))


def test_a_step_that_fails_gives_the_place_in_the_next_update_up():
    servers = Servers()
    with pytest.raises(ZeroDivisionError):
        sharing(servers).step(WORK, None, 10)
    assert servers.pulls == [True, False]


def test_the_error_of_the_code_is_what_counts_although_the_server_is_away():
    servers = Servers(CallError("Pull", grpc.StatusCode.UNAVAILABLE, "away"))
    with pytest.raises(ZeroDivisionError):
        sharing(servers).step(WORK, None, 10)
    assert servers.pulls == [True, False]


def test_a_training_that_a_callback_has_ended_keeps_no_place_in_the_next_update():
    servers = Servers()
    assert sharing(servers, [MaxStepsStopping(4)]).step(WORK, None, 10) is None
    assert servers.pulls == [True, False]
    with pytest.raises(ZeroDivisionError):
        sharing(servers, [MaxStepsStopping(5)]).step(WORK, None, 10)
