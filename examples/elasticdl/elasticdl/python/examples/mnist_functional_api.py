"""The model that the tutorial trains, in the form of May 2019 (objects of the module), for numpy, so
that nothing but the worker has to be installed. `sdk/python/examples/digits_seed.py` is the same form
for TensorFlow-Keras.

Records have the codec `bytes` (`python3 -m elastane.digits --codec bytes`): the image as 784 float32,
then the label as int64.
"""

from collections import namedtuple

import numpy as np

from elastane import optimizers

Column = namedtuple("Column", ["key", "shape", "dtype"])


class Digits:
    """784 inputs, 128 units, 10 classes."""

    def __init__(self):
        random = np.random.default_rng(1)
        self.parameters = {
            "hidden/kernel": (random.normal(size=(784, 128)) / 28).astype(np.float32),
            "hidden/bias": np.zeros(128, np.float32),
            "classes/kernel": (random.normal(size=(128, 10)) / 11).astype(np.float32),
            "classes/bias": np.zeros(10, np.float32),
        }

    def forward(self, features, training):
        """Logits of shape [records, 10]."""
        weights = self.parameters
        images = features.reshape(-1, 784)
        hidden = np.maximum(images @ weights["hidden/kernel"] + weights["hidden/bias"], 0)
        if training:
            self._images, self._hidden = images, hidden
        return hidden @ weights["classes/kernel"] + weights["classes/bias"]

    def backward(self, d_logits):
        """Gradients of the last forward pass in training."""
        d_hidden = d_logits @ self.parameters["classes/kernel"].T * (self._hidden > 0)
        return {
            "hidden/kernel": self._images.T @ d_hidden,
            "hidden/bias": d_hidden.sum(axis=0),
            "classes/kernel": self._hidden.T @ d_logits,
            "classes/bias": d_logits.sum(axis=0),
        }


model = Digits()


def feature_columns():
    return [Column(key="image", shape=[28, 28], dtype=np.float32)]


def label_columns():
    return [Column(key="label", shape=[1], dtype=np.int64)]


def input_fn(records):
    images = np.stack([record["image"] for record in records])
    labels = np.array([record["label"][0] for record in records])
    # Around 0, where training goes well.
    return {"image": (images / np.float32(255) - np.float32(0.3)) * 2}, labels


def loss(output, labels):
    """Cross entropy, and its derivative by the logits."""
    probabilities = np.exp(output - output.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    value = -np.log(probabilities[rows, labels] + 1e-12).mean()
    probabilities[rows, labels] -= 1
    return value, probabilities / len(labels)


def optimizer(lr=0.1):
    return optimizers.SGD(learning_rate=lr)


def eval_metrics_fn(predictions, labels):
    return {"accuracy": (predictions.argmax(axis=1) == labels).mean()}
