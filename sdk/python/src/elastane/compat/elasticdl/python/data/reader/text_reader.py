"""A published reader of files of lines. Owns: its published name and parameters. Does not know about: the format
(`elastane.readers`)."""

import random
from typing import Any, Iterable, Iterator

from elastane import readers

from .data_reader import AbstractDataReader, records_of


class TextDataReader(AbstractDataReader):
    """Reads the lines of a file."""

    def __init__(self, filename: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._reader = readers.FileReader(filename, "CSV")

    def read_records(self, task: Any, shuffle: bool = False) -> Iterator[bytes]:
        """The lines of a task; with `shuffle` in another order each time."""
        name, start, end = records_of(task)
        records: Iterable[bytes] = (one for _, one in self._reader.read(name, range(start, end)))
        if shuffle:
            records = list(records)
            random.shuffle(records)
        yield from records

    def create_shards(self) -> Any:
        return self._reader.create_shards()
