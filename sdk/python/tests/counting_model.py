"""A model of numpy that counts: each step adds to the parameter of a record one by the number of
records of the step, of all workers."""

import time

import numpy as np

from elastane import optimizers

RECORDS = 1200


class Model:
    def __init__(self):
        self.parameters = {"seen": np.zeros(RECORDS, np.float32)}
        self.state = {"mean": np.zeros(1, np.float32)}

    def forward(self, features, training):
        self.features = features
        self.state["mean"] = np.array([features.mean()], np.float32)
        return features

    def backward(self, d_outputs):
        # Long enough for a signal to come within a round.
        time.sleep(0.03)
        gradient = np.zeros(RECORDS, np.float32)
        gradient[self.features] = -1 / len(self.features)
        return {"seen": gradient}


def custom_model():
    return Model()


def feed(records, mode, metadata):
    numbers = np.array([int.from_bytes(record, "big") for record in records])
    return numbers, numbers


def loss(labels, outputs):
    return 0.0, outputs


def optimizer():
    return optimizers.SGD(learning_rate=1.0)
