"""Rounds of a custom training loop with another worker that a test plays, and the published
controller of PyTorch on them."""

import warnings

import grpc
import numpy as np
import pytest

from elastane.connection import CallError, Interrupted, Outdated, Unreachable
from elastane.leading import Leader
from elastane.loop import LoopError
from elastane.loop_saving import Snapshot
from elastane.protocol import messages as pb
from elastane.ring import Broken
from elastane.sums import _DONE, _HAS_MODEL, _HEADER, _LEAVES, Again, Header, Model, Sums


class Loop:
    """A worker without a master."""

    host, token, terminated = "127.0.0.1", "secret", False

    def __init__(self):
        self.settings = {}
        self.members = type("Members", (), {"failure": None})()

    def at_end(self, call):
        self.leave = call

    def is_leaving(self):
        return self.terminated

    def check(self):
        if self.terminated:
            self.leave()
            raise SystemExit(143)

    def has_until(self):
        return lambda: False


class Service:
    """Counts minibatches."""

    noted = confirmed = 0

    def note_trained(self):
        self.noted += 1

    def confirm(self, batches):
        assert self.confirmed + batches <= self.noted
        self.confirmed += batches


class Number(Model):
    """A model of one number; an update adds the mean."""

    floats, value, gradient = 1, 0.0, 1.0

    def read(self):
        return np.array([self.gradient], np.float32)

    def update(self, mean):
        self.value += float(mean[0])

    def pack(self):
        raise AssertionError("the other has the newest model")

    def unpack(self, description, fill):
        self.value = float(description)


class Ring:
    """A ring of this worker and another, whose headers follow one another."""

    rank, size, generation = 0, 2, 1

    def __init__(self, *headers):
        self.headers, self.sent = list(headers), []
        # What the other has, if it hands it on; whether it dies while gradients are added up.
        self.numbers, self.value, self.is_broken, self.sums = [], "0", False, []

    def gather(self, block):
        self.sent.append(Header(*_HEADER.unpack(block)))
        assert self.headers, "one more round"
        return [block, _HEADER.pack(*self.headers.pop(0))]

    def reduce(self, sums):
        if self.is_broken:
            self.is_broken = False
            raise Broken("the other is gone")
        self.sums.append(sums.tolist())

    def hand_on(self, source, values):
        assert source == 1
        values[:] = self.numbers

    def hand_on_message(self, source, message):
        return self.value.encode()


class Meeting:
    """The ring that a test plays."""

    is_in_world, is_ended, rank = True, False, 0

    def __init__(self, ring):
        self.present, self.stopped = ring, False

    def ring(self):
        return self.present

    def dissolve(self):
        pass

    def await_next(self, ring):
        pass

    def stop(self):
        self.stopped = True


def header(flags=_HAS_MODEL, version=0, batches=0):
    return Header(flags, 1, version, 1, batches)


def rounds(*headers):
    """A worker with version 0 of the model, and its ring."""
    loop, service, ring = Loop(), Service(), Ring(*headers)
    sums = Sums(loop, service)
    sums._meeting.stop()
    sums._meeting, sums.model = Meeting(ring), Number()
    sums._has_model, sums._life = True, 1
    return loop, service, ring, sums


def test_a_minibatch_counts_once_its_update_is_in_all_models():
    _, service, ring, sums = rounds(header(batches=1), header(version=1))
    sums.begin()
    assert sums.step(1)
    sums.end()
    assert (service.noted, service.confirmed, sums.model.value) == (1, 0, 0.5)
    sums._idle()
    assert service.confirmed == 1 and ring.sums == [[1.0]]


def test_a_minibatch_in_flight_counts_at_sigterm_if_another_has_its_update():
    loop, service, ring, sums = rounds(
        # The other dies in the update, and a third worker has made it.
        header(batches=1),
        header(version=1),
        header(_HAS_MODEL | _LEAVES, version=1),
    )
    ring.is_broken, ring.numbers, ring.value = True, [1, 7, 1, 2], "0.5"

    def reduce(sums):
        loop.terminated = True
        raise Broken("the other is gone")

    ring.reduce = reduce
    sums.begin()
    with pytest.raises(SystemExit):
        sums.step(1)
    assert (service.noted, service.confirmed) == (1, 1)
    assert sums.model.value == 0.5 and sums._meeting.stopped
    assert [one.flags for one in ring.sent] == [_HAS_MODEL] + 2 * [_HAS_MODEL | _LEAVES]


class Keeper:
    """Keeps what is saved."""

    keeps = True

    def __init__(self):
        self.saved, self.stopped = [], False

    def is_due(self, snapshot):
        return False

    def save_at_end(self, snapshot, positions):
        self.saved.append(snapshot.version)

    def stop(self):
        self.stopped = True


