"""The record codecs of May 2019: `bytes`, the columns of a record one after the other, raw; and
`tf_example`, an Example with a feature for each column.

Owns: how columns become bytes and back. Does not know about: files, models.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from . import example

TYPES = ("bytes", "tf_example")
"""Values of `--codec_type`."""


class Column(NamedTuple):
    """A column of a record."""

    name: str
    dtype: np.dtype
    shape: Tuple[int, ...]

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def size_bytes(self) -> int:
        """Bytes of the column in a record."""
        return self.count * self.dtype.itemsize


class CodecError(ValueError):
    """A record that does not fit its columns."""


def encode(columns: Sequence[Column], values: Mapping[str, np.ndarray]) -> bytes:
    """A record of these values, in the order of the columns."""
    out = []
    for column in columns:
        value = np.ascontiguousarray(values[column.name], dtype=column.dtype)
        if value.size != column.count:
            raise CodecError(
                f"column {column.name!r} has {column.count} numbers; {value.size} were given"
            )
        out.append(value.tobytes())
    return b"".join(out)


def decode(columns: Sequence[Column], record: bytes) -> Dict[str, np.ndarray]:
    """The values of a record by column."""
    size = sum(column.size_bytes for column in columns)
    if len(record) != size:
        raise CodecError(f"its columns take {size} bytes; it has {len(record)}")
    out: Dict[str, np.ndarray] = {}
    at = 0
    for column in columns:
        raw = record[at : at + column.size_bytes]
        out[column.name] = np.frombuffer(raw, dtype=column.dtype).reshape(column.shape)
        at += column.size_bytes
    return out


def decode_example(columns: Sequence[Column], record: bytes) -> Dict[str, np.ndarray]:
    """The values of a record that is an Example, by column."""
    features = example.decode(record)
    out: Dict[str, np.ndarray] = {}
    for column in columns:
        value = features.get(column.name)
        if not isinstance(value, np.ndarray) or value.size != column.count:
            there = 0 if value is None else len(value)
            raise CodecError(
                f"column {column.name!r} has {column.count} numbers; the record has {there} of it"
            )
        out[column.name] = value.astype(column.dtype, copy=False).reshape(column.shape)
    return out


def batch(
    columns: Sequence[Column], records: Sequence[bytes], codec_type: str = TYPES[0]
) -> List[Dict[str, np.ndarray]]:
    """Each record decoded."""
    one = decode if codec_type == TYPES[0] else decode_example
    return [one(columns, record) for record in records]
