"""Optimizers of Keras that update once in so many batches, with the mean of their gradients.

Owns: the published names. Does not know about: how accumulation works: Keras 3 does it itself, on
one GPU. On several, `runai.elastic.keras.models` does.
"""

import keras


def Optimizer(optimizer, steps):
    """A copy of this optimizer that updates after every `steps` batches."""
    if int(steps) != steps or steps < 1:
        raise ValueError(f"steps is {steps}; it is a whole number of at least 1")
    if not hasattr(optimizer, "gradient_accumulation_steps"):
        raise RuntimeError("accumulation needs Keras 3: unset TF_USE_LEGACY_KERAS")
    config = optimizer.get_config()
    config["gradient_accumulation_steps"] = int(steps) if steps > 1 else None
    return type(optimizer).from_config(config)


def _wrapped(plain):
    def make(steps, *args, **kwargs):
        return Optimizer(plain(*args, **kwargs), steps)

    make.__name__ = plain.__name__
    make.__doc__ = f"`keras.optimizers.{plain.__name__}` that updates after every `steps` batches."
    return make


SGD = _wrapped(keras.optimizers.SGD)
RMSprop = _wrapped(keras.optimizers.RMSprop)
Adagrad = _wrapped(keras.optimizers.Adagrad)
Adadelta = _wrapped(keras.optimizers.Adadelta)
Adam = _wrapped(keras.optimizers.Adam)
Adamax = _wrapped(keras.optimizers.Adamax)
Nadam = _wrapped(keras.optimizers.Nadam)
