"""Gradient accumulation for Keras. Owns: `optimizers`. Does not know about: models."""

from . import optimizers

__all__ = ["optimizers"]
