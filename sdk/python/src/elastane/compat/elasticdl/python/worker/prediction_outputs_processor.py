"""The published base of what gets predictions. Owns: its method. Does not know about: predictions."""

from typing import Any


class BasePredictionOutputsProcessor:
    """Base of a model's `PredictionOutputsProcessor`."""

    def process(self, predictions: Any, worker_id: int) -> None:
        """Gets the outputs for each minibatch."""
        raise NotImplementedError
