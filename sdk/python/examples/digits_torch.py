"""A model of PyTorch. Records are Examples with `image` (784 numbers, 0 to 255) and `label`, as
`python3 -m elastane.digits` writes them."""

import os

import numpy as np
import torch

from elastane import example


def custom_model():
    torch.manual_seed(int(os.environ.get("SEED", "1")))
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, stride=2),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 6 * 6, 10),
    )


def feed(records, mode, metadata):
    decoded = [example.decode(record) for record in records]
    images = np.stack([example.floats(one, "image", 784) for one in decoded]) / 255
    images = images.reshape(-1, 1, 28, 28)
    if mode == "prediction":
        return images
    return images, np.array([one["label"][0] for one in decoded])


def loss(labels, predictions):
    return torch.nn.functional.cross_entropy(predictions, labels)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: predictions.argmax(axis=1) == labels.numpy()}
