"""Names of TensorFlow that model files of 2019 and 2020 use and that today's does not have.

Owns: which there are, and what takes their place. Does not know about: models.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ELSEWHERE = {
    "parse_single_example": tf.io.parse_single_example,
    "parse_example": tf.io.parse_example,
    "FixedLenFeature": tf.io.FixedLenFeature,
    "VarLenFeature": tf.io.VarLenFeature,
    "decode_raw": tf.io.decode_raw,
    "to_float": tf.compat.v1.to_float,
    "log": tf.math.log,
}


def _flatten(tensor: Any) -> Any:
    return tf.reshape(tensor, [-1])


def give() -> None:
    """Gives TensorFlow the names that it lacks; those that it has stay."""
    if not hasattr(tf, "enable_eager_execution"):
        # Eager execution is on already.
        tf.enable_eager_execution = lambda *_, **__: None
    for name, value in _ELSEWHERE.items():
        if not hasattr(tf, name):
            setattr(tf, name, value)
    for name in ("GradientDescentOptimizer", "AdamOptimizer", "AdagradOptimizer"):
        if not hasattr(tf.train, name):
            setattr(tf.train, name, getattr(tf.compat.v1.train, name))
    # Labels were arrays of numpy, which files flatten; in a graph they are tensors.
    if "flatten" not in vars(tf.Tensor):
        tf.Tensor.flatten = _flatten
