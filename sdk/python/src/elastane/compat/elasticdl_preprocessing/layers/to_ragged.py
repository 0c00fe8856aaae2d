"""Published name of `elasticdl_preprocessing.layers.ToRagged`."""

from elastane.preprocessing import ToRagged

__all__ = ["ToRagged"]
