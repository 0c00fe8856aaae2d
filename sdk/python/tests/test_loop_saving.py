"""Checkpoints of custom training loops that add up their gradients, with a stand-in of the
master."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_sums import SIZE, ended, make_job, start  # noqa: F401 (fixtures)

from elastane import checkpoints, loop_saving
from elastane.checkpoints import CheckpointError

DIES = "os.kill(os.getpid(), signal.SIG{}) if len(trained) == {} else None"


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "checkpoints")


def gone(job, pod="worker-0"):
    """The master notices that a worker is gone."""
    for worker, of in list(job.workers.items()):
        if of == pod and worker in job.members:
            job.give_up(worker)


def test_a_loop_whose_only_worker_is_killed_goes_on_from_a_checkpoint(make_job, start, folder):
    job = make_job(checkpoint_steps=3, checkpoint_dir=folder)
    # Version 3 has half of a task.
    go = f"{folder}-go"
    waits = f"while len(trained) == 16 and not os.path.exists({go!r}): time.sleep(0.01)"
    first = start(job, START="5.0", BEFORE=waits + "\n    " + DIES.format("KILL", 20))
    with job.lock:
        assert job.changed.wait_for(lambda: job.checkpoints, 60)
    open(go, "w").close()
    assert first.wait(120) == -signal.SIGKILL, first.communicate()
    gone(job)
    code, batches, last, error = ended(start(job, "worker-1", START="100.0"))
    assert code == 0, error
    assert "the model goes on from the checkpoint of version 3" in error
    assert len(batches) == SIZE // 4 - 3 and last["batches"] == SIZE // 4
    assert np.allclose(last["seen"], 6) and np.allclose(last["once"], 1), last


def test_a_loop_whose_workers_all_get_sigterm_goes_on_where_it_was(make_job, start, folder):
    job = make_job(first_size=2, checkpoint_dir=folder)
    pods = [f"worker-{n}" for n in range(2)]
    stops = DIES.format("TERM", 8)
    workers = [start(job, pod, BEFORE=stops, START="5.0") for pod in pods]
    found = [ended(worker) for worker in workers]
    assert [one[0] for one in found] == [143, 143], found
    assert job.is_saved and job.checkpoints
    # The model of both is lost with them.
    code, batches, last, error = ended(start(job, "worker-2", START="100.0"))
    assert code == 0, error
    assert last["batches"] == SIZE // 4 and len(batches) < SIZE // 4
    assert np.isin(last["once"], [1, 0.5]).all(), last["once"]
    assert np.isin(np.array(last["seen"]) - 5, [1, 0.5]).all(), last["seen"]


def test_the_last_checkpoint_is_that_of_the_end_and_initial_for_another_job(
    make_job, start, folder
):
    job = make_job(checkpoint_steps=100, checkpoint_dir=folder)
    code, _, last, error = ended(start(job, START="5.0"))
    assert code == 0, error
    assert checkpoints.versions(folder) == [SIZE // 4] and job.is_done
    other = make_job(checkpoint_dir_for_init=folder)
    code, _, again, error = ended(start(other, "worker-1", START="100.0"))
    assert code == 0, error
    assert np.allclose(again["seen"], np.array(last["seen"]) + 1)
    assert again["batches"] == SIZE // 4


class Vector:
    """A model of one array."""

    def __init__(self):
        self.array = np.zeros(3, np.float32)

    def unpack(self, description, fill):
        assert description == b"three"
        fill(self.array)


def test_a_checkpoint_that_cannot_be_used_is_named(folder):
    made = loop_saving.Snapshot(7, 9, b"three", [np.array([1, 2, 3], np.float32)])
    loop_saving.write(folder, "job", made)
    model = Vector()
    assert loop_saving.load(folder, 7, "job", model).batches == 9
    assert model.array.tolist() == [1, 2, 3]
    with pytest.raises(CheckpointError, match="it is of another job, job"):
        loop_saving.load(folder, 7, "other", model)
    with pytest.raises(CheckpointError, match="form 3; 1 is needed here"):
        checkpoints.load(folder, 7, "job")
    model.array = np.zeros(4, np.float32)
    with pytest.raises(CheckpointError, match="is of another model"):
        loop_saving.load(folder, 7, "job", model)
    path = checkpoints.path(folder, 7)
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x00")
    with pytest.raises(CheckpointError, match="does not match its digest"):
        loop_saving.load(folder, 7, "job", Vector())
    with pytest.raises(CheckpointError, match="has no folder version-N"):
        loop_saving.load_newest(folder + "-absent", Vector())


def test_a_model_begins_with_the_newest_checkpoint_that_is_whole(folder):
    for version in (100, 200):
        array = np.full(3, version, np.float32)
        loop_saving.write(folder, "job", loop_saving.Snapshot(version, 9, b"three", [array]))
    # A worker was killed while it wrote this one.
    os.mkdir(f"{folder}/version-300")
    open(checkpoints.path(folder, 300) + ".1.partial", "w").close()
    for given, value in ((folder, 200), (folder + "/", 200), (f"{folder}/version-100/", 100)):
        model = Vector()
        loop_saving.load_newest(given, model)
        assert model.array.tolist() == [value] * 3
    with pytest.raises(CheckpointError, match="has no whole checkpoint of this model; .*300"):
        loop_saving.load_newest(f"{folder}/version-300", Vector())


def test_a_checkpoint_of_a_bucket_keeps_its_address():
    for given in ("s3://bucket/ck/version-12", "s3://bucket/ck/version-12/"):
        assert checkpoints.candidates(given) == ("s3://bucket/ck", [12])
    assert checkpoints.candidates("/version-12") == ("/", [12])
    assert checkpoints.candidates("version-12") == ("", [12])


def test_a_checkpoint_of_a_module_of_other_shapes_changes_no_parameter(folder):
    import torch

    from elastane.loop_torch import _TorchModel

    def model(*sizes):
        module = torch.nn.Sequential(*(torch.nn.Linear(1, size) for size in sizes))
        optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
        return module, _TorchModel(module, optimizer)

    description, arrays = model(2, 3)[1].pack()
    loop_saving.write(folder, "job", loop_saving.Snapshot(7, 9, description, arrays))

    def keeps(module, other, says):
        before = [one.detach().clone() for one in module.parameters()]
        with pytest.raises(CheckpointError, match=says):
            loop_saving.load(folder, 7, "job", other)
        assert all(map(torch.equal, before, module.parameters()))

    keeps(*model(2, 4), r"1.weight: shape \[3, 1\], and \[4, 1\] here")
    keeps(*model(2), "names of another module: 1.bias, 1.weight")
    module, other = model(2, 3)
    other._optimizer = torch.optim.SGD([next(module.parameters())], lr=1.0)
    keeps(module, other, "is of another model")
