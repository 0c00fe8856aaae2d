"""Published name of `elasticdl_preprocessing.layers.Hashing`."""

from elastane.preprocessing import Hashing

__all__ = ["Hashing"]
