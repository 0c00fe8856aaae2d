"""Elastane: workers of elastic training, readers of records, the contract of a model, reports of
checkpoints by any script, and a sampler for ranks that come and go."""

from .channel import checkpoint, next_checkpoint
from .sampler import ElasticSampler

__version__ = "0.1.0"
__all__ = ["ElasticSampler", "checkpoint", "next_checkpoint"]
