"""Custom training loops that add up their gradients, with a stand-in of the master; scripts
are processes of PyTorch."""

import json
import os
import signal
import sys

import numpy as np
import pytest
from stand_in_world import WorldJob

pytest.importorskip("torch", reason="PyTorch is not installed")
SIZE = 48
# Each minibatch adds 1 to its records, and the mean counts: 1 / N with N minibatches in the update.
# It adds 1 + `once` to `once`, so two halves are no whole there.
SCRIPT = f"""
import json, os, signal, sys, time
import torch
from torch.utils.data import DataLoader, Dataset
from elasticai_api.pytorch.controller import create_elastic_controller
from elasticai_api.pytorch.optimizer import DistributedOptimizer

SIZE = {SIZE}
controller = create_elastic_controller(batch_size=4, num_epochs=EPOCHS, dataset_size=SIZE)

class Records(Dataset):
    def __len__(self): return sys.maxsize
    def __getitem__(self, index): return controller.data_shard_service.fetch_record_index()

class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        # Only the first worker's values are those of all.
        self.seen = torch.nn.Parameter(torch.full((SIZE,), START))
        self.once = torch.nn.Parameter(torch.zeros(SIZE))
        self.register_buffer("mean", torch.zeros(1))
    def forward(self, records):
        self.mean.fill_(records.float().mean())
        once = self.once[records]
        return self.seen[records] + once * (1 + once.detach())

model = Counts()
optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), OPTIONS)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=1.0)
controller.set_broadcast_model(model)
controller.set_broadcast_optimizer(optimizer)
trained = []

def train_one_batch(records):
    optimizer.zero_grad()
    time.sleep(0.02)
    loss = -model(records).sum()
    loss.backward()
    BEFORE
    optimizer.step()
    return records

elastic = controller.elastic_run(train_one_batch)
with controller.scope():
    for records in DataLoader(Records(), batch_size=4, num_workers=LOADERS):
        trained += elastic(records).tolist()
        print("trained", *records.tolist(), flush=True)
        AFTER
print(json.dumps(dict(
    seen=model.seen.tolist(), once=model.once.tolist(), mean=model.mean.item(), batches=controller.global_completed_batch_num,
    epoch=controller.get_current_epoch(),
)), flush=True)
"""


@pytest.fixture
def start(start_script):
    """Starts a script as a worker of a job; returns its process."""

    def start(job, pod="worker-0", script=SCRIPT, **given):
        parts = dict(EPOCHS="1", START="0.0", OPTIONS="", BEFORE="pass", AFTER="pass", LOADERS="0")
        for name, value in {**parts, **given}.items():
            script = script.replace(name, value)
        return start_script(job, script, pod, WORKER_NUM="2", OMP_NUM_THREADS="1")

    return start


@pytest.fixture
def make_job():
    jobs = []

    def make(first_size=1, checkpoint_steps=0, **more):
        arguments = {"records_per_task": "8", **more}
        more = {"checkpoint_steps": checkpoint_steps}
        jobs.append(WorldJob(arguments, first_size=first_size, records_per_task=8, **more))
        return jobs[-1]

    yield make
    for job in jobs:
        job.stop()


def ended(process):
    """The exit code, the minibatches and the last line of a script that has ended."""
    out, error = process.communicate(timeout=300)
    lines = out.splitlines()
    trained = [line.split()[1:] for line in lines if line.startswith("trained")]
    last = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
    return process.returncode, [list(map(int, line)) for line in trained], last, error


@pytest.mark.parametrize("loaders", ["0", "2"])
def test_two_workers_have_the_same_model_and_each_record_counts_once(make_job, start, loaders):
    job = make_job(first_size=2)
    workers = [
        start(job, f"worker-{n}", START=f"{n}.0", LOADERS=loaders, EPOCHS="2") for n in range(2)
    ]
    (code, one, first, error), (other_code, two, second, other_error) = map(ended, workers)
    assert (code, other_code) == (0, 0), error + other_error
    assert first == second
    assert first["batches"] == len(one) + len(two) == 2 * SIZE // 4 and first["epoch"] == 2
    assert sorted(record for batch in one + two for record in batch) == sorted([*range(SIZE)] * 2)
    # Each of two epochs added 1 or 1/2 to the values of the first worker.
    added = np.array(first["seen"]) % 1
    assert np.isin(added, [0, 0.5]).all() and job.is_done and not job.doing
    # Of 1 or 1/2 in the first epoch.
    assert np.isin(first["once"], [3, 2, 1.25]).all(), first["once"]


