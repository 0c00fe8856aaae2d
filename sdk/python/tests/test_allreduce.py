"""Workers that add up their gradients, as processes, with a stand-in of the master."""

import os
import time

import numpy as np
import pytest
from conftest import EXAMPLES, said
from counting_model import RECORDS
from stand_in_world import WorldJob

from elastane.protocol import messages as pb
from elastane.recordio import write_records

HERE = os.path.dirname(os.path.abspath(__file__))
# A record in a step of one, of two and of three workers, with 10 records of each.
ONCE = np.array([1 / 10, 1 / 20, 1 / 30], np.float32)


@pytest.fixture
def make_job(tmp_path):
    jobs = []
    data = tmp_path / "data"
    data.mkdir()
    write_records(str(data / "records"), [n.to_bytes(4, "big") for n in range(RECORDS)])

    def make(**settings):
        arguments = {
            "model_file": os.path.join(HERE, "counting_model.py"),
            "training_data": str(data),
            "output": str(tmp_path / "out"),
            **settings.pop("arguments", {}),
        }
        jobs.append(WorldJob(arguments, saves=True, records_per_task=40, **settings))
        return jobs[-1]

    yield make
    for job in jobs:
        job.stop()


def reach(job, version):
    """Waits for this version of the model."""
    with job.lock:
        assert job.changed.wait_for(lambda: job.version >= version, 60)


def seen(tmp_path):
    """How much each record counts in the model."""
    return np.load(tmp_path / "out" / "model.npz")["seen"]


def each_record_is_trained(job):
    trained = [one for one in job.visited if one[0] == 0]
    # The task that saves has ten records as well.
    assert set(trained) == {(0, trained[0][1], n) for n in range(RECORDS)}


def counts_once(values):
    return np.isclose(values[:, None], ONCE, atol=1e-6).any(axis=1)


def test_each_record_counts_once_in_a_world_of_three(make_job, start_worker, tmp_path):
    job = make_job(first_size=3)
    workers = [start_worker(job, f"worker-{n}") for n in range(3)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0], said(workers[0])
    each_record_is_trained(job)
    assert counts_once(seen(tmp_path)).all() and job.is_done
    assert {reason for reason, _ in job.left.values()} == {pb.LEAVE_REASON_DONE}


def test_one_that_leaves_takes_nothing_along_and_one_that_joins_gets_the_model(
    make_job, start_worker, tmp_path
):
    job = make_job(first_size=2, epochs=1)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    reach(job, 10)
    workers[0].terminate()
    assert workers[0].wait(120) == 143, said(workers[0])
    assert [reason for reason, _ in job.left.values()] == [pb.LEAVE_REASON_PREEMPTED]
    third = start_worker(job, "worker-2")
    assert [workers[1].wait(120), third.wait(120)] == [0, 0], said(workers[1])
    each_record_is_trained(job)
    values = seen(tmp_path)
    assert counts_once(values).all(), values[~counts_once(values)]


def test_one_that_leaves_does_not_wait_for_one_that_is_busy(make_job, start_worker, tmp_path):
    begin, asleep = tmp_path / "begin", tmp_path / "asleep"
    sleep = f"""
        if "worker-1" in sys.argv and os.path.exists({str(begin)!r}):
            open({str(asleep)!r}, "w").close()
            time.sleep(600)
        time.sleep(0.03)
"""
    with open(os.path.join(HERE, "counting_model.py")) as file:
        text = file.read().replace("import time\n", "import os\nimport sys\nimport time\n")
    model = tmp_path / "busy.py"
    model.write_text(text.replace("        time.sleep(0.03)\n", sleep))
    job = make_job(arguments={"model_file": str(model)}, first_size=2)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    reach(job, 5)
    begin.touch()
    while not asleep.exists():
        assert workers[1].poll() is None, said(workers[1])
        time.sleep(0.05)
    with job.lock:
        (number,) = [id for id, pod in job.workers.items() if pod == "worker-0"]
        job.leaving.add(number)
    assert workers[0].wait(60) == 143, said(workers[0])
    assert "handed back after" in said(workers[0]) and workers[1].poll() is None
    assert [reason for reason, _ in job.left.values()] == [pb.LEAVE_REASON_PREEMPTED]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_one_that_is_killed_costs_what_it_had_in_hand(make_job, start_worker, tmp_path, rank):
    job = make_job(first_size=3)
    workers = [start_worker(job, f"worker-{n}") for n in range(3)]
    reach(job, 5)
    with job.lock:
        pod = job.workers[job.members[rank]]
        number = job.members[rank]
    killed = workers.pop(int(pod[-1]))
    killed.kill()
    killed.wait(60)
    job.give_up(number)
    assert [worker.wait(120) for worker in workers] == [0, 0], said(workers[0])
    each_record_is_trained(job)
    values = seen(tmp_path)
    again = values[~counts_once(values)]
    # The stand-in gives the two tasks again from their start on.
    assert len(again) <= 80 and (values > 0.03).all(), again


def test_a_job_that_loses_all_workers_goes_on_from_its_checkpoint(
    make_job, start_worker, tmp_path
):
    folder = str(tmp_path / "checkpoints")
    job = make_job(arguments={"checkpoint_dir": folder}, first_size=2, checkpoint_steps=5)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    with job.lock:
        assert job.changed.wait_for(lambda: job.checkpoints, 60)
    for worker in workers:
        worker.kill()
        worker.wait(60)
    for number in list(job.workers):
        job.give_up(number)
    # The newest is damaged, if there are several: an older one counts.
    newest = max(job.checkpoints)
    if len(job.checkpoints) > 1:
        path = os.path.join(folder, f"version-{newest}", "variables-0-of-1.ckpt")
        with open(path, "r+b") as file:
            file.truncate(100)
    workers = [start_worker(job, f"worker-{n}") for n in range(2, 4)]
    assert [worker.wait(120) for worker in workers] == [0, 0], said(workers[0])
    assert "goes on from the checkpoint of version" in said(workers[0]) + said(workers[1])
    values = seen(tmp_path)
    assert counts_once(values).all(), values[~counts_once(values)]


