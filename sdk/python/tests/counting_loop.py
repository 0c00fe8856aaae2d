"""A training loop of one's own whose model counts: an update adds 1 to each record of its
minibatches, so at the end each value is the number of times that the record was trained.

The first worker is killed while it makes a checkpoint of version `KILLED_FROM` or later: after the
master has cut its ledger, and before there is a file (`KILLED_AT=cut`) or before the master knows
about the file (`KILLED_AT=file`). `KILLED_ONCE` names a file for each kill, separated by `:`, which
is written with it.
"""

import os
import signal
import time

import numpy as np

from elastane.loop_controller import AllReduceController, Distributed
from elastane.loop_saving import LoopLeader
from elastane.sums import Model

SIZE = int(os.environ["RECORDS"])
MARKS = os.environ["KILLED_ONCE"].split(":")


class Optimizer(Distributed):
    def step(self):
        self.add_up()


class Counts(Model):
    floats = SIZE

    def __init__(self):
        self.seen, self.gradient = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)

    def read(self):
        return self.gradient

    def update(self, mean):
        # An update has a record once.
        self.seen += mean > 0

    def pack(self):
        return b"", [self.seen]

    def unpack(self, description, fill):
        fill(self.seen)


class Controller(AllReduceController):
    def _pair(self):
        return self._module


def kill_in_a_checkpoint():
    """Has the next checkpoint end this process, if it is the turn of one."""
    store = LoopLeader._store

    def stop_storing(self, snapshot):
        due = [mark for mark in MARKS if not os.path.exists(mark)]
        if not due or snapshot.version < int(os.environ["KILLED_FROM"]):
            return store(self, snapshot)
        if os.environ["KILLED_AT"] == "file":
            store(self, snapshot)
        # Updates after the cut are lost with it.
        time.sleep(0.2)
        with open(due[0], "w", encoding="utf-8"):
            os.kill(os.getpid(), signal.SIGKILL)

    LoopLeader._store = stop_storing


def train_one_batch(model, optimizer, records):
    time.sleep(0.02)
    model.gradient = np.isin(np.arange(SIZE), records).astype(np.float32)
    optimizer.step()


def batches(service):
    while True:
        try:
            yield [service.fetch_record_index() for _ in range(4)]
        except StopIteration:
            return


def await_others():
    """Waits until all first workers of the job have the model."""
    while controller._sums.size < int(os.environ["WORKER_NUM"]):
        if any(map(os.path.exists, MARKS)):
            return
        controller._sums._idle()


kill_in_a_checkpoint()
model, optimizer = Counts(), Optimizer()
controller = Controller.create(batch_size=4, num_epochs=1, dataset_size=SIZE)
controller.set_broadcast_model(model)
controller.set_broadcast_optimizer(optimizer)
train = controller.elastic_run(train_one_batch)
with controller.scope():
    await_others()
    for batch in batches(controller.data_shard_service):
        train(model, optimizer, batch)
times, records = np.unique(model.seen, return_counts=True)
# In one piece, as workers have the same output.
os.write(1, f"seen: {dict(zip(times.tolist(), records.tolist()))}\n".encode())
