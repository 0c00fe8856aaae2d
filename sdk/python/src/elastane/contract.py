"""The contract of a model: a file of Python whose functions are found by name.

Owns: loading the file by its path, both published forms of the contract, and saying what is
missing. Does not know about: TensorFlow, PyTorch or numpy; `backends` does.

The form of May 2019 has objects of the module: `model`, `feature_columns()`, `label_columns()`,
`input_fn(records)`, `loss(output, labels)` (output first), `optimizer(lr=0.1)`; in June `input_fn` got
`decode_fn` as well. The final form is named by `--model_def`: `custom_model()`, `feed`,
`loss(labels, predictions)` (labels first), `optimizer()`, `eval_metrics_fn()`, and if wanted
`callbacks()`, `custom_data_reader(...)` and `PredictionOutputsProcessor`. Between the two `model` was an
object, `feed` was `dataset_fn(dataset, mode)`, and loss and metrics took the output first: their order
is that of the names of their parameters.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .access import unreadable
from .callbacks import LearningRateScheduler, listed

TRAINING, EVALUATION, PREDICTION = "training", "evaluation", "prediction"

_SEED_NEEDS = {
    "loss": "loss(output, labels), which returns a scalar",
    "optimizer": "optimizer(lr=0.1), which returns an optimizer",
    "input_fn": "input_fn(records), which returns features and labels of a minibatch",
}
_FINAL_NEEDS = {
    "loss": "loss(labels, predictions), which returns a scalar",
    "optimizer": "optimizer(), which returns an optimizer",
    "feed": "feed(dataset, mode, metadata), which returns features and labels",
    "eval_metrics_fn": "eval_metrics_fn(), which returns metrics by name",
}


class ContractError(ValueError):
    """A model that lacks something, with what to write into its file."""


class Names(NamedTuple):
    """Names of the parts of a model; dotted names are of other files of the zoo."""

    feed: str = "feed"
    loss: str = "loss"
    optimizer: str = "optimizer"
    eval_metrics_fn: str = "eval_metrics_fn"
    callbacks: str = "callbacks"
    custom_data_reader: str = "custom_data_reader"
    prediction_outputs_processor: str = "PredictionOutputsProcessor"


class Contract(NamedTuple):
    """A model's parts. Optional functions are None if the model lacks them."""

    path: str
    seed_form: bool
    model: Any
    feed: Optional[Callable[..., Any]]
    loss: Optional[Callable[..., Any]]
    """Called with labels first, whatever the form."""
    optimizer: Optional[Callable[..., Any]]
    eval_metrics: Dict[str, Any]
    """By name: a function of labels and predictions, or a metric of Keras. For a model of several
    outputs: such a dict for each output."""
    seed_metrics: Optional[Callable[..., Any]]
    """`eval_metrics_fn(predictions, labels)` of the old forms, which returns values by name."""
    callbacks: List[Any]
    custom_data_reader: Optional[Callable[..., Any]]
    prediction_outputs_processor: Optional[Any]
    feature_columns: List[Any]
    label_columns: List[Any]


def compatibility_path() -> str:
    """The folder of modules under published names: `elasticdl`, `elasticai_api`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "compat")


def _find(folder: str) -> None:
    """Modules of this folder can be imported, after those that are installed."""
    if folder not in sys.path:
        sys.path.append(folder)


def _name_zoo(zoo: str) -> None:
    """Files of the zoo import each other as `model_zoo.FOLDER.FILE`, whatever its folder is called."""
    if "model_zoo" not in sys.modules and importlib.util.find_spec("model_zoo") is None:
        package = ModuleType("model_zoo")
        package.__path__ = [zoo]
        sys.modules["model_zoo"] = package


def load_module(path: str) -> ModuleType:
    """The file as a module, which may import published names and its neighbours.

    Raises ContractError for a file that cannot be read or imports what is not there.
    """
    try:
        with open(path, "rb"):
            pass
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        missing = f"{path} does not exist: give the path of the model's file"
        raise ContractError(missing) from None
    except OSError as error:
        raise ContractError(unreadable(path, error)) from None
    name = "elastane_model_" + os.path.splitext(os.path.basename(path))[0]
    # The file may import what lies beside it, and modules under published names.
    if compatibility_path() not in sys.path:
        sys.path.insert(0, compatibility_path())
    _find(os.path.dirname(os.path.abspath(path)))
    _give_earlier_names(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError(f"{path} is not a file of Python: its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise ContractError(
            f"{path} imports {error.name or 'a module'}, which is not there: {error}"
        ) from error
    return module


def _give_earlier_names(path: str) -> None:
    with open(path, "rb") as file:
        has_tensorflow = b"tensorflow" in file.read()
    if has_tensorflow and importlib.util.find_spec("tensorflow") is not None:
        from . import earlier

        earlier.give()


def _symbol(module: ModuleType, zoo: str, name: str) -> Optional[Any]:
    """The object of this name, of the model's file or, dotted, of another file of the zoo."""
    if "." not in name:
        return getattr(module, name, None)
    file, _, symbol = name.rpartition(".")
    return getattr(load_module(os.path.join(zoo, *file.split(".")) + ".py"), symbol, None)


