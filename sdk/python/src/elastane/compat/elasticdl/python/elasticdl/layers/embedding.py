"""Published name of `elasticdl.layers`."""

from elasticdl.layers import Embedding

__all__ = ["Embedding"]
