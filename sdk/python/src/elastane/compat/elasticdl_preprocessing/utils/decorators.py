"""The published decorators of models. Owns: naming the inputs of a class. Does not know about: who
reads the names."""

from typing import Callable, Type, TypeVar

Model = TypeVar("Model")


def _names(attribute: str, names: "tuple[str, ...]") -> Callable[[Type[Model]], Type[Model]]:
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the inputs of a model are {names!r}: give the name of each as text")

    def decorate(model: Type[Model]) -> Type[Model]:
        setattr(model, attribute, list(names))
        return model

    return decorate


def declare_model_inputs(*names: str) -> Callable[[Type[Model]], Type[Model]]:
    """Gives a model the names of its inputs, as `_model_inputs`."""
    return _names("_model_inputs", names)


def model_input_name(*names: str) -> Callable[[Type[Model]], Type[Model]]:
    """The earlier name of `declare_model_inputs`, for `_model_input_names`."""
    return _names("_model_input_names", names)