def test_all_that_leave_save_the_model_first(make_job, start_worker, tmp_path):
    job = make_job(arguments={"checkpoint_dir": str(tmp_path / "checkpoints")}, first_size=2)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    reach(job, 5)
    for worker in workers:
        worker.terminate()
    assert [worker.wait(120) for worker in workers] == [143, 143], said(workers[0])
    assert job.is_saved and len(job.checkpoints) == 1
    again = start_worker(job, "worker-2")
    assert again.wait(120) == 0, said(again)
    values = seen(tmp_path)
    assert counts_once(values).all(), values[~counts_once(values)]


def test_one_that_cannot_be_connected_to_is_named_and_the_others_go_on_without_it(
    make_job, start_worker
):
    job = make_job(first_size=2)
    job.apart = "worker-1"
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    with job.lock:
        # After a second meeting: the time since the first failure counts, not one attempt.
        assert job.changed.wait_for(lambda: job.unreached and job.unreached[-1][2] > 9_000, 120)
        numbers = {pod: number for number, pod in job.workers.items()}
        pairs = {(one, other) for one, other, _ in job.unreached}
        assert pairs == {(numbers["worker-0"], numbers["worker-1"])}
        assert job.version == 0
        job.parted.add(numbers["worker-1"])
        job.leaving.add(numbers["worker-1"])
    # 143 would count as a normal end, and so another worker would start each time.
    assert workers[1].wait(60) == 3, said(workers[1])
    assert job.left[numbers["worker-1"]][0] == pb.LEAVE_REASON_PREEMPTED
    assert workers[0].wait(120) == 0, said(workers[0])
    each_record_is_trained(job)


def test_a_folder_of_checkpoints_that_cannot_be_written_is_named(make_job, start_worker, tmp_path):
    (tmp_path / "file").write_text("")
    job = make_job(arguments={"checkpoint_dir": str(tmp_path / "file" / "below")})
    worker = start_worker(job)
    assert worker.wait(120) == 1
    reason, trace = job.left[0]
    assert reason == pb.LEAVE_REASON_CODE_ERROR and "--checkpoint_dir: " in trace


def test_a_model_too_large_for_a_file_is_refused_at_the_beginning(
    make_job, start_worker, tmp_path
):
    folder = tmp_path / "checkpoints"
    job = make_job(arguments={"checkpoint_dir": str(folder)})
    smaller = "import elastane.worker as w; import elastane.checkpoints as c; c.BYTES_MAX = 999"
    worker = start_worker(job, before=smaller)
    assert worker.wait(120) == 1
    reason, trace = job.left[0]
    assert reason == pb.LEAVE_REASON_CODE_ERROR and job.version == 0
    assert "file of a checkpoint 999 at most: use the strategy ParameterServerStrategy" in trace


def test_embedding_tables_need_parameter_servers(make_job, start_worker, tmp_path):
    model = tmp_path / "table.py"
    with open(os.path.join(HERE, "counting_model.py")) as file:
        text = file.read()
    table = "from elastane.embedding import Embedding\n"
    declared = "Model.embeddings = [Embedding('users', 4)]\n\n\ndef custom_model():"
    model.write_text(table + text.replace("def custom_model():", declared))
    job = make_job(arguments={"model_file": str(model)})
    worker = start_worker(job)
    assert worker.wait(60) == 1
    assert "table 'users', whose rows are on parameter servers: use the" in job.left[0][1]


def test_digits_are_learned(make_job, start_worker, digits, tmp_path):
    arguments = {
        "model_file": os.path.join(EXAMPLES, "digits_numpy.py"),
        "training_data": str(digits / "train"),
        "validation_data": str(digits / "test"),
    }
    job = make_job(arguments=arguments, epochs=3, first_size=2)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    assert [worker.wait(120) for worker in workers] == [0, 0], said(workers[0])
    total, weight = job.metrics["accuracy"]
    assert weight == 297 and total / weight >= 0.93


def test_workers_of_keras_learn_digits_and_one_may_be_lost(make_job, start_worker, digits):
    pytest.importorskip("tensorflow", reason="the model is one of TensorFlow-Keras")
    arguments = {
        "model_file": os.path.join(EXAMPLES, "digits_keras.py"),
        "training_data": str(digits / "train"),
        "validation_data": str(digits / "test"),
    }
    job = make_job(arguments=arguments, epochs=3, first_size=2)
    workers = [start_worker(job, f"worker-{n}") for n in range(2)]
    with job.lock:
        # TensorFlow starts slowly.
        assert job.changed.wait_for(lambda: job.version >= 20, 240), said(workers[0])
        (number,) = [id for id, pod in job.workers.items() if pod == "worker-0"]
    workers[0].kill()
    workers[0].wait(60)
    job.give_up(number)
    assert workers[1].wait(240) == 0, said(workers[1])
    assert number not in job.left and len(job.left) == 1
    total, weight = job.metrics["accuracy"]
    # Values that move beside the gradients, such as the means of a normalisation, count as well.
    assert weight == 297 and total / weight >= 0.9, total / weight
