"""Published name of `elasticdl.callbacks`."""

from elasticdl.callbacks import LearningRateScheduler

__all__ = ["LearningRateScheduler"]
