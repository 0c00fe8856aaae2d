"""Published name of `elasticdl_preprocessing.layers.IndexLookup`."""

from elastane.preprocessing import IndexLookup

__all__ = ["IndexLookup"]
