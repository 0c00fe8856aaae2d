"""Gradient accumulation for PyTorch. Owns: `optim`. Does not know about: models."""

from . import optim

__all__ = ["optim"]
