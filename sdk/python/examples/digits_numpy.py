"""A model of plain numpy for handwritten digits: one hidden layer.

Records are Examples with `image` (784 numbers, 0 to 255) and `label`, as `python3 -m
elastane.digits` writes them. Contract: `elastane.backends.plain`.
"""

import os

import numpy as np

from elastane import example, optimizers


class Perceptron:
    """784 inputs, `hidden` units, 10 classes."""

    def __init__(self, hidden=128):
        random = np.random.default_rng(int(os.environ.get("SEED", "1")))
        self.parameters = {
            "hidden/kernel": (random.normal(size=(784, hidden)) / 28).astype(np.float32),
            "hidden/bias": np.zeros(hidden, np.float32),
            "classes/kernel": (random.normal(size=(hidden, 10)) / 11).astype(np.float32),
            "classes/bias": np.zeros(10, np.float32),
        }

    def forward(self, features, training):
        """Logits of shape [records, 10]."""
        parameters = self.parameters
        hidden = features @ parameters["hidden/kernel"] + parameters["hidden/bias"]
        hidden = np.maximum(hidden, 0)
        if training:
            self._features, self._hidden = features, hidden
        return hidden @ parameters["classes/kernel"] + parameters["classes/bias"]

    def backward(self, d_logits):
        """Gradients of the last forward pass in training."""
        d_hidden = d_logits @ self.parameters["classes/kernel"].T * (self._hidden > 0)
        return {
            "hidden/kernel": self._features.T @ d_hidden,
            "hidden/bias": d_hidden.sum(axis=0),
            "classes/kernel": self._hidden.T @ d_logits,
            "classes/bias": d_logits.sum(axis=0),
        }


def custom_model():
    return Perceptron()


def feed(records, mode, metadata):
    decoded = [example.decode(record) for record in records]
    images = np.stack([example.floats(one, "image", 784) for one in decoded])
    # Around 0, where training goes well.
    images = (images / 255 - 0.3) * 2
    if mode == "prediction":
        return images
    return images, np.array([one["label"][0] for one in decoded])


def loss(labels, logits):
    """Cross entropy, and its derivative by the logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    value = -np.log(probabilities[rows, labels] + 1e-12).mean()
    probabilities[rows, labels] -= 1
    return value, probabilities / len(labels)


def optimizer():
    rate = float(os.environ.get("LEARNING_RATE", "0.01"))
    return optimizers.SGD(learning_rate=rate, momentum=0.9)


def eval_metrics_fn():
    return {"accuracy": lambda labels, logits: logits.argmax(axis=1) == labels}


class PredictionOutputsProcessor:
    def process(self, predictions, worker_id):
        print("predicted", *predictions.argmax(axis=1), flush=True)
