"""A published reader of .csv files. Owns: its published name and parameters: rows as lists of text.
Does not know about: lines (`elastane.readers`)."""

import csv
from typing import Any, Iterator, List, Optional, Sequence

from elastane.readers import DataError, FileReader, Metadata, Shard

from .data_reader import AbstractDataReader, records_of


class CSVDataReader(AbstractDataReader):
    """Reads the rows of a file, each a list of its columns.

    Args:
        data_dir: the file or folder; without it the file that each task names.
        sep: what is between two columns.
        columns: names of the columns to read, which the first line of each file has; None: all of
            them. Without this argument the first line is a row too.
    """

    def __init__(
        self,
        data_dir: str = "",
        sep: str = ",",
        columns: Optional[Sequence[str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._sep, self._columns = sep, columns
        self._header = int(columns is None or len(columns) > 0)
        self._reader = FileReader(data_dir, "CSV") if data_dir else None

    def _rows(self, reader: FileReader, name: str, places: range) -> Iterator[List[str]]:
        lines = (line.decode() for _, line in reader.read(name, places))
        return csv.reader(lines, delimiter=self._sep)

    def read_records(self, task: Any) -> Iterator[List[str]]:
        """Raises DataError for a column that the file does not have."""
        name, start, end = records_of(task)
        reader = self._reader or FileReader(name, "CSV")
        rows = self._rows(reader, name, range(start + self._header, end + self._header))
        if not self._header:
            yield from rows
            return
        header = next(self._rows(reader, name, range(1)))
        wanted = header if self._columns is None else self._columns
        missing = [column for column in wanted if column not in header]
        if missing:
            raise DataError(
                f"the first line of {name} does not name {', '.join(missing)}: it names "
                f"{', '.join(header)}"
            )
        places = [header.index(column) for column in wanted]
        for number, row in enumerate(rows, start):
            if len(row) != len(header):
                raise DataError(
                    f"record {number} of {name} has {len(row)} columns, and the first line "
                    f"{len(header)}"
                )
            yield [row[place] for place in places]

    def create_shards(self) -> List[Shard]:
        """A shard for each file that has rows. Raises DataError without a file."""
        if self._reader is None:
            raise DataError("CSVDataReader has no file: give it data_dir=PATH")
        shards = self._reader.create_shards()
        shards = [shard._replace(count=shard.count - self._header) for shard in shards]
        return [shard for shard in shards if shard.count]

    @property
    def metadata(self) -> Metadata:
        """The columns that were named."""
        return Metadata(self._columns)
