"""Elastane: workers of elastic training, readers of records, the contract of a model, and reports of
checkpoints by any script."""

from .channel import checkpoint, next_checkpoint

__version__ = "0.1.0"
__all__ = ["checkpoint", "next_checkpoint"]
