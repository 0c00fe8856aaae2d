"""Shards of a custom training loop, with a stand-in of the master; scripts are processes."""

import multiprocessing
import os
import select
import signal
import sys

import pytest
from stand_in import Job

from elastane import contract
from elastane.indices import RecordIndexService
from elastane.protocol import messages as pb
from elastane.shards import Order

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 50
BEGIN = f"""
import sys
from elasticai_api.common.data_shard_service import build_data_shard_service, RecordIndexService
SIZE = {SIZE}
def train(records):
    print("trained", *records, flush=True)
"""
BY_SHARD = """
service = build_data_shard_service(batch_size=4, dataset_size=SIZE, **OPTIONS)
while True:
    shard = service.fetch_shard()
    if shard is None: break
    records = shard.indices or list(range(shard.start, shard.end))
    for at in range(0, len(records), 4):
        assert service.get_current_task().shard == shard
        part = records[at : at + 4]
        train(part)
        STEP
        service.report_batch_done(len(part))
assert service.get_current_task() is None
"""
BY_RECORD = """
service = RecordIndexService(batch_size=4, dataset_size=SIZE, **OPTIONS)
def loader():
    while True:
        try:
            yield [service.fetch_record_index() for _ in range(4)]
        except StopIteration:
            return
for records in loader():
    train(records)
    STEP
    service.report_batch_done()
"""


@pytest.fixture
def start(start_script):
    """Starts a script as a worker of a job; returns its process."""

    def start(job, script, options="", step="", pod="worker-0"):
        text = BEGIN + script.replace("**OPTIONS", options).replace("STEP", step or "pass")
        return start_script(job, text, pod)

    return start


def job(**more):
    arguments = {"records_per_task": "12", **more.pop("arguments", {})}
    return Job(arguments, records_per_task=12, **more)


def trained(process):
    """The minibatches of a script that has ended."""
    out, error = process.communicate(timeout=120)
    lines = [line.split()[1:] for line in out.splitlines() if line.startswith("trained")]
    return process.returncode, [list(map(int, line)) for line in lines], error


@pytest.mark.parametrize("script", [BY_SHARD, BY_RECORD])
@pytest.mark.parametrize("options", ["num_epochs=2", "num_epochs=2, shuffle=True"])
def test_two_workers_train_each_record_once_an_epoch(start, script, options):
    of = job()
    workers = [start(of, script, options, pod=f"worker-{n}") for n in range(2)]
    found = [trained(worker) for worker in workers]
    of.stop()
    assert [code for code, _, _ in found] == [0, 0], found
    batches = [batch for _, some, _ in found for batch in some]
    records = [record for batch in batches for record in batch]
    # The last minibatch of a worker is made whole by records of it.
    extra = [batch for batch in batches if len(set(batch)) < len(batch)]
    once = [record for batch in batches for record in set(batch)]
    assert sorted(once) == sorted([*range(SIZE)] * 2) and len(extra) <= 4
    assert (script is BY_SHARD) <= (len(records) == 2 * SIZE)
    assert of.left.keys() == {0, 1} and not of.doing
    assert {reason for reason, _ in of.left.values()} == {pb.LEAVE_REASON_DONE}
    follow = sum(batch == list(range(batch[0], batch[0] + 4)) for batch in batches)
    assert (follow > len(batches) / 2) == ("shuffle" not in options)


def test_a_worker_that_gets_sigterm_hands_back_what_it_has_not_trained(start):
    of = job()
    step = "import os, signal; os.kill(os.getpid(), signal.SIGTERM) if 20 in part else None"
    code, first, error = trained(start(of, BY_SHARD, "num_epochs=1", step))
    assert code == 143, error
    assert of.left[0][0] == pb.LEAVE_REASON_PREEMPTED and not of.doing
    code, second, error = trained(start(of, BY_SHARD, "num_epochs=1", pod="worker-1"))
    of.stop()
    assert code == 0, error
    assert [record for batch in first + second for record in batch] == list(range(SIZE))


