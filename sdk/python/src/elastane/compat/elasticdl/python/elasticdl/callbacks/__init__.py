"""Published name of `elasticdl.callbacks`."""

from elasticdl.callbacks import LearningRateScheduler, MaxStepsStopping, SavedModelExporter

__all__ = ["LearningRateScheduler", "MaxStepsStopping", "SavedModelExporter"]
