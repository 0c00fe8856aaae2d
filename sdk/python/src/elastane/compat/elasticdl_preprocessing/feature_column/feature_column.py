"""Published name of the column that puts others together. Owns: the names. Does not know about: what
it computes (`elastane.columns`)."""

from elastane.columns import ConcatenatedCategoricalColumn, concatenated_categorical_column

__all__ = ["ConcatenatedCategoricalColumn", "concatenated_categorical_column"]
