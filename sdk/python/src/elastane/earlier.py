"""Names of TensorFlow that model files of 2019 and 2020 use and that today's does not have.

Owns: which there are, and what takes their place. Does not know about: models.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from .optimizers import OptimizerError

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


def _takes_earlier_arguments(kind: Any) -> None:
    """Has an optimizer of Keras take `lr`, which Keras 3 refuses and legacy Keras ignores, and
    refuse `decay`, which Keras 3 ignores."""
    original = kind.__init__
    if getattr(original, "takes_lr", False):
        return

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        if "lr" in named:
            named["learning_rate"] = named.pop("lr")
        if named.get("decay"):
            raise OptimizerError(
                f"optimizer {kind.__name__} has decay={named['decay']!r}: give learning_rate a "
                "schedule of tf.keras.optimizers.schedules, like InverseTimeDecay"
            )
        original(self, *arguments, **named)

    init.takes_lr = True  # type: ignore[attr-defined]
    kind.__init__ = init


def _give_rates() -> None:
    """The learning rate of optimizers of Keras by its earlier name, `lr`."""
    base = tf.keras.optimizers.Optimizer
    for name in ("SGD", "Adam", "Adagrad", "RMSprop", "Adadelta", "Adamax", "Nadam", "Ftrl"):
        _takes_earlier_arguments(getattr(tf.keras.optimizers, name))
    if not hasattr(base, "lr"):

        def assign(optimizer: Any, rate: Any) -> None:
            optimizer.learning_rate = rate

        base.lr = property(lambda optimizer: optimizer.learning_rate, assign)


def give() -> None:
    """Gives TensorFlow the names that it lacks; those that it has stay."""
    if not hasattr(tf, "enable_eager_execution"):
        # Eager execution is on already.
        tf.enable_eager_execution = lambda *_, **__: None
    for name, value in _ELSEWHERE.items():
        if not hasattr(tf, name):
            setattr(tf, name, value)
    for name in vars(tf.compat.v1.train):
        if name.endswith("Optimizer") and not hasattr(tf.train, name):
            setattr(tf.train, name, getattr(tf.compat.v1.train, name))
    _give_rates()
    # Labels were arrays of numpy, which files flatten; in a graph they are tensors.
    if "flatten" not in vars(tf.Tensor):
        tf.Tensor.flatten = _flatten
