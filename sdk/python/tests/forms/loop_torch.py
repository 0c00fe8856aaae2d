"""A training loop of one's own with PyTorch: records by index, gradients added up by the published
optimizer. Usage: loop_torch.py FOLDER EPOCHS"""

import os
import sys

import numpy as np
import torch
from elasticai_api.io.recordio_reader import RecordIOReader
from elasticai_api.pytorch.controller import create_elastic_controller
from elasticai_api.pytorch.optimizer import DistributedOptimizer

from elastane import example

folder, epochs = sys.argv[1:]
reader = RecordIOReader([os.path.join(folder, name) for name in sorted(os.listdir(folder))])


class Records(torch.utils.data.IterableDataset):
    """The records whose turn it is."""

    def __iter__(self):
        while True:
            try:
                index = controller.data_shard_service.fetch_record_index()
            except StopIteration:
                return
            record = example.decode(next(iter(reader.read_records(index, index + 1))))
            yield np.array(example.floats(record, "x", 8)), int(record["label"][0])


def train_one_batch(model, optimizer, data, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
    return float(loss.detach())


model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
controller = create_elastic_controller(
    batch_size=20, num_epochs=int(epochs), dataset_size=len(reader)
)
optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.3))
controller.set_broadcast_model(model)
controller.set_broadcast_optimizer(optimizer)
train = controller.elastic_run(train_one_batch)
with controller.scope():
    for step, batch in enumerate(torch.utils.data.DataLoader(Records(), 20)):
        version = controller.global_completed_batch_num
        loss = train(model, optimizer, *batch)
        print(f"Loss {loss:.4f} at step {step + 1}, version {version}", flush=True)