def test_a_worker_that_gets_sigterm_takes_nothing_along(make_job, start):
    job = make_job(first_size=2)
    stops = "os.kill(os.getpid(), signal.SIGTERM) if len(trained) == 8 else None"
    workers = [start(job, "worker-0", BEFORE=stops), start(job, "worker-1")]
    (code, one, _, error), (other_code, two, last, other_error) = map(ended, workers)
    assert (code, other_code) == (143, 0), error + other_error
    assert last["batches"] == SIZE // 4
    assert np.isin(last["once"], [1, 0.5]).all(), last["once"]
    assert one and two


def test_the_others_go_on_without_a_worker_that_is_killed(make_job, start):
    job = make_job(first_size=2)
    dies = "os.kill(os.getpid(), signal.SIGKILL) if len(trained) == 8 else None"
    first, second = start(job, "worker-0", BEFORE=dies), start(job, "worker-1")
    assert first.wait(120) == -signal.SIGKILL
    (gone,) = [worker for worker, pod in job.workers.items() if pod == "worker-0"]
    job.give_up(gone)
    code, _, last, error = ended(second)
    assert code == 0, error
    # What the killed one had trained and not reported yet is trained again: its two tasks at most.
    assert last["batches"] - SIZE // 4 <= 4 and min(last["seen"]) >= 0.5


def test_one_that_joins_gets_the_model_and_waits_without_records(make_job, start):
    job = make_job(first_size=1)
    # The first holds all tasks of its two until the other is there.
    joined = "while controller._sums.size < 2 and len(trained) >= 8: controller._sums._idle()"
    first = start(job, "worker-0", START="5.0", AFTER=joined)
    for line in first.stdout:
        if line.startswith("trained"):
            break
    second = start(job, "worker-1", START="100.0")
    code, _, last, error = ended(first)
    other_code, _, other, other_error = ended(second)
    assert (code, other_code) == (0, 0), error + other_error
    assert last == other and last["batches"] == SIZE // 4
    assert np.isin(np.array(last["seen"]) - 5, [1, 0.5]).all()
    assert np.isin(last["once"], [1, 0.5]).all(), last["once"]


def test_a_fixed_global_minibatch_is_that_of_all_workers_at_the_start(make_job, start):
    job = make_job()
    code, batches, last, error = ended(start(job, OPTIONS="fixed_global_batch_size=True"))
    assert code == 0, error
    # WORKER_NUM is 2: an update has two minibatches, of one worker here.
    assert len(batches) == last["batches"] == SIZE // 4
    assert np.allclose(last["seen"], 0.5)


@pytest.mark.parametrize(
    "given, says",
    [
        (dict(OPTIONS="op='sum'"), "leave out compression, op and gradient_predivide_factor"),
        (dict(OPTIONS="backward_passes_per_step=0"), "backward_passes_per_step is 0; at least 1"),
        (dict(BEFORE="return records"), "train_one_batch made no step of the optimizer"),
    ],
)
def test_what_cannot_be_is_named(make_job, start, given, says):
    code, _, _, error = ended(start(make_job(), **given))
    assert code == 1 and says in error, error


@pytest.mark.parametrize("loop", ["with controller.scope():", "if True:"])
def test_a_script_that_forgets_the_optimizer_fails(make_job, start, loop):
    script = SCRIPT.replace("controller.set_broadcast_optimizer(optimizer)", "")
    script = script.replace("with controller.scope():", loop)
    code, _, _, error = ended(start(make_job(), script=script))
    assert code == 1 and "set_broadcast_optimizer of the controller before the loop" in error, error


def test_a_job_of_parameter_servers_is_refused(start):
    from stand_in import Job

    job = Job({"records_per_task": "8"})
    code, _, _, error = ended(start(job))
    job.stop()
    assert code == 1 and "submit it with --distribution_strategy=AllreduceStrategy" in error
