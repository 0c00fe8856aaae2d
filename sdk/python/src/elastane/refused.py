"""Published names that this product does not have. Owns: the refusal when one is called, by its
name. Does not know about: which names there are."""

from __future__ import annotations

from typing import Any, Callable


class NotHereError(NotImplementedError):
    """Something of a published module that cannot be had here, with what to use instead."""


def refused(name: str, instead: str) -> Callable[..., Any]:
    """A class under this published name that can be imported and inherited from, not called."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise NotHereError(f"{name} cannot be had here: {instead}")

    return type(name.rpartition(".")[2], (), {"__init__": __init__, "__doc__": instead})
