"""Feature columns, which legacy Keras has layers for."""

import tensorflow as tf
from elasticdl.python.elasticdl.feature_column import feature_column


def custom_model():
    bins = tf.feature_column.categorical_column_with_identity("ids", 8)
    columns = [
        tf.feature_column.numeric_column("x", shape=(8,)),
        feature_column.embedding_column(bins, 2),
    ]
    return tf.keras.Sequential([tf.keras.layers.DenseFeatures(columns), tf.keras.layers.Dense(3)])


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
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(labels, [-1]), predictions)
    )


def optimizer():
    return tf.keras.optimizers.SGD(0.3)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
