"""Published name of `elasticdl_preprocessing.layers.RoundIdentity`."""

from elastane.preprocessing import RoundIdentity

__all__ = ["RoundIdentity"]
