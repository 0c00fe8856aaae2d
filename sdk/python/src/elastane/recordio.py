"""RecordIO: files that are a sequence of chunks, each with a header of 20 bytes.

Owns: reading ranges of records, writing, and saying which record cannot be read and why. Does not
know about: what a record means, tasks, or who reads what.

A file is indexed by its headers alone, so its number of records is known although chunks of it are
damaged: every record of a damaged chunk is a bad record, and the reader goes on after it.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import BinaryIO, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import snappy

MAGIC = 0x01020304
_HEADER = struct.Struct("<5I")
COMPRESSORS = {"none": 0, "snappy": 1, "gzip": 2}
_CHUNK_BYTES_MAX = 32 * 1024 * 1024
_UNPACKED_BYTES_MAX = 128 * 1024 * 1024


class BadRecord(NamedTuple):
    """A record that cannot be read."""

    path: str
    """The file."""
    record: int
    """Its place in the file, from 0."""
    reason: str
    """Why."""

    def __str__(self) -> str:
        return f"record {self.record} of {self.path}: {self.reason}"


class BadRecordError(ValueError):
    """A bad record, where the reader was not given a way to report it."""

    def __init__(self, bad: BadRecord) -> None:
        super().__init__(str(bad))
        self.bad = bad


class NotRecordIOError(ValueError):
    """A file that does not begin like RecordIO."""


OnBad = Callable[[BadRecord], None]


def refuse(bad: BadRecord) -> None:
    """Stops at the first bad record."""
    raise BadRecordError(bad)


class Chunk(NamedTuple):
    """Where a chunk is in its file."""

    offset: int
    """Offset of its payload, in bytes."""
    stored_bytes: int
    crc: int
    compressor: int
    first: int
    """Place of its first record in the file."""
    count: int
    """How many records it has."""


class RecordFile:
    """A file of records. `tail` describes the bytes behind the last whole header, if there are
    any."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        self.tail: Optional[str] = None
        self.chunks: List[Chunk] = []
        # Chunks that were read last, unpacked: tasks are smaller than chunks, and shuffled.
        self._unpacked: Dict[Chunk, Tuple[List[bytes], str]] = {}
        self._unpacked_bytes = 0
        with open(self.path, "rb") as file:
            self._index(file, os.fstat(file.fileno()).st_size)

    def _index(self, file: BinaryIO, size: int) -> None:
        at = first = 0
        while at < size:
            file.seek(at)
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                self.tail = f"cut short: {len(header)} bytes of a header at byte {at}"
                break
            magic, crc, compressor, stored, count = _HEADER.unpack(header)
            if magic != MAGIC:
                if at == 0:
                    raise NotRecordIOError(
                        f"{self.path} is not RecordIO: it begins with {magic:#010x}, not {MAGIC:#010x}"
                    )
                self.tail = f"no header of a chunk at byte {at}"
                break
            at += _HEADER.size
            self.chunks.append(Chunk(at, stored, crc, compressor, first, count))
            at += stored
            first += count
        self._count = first

    def __len__(self) -> int:
        return self._count

    def read(
        self, start: int = 0, count: Optional[int] = None, on_bad: OnBad = refuse
    ) -> Iterator[Tuple[int, bytes]]:
        """Pairs of place and record, in order, from `start` on; bad ones go to `on_bad`."""
        end = self._count if count is None else min(self._count, start + count)
        with open(self.path, "rb") as file:
            for chunk in self.chunks:
                if chunk.first >= end:
                    return
                if chunk.first + chunk.count <= start:
                    continue
                wanted = range(max(start, chunk.first), min(end, chunk.first + chunk.count))
                yield from self._records(file, chunk, wanted, on_bad)

    def _records(
        self, file: BinaryIO, chunk: Chunk, wanted: range, on_bad: OnBad
    ) -> Iterator[Tuple[int, bytes]]:
        records, reason = self._chunk(file, chunk)
        for place in wanted:
            if place - chunk.first < len(records):
                yield place, records[place - chunk.first]
            else:
                on_bad(BadRecord(self.path, place, reason))

    def _chunk(self, file: BinaryIO, chunk: Chunk) -> Tuple[List[bytes], str]:
        if chunk not in self._unpacked:
            records, reason = _split(file, chunk)
            self._unpacked_bytes += sum(map(len, records))
            if self._unpacked_bytes > _UNPACKED_BYTES_MAX:
                self._unpacked.clear()
                self._unpacked_bytes = sum(map(len, records))
            self._unpacked[chunk] = (records, reason)
        return self._unpacked[chunk]


