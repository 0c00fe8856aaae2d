"""A model of TensorFlow-Keras in the final form of the contract: a small convolution.

Records are Examples with `image` (784 numbers, 0 to 255) and `label`, as `python3 -m
elastane.digits` writes them.
"""

import os

import tensorflow as tf
from elasticdl.python.common.constants import Mode
from elasticdl.python.elasticdl.callbacks import LearningRateScheduler


def custom_model():
    tf.keras.utils.set_random_seed(int(os.environ.get("SEED", "1")))
    # Means that follow the batches faster than by default: 3 epochs have 450 of them.
    normal = {"momentum": 0.9}
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28)),
            tf.keras.layers.Reshape((28, 28, 1)),
            tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            tf.keras.layers.BatchNormalization(**normal),
            tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            tf.keras.layers.BatchNormalization(**normal),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )


def feed(dataset, mode, metadata):
    def parse(record):
        described = {
            "image": tf.io.FixedLenFeature([28, 28], tf.float32),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        image = parsed["image"] / 255
        return image if mode == Mode.PREDICTION else (image, parsed["label"][0])

    dataset = dataset.map(parse)
    return dataset.shuffle(256) if mode == Mode.TRAINING else dataset


def loss(labels, predictions):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=predictions)
    )


def optimizer(lr=0.01):
    return tf.keras.optimizers.SGD(lr)


def eval_metrics_fn():
    return {
        "accuracy": lambda labels, predictions: tf.equal(tf.argmax(predictions, 1), labels),
        "keras_accuracy": tf.keras.metrics.SparseCategoricalAccuracy(),
    }


def callbacks():
    # Half the rate after a thousand versions.
    return [LearningRateScheduler(lambda version: 0.01 if version < 1000 else 0.005)]


class PredictionOutputsProcessor:
    def process(self, predictions, worker_id):
        print("predicted", *predictions.argmax(axis=1), flush=True)
