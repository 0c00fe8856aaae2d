"""Published name of `elasticdl_preprocessing.layers.ConcatenateWithOffset`."""

from elastane.preprocessing import ConcatenateWithOffset

__all__ = ["ConcatenateWithOffset"]
