"""Callbacks of a model. Owns: the forms in which a file may give them, their calls by a worker, and
the warnings about calls that no worker makes. Does not know about: frameworks, tasks.

As published, a worker calls `on_train_batch_begin(version)` before each step, with the version of
the model that the step starts at, and `on_train_end()` once. It sets `model`, with the optimizer as
`model.optimizer`, and `params`. A callback that sets `model.stop_training` ends the training.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional

_CALLED = ("on_train_batch_begin", "on_batch_begin", "on_train_end")
# The others are called by no worker.
_HOOKS = (
    *_CALLED,
    "on_batch_end",
    "on_train_batch_end",
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_begin",
    "on_task_end",
    "on_test_begin",
    "on_test_end",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_begin",
    "on_predict_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
)


class CallbackError(ValueError):
    """Something among the callbacks of a model that is none."""


def _fits(function: Callable[..., Any], *arguments: Any) -> bool:
    """True if the function can be called with these arguments, or does not say what it takes."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _call(hook: Callable[..., Any], *arguments: Any) -> None:
    """Calls a hook, with empty logs if it requires them as hooks of Keras do."""
    hook(*arguments) if _fits(hook, *arguments) else hook(*arguments, {})


class LearningRateScheduler:
    """The learning rate of a step is `schedule(version)`, of the version that it starts at."""

    by_version = True

    def __init__(self, schedule: Callable[[int], float]) -> None:
        if not callable(schedule):
            raise TypeError("LearningRateScheduler takes a function of the version of the model")
        if not _fits(schedule, 0):
            raise TypeError(
                "the schedule of LearningRateScheduler takes one argument, the version of the model: "
                "compute the rate from it, as in lambda version: 0.1 * 0.99**version"
            )
        self.schedule = schedule

    def set_model(self, model: Any) -> None:
        """Nothing: the rate goes to the parameter server with each step."""


def _has_hooks(value: Any) -> bool:
    return any(callable(getattr(value, name, None)) for name in ("schedule", *_HOOKS))


def listed(given: Any, path: str) -> List[Any]:
    """The callbacks of the file `path`, which gives a list, a tuple or a single callback, or a
    function that returns one of these or None.

    Raises CallbackError for what is no callback.
    """
    if callable(given) and not isinstance(given, type) and not _has_hooks(given):
        given = given()
    if given is None:
        return []
    found = list(given) if isinstance(given, (list, tuple)) else [given]
    for callback in found:
        if isinstance(callback, type) or not _has_hooks(callback):
            what = callback.__name__ if isinstance(callback, type) else type(callback).__name__
            hint = f"{what}(...)" if isinstance(callback, type) else "objects"
            raise CallbackError(
                f"callbacks of the model {path} has {what}, which is no callback: return a list of "
                f"{hint} with on_train_batch_begin(version) or on_train_end()"
            )
    return found


def _is_own(callback: Any, hook: str) -> bool:
    """True if the callback has this hook, and not only the empty one of Keras's base."""
    for kind in type(callback).__mro__:
        if hook in vars(kind):
            is_base = kind.__name__ == "Callback" and "keras" in kind.__module__
            return not is_base
    return callable(getattr(callback, hook, None))


class Callbacks:
    """The callbacks of one model, as a worker calls them."""

    def __init__(self, callbacks: List[Any], model: Any, optimizer: Any) -> None:
        self._callbacks = callbacks
        self._model = model
        # The version at which a callback has ended the training.
        self._stopped_at: Optional[int] = None
        if callbacks and optimizer is not None:
            model.optimizer = optimizer
        for callback in callbacks:
            if hasattr(callback, "set_model"):
                callback.set_model(model)

    def warnings(self) -> List[str]:
        """A sentence for each callback that waits for calls that no worker makes."""
        out = []
        for callback in self._callbacks:
            idle = [hook for hook in _HOOKS if hook not in _CALLED and _is_own(callback, hook)]
            if idle:
                out.append(
                    f"callback {type(callback).__name__}: workers do not call {', '.join(idle)}, "
                    "only on_train_batch_begin(version) and on_train_end()"
                )
        return out

    def set_params(self, params: Dict[str, Any]) -> None:
        """Gives the callbacks the parameters of the job, by their published names."""
        for callback in self._callbacks:
            if hasattr(callback, "set_params"):
                callback.set_params(dict(params))

    def batch_begin(self, version: int) -> None:
        """A step starts at this version of the model."""
        if self._stopped_at is not None and version < self._stopped_at:
            # The servers went back to a checkpoint from before the end.
            self._stopped_at, self._model.stop_training = None, False
        for callback in self._callbacks:
            hook = getattr(callback, "on_train_batch_begin", None)
            hook = hook or getattr(callback, "on_batch_begin", None)
            if hook is not None:
                _call(hook, version)
        if self._stopped_at is None and self.has_stopped:
            self._stopped_at = version

    def rate(self, version: int) -> Optional[float]:
        """The learning rate that a schedule by version sets for a step; None if there is none."""
        rate = None
        for callback in self._callbacks:
            if getattr(callback, "by_version", False):
                rate = float(callback.schedule(version))
        return rate

    @property
    def has_stopped(self) -> bool:
        """True once a callback has ended the training."""
        return bool(self._callbacks) and bool(getattr(self._model, "stop_training", False))

    def train_end(self) -> None:
        """The training has ended."""
        for callback in self._callbacks:
            if hasattr(callback, "on_train_end"):
                _call(callback.on_train_end)


class MaxStepsStopping:
    """Ends the training at this version of the model, after `max_steps` updates."""

    def __init__(self, max_steps: int) -> None:
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; it is at least 1")
        self._max_steps = max_steps
        self._model: Any = None

    def set_model(self, model: Any) -> None:
        """The model whose training is ended."""
        self._model = model

    def on_train_batch_begin(self, version: int) -> None:
        """Ends the training if the model has all updates."""
        if version >= self._max_steps:
            self._model.stop_training = True
