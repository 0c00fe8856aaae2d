"""The form of autumn 2019: labels first, an optimizer of TensorFlow 1, a rate by version."""

import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(3)])


def dataset_fn(dataset, mode):
    def parse(record):
        described = {
            "x": tf.io.FixedLenFeature([8], tf.float32),
            "label": tf.io.FixedLenFeature([1], tf.int64),
        }
        parsed = tf.io.parse_single_example(record, described)
        return parsed["x"], parsed["label"]

    return dataset.map(parse)


def loss(labels, output):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=output, labels=labels.flatten())
    )


def optimizer(lr=0.5):
    return tf.train.AdamOptimizer(lr, epsilon=1e-7)


def learning_rate_scheduler(model_version):
    return 0.02 if model_version < 1000 else 0.01


def eval_metrics_fn():
    # A mean, of labels that are a column.
    def accuracy(labels, predictions):
        return tf.reduce_mean(tf.cast(tf.equal(labels, tf.argmax(predictions, 1)), tf.float32))

    return {"accuracy": accuracy}
