"""Elastane: workers of elastic training, readers of records, and the contract of a model."""

__version__ = "0.1.0"
