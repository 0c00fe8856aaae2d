"""A functional model with the embedding of ElasticDL, whose rows are on the parameter servers."""

import tensorflow as tf
from elasticdl.python.elasticdl.layers.embedding import Embedding


def custom_model():
    ids = tf.keras.Input(shape=(2,), name="ids", dtype=tf.int64)
    vector = Embedding(output_dim=8, combiner="sum", name="bins")(ids)
    hidden = tf.keras.layers.Dense(16, activation="relu")(vector)
    return tf.keras.Model(inputs=ids, outputs=tf.keras.layers.Dense(3)(hidden))


def feed(dataset, mode, metadata):
    def parse(record):
        described = {
            "ids": tf.io.FixedLenFeature([2], tf.int64),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        return {"ids": parsed["ids"]}, parsed["label"]

    return dataset.map(parse)


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(labels, [-1]), predictions)
    )


def optimizer():
    return tf.keras.optimizers.Adam(0.02)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
