"""Layers of TensorFlow-Keras. Owns: the embedding table as a layer, in the published form. Does not
know about: calls.

The rows of a minibatch come by a call of Python in the middle of the graph, and their gradients go the
same way back; so a model with such a layer runs in the process of its worker only, until it is exported.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf

from . import embedding
from .embedding import EmbeddingError, Initializer

_COMBINERS = ("sum", "mean", "sqrtn")
# TensorFlow may run several layers at the same time, and a connection carries one call.
_LOCK = threading.Lock()


def _initializer(given: Any) -> Any:
    """An initializer of Keras as one of ours."""
    if isinstance(given, (str, Initializer)):
        return given
    kind, config = type(given).__name__, getattr(given, "get_config", dict)()
    made: Optional[Callable[[], Initializer]] = {
        "RandomUniform": lambda: embedding.uniform(config["minval"], config["maxval"]),
        "RandomNormal": lambda: embedding.normal(config["mean"], config["stddev"]),
        "Zeros": lambda: embedding.constant(0.0),
        "Ones": lambda: embedding.constant(1.0),
        "Constant": lambda: embedding.constant(config["value"]),
    }.get(kind)
    if made is None:
        raise EmbeddingError(
            f"rows cannot begin with {kind}: take RandomUniform, RandomNormal, Zeros, Ones or Constant"
        )
    return made()


class _Lookup:
    """Work of a layer outside of the graph. It is no part of the layer's own state."""

    def __init__(self, table: embedding.Embedding, input_dim: Optional[int]) -> None:
        self.table, self._input_dim = table, input_dim
        # Variable for the gradient of a lookup, so that its derivative is computed.
        self.anchor = tf.Variable(0.0, trainable=False)
        self.failure: Optional[BaseException] = None
        # All trained rows, for a model that is exported.
        self.frozen: Any = None

    def __call__(self, ids: Any) -> Any:
        """Vectors of shape [ids, dim]."""
        if self.frozen is not None:
            return self._of_frozen(ids)

        @tf.custom_gradient
        def lookup(_: Any) -> Any:
            vectors = tf.numpy_function(self._pull, [ids], tf.float32)
            vectors.set_shape([None, self.table.dim])

            def gradient(derivative: Any) -> Any:
                return tf.reshape(tf.numpy_function(self._note, [ids, derivative], tf.float32), [])

            return vectors, gradient

        return lookup(self.anchor)

    def _of_frozen(self, ids: Any) -> Any:
        known, rows = self.frozen
        at = tf.minimum(tf.searchsorted(known, ids), tf.size(known) - 1)
        is_known = tf.equal(tf.gather(known, at), ids)
        return tf.where(is_known[:, None], tf.gather(rows, at), 0.0)

    def freeze(self) -> None:
        """From now on lookups are part of the graph; an id without a trained row gets zeros."""
        stored = self.table.stored()
        ids, rows = (stored[f"{self.table.name}/{of}"] for of in ("ids", "rows"))
        if not len(ids):
            ids, rows = np.zeros(1, np.uint64), np.zeros((1, self.table.dim), np.float32)
        signed = ids.view(np.int64)
        order = np.argsort(signed)
        self.frozen = (tf.constant(signed[order]), tf.constant(rows[order]))

    def _pull(self, ids: np.ndarray) -> np.ndarray:
        try:
            self._check(ids)
            with _LOCK:
                _, places, rows = self.table.pull(ids)
            return rows[places]
        except BaseException as error:
            # TensorFlow would make another one of it.
            self.failure = error
            raise

    def _check(self, ids: np.ndarray) -> None:
        if self._input_dim is None or not len(ids):
            return
        if ids.min() < 0 or ids.max() >= self._input_dim:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise EmbeddingError(
                f"embedding table {self.table.name!r} got id {wrong}; input_dim is "
                f"{self._input_dim}; leave it out if ids are any numbers"
            )

    def _note(self, ids: np.ndarray, derivative: np.ndarray) -> np.ndarray:
        self.table.add(embedding.as_ids(ids, self.table.name), derivative)
        return np.float32(0.0)


class Embedding(tf.keras.layers.Layer):  # type: ignore[misc]
    """`tf.keras.layers.Embedding` whose rows are on the parameter servers.

    Its table is called like the layer. Without `input_dim` any whole number of 64 bits is an id. With
    `combiner` the vectors of a row of ids, of shape [records, ids], become one: their `sum`, their
    `mean`, or their sum by the root of their number (`sqrtn`). A `SparseTensor` needs a combiner; a
    record without ids gets zeros.
    """

    def __init__(
        self,
        output_dim: int,
        input_dim: Optional[int] = None,
        embeddings_initializer: Any = "uniform",
        mask_zero: bool = False,
        input_length: Optional[int] = None,
        combiner: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if combiner is not None and combiner not in _COMBINERS:
            raise EmbeddingError(f"combiner is {combiner!r}; it is one of {', '.join(_COMBINERS)}")
        self.output_dim, self.input_dim, self.input_length = output_dim, input_dim, input_length
        self.mask_zero, self.combiner = mask_zero, combiner
        self.supports_masking = mask_zero
        table = embedding.Embedding(self.name, output_dim, _initializer(embeddings_initializer))
        self._lookup = _Lookup(table, input_dim)

    @property
    def lookup(self) -> _Lookup:
        """The table, and how it is used."""
        return self._lookup

    def call(self, inputs: Any) -> Any:
        """Vectors of these ids."""
        if isinstance(inputs, tf.RaggedTensor):
            raise EmbeddingError(
                f"layer {self.name!r} got a RaggedTensor: make it sparse, with to_sparse() and a "
                "combiner, or dense, with an id of its own for what is not there"
            )
        if isinstance(inputs, tf.SparseTensor):
            return self._of_sparse(inputs)
        ids = tf.cast(inputs, tf.int64)
        vectors = self._lookup(tf.reshape(ids, [-1]))
        vectors = tf.reshape(vectors, tf.concat([tf.shape(ids), [self.output_dim]], 0))
        vectors.set_shape([*ids.shape, self.output_dim])
        if self.combiner is None:
            return vectors
        if self.combiner == "mean":
            return tf.reduce_mean(vectors, -2)
        summed = tf.reduce_sum(vectors, -2)
        count = tf.cast(tf.shape(ids)[-1], tf.float32)
        return summed if self.combiner == "sum" else summed / tf.sqrt(count)

    def _of_sparse(self, inputs: Any) -> Any:
        if self.combiner is None or self.mask_zero:
            raise EmbeddingError(
                f"layer {self.name!r} got a SparseTensor: give it a combiner, one of "
                f"{', '.join(_COMBINERS)}, and no mask_zero"
            )
        vectors = self._lookup(tf.cast(inputs.values, tf.int64))
        combine = {
            "sum": tf.math.unsorted_segment_sum,
            "mean": tf.math.unsorted_segment_mean,
            "sqrtn": tf.math.unsorted_segment_sqrt_n,
        }[self.combiner]
        combined = combine(vectors, inputs.indices[:, 0], inputs.dense_shape[0])
        return tf.ensure_shape(combined, [None, self.output_dim])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """With `mask_zero`, where the id is not 0."""
        is_masked = self.mask_zero and self.combiner is None
        return tf.not_equal(inputs, 0) if is_masked else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """One axis more; with a combiner the last one is that of the numbers."""
        kept = tuple(input_shape) if self.combiner is None else tuple(input_shape)[:-1]
        return (*kept, self.output_dim)
