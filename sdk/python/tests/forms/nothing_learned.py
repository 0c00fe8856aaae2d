"""A loss that depends on no parameter: it counts mistakes."""

import tensorflow as tf


def custom_model():
    return tf.keras.Sequential([tf.keras.layers.Dense(3)])


def feed(dataset, mode, metadata):
    def parse(line):
        numbers = tf.strings.to_number(tf.strings.split(line, ","))
        return numbers[:8], tf.cast(numbers[8], tf.int64)

    return dataset.map(parse)


def loss(labels, predictions):
    return tf.cast(tf.not_equal(tf.argmax(predictions, 1), labels), tf.float32)


def optimizer():
    return tf.keras.optimizers.SGD(0.3)


def eval_metrics_fn():
    return {}
