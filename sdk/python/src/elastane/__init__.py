"""Elastane: workers of elastic training, readers of records, the contract of a model, reports of
checkpoints by any script, a sampler for ranks that come and go, and learning rates for them."""

from .channel import checkpoint, next_checkpoint, save_wanted
from .rates import scaled_rate
from .sampler import ElasticSampler

__version__ = "0.1.0"
__all__ = ["ElasticSampler", "checkpoint", "next_checkpoint", "save_wanted", "scaled_rate"]