LOADER = """
import os, torch
class Records(torch.utils.data.Dataset):
    def __len__(self): return sys.maxsize
    def __getitem__(self, index): return service.fetch_record_index()
def begins(number): print("loader", os.getpid(), flush=True)
"""
LOADS = """
for batch in torch.utils.data.DataLoader(
    Records(), batch_size=4, num_workers=2, worker_init_fn=begins
):
    train(batch.tolist())
    service.report_batch_done()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_waits_in_a_loader_ends_with_its_processes(start, number):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    of = job()
    with of.lock:
        # The other worker holds all tasks.
        of.todo = []
        of.doing[1] = (99, pb.Task(task_id=1, kind=pb.TASK_KIND_TRAIN))
        of.shards = []
    worker = start(of, LOADER + "service = RecordIndexService(4, 1, SIZE)\n" + LOADS)
    loaders = [os.pidfd_open(int(worker.stdout.readline().split()[1])) for _ in range(2)]
    worker.send_signal(number)
    assert worker.wait(120) == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    for loader in loaders:
        ended = select.poll()
        ended.register(loader, select.POLLIN)
        assert ended.poll(60_000), "a process of the loader is left"
        os.close(loader)
    of.stop()
    if number == signal.SIGTERM:
        assert of.left[0][0] == pb.LEAVE_REASON_PREEMPTED


def test_a_worker_that_waits_for_records_leaves_at_sigterm(start):
    of = job()
    with of.lock:
        # The other worker holds all tasks.
        of.todo = []
        of.doing[1] = (99, pb.Task(task_id=1, kind=pb.TASK_KIND_TRAIN))
        of.shards = []
    waits = "import time\nservice = RecordIndexService(4, 1, SIZE)\nprint('waits', flush=True)\n"
    worker = start(of, waits + "while True: time.sleep(1)\n")
    assert worker.stdout.readline() == "waits\n"
    worker.send_signal(signal.SIGTERM)
    assert trained(worker)[0] == 143
    of.stop()
    assert of.left[0][0] == pb.LEAVE_REASON_PREEMPTED


def test_a_failed_minibatch_is_given_out_again(start):
    of = job()
    failing = """
service = build_data_shard_service(4, 1, SIZE)
failed = []
while True:
    shard = service.fetch_shard()
    if shard is None: break
    for at in range(shard.start, shard.end, 4):
        part = list(range(at, min(at + 4, shard.end)))
        if 16 in part and not failed:
            failed.append(part)
            service.report_batch_done(len(part), err_msg="no memory")
            break
        train(part)
        service.report_batch_done(len(part))
