"""`tf.train.Example` without TensorFlow.

Owns: reading and writing the message (features by name, each a list of bytes, floats or integers).
Does not know about: which features a model wants.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence, Tuple, Union

import numpy as np

Feature = Union[np.ndarray, List[bytes]]
"""float32 or int64 of shape [n], or a list of byte strings."""


class ExampleError(ValueError):
    """Bytes that are not an Example."""


def _varint(data: memoryview, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ExampleError("an Example ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: memoryview) -> Iterator[Tuple[int, int, Union[int, memoryview]]]:
    """Number, wire type and value of each field."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ExampleError(f"an Example has no field of wire type {wire}")
        if at + size > len(data):
            raise ExampleError(f"an Example ends inside a field: {len(data) - at} of {size} bytes")
        yield number, wire, data[at : at + size]
        at += size


def _message(value: Union[int, memoryview], what: str) -> memoryview:
    if isinstance(value, int):
        raise ExampleError(f"{what} of an Example is a number, not a message")
    return value


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def _ints(data: memoryview) -> np.ndarray:
    out: List[int] = []
    for number, wire, value in _fields(data):
        if number != 1:
            continue
        if wire == 0:
            out.append(_signed(int(value)))  # type: ignore[arg-type]
            continue
        packed = _message(value, "a list of integers")
        at = 0
        while at < len(packed):
            one, at = _varint(packed, at)
            out.append(_signed(one))
    return np.array(out, dtype=np.int64)


def _floats(data: memoryview) -> np.ndarray:
    parts = []
    for number, _, value in _fields(data):
        if number == 1:
            raw = _message(value, "a list of floats")
            if len(raw) % 4:
                raise ExampleError(f"a list of floats has {len(raw)} bytes, not a multiple of 4")
            parts.append(np.frombuffer(raw, dtype="<f4"))
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _feature(data: memoryview) -> Feature:
    for number, _, value in _fields(data):
        body = _message(value, "a feature")
        if number == 1:
            return [bytes(_message(one, "bytes")) for n, _, one in _fields(body) if n == 1]
        if number == 2:
            return _floats(body)
        if number == 3:
            return _ints(body)
    return []


def decode(data: bytes) -> Dict[str, Feature]:
    """The features of an Example by name."""
    out: Dict[str, Feature] = {}
    for number, _, features in _fields(memoryview(data)):
        if number != 1:
            continue
        for entry_number, _, entry in _fields(_message(features, "the features")):
            if entry_number != 1:
                continue
            name, feature = "", memoryview(b"")
            for part, _, value in _fields(_message(entry, "an entry")):
                if part == 1:
                    try:
                        name = bytes(_message(value, "a name")).decode()
                    except UnicodeDecodeError as error:
                        raise ExampleError(f"the name of a feature is not UTF-8: {error}") from None
                elif part == 2:
                    feature = _message(value, "a feature")
            out[name] = _feature(feature)
    return out


def _put_varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _put(number: int, body: bytes) -> bytes:
    return _put_varint(number << 3 | 2) + _put_varint(len(body)) + body


def encode(features: Mapping[str, Union[np.ndarray, Sequence[bytes]]]) -> bytes:
    """An Example of these features: floats as float32, integers as int64, in order of names."""
    entries = b""
    for name in sorted(features):
        value = features[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            feature = _put(2, _put(1, np.ascontiguousarray(value.ravel(), dtype="<f4").tobytes()))
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iub":
            feature = _put(3, _put(1, b"".join(_put_varint(int(one)) for one in value.ravel())))
        else:
            feature = _put(1, b"".join(_put(1, bytes(one)) for one in value))
        entries += _put(1, _put(1, name.encode()) + _put(2, feature))
    return _put(1, entries)


def floats(features: Mapping[str, Feature], name: str, count: int) -> np.ndarray:
    """The feature `name` as float32 of shape [count]; an error names what is there instead."""
    value = features.get(name)
    if not isinstance(value, np.ndarray) or value.size != count:
        there = "nothing" if value is None else f"{len(value)} values"
        raise ExampleError(f"feature {name!r}: {count} numbers are wanted, {there} is there")
    return value.astype(np.float32, copy=False)
