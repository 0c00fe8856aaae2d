"""The form of June 2019: input_fn decodes each record, and metrics are values."""

import numpy as np
import tensorflow as tf

inputs = tf.keras.Input(shape=(8,), name="points")
hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
model = tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(3)(hidden))
columns = {
    "x": tf.io.FixedLenFeature([8], tf.float32),
    "label": tf.io.FixedLenFeature([1], tf.int64),
}


def input_fn(records, decode_fn):
    decoded = [decode_fn(record, columns) for record in records]
    points = np.stack([one["x"].numpy() for one in decoded])
    labels = np.array([one["label"].numpy().astype(np.int32) for one in decoded])
    return [tf.convert_to_tensor(value=points)], labels


def loss(output, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=output, labels=labels.flatten())
    )


def optimizer(lr=0.3):
    return tf.optimizers.SGD(lr)


def eval_metrics_fn(predictions, labels):
    right = tf.equal(tf.argmax(input=predictions, axis=1), labels.flatten())
    return {"accuracy": tf.reduce_mean(tf.cast(right, tf.float32))}
