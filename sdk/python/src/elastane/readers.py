"""Readers: from the origin of the data to shards, and from a range of a shard to records.

Owns: RecordIO and CSV files and directories of them, the choice between them, and readers that a
model brings (`custom_data_reader`). Does not know about: models, tasks of the master.
"""

from __future__ import annotations

import ast
import os
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from .access import unreadable
from .recordio import BadRecord, NotRecordIOError, OnBad, RecordFile, refuse

READER_TYPES = ("RecordIO", "CSV")


class Shard(NamedTuple):
    """A part of the data that has a name."""

    name: str
    """As its reader knows it: a path, usually."""
    start: int
    """Its first record."""
    count: int
    """How many records it has."""


class DataError(ValueError):
    """Data that cannot be read, with what to do about it."""


class Metadata:
    """Description of tables for `feed`: empty for files of records."""

    def __init__(
        self,
        column_names: Optional[Sequence[str]] = None,
        column_dtypes: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.column_names = list(column_names or ())
        self.column_dtypes = dict(column_dtypes or {})


class CsvFile:
    """A file of lines; the first line is data too, as published."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offsets: List[int] = []
        with open(path, "rb") as file:
            at = 0
            for line in file:
                self._offsets.append(at)
                at += len(line)

    def __len__(self) -> int:
        return len(self._offsets)

    def read(
        self, start: int = 0, count: Optional[int] = None, on_bad: OnBad = refuse
    ) -> Iterator[Tuple[int, bytes]]:
        """Pairs of place and line, without its end; empty lines are bad records."""
        end = len(self) if count is None else min(len(self), start + count)
        if start >= end:
            return
        with open(self.path, "rb") as file:
            file.seek(self._offsets[start])
            for place in range(start, end):
                line = file.readline().rstrip(b"\r\n")
                if line:
                    yield place, line
                else:
                    on_bad(BadRecord(self.path, place, "the line is empty"))


class FileReader:
    """Reads one file, or all files of a directory; each file is a shard."""

    def __init__(self, origin: str, reader_type: Optional[str] = None) -> None:
        self.metadata = Metadata()
        self._type = reader_type
        self._files: Dict[str, Any] = {}
        try:
            os.stat(origin)
            if os.path.isdir(origin):
                os.listdir(origin)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DataError(unreadable(origin, error)) from None
        if os.path.isdir(origin):
            names = sorted(name for name in os.listdir(origin) if not name.startswith("."))
            self._paths = [os.path.join(origin, name) for name in names]
            self._paths = [path for path in self._paths if os.path.isfile(path)]
            if not self._paths:
                raise DataError(f"{origin} has no files: put files of RecordIO or CSV into it")
        elif os.path.isfile(origin):
            self._paths = [origin]
        else:
            raise DataError(f"{origin} does not exist: give a file or a directory of files")

    def _file(self, path: str) -> Any:
        if path not in self._paths:
            raise DataError(f"{path} is not of the data that this worker was given")
        if path not in self._files:
            is_csv = self._type == "CSV" or (self._type is None and path.endswith(".csv"))
            try:
                self._files[path] = CsvFile(path) if is_csv else RecordFile(path)
            except PermissionError as error:
                raise DataError(unreadable(path, error)) from None
            except NotRecordIOError as error:
                raise DataError(f"{error}; files of lines end in .csv") from None
        return self._files[path]

    def create_shards(self) -> List[Shard]:
        """A shard for each file that has records."""
        shards = [Shard(path, 0, len(self._file(path))) for path in self._paths]
        return [shard for shard in shards if shard.count]

    def warnings(self) -> List[str]:
        """Bytes after the last whole chunk of each file that has any."""
        tails = ((path, getattr(self._file(path), "tail", None)) for path in self._paths)
        return [f"{path} is {tail}" for path, tail in tails if tail]

    def read(
        self, shard: str, places: Iterable[int], on_bad: OnBad = refuse
    ) -> Iterator[Tuple[int, bytes]]:
        """Pairs of place and record for these places of a shard, in the given order.

        Records that a file has lost since they were counted are bad.
        """
        for start, count in _runs(places):
            file = self._file(shard)
            yield from file.read(start, count, on_bad)
            for missing in range(max(start, len(file)), start + count):
                on_bad(
                    BadRecord(shard, missing, f"the file is cut short: it has {len(file)} records")
                )


def _runs(places: Iterable[int]) -> Iterator[Tuple[int, int]]:
    """The places as (start, count) of what follows each other."""
    if isinstance(places, range) and places.step == 1:
        if places:
            yield places.start, len(places)
        return
    start = count = 0
    for place in places:
        if count and place == start + count:
            count += 1
            continue
        if count:
            yield start, count
        start, count = place, 1
    if count:
        yield start, count


class _TaskForReader:
    """The task as a published `custom_data_reader` expects it."""

    class _Shard:
        def __init__(self, name: str, start: int, end: int) -> None:
            self.name, self.start, self.end = name, start, end
            self.indices: List[int] = []

    def __init__(self, name: str, start: int, end: int) -> None:
        self.shard = self._Shard(name, start, end)
        self.shard_name, self.start, self.end = name, start, end
        self.type = 1


class CustomReader:
    """The reader that a model's `custom_data_reader` returned, in our interface."""

    def __init__(self, reader: Any) -> None:
        for method in ("read_records", "create_shards"):
            if not callable(getattr(reader, method, None)):
                raise DataError(
                    f"custom_data_reader returned {type(reader).__name__} without {method}()"
                )
        self._reader = reader
        self.metadata = getattr(reader, "metadata", None) or Metadata()

    def create_shards(self) -> List[Shard]:
        """The shards, which the reader may give as a list or as a mapping of names."""
        shards = self._reader.create_shards()
        if isinstance(shards, dict):
            shards = [(name, *rest) for name, rest in shards.items()]
        return [Shard(str(name), int(start), int(count)) for name, start, count in shards]

    def warnings(self) -> List[str]:
        """None; the reader prints its own."""
        return []

    def read(
        self, shard: str, places: Iterable[int], on_bad: OnBad = refuse
    ) -> Iterator[Tuple[int, Any]]:
        """Pairs of place and record. A reader that ends early leaves bad records."""
        for start, count in _runs(places):
            place = start
            for record in self._reader.read_records(_TaskForReader(shard, start, start + count)):
                if place >= start + count:
                    raise DataError(f"custom_data_reader gave more than {count} records of {shard}")
                yield place, record
                place += 1
            for missing in range(place, start + count):
                on_bad(BadRecord(shard, missing, "custom_data_reader did not give it"))


Reader = Any
"""A FileReader or a CustomReader."""


def parse_params(text: str) -> Dict[str, Any]:
    """`k=v; k2=v2`: each value a literal of Python, else text. Nothing is evaluated."""
    out: Dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().isidentifier():
            raise DataError(f"{part!r} is not NAME=VALUE; separate several with ';'")
        try:
            out[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            out[name.strip()] = value.strip()
    return out


def check_type(reader_type: Optional[str]) -> None:
    """Raises DataError for a type of readers that is not here."""
    if reader_type is None or reader_type in READER_TYPES:
        return
    what = f"reader_type {reader_type!r} is not one of {', '.join(READER_TYPES)}"
    if reader_type == "ODPS":
        raise DataError(
            f"{what}: write the rows of the table of MaxCompute to a .csv file or RecordIO, or read "
            "them in custom_data_reader in the model's file"
        )
    raise DataError(f"{what}; other sources: write custom_data_reader in the model's file")


def open_reader(
    origin: str,
    params: str = "",
    custom: Optional[Callable[..., Any]] = None,
    records_per_task: Optional[int] = None,
) -> Reader:
    """The reader of this origin: the model's own, else by `reader_type`, else by what is there."""
    options = parse_params(params)
    if custom is not None:
        return CustomReader(
            custom(data_origin=origin, records_per_task=records_per_task, **options)
        )
    reader_type = options.pop("reader_type", None)
    check_type(reader_type)
    if options:
        raise DataError(
            f"readers of files have no parameter {sorted(options)[0]!r}; known: reader_type"
        )
    return FileReader(origin, reader_type)
