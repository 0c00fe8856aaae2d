"""The worker as a process of its own, with a stand-in of master and parameter server."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from conftest import EXAMPLES, said
from stand_in import Job
from wire import Wire

from elastane import example
from elastane.protocol import messages as pb
from elastane.recordio import RecordWriter, write_records

MODEL = os.path.join(EXAMPLES, "digits_numpy.py")


@pytest.fixture
def make_job(digits):
    jobs = []

    def make(arguments=None, **settings):
        given = {"model_file": MODEL, "training_data": str(digits / "train"), **(arguments or {})}
        jobs.append(Job(given, **settings))
        return jobs[-1]

    yield make
    for job in jobs:
        job.stop()


def each_once(job, epochs=1, count=1500):
    assert len(job.visited) == len(set(job.visited)) == epochs * count


def at_push(job, number, do=lambda: None, then=lambda: None):
    """Runs `do`, once, when so many pushes have counted, before this one is answered; and `then`
    beside the server."""

    def on_push(job):
        if job.pushes == number:
            do()
            threading.Thread(target=then).start()

    job.on_push = on_push


def test_two_workers_train_digits(make_job, digits, start_worker, monkeypatch):
    # The server of these tests knows no momentum.
    monkeypatch.setenv("LEARNING_RATE", "0.1")
    job = make_job({"validation_data": str(digits / "test")}, epochs=3)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    assert [worker.wait(300) for worker in workers] == [0, 0], said(workers[0])
    train = [one for one in job.visited if "train" in one[1]]
    assert len(train) == len(set(train)) == 4500
    assert job.pushes == 450 and job.version == 450
    total, weight = job.metrics["accuracy"]
    # The order of the pushes changes the accuracy by about a percent.
    assert weight == 297 and total / weight >= 0.93
    assert {reason for reason, _ in job.left.values()} == {pb.LEAVE_REASON_DONE}


def test_killed_worker_is_replaced(make_job, start_worker):
    job = make_job()
    first = start_worker(job)

    def give_up():
        first.wait()
        job.give_up(0)

    at_push(job, 20, first.kill, give_up)
    first.wait(300)
    second = start_worker(job, "worker-1")
    assert second.wait(300) == 0, said(second)
    each_once(job)


def test_sigterm_hands_back_the_finished_records(make_job, start_worker):
    job = make_job()
    first = start_worker(job)
    at_push(job, 25, lambda: first.send_signal(signal.SIGTERM))
    assert first.wait(300) == 143, said(first)
    assert job.left[0][0] == pb.LEAVE_REASON_PREEMPTED
    finished = sum(count for _, count in job.handed_back)
    assert finished % 10 == 0 and not job.doing
    assert len(job.visited) == job.pushes * 10, (
        "what was pushed is what was handed back as finished"
    )
    second = start_worker(job, "worker-1")
    assert second.wait(300) == 0, said(second)
    each_once(job)
    assert job.pushes == 150


def test_master_tells_a_worker_to_leave(make_job, start_worker):
    job = make_job()
    worker = start_worker(job)
    at_push(job, 25, lambda: job.leaving.add(0))
    assert worker.wait(300) == 143, said(worker)
    assert job.left[0][0] == pb.LEAVE_REASON_PREEMPTED and not job.doing


def test_master_and_server_come_back(make_job, start_worker):
    job = make_job()
    worker = start_worker(job)

    def restart():
        job.stop()
        threading.Event().wait(0.5)
        job.start()

    at_push(job, 30, then=restart)
    assert worker.wait(300) == 0, said(worker)
    each_once(job)
    assert job.pushes == 150


def test_lost_reply_counts_once(make_job, start_worker):
    job = make_job()
    job.lose_next_reply = 3
    worker = start_worker(job)
    assert worker.wait(300) == 0, said(worker)
    assert job.pushes == 150 and job.duplicates == 3


def test_an_accepted_push_whose_reply_is_lost_at_sigterm_counts(make_job, start_worker):
    job = make_job()
    first = start_worker(job)

    def loses():
        job.lose_next_reply = 1
        first.send_signal(signal.SIGTERM)

    at_push(job, 25, loses)
    assert first.wait(300) == 143, said(first)
    assert job.duplicates == 1
    assert len(job.visited) == job.pushes * 10, "its records are handed back as finished"


def test_rejected_gradient_is_computed_again(make_job, start_worker):
    job = make_job()
    job.reject_next = 5
    worker = start_worker(job)
    assert worker.wait(300) == 0, said(worker)
    assert job.pushes == 150 and job.rejected == 5
    each_once(job)


def test_model_begins_again(make_job, start_worker):
    job = make_job()
    worker = start_worker(job)
    first = {}

    def restart():
        first.update(job.initial)
        job.restart_model()

    at_push(job, 40, then=restart)
    assert worker.wait(300) == 0, said(worker)
    each_once(job)
    assert job.version == 150 and job.pushes > 150
    for name, value in first.items():
        assert np.array_equal(job.initial[name], value), "it begins with the untrained values"


def test_worker_that_was_given_up_joins_again(make_job, start_worker):
    job = make_job()
    worker = start_worker(job)
    at_push(job, 30, lambda: job.give_up(0))
    assert worker.wait(300) == 0, said(worker)
    assert job.next_worker == 2 and "new number" in said(worker)
    each_once(job)


def test_worker_that_was_given_up_and_hangs_ends(make_job, start_worker, tmp_path):
    model, hanging = tmp_path / "hangs.py", tmp_path / "hanging"
    hangs = (
        "def backward(self, d_logits):\n"
        f"        import time; open({str(hanging)!r}, 'w').close(); time.sleep(3600)"
    )
    model.write_text(open(MODEL).read().replace("def backward(self, d_logits):", hangs))
    job = make_job({"model_file": str(model)})
    worker = start_worker(job, before="import elastane.worker as w; w._HANGS_S = 0.5")
    while not hanging.exists():
        assert worker.poll() is None, said(worker)
        time.sleep(0.02)
    job.give_up(0)
    assert worker.wait(300) == -signal.SIGKILL, said(worker)
    assert "was given up and hangs" in said(worker) and job.pushes == 0


def test_worker_that_was_given_up_in_a_long_step_joins_again(make_job, start_worker, tmp_path):
    model = tmp_path / "slow.py"
    slow = "def backward(self, d_logits):\n        import time; time.sleep(1.0)"
    text = open(MODEL).read().replace("def backward(self, d_logits):", slow)
    model.write_text(text)
    job = make_job({"model_file": str(model)}, records_per_task=10)
    # A second is shorter than three times the longest step, which the first push tells.
    worker = start_worker(job, before="import elastane.worker as w; w._HANGS_S = 0.1")
    at_push(job, 2, lambda: job.give_up(0))
    with job.lock:
        assert job.changed.wait_for(lambda: job.next_worker == 2 and job.pushes > 3, 300)
    assert worker.poll() is None, said(worker)


def test_worker_that_was_given_up_while_it_loads_its_model_joins_again(
    make_job, start_worker, tmp_path
):
    model, loading = tmp_path / "slow.py", tmp_path / "loading"
    slow = f"import time\nopen({str(loading)!r}, 'w').close()\ntime.sleep(6)\n"
    model.write_text(open(MODEL).read().replace("import numpy", slow + "import numpy", 1))
    job = make_job({"model_file": str(model)})
    worker = start_worker(job, before="import elastane.worker as w; w._HANGS_S = 4")
    while not loading.exists():
        assert worker.poll() is None, said(worker)
        time.sleep(0.02)
    job.give_up(0)
    assert worker.wait(300) == 0, said(worker)
    assert job.next_worker == 2 and "new number" in said(worker)


def test_level_of_what_a_model_logs(make_job, start_worker, tmp_path):
    model = tmp_path / "logs.py"
    logs = "import logging\nlogging.getLogger('m').info('it says so')\n"
    model.write_text(open(MODEL).read().replace("import numpy", logs + "import numpy", 1))
    for level, is_said in (("INFO", True), ("WARNING", False)):
        job = make_job({"model_file": str(model), "log_level": level})
        worker = start_worker(job, f"worker-{level}")
        assert worker.wait(300) == 0, said(worker)
        assert ("INFO:m:it says so" in said(worker)) == is_said


def test_bad_records_are_reported_and_skipped(make_job, start_worker, tmp_path):
    good = example.encode({"image": np.zeros(784, np.float32), "label": np.array([3])})
    records = [good] * 30
    records[7] = b"not an example"
    records[22] = example.encode({"label": np.array([3])})
    data = tmp_path / "data"
    data.mkdir()
    write_records(str(data / "records"), records)
    job = make_job({"training_data": str(data)})
    worker = start_worker(job)
    assert worker.wait(300) == 0, said(worker)
    bad = {position: message for _, position, message in job.bad}
    assert sorted(bad) == [7, 22]
    assert "image" in bad[22] and "784" in bad[22]
    each_once(job, count=30)


def test_shard_that_is_cut_short_while_it_is_trained_on(make_job, start_worker, tmp_path):
    good = example.encode({"image": np.zeros(784, np.float32), "label": np.array([3])})
    data = tmp_path / "data"
    data.mkdir()
    with RecordWriter(str(data / "records"), "none", chunk_bytes_max=len(good) + 4) as writer:
        for _ in range(60):
            writer.write(good)
    job = make_job({"training_data": str(data)}, records_per_task=10)
    first = start_worker(job)

    def cut():
        first.wait()
        whole = (data / "records").read_bytes()
        (data / "records").write_bytes(whole[: len(whole) // 2])
        job.give_up(0)

    at_push(job, 2, first.kill, cut)
    first.wait(300)
    second = start_worker(job, "worker-1")
    assert second.wait(300) == 0, said(second)
    assert sorted(position for _, position, _ in job.bad) == list(range(30, 60))
    assert {message for _, _, message in job.bad} == {"the file is cut short: it has 30 records"}
    each_once(job, count=60)


def test_network_cut_of_30_s(make_job, start_worker):
    job = make_job()
    job.through = Wire(job)
    worker = start_worker(job, patience_s=600)
    at_push(job, 30, then=lambda: job.through.cut_for(30))
    assert worker.wait(300) == 0, said(worker)
    each_once(job)
    assert job.pushes == 150 and job.next_worker == 1, "it is the same worker all the time"


def test_model_without_loss(make_job, start_worker, tmp_path):
    model = tmp_path / "no_loss.py"
    model.write_text(open(MODEL).read().replace("def loss(", "def lost("))
    job = make_job({"model_file": str(model)})
    assert start_worker(job).wait(300) == 1
    reason, trace = job.left[0]
    assert reason == pb.LEAVE_REASON_CODE_ERROR
    assert "has no 'loss': define loss(labels, predictions)" in trace


def test_code_error_goes_to_the_master(make_job, start_worker, tmp_path):
    model = tmp_path / "broken.py"
    model.write_text(
        open(MODEL)
        .read()
        .replace("def backward(self, d_logits):", "def backward(self, d_logits):\n        1 / 0")
    )
    job = make_job({"model_file": str(model)})
    worker = start_worker(job)
    worker.wait(300)
    assert len(job.failures) >= 3
    assert "ZeroDivisionError" in job.failures[0] and "backward" in job.failures[0]


def test_another_token_and_another_version(make_job, start_worker, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("guess")
    worker = start_worker(make_job(), token_file=wrong)
    assert worker.wait(300) == 2 and "another token" in said(worker)
    newer = make_job(protocol_version="2")
    worker = start_worker(newer, "worker-1")
    assert worker.wait(300) == 2 and "protocol 1 here, 2 there" in said(worker)


def test_predictions(make_job, start_worker, digits):
    trained = make_job()
    assert start_worker(trained).wait(300) == 0
    job = make_job({"prediction_data": str(digits / "test")}, kind=pb.JOB_KIND_PREDICT)
    job.parameters, job.state = trained.parameters, {}
    worker = start_worker(job, "worker-1")
    assert worker.wait(300) == 0, said(worker)
    lines = [line for line in said(worker).splitlines() if line.startswith("predicted")]
    assert sum(len(line.split()) - 1 for line in lines) == 297


def test_saved_model(make_job, start_worker, tmp_path):
    job = make_job({"output": str(tmp_path / "out")}, saves=True)
    worker = start_worker(job)
    assert worker.wait(300) == 0, said(worker)
    saved = np.load(tmp_path / "out" / "model.npz")
    for name, value in job.parameters.items():
        assert np.array_equal(saved[name], value)
