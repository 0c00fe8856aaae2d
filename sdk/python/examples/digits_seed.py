"""A model of TensorFlow-Keras in the form of May 2019: objects of the module.

Records have the codec `bytes` (`python3 -m elastane.digits --codec bytes`): the image as 784 float32,
then the label as int64.
"""

import numpy as np
import tensorflow as tf

inputs = tf.keras.Input((28, 28), name="image")
x = tf.keras.layers.Reshape((28, 28, 1))(inputs)
x = tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu")(x)
x = tf.keras.layers.Flatten()(x)
outputs = tf.keras.layers.Dense(10)(x)
model = tf.keras.Model(inputs, outputs, name="digits")


def feature_columns():
    return [tf.feature_column.numeric_column(key="image", dtype=tf.float32, shape=[28, 28])]


def label_columns():
    return [tf.feature_column.numeric_column(key="label", dtype=tf.int64, shape=[1])]


def input_fn(records):
    images = np.stack([record["image"] for record in records]) / np.float32(255)
    labels = np.array([record["label"][0] for record in records])
    return {"image": images}, labels


def loss(output, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)
    )


def optimizer(lr=0.1):
    return tf.train.GradientDescentOptimizer(lr)


def eval_metrics_fn(predictions, labels):
    return {
        "accuracy": tf.reduce_mean(tf.cast(tf.equal(tf.argmax(predictions, 1), labels), "float"))
    }