class Alone(Ring):
    """A ring of this worker alone, with its positions after the header."""

    size = 1

    def gather(self, block):
        if len(block) == _HEADER.size:
            self.sent.append(Header(*_HEADER.unpack(block)))
        return [block]


def test_a_worker_that_leaves_saves_the_model_although_another_is_killed_meanwhile():
    loop, service, ring, sums = rounds(header(_HAS_MODEL | _LEAVES))
    sums._leader, service.positions = Keeper(), lambda: []
    sums.model.pack = lambda: (b"", [])
    gather = ring.gather

    def broken_after_the_header(block):
        if len(block) == _HEADER.size:
            return gather(block)
        sums._meeting.present = Alone()
        raise Broken("the other is gone")

    ring.gather = broken_after_the_header
    loop.leave()
    assert sums._leader.saved == [0] and sums._leader.stopped


class OutOfMemory(Number):
    """A model whose update fails halfway."""

    def update(self, mean):
        self.value = float("nan")
        raise RuntimeError("out of memory")

    def pack(self):
        return b"", []


def torn(*headers):
    """A worker whose update has failed, and its ring."""
    loop, service, ring, sums = rounds(header(batches=1), *headers)
    sums._leader, sums.model, service.positions = Keeper(), OutOfMemory(), lambda: []
    sums.begin()
    with pytest.raises(RuntimeError, match="out of memory"):
        sums.step(1)
    sums.end()
    return loop, service, ring, sums


def test_a_model_whose_update_has_failed_halfway_is_not_saved():
    loop, service, ring, sums = torn()
    sums._meeting.present = ring = Alone()
    with pytest.raises(LoopError, match="an update failed halfway, and no other worker has the"):
        sums.begin()
    with pytest.raises(LoopError, match="an update failed halfway, and no other worker has the"):
        loop.leave()
    assert sums._leader.saved == [] and service.confirmed == 0
    assert not any(one.has_model for one in ring.sent)
    assert sums._leader.stopped and sums._meeting.stopped


def test_a_worker_whose_update_has_failed_halfway_gets_the_model_of_another():
    # The other has made the update, and the minibatch of this worker is in it.
    _, service, ring, sums = torn(header(version=1), header(version=1))
    ring.numbers, ring.value = [1, 7, 1, 2], "0.5"
    sums.begin()
    sums.end()
    assert (sums.model.value, sums.version) == (0.5, 1)
    sums._idle()
    assert service.confirmed == 1


def test_a_minibatch_in_flight_does_not_count_at_sigterm_if_no_worker_has_its_update():
    loop, service, ring, sums = rounds(header(batches=1), header())
    sums._in_flight, sums._has_left = (1, 0), False
    ring.headers = [header()]
    loop.leave()
    assert service.confirmed == 0 and sums._in_flight is None


def test_a_minibatch_is_computed_again_with_a_newer_model_and_noted_once():
    _, service, ring, sums = rounds(header(version=3), header(version=3, batches=1))
    ring.numbers, ring.value = [1, 7, 3, 5], "4"
    sums.begin()
    with pytest.raises(Again):
        sums.step(1)
    assert (sums.model.value, sums.version, sums.batches) == (4.0, 3, 5)
    # The thread that gives records out leaves the model alone until the step is made.
    sums._idle()
    assert sums.step(1) and service.noted == 1 and sums.batches == 7


def test_minibatches_that_wait_keep_their_sum_when_the_model_changes():
    _, service, ring, sums = rounds(header(version=3), header(version=3))
    ring.numbers, ring.value = [1, 7, 3, 5], "4"
    sums.begin()
    assert not sums.step(2)
    sums.end()
    sums._idle()
    assert (sums._waiting, sums.model.value) == (1, 4.0)
    sums._idle()
    assert (sums._waiting, ring.sums, sums.batches) == (0, [[1.0]], 6)


def test_a_worker_that_waits_for_the_end_leaves_at_sigterm():
    loop, _, ring, sums = rounds(header(), header())
    gather = ring.gather

    def last(block):
        loop.terminated = True
        return gather(block)

    ring.gather = last
    with pytest.raises(SystemExit):
        sums._finish()
    assert [one.flags for one in ring.sent] == [_HAS_MODEL | _DONE] and sums._meeting.stopped


def test_a_step_outside_of_a_minibatch_is_an_error():
    _, service, _, sums = rounds()
    with pytest.raises(LoopError, match="in the function for elastic_run"):
        sums.step(1)
    assert service.noted == 0


def test_models_of_different_sizes_are_named():
    _, _, _, sums = rounds(header()._replace(floats=3))
    with pytest.raises(ValueError, match="numbers by rank: 0: 1, 1: 3"):
        sums._idle()


# The first worker, whose master is away.


