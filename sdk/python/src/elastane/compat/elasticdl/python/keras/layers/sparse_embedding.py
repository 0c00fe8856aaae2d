"""The earlier name of `elasticdl_preprocessing.layers.SparseEmbedding`."""

from elastane.preprocessing import SparseEmbedding

__all__ = ["SparseEmbedding"]
