"""Optimizers by name and numbers: what the parameter server applies.

Owns: which there are and what their arguments are called, and recognising those of Keras and
PyTorch. Does not know about: gradients; the server adds them up and updates.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Tuple

_DEFAULTS: Dict[str, Dict[str, float]] = {
    "sgd": {"learning_rate": 0.01, "momentum": 0.0, "nesterov": 0.0},
    "adam": {
        "learning_rate": 0.001,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-7,
        "amsgrad": 0.0,
    },
    "adagrad": {"learning_rate": 0.001, "epsilon": 1e-7, "initial_accumulator": 0.1},
}


class OptimizerError(ValueError):
    """An optimizer that the parameter server does not have."""


class Optimizer(NamedTuple):
    """An optimizer of the parameter server."""

    kind: str
    """`sgd`, `adam` or `adagrad`."""
    arguments: Dict[str, float]
    """Its numbers; a switch is 0 or 1."""

    @property
    def learning_rate(self) -> float:
        """The factor of a step."""
        return self.arguments["learning_rate"]


def make(kind: str, arguments: Mapping[str, float]) -> Optimizer:
    """An optimizer of this kind; arguments that are not given have their default."""
    if kind not in _DEFAULTS:
        known = ", ".join(_DEFAULTS)
        raise OptimizerError(f"the parameter server has no optimizer {kind!r}; it has {known}")
    for name in arguments:
        if name not in _DEFAULTS[kind]:
            known = ", ".join(_DEFAULTS[kind])
            raise OptimizerError(f"optimizer {kind} has no argument {name!r}; it has {known}")
    merged = {**_DEFAULTS[kind], **{name: float(value) for name, value in arguments.items()}}
    return Optimizer(kind, merged)


def SGD(learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False) -> Optimizer:
    """Gradient descent, with momentum where it is above 0."""
    return make("sgd", dict(learning_rate=learning_rate, momentum=momentum, nesterov=nesterov))


def Adam(
    learning_rate: float = 0.001,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-7,
    amsgrad: bool = False,
) -> Optimizer:
    """Adam, or AMSGrad."""
    given = dict(learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2)
    return make("adam", dict(given, epsilon=epsilon, amsgrad=amsgrad))


def Adagrad(
    learning_rate: float = 0.001, epsilon: float = 1e-7, initial_accumulator: float = 0.1
) -> Optimizer:
    """Adagrad."""
    given = dict(learning_rate=learning_rate, epsilon=epsilon)
    return make("adagrad", dict(given, initial_accumulator=initial_accumulator))


def _refuse_set(name: str, values: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Refuses what would be lost silently: a field that is not at the value that does nothing."""
    for field, neutral in fields.items():
        value = values.get(field, neutral)
        if value is not None and value != neutral:
            raise OptimizerError(
                f"optimizer {name} has {field}={value!r}, which the parameter server cannot apply; "
                f"leave it at {neutral!r}"
            )


def from_keras(optimizer: Any, learning_rate: float) -> Optimizer:
    """The server's optimizer for one of Keras (either generation)."""
    name = type(optimizer).__name__
    config = optimizer.get_config()
    _refuse_set(
        name,
        config,
        dict(
            weight_decay=None,
            clipnorm=None,
            clipvalue=None,
            global_clipnorm=None,
            use_ema=False,
            decay=0.0,
        ),
    )
    kinds = {"SGD": "sgd", "Adam": "adam", "Adagrad": "adagrad"}
    kind = kinds.get(name)
    if kind is None:
        raise OptimizerError(
            f"the parameter server has no optimizer {name}; it has SGD, Adam and Adagrad of Keras"
        )
    arguments = {"learning_rate": learning_rate}
    for field in _DEFAULTS[kind]:
        if field != "learning_rate" and field in config:
            arguments[field] = float(config[field])
    if "initial_accumulator_value" in config:
        arguments["initial_accumulator"] = float(config["initial_accumulator_value"])
    return make(kind, arguments)


# By class of `tf.compat.v1.train`: the kind, and the attribute of each argument.
_VERSION_ONE: Dict[str, Tuple[str, Dict[str, str]]] = {
    "GradientDescentOptimizer": ("sgd", {"learning_rate": "_learning_rate"}),
    "MomentumOptimizer": (
        "sgd",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
    ),
    "AdamOptimizer": (
        "adam",
        {
            "learning_rate": "_lr",
            "beta_1": "_beta1",
            "beta_2": "_beta2",
            "epsilon": "_epsilon",
        },
    ),
    "AdagradOptimizer": (
        "adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator": "_initial_accumulator_value"},
    ),
}


def from_version_one(optimizer: Any) -> Optimizer:
    """The server's optimizer for one of `tf.compat.v1.train`.

    Raises OptimizerError for one that the server does not have, and for an argument that is a
    function: nothing would call it again, so a decaying rate would stay at its first value.
    """
    name = type(optimizer).__name__
    if name not in _VERSION_ONE:
        raise OptimizerError(
            f"the parameter server has no optimizer {name}; use {', '.join(_VERSION_ONE)} of "
            "tf.compat.v1.train, or SGD, Adam and Adagrad of tf.keras.optimizers"
        )
    kind, attributes = _VERSION_ONE[name]
    arguments = {}
    for argument, attribute in attributes.items():
        value = getattr(optimizer, attribute)
        if callable(value):
            raise OptimizerError(
                f"optimizer {name} has a function as {argument}: give a number, and for a rate "
                "that changes LearningRateScheduler of elasticdl.callbacks"
            )
        arguments[argument] = float(value)
    if kind == "adagrad":
        # This one divides by the root alone.
        arguments["epsilon"] = 0.0
    return make(kind, arguments)


def from_torch(optimizer: Any) -> Optimizer:
    """The server's optimizer for one of PyTorch with one group of parameters."""
    name = type(optimizer).__name__
    if len(optimizer.param_groups) != 1:
        raise OptimizerError(
            f"optimizer {name} has {len(optimizer.param_groups)} groups of parameters; 1 is allowed"
        )
    group = optimizer.param_groups[0]
    _refuse_set(name, group, dict(weight_decay=0, dampening=0, lr_decay=0, maximize=False))
    rate = float(group["lr"])
    if name == "SGD":
        return SGD(rate, group["momentum"], group["nesterov"])
    if name == "Adam":
        beta_1, beta_2 = group["betas"]
        return Adam(rate, beta_1, beta_2, group["eps"], group["amsgrad"])
    if name == "Adagrad":
        return Adagrad(rate, group["eps"], group["initial_accumulator_value"])
    raise OptimizerError(
        f"the parameter server has no optimizer {name}; it has SGD, Adam and Adagrad of PyTorch"
    )
