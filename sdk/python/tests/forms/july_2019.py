"""The form of July 2019: a model object, dataset_fn with a switch, features by another name than the
input's, the output first."""

import tensorflow as tf

inputs = tf.keras.Input(shape=(8,), name="points")
normalized = tf.keras.layers.BatchNormalization(momentum=0.9)(inputs)
hidden = tf.keras.layers.Dense(16, activation="relu")(normalized)
model = tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(3)(hidden))


def dataset_fn(dataset, training):
    def parse(record):
        described = {
            "x": tf.io.FixedLenFeature([8], tf.float32),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        features = {"x": parsed["x"]}
        return features, tf.cast(parsed["label"], tf.int32)

    return dataset.map(parse)


def loss(output, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=output, labels=tf.reshape(labels, [-1])
        )
    )


def optimizer(lr=0.3):
    return tf.optimizers.SGD(lr)


def eval_metrics_fn(predictions, labels):
    right = tf.equal(
        tf.argmax(predictions, 1, output_type=tf.int32), tf.cast(labels.flatten(), tf.int32)
    )
    return {"accuracy": tf.reduce_mean(tf.cast(right, tf.float32))}
