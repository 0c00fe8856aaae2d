"""The published embedding column. Owns: its name. Does not know about: parameter servers: its table is a
variable of the model."""

from typing import Any

import tensorflow as tf

from elastane.refused import refused

EmbeddingColumn = refused(
    "elasticdl.python.elasticdl.feature_column.feature_column.EmbeddingColumn",
    "its table would be on parameter servers: call embedding_column(...), or use the layer "
    "elasticdl.layers.Embedding",
)


def embedding_column(categorical_column: Any, dimension: int, **kwargs: Any) -> Any:
    """`tf.feature_column.embedding_column`: for `tf.keras.layers.DenseFeatures`, which legacy Keras has
    (TF_USE_LEGACY_KERAS=1)."""
    return tf.feature_column.embedding_column(categorical_column, dimension, **kwargs)
