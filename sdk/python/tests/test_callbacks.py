"""Callbacks of a model: the forms that files give them in, their calls, the end of a training."""

import os

import numpy as np
import pytest
from conftest import said
from stand_in import Job
from stand_in_world import WorldJob

from elastane import backends, contract
from elastane.callbacks import CallbackError, Callbacks, LearningRateScheduler
from elastane.recordio import write_records

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "counting_model.py"), encoding="utf-8") as counting:
    MODEL = counting.read()


class Calls:
    """Notes its calls."""

    def __init__(self):
        self.calls = []

    def set_model(self, model):
        self.calls.append(("model", model))

    def set_params(self, params):
        self.calls.append(("params", params))

    def on_train_batch_begin(self, batch, logs=None):
        self.calls.append(("begin", batch))

    def on_train_end(self, logs=None):
        self.calls.append(("end",))


class Model:
    pass


def load(folder, more):
    path = folder / "model.py"
    path.write_text(MODEL + more)
    return contract.load(str(path))


@pytest.mark.parametrize(
    "given, count",
    [
        ("def callbacks(): return [One(), One()]", 2),
        ("def callbacks(): return (One(),)", 1),
        ("def callbacks(): return One()", 1),
        ("def callbacks(): return None", 0),
        ("callbacks = [One()]", 1),
        ("callbacks = One()", 1),
        ("callbacks = None", 0),
        ("", 0),
    ],
)
def test_each_form_of_giving_them(tmp_path, given, count):
    found = load(tmp_path, f"class One:\n    def on_train_end(self): pass\n{given}\n").callbacks
    assert [type(one).__name__ for one in found] == ["One"] * count


@pytest.mark.parametrize(
    "given, says",
    [
        ("[One]", r"has One, which is no callback: return a list of One\(...\) with on_train"),
        ("['rate']", "has str, which is no callback"),
    ],
)
def test_what_is_no_callback_is_named(tmp_path, given, says):
    with pytest.raises(CallbackError, match=says):
        load(tmp_path, f"class One:\n    def on_train_end(self): pass\ncallbacks = {given}\n")


def test_a_rate_by_version_is_that_of_the_step(tmp_path):
    more = "def learning_rate_scheduler(model_version): return 0.5 / (1 + model_version)\n"
    backend = backends.choose(load(tmp_path, more))
    assert [backend.learning_rate(version) for version in (0, 4)] == [0.5, 0.1]
    more = "from elasticdl.callbacks import LearningRateScheduler\n"
    more += "callbacks = [LearningRateScheduler(lambda version: 0.25)]\n"
    assert backends.choose(load(tmp_path, more)).learning_rate(0) == 0.25
    with pytest.raises(TypeError, match="a function of the version"):
        LearningRateScheduler(0.1)


def test_calls_of_a_worker():
    model, optimizer, one = Model(), object(), Calls()
    callbacks = Callbacks([one], model, optimizer)
    callbacks.set_params({"batch_size": 4})
    callbacks.batch_begin(7)
    callbacks.train_end()
    assert model.optimizer is optimizer
    assert one.calls == [("model", model), ("params", {"batch_size": 4}), ("begin", 7), ("end",)]
    assert not callbacks.has_stopped and callbacks.warnings() == []


def test_an_earlier_callback_has_another_name_for_the_begin_of_a_step():
    versions = []

    class Early:
        def on_batch_begin(self, batch):
            versions.append(batch)

    Callbacks([Early()], Model(), None).batch_begin(3)
    assert versions == [3]


def test_a_hook_that_no_worker_calls_is_a_warning():
    class Stopper(Calls):
        def on_epoch_end(self, epoch, logs=None):
            pass

    (warning,) = Callbacks([Stopper(), Calls()], Model(), None).warnings()
    assert warning.startswith("callback Stopper: workers do not call on_epoch_end, only on_train")


def test_hooks_of_the_base_of_keras_are_no_warning():
    keras = pytest.importorskip("tensorflow", reason="TensorFlow is not installed").keras

    class Own(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            pass

    theirs = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    (warning,) = Callbacks([Own(), theirs], Model(), None).warnings()
    assert "callback LearningRateScheduler: workers do not call on_epoch_begin" in warning


def test_a_training_that_has_ended_goes_on_from_an_older_checkpoint():
    class Once:
        def set_model(self, model):
            self.model = model

        def on_train_batch_begin(self, version):
            if version == 5:
                self.model.stop_training = True

    callbacks = Callbacks([Once()], Model(), None)
    ended = []
    for version in (4, 5, 6, 3, 5):
        callbacks.batch_begin(version)
        ended.append(callbacks.has_stopped)
    assert ended == [False, True, True, False, True]


STOPS = """
from elasticdl.python.elasticdl.callbacks.max_steps_stopping import MaxStepsStopping
def callbacks(): return [MaxStepsStopping(max_steps=7)]
"""


@pytest.fixture
def arguments(tmp_path):
    (tmp_path / "model.py").write_text(MODEL + STOPS)
    data = tmp_path / "data"
    data.mkdir()
    write_records(str(data / "one"), [n.to_bytes(2, "big") for n in range(200)])
    return {"model_file": str(tmp_path / "model.py"), "training_data": str(data)}


@pytest.mark.parametrize("kind", [Job, WorldJob])
def test_a_callback_ends_the_training_of_all_workers(kind, arguments, start_worker, tmp_path):
    more = {"first_size": 2} if kind is WorldJob else {}
    given = {**arguments, "output": str(tmp_path / "out")}
    job = kind(given, records_per_task=20, saves=True, **more)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    assert [worker.wait(120) for worker in workers] == [0, 0], said(workers[0])
    job.stop()
    assert len(set(job.visited)) == 200 and job.failures == []
    # An update adds 1 in all.
    saved = np.load(tmp_path / "out" / "model.npz")["seen"]
    assert saved.sum() == pytest.approx(7)
    assert any("a callback has ended the training at version 7" in said(one) for one in workers)


def test_a_job_without_end_is_not_ended_by_a_callback(arguments, start_worker):
    job = Job({**arguments, "num_epochs": "0"}, records_per_task=20)
    worker = start_worker(job)
    worker.wait(120)
    job.stop()
    # As many as the stand-in allows, and the task after it.
    assert len(job.failures) >= 3
    assert "the job has no end (--num_epochs=0): give --max_step" in job.failures[0]
    assert job.version == 7
