"""Published name of `elasticdl_preprocessing.layers.ToSparse`."""

from elastane.preprocessing import ToSparse

__all__ = ["ToSparse"]
