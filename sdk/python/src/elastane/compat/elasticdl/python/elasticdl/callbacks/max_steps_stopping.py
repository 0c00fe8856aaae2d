"""Published name of `elasticdl.callbacks.MaxStepsStopping`."""

from elasticdl.callbacks import MaxStepsStopping

__all__ = ["MaxStepsStopping"]
