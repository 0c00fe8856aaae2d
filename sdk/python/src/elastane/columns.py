"""Feature columns of TensorFlow, for `tf.keras.layers.DenseFeatures` of legacy Keras. Owns: the
column that puts the ids of others together. Does not know about: parameter servers.
"""

from __future__ import annotations

import itertools
from collections import namedtuple
from typing import Any, Dict, List

import tensorflow as tf
from tensorflow.python.feature_column import serialization
from tensorflow.python.feature_column.feature_column_v2 import CategoricalColumn


class ConcatenatedCategoricalColumn(  # type: ignore[misc]
    CategoricalColumn, namedtuple("ConcatenatedCategoricalColumn", ["categorical_columns"])
):
    """The ids of several columns as one: those of each column begin after those of the columns
    before it, so that they do not meet."""

    @property
    def _is_v2_column(self) -> bool:
        return all(column._is_v2_column for column in self.categorical_columns)

    @property
    def name(self) -> str:
        """The names of the columns."""
        return "_C_".join(sorted(column.name for column in self.categorical_columns))

    @property
    def num_buckets(self) -> int:
        """How many ids there are."""
        return sum(column.num_buckets for column in self.categorical_columns)

    @property
    def parents(self) -> List[Any]:
        """The columns."""
        return list(self.categorical_columns)

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """The features of all columns."""
        specs = [column.parse_example_spec for column in self.categorical_columns]
        return {name: kind for spec in specs for name, kind in spec.items()}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids of a record side by side."""
        before = [0, *(column.num_buckets for column in self.categorical_columns)]
        shifted = []
        for column, offset in zip(self.categorical_columns, itertools.accumulate(before)):
            ids = column.get_sparse_tensors(transformation_cache, state_manager).id_tensor
            values = tf.cast(ids.values, tf.int64) + offset
            shifted.append(tf.SparseTensor(ids.indices, values, ids.dense_shape))
        return tf.sparse.concat(-1, shifted)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids, without weights."""
        ids = transformation_cache.get(self, state_manager)
        return CategoricalColumn.IdWeightPair(ids, None)

    def get_config(self) -> Dict[str, Any]:
        """The columns."""
        columns = [serialization.serialize_feature_column(one) for one in self.categorical_columns]
        return {"categorical_columns": columns}

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """The column of a configuration."""
        columns = config["categorical_columns"]
        make = serialization.deserialize_feature_column
        return cls(tuple(make(one, custom_objects, columns_by_name) for one in columns))


def concatenated_categorical_column(categorical_columns: List[Any]) -> Any:
    """A column of the ids of all these columns, for one table of embeddings in place of several.

    Raises ValueError for what is no list of categorical columns.
    """
    if not isinstance(categorical_columns, list) or not categorical_columns:
        raise ValueError("categorical_columns is no list of columns")
    for column in categorical_columns:
        if not isinstance(column, CategoricalColumn):
            raise ValueError(f"{column!r} of categorical_columns is no categorical column")
    return ConcatenatedCategoricalColumn(tuple(categorical_columns))