def _split(file: BinaryIO, chunk: Chunk) -> Tuple[List[bytes], str]:
    """The records of a chunk up to the first that is bad, and why that is bad."""
    payload, reason = _payload(file, chunk)
    records: List[bytes] = []
    at = 0
    while not reason and len(records) < chunk.count:
        if at + 4 > len(payload):
            reason = f"its chunk ends after {len(records)} of {chunk.count} records"
            break
        (length,) = struct.unpack_from("<I", payload, at)
        at += 4
        if at + length > len(payload):
            reason = f"it has {length} bytes, of which {len(payload) - at} are there"
            break
        records.append(payload[at : at + length])
        at += length
    return records, reason


def _payload(file: BinaryIO, chunk: Chunk) -> Tuple[bytes, str]:
    """The records of a chunk as bytes, and why they cannot be had (empty if they can)."""
    file.seek(chunk.offset)
    stored = file.read(chunk.stored_bytes)
    if len(stored) < chunk.stored_bytes:
        return (
            b"",
            f"the file is cut short: {len(stored)} of {chunk.stored_bytes} bytes of its chunk",
        )
    crc = zlib.crc32(stored)
    if crc != chunk.crc:
        return b"", f"the checksum of its chunk is {crc:#010x}, not {chunk.crc:#010x}"
    try:
        if chunk.compressor == COMPRESSORS["none"]:
            return stored, ""
        if chunk.compressor == COMPRESSORS["snappy"]:
            return snappy.decompress(stored), ""
        if chunk.compressor == COMPRESSORS["gzip"]:
            return gzip.decompress(stored), ""
    except (snappy.SnappyError, OSError, EOFError, zlib.error) as error:
        return b"", f"its chunk cannot be unpacked: {error}"
    return b"", f"its chunk is packed with number {chunk.compressor}; known are {COMPRESSORS}"


class RecordWriter:
    """Writes a file of records; use it in a `with` statement.

    A chunk is written before it would have more than `chunk_bytes_max` bytes before compression.
    """

    def __init__(
        self, path: str, compressor: str = "snappy", chunk_bytes_max: int = _CHUNK_BYTES_MAX
    ) -> None:
        if compressor not in COMPRESSORS:
            raise ValueError(f"compressor {compressor!r} is not one of {', '.join(COMPRESSORS)}")
        self._compressor = compressor
        self._chunk_bytes_max = chunk_bytes_max
        self._parts: List[bytes] = []
        self._bytes = 0
        self._file = open(path, "wb")

    def write(self, record: bytes) -> None:
        """Adds one record; it may be empty."""
        if self._parts and self._bytes + 4 + len(record) > self._chunk_bytes_max:
            self._flush()
        self._parts.append(struct.pack("<I", len(record)) + record)
        self._bytes += 4 + len(record)

    def _flush(self) -> None:
        if not self._parts:
            return
        raw = b"".join(self._parts)
        if self._compressor == "snappy":
            raw = snappy.compress(raw)
        elif self._compressor == "gzip":
            # A fixed time, so that the same records are the same file.
            raw = gzip.compress(raw, mtime=0)
        number = COMPRESSORS[self._compressor]
        self._file.write(_HEADER.pack(MAGIC, zlib.crc32(raw), number, len(raw), len(self._parts)))
        self._file.write(raw)
        self._parts, self._bytes = [], 0

    def close(self) -> None:
        """Writes what is left."""
        if not self._file.closed:
            self._flush()
            self._file.close()

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_records(path: str, records: Iterable[bytes], compressor: str = "snappy") -> int:
    """Writes a file of these records; returns how many they are."""
    count = 0
    with RecordWriter(path, compressor) as writer:
        for record in records:
            writer.write(record)
            count += 1
    return count
