"""Published name of `elasticdl_preprocessing.layers.Normalizer`."""

from elastane.preprocessing import Normalizer

__all__ = ["Normalizer"]
