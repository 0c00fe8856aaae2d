"""Published name of `elasticdl_preprocessing.layers.Discretization`."""

from elastane.preprocessing import Discretization

__all__ = ["Discretization"]
