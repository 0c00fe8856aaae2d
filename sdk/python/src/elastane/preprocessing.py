"""Layers of TensorFlow-Keras that prepare features, in the published forms of
`elasticdl_preprocessing.layers`. Owns: their arithmetic. Does not know about: parameter servers.

All take a `Tensor`, a `SparseTensor` or a `RaggedTensor`, unless their description says otherwise,
and return the same kind in the same shape.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Optional, Sequence, Union

import tensorflow as tf

_COMBINERS = ("sum", "mean", "sqrtn")


def _each(function: Callable[[Any], Any], inputs: Any) -> Any:
    """Applies a function to the values that are there."""
    if isinstance(inputs, tf.SparseTensor):
        return tf.SparseTensor(inputs.indices, function(inputs.values), inputs.dense_shape)
    if isinstance(inputs, tf.RaggedTensor):
        return tf.ragged.map_flat_values(function, inputs)
    return function(tf.convert_to_tensor(inputs))


class _Layer(tf.keras.layers.Layer):  # type: ignore[misc]
    """Base of the layers that look at each value by itself. A subclass has `_value`, and the names
    of its arguments in `_arguments`."""

    _arguments: Sequence[str] = ()

    def _value(self, values: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        """Each value by itself."""
        return _each(self._value, inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """That of the inputs."""
        return input_shape

    def get_config(self) -> Dict[str, Any]:
        """The arguments."""
        own = {name: getattr(self, name) for name in self._arguments}
        return {**super().get_config(), **own}


class Normalizer(_Layer):
    """`(x - subtractor) / divisor`, as float32."""

    _arguments = ("subtractor", "divisor")

    def __init__(self, subtractor: float, divisor: float, **kwargs: Any) -> None:
        if divisor == 0:
            raise ValueError("divisor of Normalizer is 0")
        super().__init__(**kwargs)
        self.subtractor, self.divisor = subtractor, divisor

    def _value(self, values: Any) -> Any:
        return (tf.cast(values, tf.float32) - self.subtractor) / self.divisor


class Discretization(_Layer):
    """The number of the bin of a number, as int64: `bins=[0, 1]` are the bins below 0, from 0 to 1,
    and from 1 on, which are 0, 1 and 2."""

    _arguments = ("bins",)

    def __init__(self, bins: Sequence[float], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bins = list(bins)

    def num_bins(self) -> int:
        """Number of bins."""
        return len(self.bins) + 1

    def _value(self, values: Any) -> Any:
        found = tf.raw_ops.Bucketize(input=values, boundaries=[float(one) for one in self.bins])
        return tf.cast(found, tf.int64)


def _within(values: Any, end: Any, default: int) -> Any:
    """Whole numbers from 0 up to but not including `end`, as int64; `default` for all others."""
    is_within = tf.math.is_finite(values) & (values >= 0) & (values < end)
    whole = tf.cast(tf.where(is_within, values, tf.zeros_like(values)), tf.int64)
    return tf.where(is_within, whole, tf.constant(default, tf.int64))


class LogRound(_Layer):
    """The rounded logarithm of a number, to the base `base` (e), as int64: from 0 to
    `num_bins - 1`, and `default_value` outside."""

    _arguments = ("num_bins", "default_value", "base")

    def __init__(
        self, num_bins: int, default_value: int = 0, base: Optional[float] = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.num_bins, self.default_value, self.base = num_bins, default_value, base

    def _value(self, values: Any) -> Any:
        logarithm = tf.math.log(tf.cast(values, tf.float64))
        if self.base is not None:
            logarithm /= tf.math.log(tf.constant(self.base, tf.float64))
        return _within(tf.round(logarithm), self.num_bins, self.default_value)


class RoundIdentity(_Layer):
    """The rounded number, as int64: from 0 to `num_buckets`, and `default_value` outside.
    `max_value` is the other published name of `num_buckets`."""

    _arguments = ("num_buckets", "default_value")

    def __init__(
        self,
        num_buckets: Optional[int] = None,
        default_value: int = 0,
        max_value: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        if (num_buckets is None) == (max_value is None):
            raise TypeError("RoundIdentity takes num_buckets, or by its other name max_value")
        super().__init__(**kwargs)
        self.num_buckets = (num_buckets or 0) if max_value is None else max_value
        self.default_value = default_value

    def _value(self, values: Any) -> Any:
        rounded = tf.round(tf.cast(values, tf.float64))
        return _within(rounded, self.num_buckets + 1, self.default_value)


class Hashing(_Layer):
    """A number from 0 to `num_bins - 1` for a text or a whole number, as int64: that of
    TensorFlow's `to_hash_bucket_fast`."""

    _arguments = ("num_bins",)

    def __init__(self, num_bins: int, **kwargs: Any) -> None:
        if num_bins is None or num_bins < 1:
            raise ValueError(f"num_bins of Hashing is {num_bins}; it is at least 1")
        super().__init__(**kwargs)
        self.num_bins = num_bins

    def _value(self, values: Any) -> Any:
        texts = tf.as_string(values) if values.dtype.is_integer else values
        return tf.strings.to_hash_bucket_fast(texts, self.num_bins)


