"""Published layers. Owns: the names. Does not know about: how tables are kept (`elastane.keras`)."""

from elastane.keras import Embedding

__all__ = ["Embedding"]
