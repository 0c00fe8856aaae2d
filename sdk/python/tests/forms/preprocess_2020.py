"""The published layers that prepare features: a number is normalized, ids become a sparse tensor
and vectors."""

import tensorflow as tf
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler
from elasticdl_preprocessing.layers import SparseEmbedding
from elasticdl_preprocessing.layers.hashing import Hashing
from elasticdl_preprocessing.layers.normalizer import Normalizer
from elasticdl_preprocessing.layers.to_sparse import ToSparse
from elasticdl_preprocessing.utils.analyzer_utils import get_stddev
from elasticdl_preprocessing.utils.decorators import declare_model_inputs


@declare_model_inputs("x", "ids")
class CustomModel(tf.keras.Model):
    def __init__(self):
        super().__init__(name="prepared")
        self.normalized = Normalizer(0.0, get_stddev("x", 2.0))
        self.hashed, self.sparse = Hashing(num_bins=64), ToSparse()
        self.vectors = SparseEmbedding(64, 4, combiner="sum")
        self.hidden = tf.keras.layers.Dense(16, activation="relu")
        self.logits = tf.keras.layers.Dense(3)

    def call(self, inputs, training=False):
        vectors = self.vectors(self.sparse(self.hashed(inputs["ids"])))
        prepared = tf.concat([self.normalized(inputs["x"]), vectors], 1)
        return self.logits(self.hidden(prepared))


def feed(dataset, mode, metadata):
    def parse(record):
        described = {
            "x": tf.io.FixedLenFeature([8], tf.float32),
            "ids": tf.io.FixedLenFeature([2], tf.int64),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        return {"x": parsed["x"], "ids": parsed["ids"]}, parsed["label"]

    return dataset.map(parse)


def loss(labels, predictions):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(labels, [-1]), predictions)


def optimizer():
    return tf.keras.optimizers.Adam(0.02)


def callbacks():
    def _schedule(batch):
        return 0.02 if batch < 1000 else 0.01

    return [LearningRateScheduler(_schedule)]


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