class IndexLookup(_Layer):
    """The place of a text in the vocabulary, as int64. A text that is not there gets one of the
    `num_oov_tokens` numbers behind, or -1 if there are none.

    `vocabulary` is a list, or a file with a text in each line. Raises ValueError for a text that is
    there twice.
    """

    _arguments = ("vocabulary", "num_oov_tokens")

    def __init__(
        self, vocabulary: Union[str, Sequence[Any]], num_oov_tokens: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(vocabulary, str):
            with tf.io.gfile.GFile(vocabulary) as file:
                vocabulary = [line.strip() for line in file.read().splitlines()]
        self.vocabulary, self.num_oov_tokens = list(vocabulary), num_oov_tokens
        if not self.vocabulary:
            raise ValueError("vocabulary of IndexLookup is empty")
        twice = [repr(one) for one, count in Counter(self.vocabulary).items() if count > 1]
        if twice:
            raise ValueError(f"vocabulary of IndexLookup has {', '.join(twice)} more than once")
        places = tf.range(len(self.vocabulary), dtype=tf.int64)
        known = tf.lookup.KeyValueTensorInitializer(tf.constant(self.vocabulary), places)
        self._table = (
            tf.lookup.StaticVocabularyTable(known, num_oov_tokens)
            if num_oov_tokens
            else tf.lookup.StaticHashTable(known, -1)
        )

    def vocab_size(self) -> int:
        """How many numbers there are, those of unknown texts included."""
        return len(self.vocabulary) + self.num_oov_tokens

    def _value(self, values: Any) -> Any:
        return self._table.lookup(values)


class ToNumber(_Layer):
    """A text, or a number, as a number of type `out_type`; the empty text is `default_value`."""

    _arguments = ("out_type", "default_value")

    def __init__(self, out_type: Any, default_value: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        kind = tf.as_dtype(out_type)
        if not (kind.is_floating or kind.is_integer):
            raise ValueError(f"out_type of ToNumber is {kind.name}, not a type of numbers")
        self.out_type, self.default_value = kind.name, default_value

    def _value(self, values: Any) -> Any:
        kind = tf.as_dtype(self.out_type)
        if values.dtype != tf.string:
            return tf.cast(values, kind)
        texts = tf.where(tf.equal(values, ""), str(self.default_value), values)
        # TensorFlow reads texts as these types only.
        reads = kind in (tf.float32, tf.float64, tf.int32, tf.int64)
        wide = kind if reads else (tf.float64 if kind.is_floating else tf.int64)
        return tf.cast(tf.strings.to_number(texts, wide), kind)


def _plus(offset: int, inputs: Any) -> Any:
    return _each(lambda values: values + tf.cast(offset, values.dtype), inputs)


def _ignored(value: Any, kind: Any) -> Any:
    """The value that stands for what is not there, of this type."""
    if value is None:
        value = "" if kind == tf.string else -1
    return tf.constant(value, kind)


class ToSparse(_Layer):
    """The `SparseTensor` of a `Tensor` without values `ignore_value` (the empty text, or -1)."""

    _arguments = ("ignore_value",)

    def __init__(self, ignore_value: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_value = ignore_value

    def call(self, inputs: Any) -> Any:
        """The values that are there."""
        if isinstance(inputs, tf.SparseTensor):
            return inputs
        inputs = tf.convert_to_tensor(inputs)
        places = tf.where(tf.not_equal(inputs, _ignored(self.ignore_value, inputs.dtype)))
        shape = tf.shape(inputs, out_type=tf.int64)
        return tf.SparseTensor(places, tf.gather_nd(inputs, places), shape)


class ToRagged(_Layer):
    """The `RaggedTensor` of a `Tensor` without values `ignore_value` (the empty text, or -1). A
    text is divided at `sep`."""

    _arguments = ("sep", "ignore_value")

    def __init__(self, sep: str = ",", ignore_value: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sep, self.ignore_value = sep, ignore_value

    def call(self, inputs: Any) -> Any:
        """The values that are there."""
        if not isinstance(inputs, tf.RaggedTensor):
            inputs = tf.RaggedTensor.from_tensor(tf.convert_to_tensor(inputs))
        if inputs.dtype == tf.string:
            # Texts of a row follow each other: [rows, texts, parts] is [rows, parts].
            inputs = tf.strings.split(inputs, self.sep).merge_dims(1, 2)
        is_there = tf.not_equal(inputs, _ignored(self.ignore_value, inputs.dtype))
        return tf.ragged.boolean_mask(inputs, is_there)


class ConcatenateWithOffset(tf.keras.layers.Layer):  # type: ignore[misc]
    """Several tensors of ids as one: `offsets` are added to them, so that they do not meet, and
    they are put together along `axis`. Without offsets nothing is added."""

    def __init__(
        self, offsets: Optional[Sequence[int]] = None, axis: int = -1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.offsets, self.axis = None if offsets is None else list(offsets), axis

    def call(self, inputs: Any) -> Any:
        """Raises ValueError if there are not as many inputs as offsets."""
        inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        offsets = self.offsets or [0] * len(inputs)
        if len(inputs) != len(offsets):
            raise ValueError(
                f"ConcatenateWithOffset got {len(inputs)} inputs for {len(offsets)} offsets"
            )
        shifted = [_plus(offset, one) for one, offset in zip(inputs, offsets)]
        if isinstance(shifted[0], tf.SparseTensor):
            axis = self.axis if self.axis >= 0 else shifted[0].shape.rank + self.axis
            return tf.sparse.concat(axis, shifted)
        return tf.concat(shifted, self.axis)

    def get_config(self) -> Dict[str, Any]:
        """The arguments."""
        return {**super().get_config(), "offsets": self.offsets, "axis": self.axis}


class SparseEmbedding(tf.keras.layers.Layer):  # type: ignore[misc]
    """Vectors of the ids of a `SparseTensor` of shape [records, ids], of each record together:
    their `mean`, `sum`, or sum by the root of their number (`sqrtn`), of shape
    [records, output_dim]; zeros for a record without ids. In a `Tensor` 0 stands for an id that is
    not there.

    The table is a variable of the model; `elasticdl.layers.Embedding` keeps one on the parameter
    servers.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        combiner: str = "mean",
        **kwargs: Any,
    ) -> None:
        if combiner not in _COMBINERS:
            raise ValueError(f"combiner is {combiner!r}; it is one of {', '.join(_COMBINERS)}")
        super().__init__(**kwargs)
        self.input_dim, self.output_dim, self.combiner = input_dim, output_dim, combiner
        self.embeddings_initializer = tf.keras.initializers.get(embeddings_initializer)

    def build(self, input_shape: Any) -> None:
        """Creates the table."""
        self.embeddings = self.add_weight(
            shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
            name="embeddings",
            trainable=True,
        )
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """One vector for each record."""
        if not isinstance(inputs, tf.SparseTensor):
            inputs = tf.sparse.from_dense(inputs)
        table = tf.convert_to_tensor(self.embeddings)
        found = tf.nn.safe_embedding_lookup_sparse(
            table, tf.cast(inputs, tf.int64), combiner=self.combiner
        )
        # Of a lookup the static shape is lost where that of the ids is.
        return tf.reshape(found, [-1, self.output_dim])

    def compute_output_shape(self, input_shape: Any) -> Any:
        """[records, output_dim]."""
        return (input_shape[0], self.output_dim)

    def get_config(self) -> Dict[str, Any]:
        """The arguments."""
        own = {name: getattr(self, name) for name in ("input_dim", "output_dim", "combiner")}
        initializer = tf.keras.initializers.serialize(self.embeddings_initializer)
        return {**super().get_config(), **own, "embeddings_initializer": initializer}
