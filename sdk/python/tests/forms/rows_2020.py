"""A reader of its own: the named columns of a .csv file, by the published reader."""

import tensorflow as tf
from elasticdl.python.data.reader.csv_reader import CSVDataReader


def custom_data_reader(data_origin, records_per_task=None, **kwargs):
    columns = [*(f"x{number}" for number in range(8)), "label"]
    return CSVDataReader(data_dir=data_origin, sep=",", columns=columns)


def custom_model():
    inputs = tf.keras.Input(shape=(8,), name="x")
    hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
    return tf.keras.Model(inputs=inputs, outputs=tf.keras.layers.Dense(3)(hidden))


def feed(dataset, mode, metadata):
    def parse(row):
        numbers = tf.strings.to_number(row)
        return numbers[:8], tf.cast(numbers[8], tf.int64)

    return dataset.map(parse)


def loss(labels, predictions):
    return tf.keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer():
    return tf.keras.optimizers.Adagrad(0.3)


def eval_metrics_fn():
    return {"accuracy": tf.keras.metrics.SparseCategoricalAccuracy()}
