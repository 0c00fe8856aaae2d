"""The contract of a model: a file of Python whose functions are found by name.

Owns: loading the file by its path, both published forms of the contract, and saying what is
missing. Does not know about: TensorFlow, PyTorch or numpy; `backends` does.

The form of May 2019 has objects of the module: `model`, `feature_columns()`, `label_columns()`,
`input_fn(records)`, `loss(output, labels)` (output first), `optimizer(lr=0.1)`. The final form is
named by `--model_def`: `custom_model()`, `feed`, `loss(labels, predictions)` (labels first),
`optimizer()`, `eval_metrics_fn()`, and if wanted `callbacks()`, `custom_data_reader(...)` and
`PredictionOutputsProcessor`.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional

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
    """What the parts of a model are called; dotted names are of other files of the zoo."""

    feed: str = "feed"
    loss: str = "loss"
    optimizer: str = "optimizer"
    eval_metrics_fn: str = "eval_metrics_fn"
    callbacks: str = "callbacks"
    custom_data_reader: str = "custom_data_reader"
    prediction_outputs_processor: str = "PredictionOutputsProcessor"


class Contract(NamedTuple):
    """A model's parts. Of functions that are optional, None where they are not there."""

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
    """`eval_metrics_fn(predictions, labels)` of the old form, which returns values by name."""
    callbacks: List[Any]
    custom_data_reader: Optional[Callable[..., Any]]
    prediction_outputs_processor: Optional[Any]
    feature_columns: List[Any]
    label_columns: List[Any]


def compatibility_path() -> str:
    """The folder of modules under published names: `elasticdl`, `elasticai_api`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "compat")


def _load(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise ContractError(f"{path} does not exist: give the path of the model's file")
    name = "elastane_model_" + os.path.splitext(os.path.basename(path))[0]
    # The file may import what lies beside it, and modules under published names.
    for folder in (os.path.dirname(os.path.abspath(path)), compatibility_path()):
        if folder not in sys.path:
            sys.path.insert(0, folder)
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


def _symbol(module: ModuleType, zoo: str, name: str) -> Optional[Any]:
    """The object of this name, of the model's file or, dotted, of another file of the zoo."""
    if "." not in name:
        return getattr(module, name, None)
    file, _, symbol = name.rpartition(".")
    return getattr(_load(os.path.join(zoo, *file.split(".")) + ".py"), symbol, None)


def _need(value: Optional[Any], path: str, name: str, needs: Dict[str, str]) -> Any:
    if value is None:
        what = needs.get(name, name)
        raise ContractError(f"the model {path} has no {name!r}: define {what}")
    if not callable(value):
        raise ContractError(
            f"{name!r} of the model {path} is {type(value).__name__}, not a function"
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
    module = _load(path)
    if symbol is None and getattr(module, "model", None) is not None:
        return _seed(module, path)
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
    if zoo not in sys.path:
        sys.path.insert(0, zoo)
    path = os.path.join(zoo, *file.split(".")) + ".py"
    return _final(_load(path), path, symbol, names, mode, zoo)


def _seed(module: ModuleType, path: str) -> Contract:
    loss = _need(getattr(module, "loss", None), path, "loss", _SEED_NEEDS)
    return Contract(
        path=path,
        seed_form=True,
        model=module.model,  # type: ignore[attr-defined]
        feed=_need(getattr(module, "input_fn", None), path, "input_fn", _SEED_NEEDS),
        loss=lambda labels, output: loss(output, labels),
        optimizer=_need(getattr(module, "optimizer", None), path, "optimizer", _SEED_NEEDS),
        eval_metrics={},
        seed_metrics=getattr(module, "eval_metrics_fn", None),
        callbacks=[],
        custom_data_reader=None,
        prediction_outputs_processor=None,
        feature_columns=list(getattr(module, "feature_columns", list)()),
        label_columns=list(getattr(module, "label_columns", list)()),
    )


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
    for part, name in names._asdict().items():
        value = _symbol(module, zoo, name)
        parts[part] = _need(value, path, name, _FINAL_NEEDS) if part in needs else value
    if parts["custom_data_reader"] is not None:
        _check_reader(parts["custom_data_reader"], path)
    metrics = parts["eval_metrics_fn"]() if parts["eval_metrics_fn"] else {}
    return Contract(
        path=path,
        seed_form=False,
        model=make(),
        feed=parts["feed"],
        loss=parts["loss"],
        optimizer=parts["optimizer"],
        eval_metrics=metrics,
        seed_metrics=None,
        callbacks=list(parts["callbacks"]()) if parts["callbacks"] else [],
        custom_data_reader=parts["custom_data_reader"],
        prediction_outputs_processor=parts["prediction_outputs_processor"],
        feature_columns=[],
        label_columns=[],
    )


def _check_reader(function: Callable[..., Any], path: str) -> None:
    parameters = inspect.signature(function).parameters.values()
    takes = {parameter.name for parameter in parameters}
    if "data_origin" not in takes and all(p.kind is not p.VAR_KEYWORD for p in parameters):
        raise ContractError(
            f"custom_data_reader of the model {path} takes {', '.join(sorted(takes)) or 'nothing'}: "
            "its first parameter is data_origin"
        )
