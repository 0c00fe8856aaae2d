"""Nested values as JSON and arrays, for the network. Owns: the form. Does not know about: what the
values are of. Nothing is unpickled."""

from __future__ import annotations

import json
from typing import Any, Callable, List, Tuple

import numpy as np


class TreeError(ValueError):
    """A value that has no form here."""


def pack(tree: Any, array: Callable[[Any], Any]) -> Tuple[bytes, List[np.ndarray]]:
    """A description, and the arrays in their order. `array(leaf)` is the array of a leaf that is
    one, else None; other leaves are numbers, texts, booleans and None.

    Raises TreeError for any other leaf.
    """
    arrays: List[np.ndarray] = []

    def described(value: Any) -> Any:
        if isinstance(value, dict):
            return {"d": [[described(key), described(one)] for key, one in value.items()]}
        if isinstance(value, (list, tuple)):
            return {"l": [described(one) for one in value]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"v": value}
        found = array(value)
        if found is None:
            raise TreeError(f"{type(value).__name__} cannot be sent to other workers")
        arrays.append(np.ascontiguousarray(found))
        return {"a": [arrays[-1].dtype.str, list(np.shape(found))]}

    return json.dumps(described(tree)).encode(), arrays


def unpack(
    description: bytes, fill: Callable[[np.ndarray], None], leaf: Callable[[np.ndarray], Any]
) -> Any:
    """The tree of this description. `fill` gets the flat array of each leaf, to be filled in, and
    `leaf` makes the leaf of it."""

    def made(value: Any) -> Any:
        ((kind, content),) = value.items()
        if kind == "d":
            return {made(key): made(one) for key, one in content}
        if kind == "l":
            return [made(one) for one in content]
        if kind == "v":
            return content
        dtype, shape = content
        array = np.zeros(int(np.prod(shape)), np.dtype(dtype))
        fill(array)
        return leaf(array.reshape(shape))

    return made(json.loads(description))
