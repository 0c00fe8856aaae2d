"""A module of PyTorch, of records as a list."""

import numpy as np
import torch

from elastane import example


def custom_model():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def feed(records, mode, metadata):
    decoded = [example.decode(record) for record in records]
    points = np.stack([example.floats(one, "x", 8) for one in decoded])
    return points, np.array([one["label"][0] for one in decoded])


def loss(labels, predictions):
    return torch.nn.functional.cross_entropy(predictions, labels)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.3)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: predictions.argmax(axis=1) == labels.numpy()}
