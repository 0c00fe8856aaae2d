"""The earlier published schedule of learning rates. Owns: its name and parameters. Does not know
about: when it is asked (`elastane.callbacks`)."""

from typing import Any, Union

from elastane import callbacks
from elastane.refused import refused

add_lr_scheduler_to_optimizer = refused(
    "elasticdl.python.common.lr_scheduler.add_lr_scheduler_to_optimizer",
    "parameter servers take no function as a rate: return LearningRateScheduler(schedule) from "
    "callbacks(), or define learning_rate_scheduler(version) in the model's file",
)


class LearningRateScheduler(callbacks.LearningRateScheduler):
    """A rate, or a function of the version of the model; it can be among the callbacks of a model."""

    def __init__(self, learning_rate: Union[float, Any] = 0.001, model_version: int = 0) -> None:
        super().__init__(learning_rate if callable(learning_rate) else lambda _: learning_rate)
        self._version = model_version

    def set_model_version(self, model_version: int) -> None:
        """The version that `get_learning_rate` is about."""
        self._version = model_version

    def get_learning_rate(self) -> float:
        """The rate at this version."""
        return float(self.schedule(self._version))


__all__ = ["LearningRateScheduler", "add_lr_scheduler_to_optimizer"]
