"""The form of 2020: a function that makes a functional model, dataset_fn with a mode and metadata."""

import tensorflow as tf
from elasticdl.python.common.constants import Mode
from elasticdl.python.common.log_utils import default_logger as logger
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler
from model_zoo.shared import width


def custom_model():
    inputs = tf.keras.Input(shape=(8,), name="points")
    hidden = tf.keras.layers.Dense(width, activation="relu")(inputs)
    return tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(3)(hidden))


def dataset_fn(dataset, mode, _):
    def parse(record):
        described = {
            "x": tf.io.FixedLenFeature([8], tf.float32),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        features = {"points": parsed["x"]}
        return features if mode == Mode.PREDICTION else (features, parsed["label"])

    return dataset.map(parse)


def loss(labels, predictions):
    # Without reshaping: the worker flattens.
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=predictions, labels=labels)
    )


def optimizer(lr=0.3):
    logger.info("rate %s", lr)
    return tf.optimizers.SGD(lr)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: tf.equal(tf.argmax(predictions, 1), labels)}


def callbacks():
    return [LearningRateScheduler(lambda version: 0.3 if version < 1000 else 0.1)]
