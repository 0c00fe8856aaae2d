"""Published callbacks. Owns: their names. Does not know about: when they are called
(`elastane.callbacks`)."""

from elastane.callbacks import LearningRateScheduler, MaxStepsStopping
from elastane.refused import refused

SavedModelExporter = refused(
    "elasticdl.callbacks.SavedModelExporter", "--output=FOLDER exports the model at the end"
)

__all__ = ["LearningRateScheduler", "MaxStepsStopping", "SavedModelExporter"]
