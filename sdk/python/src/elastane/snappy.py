"""Snappy in plain Python: blocks and the framing format that RecordIO chunks use.

Owns: both directions. Does not know about: records. A chunk of RecordIO has a CRC-32 over the same
bytes, so the CRC-32C of each frame is written for other readers and not computed again here.
"""

from __future__ import annotations

import struct
from typing import Iterator, List, Tuple

_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _PLAIN, _STREAM = 0x00, 0x01, 0xFF
_FRAME_BYTES_MAX = 65536


class SnappyError(ValueError):
    """Bytes that are not what snappy writes."""


def _crc32c_table() -> List[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC32C = _crc32c_table()


def masked_crc32c(data: bytes) -> int:
    """The checksum of a frame, rotated and shifted as in the framing format."""
    crc = 0xFFFFFFFF
    table = _CRC32C
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise SnappyError("the length at the beginning of a block is not whole")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def decompress_block(data: bytes) -> bytes:
    """One block: its length, then literals and copies of what came before."""
    size, at = _varint(data, 0)
    out = bytearray()
    end = len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            kind = tag & 3
            if kind == 0:
                length = tag >> 2
                if length >= 60:
                    extra = length - 59
                    length = int.from_bytes(data[at : at + extra], "little")
                    at += extra
                length += 1
                if at + length > end:
                    raise SnappyError("a literal goes over the end of its block")
                out += data[at : at + length]
                at += length
            else:
                if kind == 1:
                    length, offset = ((tag >> 2) & 7) + 4, ((tag >> 5) << 8) | data[at]
                    at += 1
                else:
                    extra = 2 if kind == 2 else 4
                    length = (tag >> 2) + 1
                    offset = int.from_bytes(data[at : at + extra], "little")
                    at += extra
                begin = len(out) - offset
                if offset == 0 or begin < 0:
                    raise SnappyError("a copy begins before its block")
                if offset >= length:
                    out += out[begin : begin + length]
                else:
                    pattern = bytes(out[begin:])
                    out += (pattern * (length // offset + 1))[:length]
            if len(out) > size:
                raise SnappyError("a block is longer than it says")
    except IndexError:
        raise SnappyError("a block ends inside a copy") from None
    if len(out) != size:
        raise SnappyError(f"a block has {len(out)} bytes and says {size}")
    return bytes(out)


def _literal(out: bytearray, data: bytes) -> None:
    if not data:
        return
    length = len(data) - 1
    if length < 60:
        out.append(length << 2)
    else:
        extra = (length.bit_length() + 7) // 8
        out.append((59 + extra) << 2)
        out += length.to_bytes(extra, "little")
    out += data


def compress_block(data: bytes) -> bytes:
    """A block of at most 64 KiB; repeats of four bytes and more become copies."""
    out = bytearray()
    size = len(data)
    while size >= 0x80:
        out.append((size & 0x7F) | 0x80)
        size >>= 7
    out.append(size)
    seen: dict = {}
    at = literal_from = 0
    end = len(data) - 4
    while at <= end:
        word = data[at : at + 4]
        candidate = seen.get(word)
        seen[word] = at
        if candidate is None:
            at += 1
            continue
        length = 4
        while (
            length < 64
            and at + length < len(data)
            and data[candidate + length] == data[at + length]
        ):
            length += 1
        _literal(out, data[literal_from:at])
        out.append(((length - 1) << 2) | 2)
        out += struct.pack("<H", at - candidate)
        at += length
        literal_from = at
    _literal(out, data[literal_from:])
    return bytes(out)


def compress(data: bytes) -> bytes:
    """A stream in the framing format."""
    out = bytearray(_IDENTIFIER)
    for begin in range(0, len(data), _FRAME_BYTES_MAX):
        raw = data[begin : begin + _FRAME_BYTES_MAX]
        packed, kind = compress_block(raw), _COMPRESSED
        if len(packed) >= len(raw):
            packed, kind = raw, _PLAIN
        out += struct.pack("<I", kind | (len(packed) + 4) << 8)
        out += struct.pack("<I", masked_crc32c(raw))
        out += packed
    return bytes(out)


def _frames(data: bytes) -> Iterator[Tuple[int, bytes]]:
    at = 0
    while at < len(data):
        if at + 4 > len(data):
            raise SnappyError("a stream ends inside the header of a frame")
        (word,) = struct.unpack_from("<I", data, at)
        size = word >> 8
        if at + 4 + size > len(data):
            raise SnappyError("a stream ends inside a frame")
        yield word & 0xFF, data[at + 4 : at + 4 + size]
        at += 4 + size


def decompress(data: bytes) -> bytes:
    """Content of a stream in the framing format."""
    if not data.startswith(_IDENTIFIER):
        raise SnappyError("a stream of snappy begins with its identifier; this does not")
    out = []
    for kind, body in _frames(data):
        if kind == _COMPRESSED:
            out.append(decompress_block(body[4:]))
        elif kind == _PLAIN:
            out.append(body[4:])
        elif kind == _STREAM or 0x80 <= kind <= 0xFE:
            continue
        else:
            raise SnappyError(f"a frame of kind {kind:#04x} may not be skipped and is not known")
    return b"".join(out)
