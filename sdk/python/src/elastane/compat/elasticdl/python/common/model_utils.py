"""Published helpers that load a model's file. Owns: their names, and refusing what a worker does
itself when it is called. Does not know about: the contract of a model (`elastane.contract`)."""

import os
from typing import Any, Dict, List, Mapping, Optional

from elastane.contract import load_module
from elastane.readers import parse_params
from elastane.refused import all_refused, refused

_MODULE = "elasticdl.python.common.model_utils"
get_model_spec, get_optimizer_info, load_callbacks_from_module, set_callback_parameters = all_refused(
    _MODULE,
    "a worker does that itself: elastane.contract.load_definition(model_zoo, model_def) has all parts",
    *("get_model_spec", "get_optimizer_info"),
    *("load_callbacks_from_module", "set_callback_parameters"),
)
get_training_func_spec = refused(
    f"{_MODULE}.get_training_func_spec",
    "a worker calls no function train(dataset, controller) of a model's file: make it a script with "
    "create_elastic_controller(...), and start it with --job_command",
)
save_checkpoint_to_file, load_from_checkpoint_file = all_refused(
    _MODULE,
    "checkpoints have another form: --checkpoint_dir saves them, and --checkpoint_dir_for_init "
    "begins with one",
    *("save_checkpoint_to_file", "load_from_checkpoint_file"),
)

__all__ = [
    "find_layer",
    "get_dict_from_params_str",
    "get_model_spec",
    "get_module_file_path",
    "get_non_embedding_trainable_vars",
    "get_optimizer_info",
    "get_training_func_spec",
    "load_callbacks_from_module",
    "load_from_checkpoint_file",
    "load_model_from_module",
    "load_module",
    "save_checkpoint_to_file",
    "set_callback_parameters",
]


def get_dict_from_params_str(params_str: Optional[str]) -> Optional[Dict[str, Any]]:
    """The values of `k=v; k2=v2`: literals of Python, else texts. None for an empty text."""
    return parse_params(params_str) if params_str else None


def get_module_file_path(model_zoo: str, spec_key: str) -> str:
    """The path of the file of `folder.file.symbol`."""
    return os.path.join(model_zoo, *spec_key.split(".")[:-1]) + ".py"


def load_model_from_module(
    model_def: str, model_module: Mapping[str, Any], model_params: Optional[str] = None
) -> Any:
    """The model that `model_def` names last, from the names of its module.

    Raises ValueError for a name that is not there.
    """
    name = model_def.rpartition(".")[2]
    if name not in model_module:
        raise ValueError(f"the file of the model has no {name!r}, which {model_def} names")
    return model_module[name](**(get_dict_from_params_str(model_params) or {}))


def find_layer(model: Any, layer_class: Any) -> List[Any]:
    """The layers of this class, of models in the model too."""
    found: List[Any] = []
    for layer in model.layers:
        if isinstance(layer, layer_class):
            found.append(layer)
        elif hasattr(layer, "layers"):
            found += find_layer(layer, layer_class)
    return found


def get_non_embedding_trainable_vars(model: Any, embedding_layers: List[Any]) -> List[Any]:
    """The trainable variables of the model that are of none of these layers."""
    of_layers = {id(one) for layer in embedding_layers for one in layer.trainable_variables}
    return [one for one in model.trainable_variables if id(one) not in of_layers]
