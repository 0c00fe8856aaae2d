"""A module of PyTorch with an embedding table on the parameter servers."""

import numpy as np
import torch

import elastane.torch
from elastane import example


class CustomModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bins = elastane.torch.Embedding("bins", 8)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
        )

    def forward(self, ids):
        return self.layers(self.bins(ids).sum(1))


def feed(records, mode, metadata):
    decoded = [example.decode(record) for record in records]
    ids = np.stack([np.asarray(one["ids"], np.int64) for one in decoded])
    return ids, np.array([one["label"][0] for one in decoded])


def loss(labels, predictions):
    return torch.nn.functional.cross_entropy(predictions, labels)


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.02)


def eval_metrics_fn():
    return {"accuracy": lambda labels, predictions: predictions.argmax(axis=1) == labels.numpy()}
