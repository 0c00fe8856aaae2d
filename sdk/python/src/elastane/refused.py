"""Published names that this product does not have. Owns: the refusal when one is called, by its
name. Does not know about: which names there are."""

from __future__ import annotations

from typing import Any, Callable, List


class NotHereError(NotImplementedError):
    """Something of a published module that cannot be had here, with what to use instead."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(f"{name} cannot be had here: {instead}")


def refused(name: str, instead: str) -> Callable[..., Any]:
    """A class under this published name that can be imported and inherited from, not called."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise NotHereError(name, instead)

    return type(name.rpartition(".")[2], (), {"__init__": __init__, "__doc__": instead})


def all_refused(module: str, instead: str, *names: str) -> List[Callable[..., Any]]:
    """Several names of a module, refused for the same reason."""
    return [refused(f"{module}.{name}", instead) for name in names]


class RefusedAttribute:
    """An attribute of a published class that is refused when it is read."""

    def __init__(self, name: str, instead: str) -> None:
        self._error = name, instead

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise NotHereError(*self._error)