class Away:
    """A master that answers a number of calls, and none after them."""

    def __init__(self, error, answers=0):
        self.error, self.answers, self.called = error, answers, []

    def call(self, name, request, interrupted):
        self.called.append(request)
        if len(self.called) > self.answers:
            raise self.error
        return pb.AttendReply()


def leader(master, **settings):
    worker = Loop()
    worker.master, worker.settings = master, settings
    return Leader(worker)


AWAY = [Unreachable("Attend", grpc.StatusCode.UNAVAILABLE, "away"), Interrupted()]


@pytest.mark.parametrize("error", AWAY)
@pytest.mark.parametrize("answers", [0, 1])
def test_a_training_whose_end_is_not_answered_is_complete(error, answers):
    master = Away(error, answers)
    leader(master).finish(Snapshot(3, 3, b"", []))
    assert len(master.called) == answers + 1


def test_a_training_whose_end_is_refused_is_an_error():
    master = Away(Outdated("Attend", grpc.StatusCode.FAILED_PRECONDITION, "another"), 1)
    with pytest.raises(Outdated):
        leader(master).finish(Snapshot(3, 3, b"", []))


@pytest.mark.parametrize("error", [*AWAY, CallError("Attend", grpc.StatusCode.INTERNAL, "")])
def test_no_checkpoint_is_due_without_the_orders_of_the_master(error):
    assert not leader(Away(error), checkpoint_dir="absent").is_due(Snapshot(3, 3, b"", []))


# The controller.


@pytest.fixture
def optimizer():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


class Taking:
    """Takes gradients in place of rounds, after some attempts that are to be repeated."""

    def __init__(self, model, repeats=0):
        self.model, self.repeats, self.taken = model, repeats, []

    def begin(self):
        pass

    end = begin

    def step(self, per_update):
        self.taken.append(self.model.read()[0])
        if len(self.taken) <= self.repeats:
            raise Again()
        self.model.update(self.model.read())
        return True


def controller(optimizer, repeats):
    import torch

    from elastane.loop_torch import PyTorchAllReduceController, _TorchModel

    made = PyTorchAllReduceController.__new__(PyTorchAllReduceController)
    made._module, made._optimizer = torch.nn.Module(), optimizer
    made._sums = optimizer.sums = Taking(_TorchModel(made._module, optimizer), repeats)
    return made


def test_a_repeated_minibatch_has_its_gradient_once(optimizer):
    from elastane.loop_torch import DistributedOptimizer

    DistributedOptimizer(optimizer)
    of = controller(optimizer, repeats=1)
    ((parameter,),) = (group["params"] for group in optimizer.param_groups)

    @of.elastic_run
    def train():
        parameter.sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    train()
    train()
    assert of._sums.taken == [1.0, 1.0, 1.0] and parameter.item() == -2.0


def test_an_update_of_others_leaves_the_gradients_of_the_script(optimizer):
    from elastane.loop_torch import DistributedOptimizer

    DistributedOptimizer(optimizer)
    of = controller(optimizer, repeats=0)
    ((parameter,),) = (group["params"] for group in optimizer.param_groups)
    of._sums.model.update(np.array([5.0, 1.0], np.float32))
    assert parameter.item() == -5.0 and parameter.grad is None


def test_an_optimizer_that_already_has_a_schedule_makes_steps_of_all(optimizer):
    import torch

    from elastane.loop_torch import DistributedOptimizer

    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    DistributedOptimizer(optimizer)
    of = controller(optimizer, repeats=0)
    ((parameter,),) = (group["params"] for group in optimizer.param_groups)
    parameter.grad = torch.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        schedule.step()
    assert of._sums.taken == [1.0] and parameter.item() == -1.0
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_tensors_of_bfloat16_are_read_and_sent(optimizer):
    import torch

    from elastane.loop_torch import _TorchModel

    module = torch.nn.Linear(1, 1).to(torch.bfloat16)
    model = _TorchModel(module, torch.optim.SGD(module.parameters(), lr=1.0))
    assert model.read().tolist() == [0.0, 0.0, 1.0]
    description, arrays = model.pack()
    wanted = [one.float().detach().numpy().ravel() for one in module.parameters()]
    at = iter(arrays)
    with torch.no_grad():
        for one in module.parameters():
            one.zero_()

    def fill(flat):
        flat[:] = next(at).ravel()

    model.unpack(description, fill)
    found = [one.float().detach().numpy().ravel() for one in module.parameters()]
    assert np.array_equal(found, wanted)


def test_a_loop_without_an_optimizer_is_an_error(optimizer):
    of = controller(optimizer, repeats=0)
    of._sums.model = None
    for call in (of._check_joined, lambda: of.scope().__enter__()):
        with pytest.raises(LoopError, match="set_broadcast_optimizer of the controller before"):
            call()
