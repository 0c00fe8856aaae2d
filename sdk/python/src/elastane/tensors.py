"""Arrays as messages. Owns: both directions, and which server has which variable. Does not know
about: calls."""

from __future__ import annotations

import hashlib
from typing import Dict, Iterable, List

import numpy as np

from .protocol import messages as pb

_DTYPES = {
    pb.DTYPE_FLOAT32: np.dtype("<f4"),
    pb.DTYPE_FLOAT64: np.dtype("<f8"),
    pb.DTYPE_INT32: np.dtype("<i4"),
    pb.DTYPE_INT64: np.dtype("<i8"),
    pb.DTYPE_UINT8: np.dtype("u1"),
    pb.DTYPE_BOOL: np.dtype("?"),
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


class TensorError(ValueError):
    """A message that is no array, or an array that cannot be a message."""


def to_variables(arrays: Dict[str, np.ndarray]) -> List[object]:
    """Messages of these arrays, sorted by name."""
    out = []
    for name in sorted(arrays):
        value = np.asarray(arrays[name])
        number = _NUMBERS.get(value.dtype.newbyteorder("<"))
        if number is None:
            raise TensorError(f"variable {name!r} is of {value.dtype}, which the protocol lacks")
        content = value.astype(_DTYPES[number], copy=False).tobytes()
        tensor = pb.Tensor(dtype=number, shape=value.shape, content=content)
        out.append(pb.Variable(name=name, value=tensor))
    return out


def from_variables(variables: Iterable[object]) -> Dict[str, np.ndarray]:
    """Arrays of these messages; read-only views of their bytes."""
    out: Dict[str, np.ndarray] = {}
    for variable in variables:
        tensor = variable.value  # type: ignore[attr-defined]
        name = variable.name  # type: ignore[attr-defined]
        dtype = _DTYPES.get(tensor.dtype)
        if dtype is None:
            raise TensorError(f"variable {name!r} has a dtype of number {tensor.dtype}")
        shape = tuple(tensor.shape)
        count = 1
        for length in shape:
            count *= length
        if count * dtype.itemsize != len(tensor.content):
            raise TensorError(
                f"variable {name!r} of shape {shape} and {dtype} has {len(tensor.content)} bytes, "
                f"not {count * dtype.itemsize}"
            )
        out[name] = np.frombuffer(tensor.content, dtype).reshape(shape)
    return out


def server_of(name: str, servers: int) -> int:
    """The index of the server that has this variable."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % servers


def part(arrays: Dict[str, np.ndarray], index: int, servers: int) -> Dict[str, np.ndarray]:
    """Arrays that server `index` has."""
    return {n: value for n, value in arrays.items() if server_of(n, servers) == index}