"""
    code, batches, error = trained(start(of, failing))
    of.stop()
    assert code == 0, error
    assert of.failures == ["no memory"]
    assert {record for batch in batches for record in batch} == set(range(SIZE))


def test_a_script_that_fails_says_so_to_the_master(start):
    of = job()
    code, _, error = trained(start(of, BY_SHARD, "num_epochs=1", "1 / 0"))
    of.stop()
    assert code == 1 and "ZeroDivisionError" in error
    reason, message = of.left[0]
    assert reason == pb.LEAVE_REASON_CODE_ERROR and message.endswith("division by zero\n")


def test_a_script_ends_although_its_minibatches_are_not_taken(start):
    # More than a pipe of the system holds.
    of = Job({"records_per_task": "64000"}, records_per_task=64_000)
    many = BY_RECORD.replace("SIZE", "64000").replace("batch_size=4", "batch_size=1000")
    fails = many.replace("for records in loader():", "service.fetch_record_index()\n1 / 0")
    fails = fails.split("1 / 0")[0] + "1 / 0"
    code, _, error = trained(start(of, fails, "num_epochs=1"))
    of.stop()
    assert code == 1 and "ZeroDivisionError" in error
    assert of.left[0][0] == pb.LEAVE_REASON_CODE_ERROR


@pytest.mark.parametrize("status, code", [("'no such file'", 1), ("3", 3), ("0", 0), ("", 0)])
def test_the_status_of_a_script_tells_the_master_whether_it_has_failed(start, status, code):
    of = job()
    ends = f"service = build_data_shard_service(4, 1, SIZE)\nsys.exit({status})"
    assert trained(start(of, ends))[0] == code
    of.stop()
    failed = (pb.LEAVE_REASON_CODE_ERROR, f"sys.exit({status})\n")
    assert of.left[0] == (failed if code else (pb.LEAVE_REASON_DONE, ""))


def test_an_exit_that_the_script_catches_is_no_failure(start):
    of = job()
    caught = "\ntry:\n    sys.exit(2)\nexcept SystemExit: pass\n"
    service, loop = BY_SHARD.split("while True:", 1)
    assert trained(start(of, service + caught + "while True:" + loop, "num_epochs=1"))[0] == 0
    of.stop()
    assert of.left[0] == (pb.LEAVE_REASON_DONE, "")


@pytest.mark.parametrize(
    "script, says",
    [
        ("build_data_shard_service(4, 2, SIZE)", "of the script is 2, and that of the job 3"),
        ("build_data_shard_service(4, 1)", "dataset_size is missing"),
        ("build_data_shard_service(0, 1, SIZE)", "batch_size is 0; it is at least 1"),
        ("build_data_shard_service(4, 1, SIZE, task_type=2)", "is 2; a custom training loop has 1"),
    ],
)
def test_numbers_that_cannot_be(start, script, says):
    of = job(arguments={"num_epochs": "3"})
    code, _, error = trained(start(of, script))
    of.stop()
    assert code == 1 and says in error, error


def test_outside_of_a_job(monkeypatch):
    from elastane.loop import LoopError, of_environment

    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(LoopError, match="MASTER_ADDR is not in .*: start the script with elast"):
        of_environment()


def test_the_order_of_an_epoch_has_each_record_once_and_is_that_of_all_workers():
    def epoch(number, job_id="job", **options):
        order = Order(job_id, 50, 12, **{"shuffle": False, "shuffle_shards": False, **options})
        parts = [(begin, min(begin + 12, 50)) for begin in range(0, 50, 12)]
        # A part of a task that was handed back.
        parts[1:2] = [(12, 17), (17, 24)]
        # Epoch 1 of a job without --num_epochs.
        at = [order.shard(0, number * 50 + begin, number * 50 + end) for begin, end in parts]
        again = [order.shard(number, begin, end) for begin, end in parts]
        assert at == again
        return [record for one in at for record in one.indices or range(one.start, one.end)]

    assert epoch(0) == epoch(1) == list(range(50))
    for options in ({"shuffle": True}, {"shuffle_shards": True}):
        first, second = epoch(0, **options), epoch(1, **options)
        assert sorted(first) == sorted(second) == list(range(50))
        assert first != second and first != list(range(50))
        assert first == epoch(0, **options) != epoch(0, "other", **options)
    assert epoch(0, shuffle_shards=True)[48:] == [48, 49]


def test_a_loader_with_processes(start):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    of = job()
    service = "service = RecordIndexService(batch_size=4, num_epochs=2, dataset_size=SIZE)\n"
    code, batches, error = trained(start(of, LOADER + service + LOADS))
    of.stop()
    assert code == 0, error
    once = [record for batch in batches for record in set(batch)]
    assert sorted(once) == sorted([*range(SIZE)] * 2) and not of.doing


def test_a_process_of_a_loader_begins_with_the_minibatch_that_is_next_at_its_fork():
    service = RecordIndexService.__new__(RecordIndexService)
    service._number = multiprocessing.Value("Q", 3, lock=False)
    RecordIndexService._live.add(service)
    (waits, goes), (reads, writes) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(waits, 1)
        os.write(writes, bytes([service._own_turn]))
        os._exit(0)
    # Another process of the loader has taken some before this one looks.
    service._number.value = 5
    os.write(goes, b"x")
    assert os.read(reads, 1) == bytes([3])
    os.waitpid(child, 0)


def test_several_files_of_recordio_are_one_sequence(tmp_path):
    from elastane.recordio import write_records

    sys.path.append(contract.compatibility_path())
    from elasticai_api.io.recordio_reader import RecordIOReader

    paths = [str(tmp_path / name) for name in ("b", "a")]
    for path, numbers in zip(paths, (range(5), range(5, 8))):
        write_records(path, [b"%d" % number for number in numbers])
    reader = RecordIOReader(paths)
    assert len(reader) == 8
    assert list(reader.read_records(3, 7)) == [b"3", b"4", b"5", b"6"]
    assert list(reader.read_records(6, 20)) == [b"6", b"7"]


@pytest.mark.parametrize("script", [BY_SHARD, BY_RECORD])
@pytest.mark.parametrize("other", ["dataset_size=40", "num_epochs=2", "shuffle=True"])
def test_a_worker_with_another_data_set_is_refused_with_both(start, script, other):
    of = job()
    first = start(of, script, "shuffle=False", "import time; time.sleep(0.1)")
    assert "trained" in first.stdout.readline()
    if other.startswith("dataset_size"):
        second = start(of, script.replace("dataset_size=SIZE, **OPTIONS", other), pod="worker-1")
    else:
        second = start(of, script, other, pod="worker-1")
    code, batches, error = trained(second)
    assert code == 1 and not batches
    assert "and that of the job has 50 records, 1 epochs, shuffle=False" in error, error
    assert trained(first)[0] == 0
    of.stop()


def test_a_signal_after_all_records_are_trained_leaves_the_exit_code(start):
    of = job()
    ends = """
    import os, signal
    def done():
        os.kill(os.getpid(), signal.SIGTERM)
        while not service.loop.terminated: pass
    service.when_done = done
"""
    script = BY_RECORD.replace("def loader():", f"if True:{ends}def loader():")
    code, batches, error = trained(start(of, script))
    assert code == 0, error
    assert len(batches) == 13 and of.left[0][0] == pb.LEAVE_REASON_DONE
    of.stop()
