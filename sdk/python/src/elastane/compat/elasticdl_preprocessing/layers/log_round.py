"""Published name of `elasticdl_preprocessing.layers.LogRound`."""

from elastane.preprocessing import LogRound

__all__ = ["LogRound"]