def _need(value: Optional[Any], path: str, name: str, needs: Dict[str, str]) -> Any:
    if value is None:
        what = needs.get(name, name)
        raise ContractError(f"the model {path} has no {name!r}: define {what}")
    if not callable(value):
        raise ContractError(
            f"{name!r} of the model {path} is {type(value).__name__}, not a function: define "
            f"{needs.get(name, name)}"
        )
    return value


def load(
    path: str,
    symbol: Optional[str] = None,
    names: Names = Names(),
    mode: str = TRAINING,
) -> Contract:
    """The model in this file.

    `symbol` is what `--model_def` names last: a function or class without arguments. Without it
    the form is recognised: a file with an object `model` is of the form of May 2019, one with
    `custom_model` of the final one.
    """
    module = load_module(path)
    if symbol is None and getattr(module, "model", None) is not None:
        if not any(hasattr(module, name) for name in (names.feed, *_FEEDS)):
            return _seed(module, path)
        symbol = "model"
    return _final(module, path, symbol or "custom_model", names, mode)


def load_definition(
    model_zoo: str, model_def: str, names: Names = Names(), mode: str = TRAINING
) -> Contract:
    """The model that `--model_zoo` and `--model_def` name: `folder.file.symbol` below the zoo."""
    file, dot, symbol = model_def.rpartition(".")
    if not dot or not file or not symbol:
        raise ContractError(
            f"--model_def {model_def!r} is not FILE.SYMBOL, like mnist.mnist_functional.custom_model"
        )
    zoo = os.path.abspath(model_zoo)
    _find(zoo)
    _name_zoo(zoo)
    path = os.path.join(zoo, *file.split(".")) + ".py"
    return _final(load_module(path), path, symbol, names, mode, zoo)


def _seed(module: ModuleType, path: str) -> Contract:
    loss = _need(getattr(module, "loss", None), path, "loss", _SEED_NEEDS)
    return Contract(
        path=path,
        seed_form=True,
        model=module.model,  # type: ignore[attr-defined]
        feed=_need(getattr(module, "input_fn", None), path, "input_fn", _SEED_NEEDS),
        loss=_labels_first(loss, False),
        optimizer=_need(getattr(module, "optimizer", None), path, "optimizer", _SEED_NEEDS),
        eval_metrics={},
        seed_metrics=_seed_metrics(module),
        callbacks=[],
        custom_data_reader=None,
        prediction_outputs_processor=None,
        feature_columns=_columns(module, "feature_columns"),
        label_columns=_columns(module, "label_columns"),
    )


def _seed_metrics(module: ModuleType) -> Optional[Callable[..., Any]]:
    function = getattr(module, "eval_metrics_fn", None)
    return _predictions_first(function) if function is not None else None


def _columns(module: ModuleType, name: str) -> List[Any]:
    """Columns of the old form: a function that returns them, or a list."""
    found = getattr(module, name, [])
    return list(found() if callable(found) else found)


_FEEDS = ("feed", "dataset_fn")
_OUTPUTS = ("output", "outputs", "prediction", "predictions", "logits", "y_pred")


