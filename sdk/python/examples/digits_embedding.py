"""A model of plain numpy with an embedding table, for handwritten digits.

A digit is a set of words: each of its 8 x 8 pixels is one word of 1,088, its place and its brightness
(0 to 16), as a text is a set of words. The vectors of the words of a digit are added up, and classified.
The words are numbers without an order, spread over 64 bits as hashes are, so that no table is made for
all that there could be. Records as in `digits_numpy.py`.
"""

import os

import numpy as np
from digits_numpy import eval_metrics_fn, loss  # noqa: F401  parts of the model

from elastane import embedding, example, optimizers

# Spreads numbers over 64 bits; it is odd, so no two get the same.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Words:
    """The sum of the vectors of all words of a record, and 10 classes."""

    def __init__(self, dim=16):
        random = np.random.default_rng(int(os.environ.get("SEED", "1")))
        self.words = embedding.Embedding("words", dim, seed=int(os.environ.get("SEED", "1")))
        self.embeddings = [self.words]
        self.parameters = {
            "classes/kernel": (random.normal(size=(dim, 10)) / 4).astype(np.float32),
            "classes/bias": np.zeros(10, np.float32),
        }

    def forward(self, features, training):
        """Logits of shape [records, 10], of words of shape [records, 64]."""
        vectors = self.words(features)
        self._shape, self._sum = vectors.shape, vectors.sum(axis=1)
        return self._sum @ self.parameters["classes/kernel"] + self.parameters["classes/bias"]

    def backward(self, d_logits):
        """Gradients of the parameters; those of the table go to it."""
        d_sum = d_logits @ self.parameters["classes/kernel"].T
        self.words.backward(np.broadcast_to(d_sum[:, None, :], self._shape))
        return {
            "classes/kernel": self._sum.T @ d_logits,
            "classes/bias": d_logits.sum(axis=0),
        }


def custom_model():
    return Words()


def words(images):
    """The words of images of 28 x 28 pixels, 0 to 255, as numbers of shape [images, 64]."""
    # The images of 8 x 8 pixels were each made 3 x 3, with an edge of 2.
    small = images.reshape(-1, 28, 28)[:, 3:26:3, 3:26:3].reshape(-1, 64)
    brightness = np.rint(small * 16 / 255).astype(np.uint64)
    return (np.arange(64, dtype=np.uint64) * np.uint64(17) + brightness) * SPREAD


def feed(records, mode, metadata):
    decoded = [example.decode(record) for record in records]
    found = words(np.stack([example.floats(one, "image", 784) for one in decoded]))
    if mode == "prediction":
        return found
    return found, np.array([one["label"][0] for one in decoded])


def optimizer():
    return optimizers.Adagrad(learning_rate=float(os.environ.get("LEARNING_RATE", "0.1")))
