"""The end of a custom training loop, and its counts, with a stand-in of the master; all in this
process."""

import threading

import pytest
from stand_in import Job

from elastane.connection import Connection
from elastane.indices import RecordIndexService
from elastane.loop import Loop
from elastane.protocol import messages as pb
from elastane.shards import DataShardService


@pytest.fixture
def job():
    job = Job({"records_per_task": "6"}, records_per_task=6)
    yield job
    job.stop()


@pytest.fixture
def loop(job):
    connection = Connection("Master", lambda: job.address, "secret", 10.0)
    loop = Loop(connection, "worker-0", "127.0.0.1", "secret")
    yield loop
    loop.leave(pb.LEAVE_REASON_DONE)


def test_each_call_at_the_end_is_made_although_one_fails(job, loop):
    made = []
    loop.at_end(lambda: made.append("first"))
    loop.at_end(lambda: 1 / 0)
    loop.at_end(lambda: made.append("last"))
    loop.leave(pb.LEAVE_REASON_PREEMPTED)
    assert made == ["last", "first"] and job.left[0][0] == pb.LEAVE_REASON_PREEMPTED


def test_a_second_thread_that_leaves_waits_for_the_first(loop):
    made, arrived = [], threading.Event()
    wait = loop._has_left.wait

    def waits():
        arrived.set()
        return wait()

    loop._has_left.wait = waits

    def second():
        loop.leave(pb.LEAVE_REASON_PREEMPTED)
        made.append("second")
        arrived.set()

    thread = threading.Thread(target=second)

    def at_end():
        thread.start()
        arrived.wait()
        made.append("first")

    loop.at_end(at_end)
    loop.leave(pb.LEAVE_REASON_PREEMPTED)
    thread.join()
    assert made == ["first", "second"]


def test_a_thread_of_a_service_leaves_it_to_others_to_leave(job, loop):
    codes = []

    def own():
        loop.add_own_thread()
        try:
            loop.check()
        except SystemExit as ending:
            codes.append(ending.code)

    loop.terminated = True
    thread = threading.Thread(target=own)
    thread.start()
    thread.join()
    assert codes == [143] and not job.left
    with pytest.raises(SystemExit):
        loop.check()
    assert job.left[0][0] == pb.LEAVE_REASON_PREEMPTED


def test_a_process_that_was_forked_does_not_leave(job, loop):
    loop._process += 1
    loop._end()
    assert not job.left
    loop._process -= 1
    loop._end()
    assert job.left[0][0] == pb.LEAVE_REASON_DONE


def take(service):
    """The next task, whose records are in minibatches of at most 4."""
    found = None
    while found is None:
        found = service._next()
    records = list(range(found.shard.start, found.shard.end))
    for at in range(0, len(records), 4):
        service._put(records[at : at + 4])
    return found.work


@pytest.fixture
def service(loop):
    service = RecordIndexService(4, 1, 12, master_client=loop, starts=False)
    # Of progress only what a test asks for.
    service._reported_at = float("inf")
    return service


def test_a_partial_minibatch_counts_with_its_own_size(service):
    first, second = take(service), take(service)
    service.report_batch_done()
    assert (first.visited, second.visited) == (4, 0)
    assert service.report_batch_done()
    assert (first.visited, second.visited) == (6, 0)
    for _ in range(2):
        service.note_trained()
    service.confirm(1)
    assert second.visited == 4


def test_parts_of_a_minibatch_count_when_all_of_it_is_reported(service):
    work = take(service)
    service.report_batch_done(1)
    assert work.visited == 0
    service.report_batch_done(3)
    assert work.visited == 4


@pytest.mark.parametrize("fails", [False, True])
def test_records_of_a_task_that_another_worker_has_count_for_no_other(job, service, fails):
    lost, held = take(service), take(service)
    if fails:
        service.report_batch_done(err_msg="no memory")
    else:
        with job.lock:
            del job.doing[lost.task.task_id]
        service._reported_at = 0.0
        service.report_batch_done()
    service._reported_at = float("inf")
    service.report_batch_done()
    assert held.visited == 0
    service.report_batch_done()
    assert held.visited == 4


def test_a_shard_that_another_worker_has_counts_for_no_other(job, loop):
    service = DataShardService(4, 1, 12, master_client=loop)
    first, second = (service.fetch_shard(), service.fetch_shard())
    held = service._pending[1].work
    with job.lock:
        del job.doing[service._pending[0].work.task.task_id]
    # The report of progress tells that the first is lost.
    service.report_batch_done(4)
    service.report_batch_done(2)
    assert held.visited == 0
    service.report_batch_done(4)
    assert held.visited == 4 and (first.start, second.start) == (0, 6)


def test_the_size_of_a_data_set_is_that_of_its_files(job, loop, tmp_path):
    (tmp_path / "a.csv").write_text("1\n2\n")
    (tmp_path / "b.csv").write_text("3\n")
    named = {"master_client": loop, "training_data": str(tmp_path), "starts": False}
    service = RecordIndexService(4, 1, **named)
    assert service.dataset_size == 3
    with pytest.raises(ValueError, match="dataset_size is missing: .*, or training_data"):
        RecordIndexService(4, 1, master_client=loop, starts=False)