def _positional(function: Callable[..., Any]) -> List[str]:
    """The names of the parameters that a call without names gives."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds and p.default is p.empty]


def _labels_first(function: Callable[..., Any], otherwise: bool = True) -> Callable[..., Any]:
    """Takes labels and output, in this order, for a function that may have them in the other one;
    `otherwise` is used if the names of its parameters do not show the order."""
    names = _positional(function)[:2]
    if len(names) == 2 and names[0] in _OUTPUTS:
        otherwise = False
    elif len(names) == 2 and names[1] in _OUTPUTS:
        otherwise = True
    return function if otherwise else lambda labels, output: function(output, labels)


def _is_model(value: Any) -> bool:
    """True for a model, and not for what makes one."""
    has = ("trainable_variables", "named_parameters", "backward")
    # Of its class: in legacy Keras the variables of a model that is not built yet raise.
    return not isinstance(value, type) and any(hasattr(type(value), name) for name in has)


def _final(
    module: ModuleType,
    path: str,
    symbol: str,
    names: Names,
    mode: str,
    zoo: Optional[str] = None,
) -> Contract:
    zoo = zoo or os.path.dirname(os.path.abspath(path))
    make = _symbol(module, zoo, symbol)
    if make is None:
        raise ContractError(
            f"the model {path} has no {symbol!r}: define a function of this name that returns the "
            "model, or name another with --model_def"
        )
    if not callable(make):
        raise ContractError(
            f"{symbol!r} of the model {path} is {type(make).__name__}, not a function"
        )
    needs = {"feed", "loss", "optimizer"} if mode == TRAINING else {"feed"}
    if mode == EVALUATION:
        needs.add("eval_metrics_fn")
    parts: Dict[str, Any] = {}
    if names.feed == "feed" and not hasattr(module, "feed") and hasattr(module, "dataset_fn"):
        names = names._replace(feed="dataset_fn")
    for part, name in names._asdict().items():
        value = _symbol(module, zoo, name)
        parts[part] = _need(value, path, name, _FINAL_NEEDS) if part in needs else value
    if parts["custom_data_reader"] is not None:
        _check_reader(parts["custom_data_reader"], path)
    metrics_fn = parts["eval_metrics_fn"]
    gives_values = metrics_fn is not None and len(_positional(metrics_fn)) == 2
    return Contract(
        path=path,
        seed_form=False,
        model=make if _is_model(make) else make(),
        feed=_three(parts["feed"]),
        loss=_labels_first(parts["loss"]) if parts["loss"] else None,
        optimizer=parts["optimizer"],
        eval_metrics=_metrics(metrics_fn()) if metrics_fn and not gives_values else {},
        seed_metrics=_predictions_first(metrics_fn) if gives_values else None,
        callbacks=_callbacks(module, parts["callbacks"], path),
        custom_data_reader=parts["custom_data_reader"],
        prediction_outputs_processor=parts["prediction_outputs_processor"],
        feature_columns=[],
        label_columns=[],
    )


def _callbacks(module: ModuleType, given: Any, path: str) -> List[Any]:
    """The callbacks of a file; before there were any, a function set the rate of each version."""
    found = listed(given, path)
    schedule = getattr(module, "learning_rate_scheduler", None)
    return [LearningRateScheduler(schedule), *found] if callable(schedule) else found


def _three(feed: Callable[..., Any]) -> Callable[..., Any]:
    """`feed(dataset, mode, metadata)` for one that takes less, or whether it is for training."""
    names = _positional(feed)
    if len(names) != 2:
        return feed
    if names[1] in ("training", "is_training"):
        return lambda dataset, mode, metadata: feed(dataset, mode == TRAINING)
    return lambda dataset, mode, metadata: feed(dataset, mode)


def _metrics(found: Dict[str, Any]) -> Dict[str, Any]:
    """Metrics of labels and predictions, whichever way round theirs are."""
    out: Dict[str, Any] = {}
    for name, one in found.items():
        if isinstance(one, dict):
            out[name] = _metrics(one)
        else:
            out[name] = one if hasattr(one, "update_state") else _labels_first(one)
    return out


def _predictions_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of predictions and labels, as published, for one that may have labels first."""
    of = _labels_first(function, False)
    return lambda predictions, labels: of(labels, predictions)


def _check_reader(function: Callable[..., Any], path: str) -> None:
    parameters = inspect.signature(function).parameters.values()
    takes = {parameter.name for parameter in parameters}
    if "data_origin" not in takes and all(p.kind is not p.VAR_KEYWORD for p in parameters):
        raise ContractError(
            f"custom_data_reader of the model {path} takes {', '.join(sorted(takes)) or 'nothing'}: "
            "its first parameter is data_origin"
        )
