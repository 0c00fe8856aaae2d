"""Elastane: workers of elastic training, readers of records, the contract of a model, checkpoints
of any script and reports of them, a sampler for ranks that come and go, and learning rates for them."""

from .channel import checkpoint, next_checkpoint, save_wanted
from .rates import scaled_rate
from .sampler import ElasticSampler
from .saving import load, save, saved

__version__ = "0.1.0"
__all__ = [
    "ElasticSampler",
    "checkpoint",
    "load",
    "next_checkpoint",
    "save",
    "save_wanted",
    "saved",
    "scaled_rate",
]
