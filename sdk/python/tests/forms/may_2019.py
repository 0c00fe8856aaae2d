"""The form of May 2019: objects of the module, columns that decode, labels of numpy."""

import numpy as np
import tensorflow as tf

tf.enable_eager_execution()

inputs = tf.keras.Input(shape=(8,), name="x")
hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
outputs = tf.keras.layers.Dense(3)(hidden)
model = tf.keras.Model(inputs=inputs, outputs=outputs)


def feature_columns():
    return [tf.feature_column.numeric_column(key="x", dtype=tf.float32, shape=[8])]


def label_columns():
    return [tf.feature_column.numeric_column(key="label", dtype=tf.int64, shape=[1])]


def input_fn(records):
    features = np.stack([record["x"] for record in records])
    return {"x": features}, np.stack([record["label"] for record in records])


def loss(output, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=output, labels=labels.flatten())
    return tf.reduce_mean(each)


def optimizer(lr=0.3):
    return tf.train.GradientDescentOptimizer(lr)
