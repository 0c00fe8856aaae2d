"""A worker with several GPUs: a process for each of them."""

import os
import signal
import threading

import numpy as np
import pytest
from conftest import EXAMPLES, said
from counting_model import RECORDS
from stand_in import Job
from stand_in_world import WorldJob

from elastane import processes
from elastane.protocol import messages as pb
from elastane.recordio import write_records

HERE = os.path.dirname(os.path.abspath(__file__))
TWO = ["--devices", "GPU-a,3"]
SEES = 'print("sees", os.environ["CUDA_VISIBLE_DEVICES"], os.environ["LOCAL_RANK"], flush=True)'


@pytest.fixture
def make_job(digits, tmp_path):
    """With parameter servers, or as a world."""
    jobs = []
    model = tmp_path / "model.py"
    with open(os.path.join(EXAMPLES, "digits_numpy.py")) as file:
        model.write_text(f"{file.read()}\nimport os\n\n{SEES}\n")

    def make(kind=Job, arguments=None, **settings):
        given = {"model_file": str(model), "training_data": str(digits / "train")}
        jobs.append(kind({**given, **(arguments or {})}, **settings))
        return jobs[-1]

    yield make
    for job in jobs:
        job.stop()


def of_agent(worker):
    """The ids of its processes, by rank."""
    with open(f"/proc/{worker.pid}/task/{worker.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def test_each_gpu_has_a_process_with_a_name_of_its_own(make_job, start_worker):
    job = make_job()
    worker = start_worker(job, "pod", more=TWO)
    assert worker.wait(300) == 0, said(worker)
    lines = said(worker).splitlines()
    assert "[0] sees GPU-a 0" in lines and "[1] sees 3 1" in lines
    names = [line for line in lines if " of job test, pod pod/" in line]
    assert sorted(line[:4] + line[-1] for line in names) == ["[0] 0", "[1] 1"]
    assert len(job.visited) == len(set(job.visited)) == 1500
    assert {reason for reason, _ in job.left.values()} == {pb.LEAVE_REASON_DONE}
    assert len(job.left) == 2 and job.lost == []


def test_sigterm_reaches_each_process(make_job, start_worker):
    job = make_job(epochs=50)
    worker = start_worker(job, "pod", more=TWO)

    def on_push(job):
        if job.pushes == 60:
            worker.send_signal(signal.SIGTERM)

    job.on_push = on_push
    assert worker.wait(300) == 143, said(worker)
    assert [reason for reason, _ in job.left.values()] == [pb.LEAVE_REASON_PREEMPTED] * 2
    assert len(job.visited) == job.pushes * 10 and not job.doing and job.lost == []


def test_the_others_hand_back_when_one_leaves_for_itself(make_job, start_worker):
    job = make_job(epochs=50)
    worker = start_worker(job, "pod", more=TWO)

    def on_push(job):
        if job.pushes == 60:
            os.kill(of_agent(worker)[1], signal.SIGTERM)

    job.on_push = on_push
    # Another pod begins then.
    assert worker.wait(300) == 143, said(worker)
    assert [reason for reason, _ in job.left.values()] == [pb.LEAVE_REASON_PREEMPTED] * 2
    assert len(job.visited) == job.pushes * 10 and not job.doing and job.lost == []


class Process:
    """A process that ends by itself if it is the first, and else only when it is killed."""

    killed = threading.Event()

    def __init__(self, command, device, rank, ranks):
        self.ended = 1 if rank == 0 else None

    def code(self):
        return self.ended

    def signal(self, number):
        if number == signal.SIGKILL:
            self.ended = 137
            self.killed.set()


def test_a_master_that_does_not_answer_holds_up_no_other(monkeypatch):
    monkeypatch.setattr(processes, "_Process", Process)
    monkeypatch.setattr(processes, "_LEAVE_S", 0.1)
    # The handler of this process comes back afterwards.
    before, told = signal.getsignal(signal.SIGTERM), []

    def gone(name):
        # The master answers only after the other was killed.
        told.append((name, Process.killed.wait(20)))

    try:
        assert processes.run(["0", "1"], "pod", [], gone) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert sorted(told) == [("pod/0", True), ("pod/1", True)]


def test_the_others_hand_back_when_one_is_killed(make_job, start_worker, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    write_records(str(data / "records"), [n.to_bytes(4, "big") for n in range(RECORDS)])
    arguments = {
        "model_file": os.path.join(HERE, "counting_model.py"),
        "training_data": str(data),
        "output": str(tmp_path / "out"),
    }
    job = make_job(WorldJob, arguments, first_size=3, records_per_task=40, saves=True)
    pod, other = start_worker(job, "pod", more=TWO), start_worker(job, "other")
    with job.lock:
        assert job.changed.wait_for(lambda: job.version >= 5, 60)
    os.kill(of_agent(pod)[1], signal.SIGKILL)
    # The exit code of a shell, so that the engine recognises a process with too little memory.
    assert pod.wait(120) == 137, said(pod)
    assert job.lost == ["pod/1"]
    assert [reason for reason, _ in job.left.values()] == [pb.LEAVE_REASON_PREEMPTED]
    # The other pod does not wait for the lost one.
    assert other.wait(120) == 0, said(other)
    trained = [n for epoch, _, n in job.visited if epoch == 0]
    assert set(trained) == set(range(RECORDS))
    values = np.load(tmp_path / "out" / "model.npz")["seen"]
    assert (values > 0.03).all()


def test_one_that_fails_ends_the_pod_with_its_code(make_job, start_worker, tmp_path):
    wrong = tmp_path / "wrong.py"
    with open(os.path.join(EXAMPLES, "digits_numpy.py")) as file:
        text = file.read()
    # Not before the other process has begun: it has nothing to leave before.
    go = tmp_path / "go"
    fails = f'''
import os
import time

while os.environ["LOCAL_RANK"] != "0":
    assert not os.path.exists({str(go)!r}), "no model"
    time.sleep(0.02)
'''
    wrong.write_text(text + fails)
    job = make_job(arguments={"model_file": str(wrong)}, epochs=50)
    worker = start_worker(job, "pod", more=TWO)
    with job.lock:
        assert job.changed.wait_for(lambda: job.parameters is not None, 300)
    go.touch()
    assert worker.wait(300) == 1, said(worker)
    assert "[1] AssertionError: no model" in said(worker)
    # The process has reported it itself, with the trace.
    assert job.lost == []
    reasons = {reason for reason, _ in job.left.values()}
    assert reasons == {pb.LEAVE_REASON_CODE_ERROR, pb.LEAVE_REASON_PREEMPTED}


@pytest.mark.parametrize(
    "gpus, visible, found",
    [("2", "0,1", ["0", "1"]), ("0", "", []), ("1", "GPU-a", ["GPU-a"]), (None, "0,1", [])],
)
def test_only_a_pod_says_which_gpus_are_its_own(monkeypatch, gpus, visible, found):
    monkeypatch.delenv("RUNAI_NUM_OF_GPUS", raising=False)
    if gpus is not None:
        monkeypatch.setenv("RUNAI_NUM_OF_GPUS", gpus)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert processes.of_pod() == found
