"""Published name of `elasticdl_preprocessing.layers.ToNumber`."""

from elastane.preprocessing import ToNumber

__all__ = ["ToNumber"]
