"""A training loop of one's own with Keras: records by index, gradients added up by the published
optimizer. Usage: loop_keras.py FOLDER EPOCHS"""

import os
import sys

import numpy as np
import tensorflow as tf
from elasticai_api.io.recordio_reader import RecordIOReader
from elasticai_api.tensorflow.controller import create_elastic_controller
from elasticai_api.tensorflow.optimizer import DistributedOptimizer

from elastane import example

folder, epochs = sys.argv[1:]
reader = RecordIOReader([os.path.join(folder, name) for name in sorted(os.listdir(folder))])


def batches():
    """The minibatches whose turn it is."""
    while True:
        batch = []
        for _ in range(20):
            try:
                index = controller.data_shard_service.fetch_record_index()
            except StopIteration:
                return
            batch.append(example.decode(next(iter(reader.read_records(index, index + 1)))))
        points = np.stack([example.floats(one, "x", 8) for one in batch])
        yield tf.constant(points), tf.constant([int(one["label"][0]) for one in batch])


def train_one_batch(model, optimizer, data, target):
    with tf.GradientTape() as tape:
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(target, model(data, training=True))
        loss = tf.reduce_mean(each)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return float(loss)


model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(3)])
model.build((None, 8))
controller = create_elastic_controller(
    batch_size=20, num_epochs=int(epochs), dataset_size=len(reader)
)
optimizer = DistributedOptimizer(tf.keras.optimizers.SGD(0.3))
controller.set_broadcast_model(model)
controller.set_broadcast_optimizer(optimizer)
train = controller.elastic_run(train_one_batch)
with controller.scope():
    for step, batch in enumerate(batches()):
        version = controller.global_completed_batch_num
        loss = train(model, optimizer, *batch)
        print(f"Loss {loss:.4f} at step {step + 1}, version {version}", flush=True)
