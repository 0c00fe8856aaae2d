"""A published reader of .csv files. Owns: its published name: rows as lists of text. Does not know about:
lines (`text_reader`)."""

import csv
from typing import Any, Iterator, List

from .text_reader import TextDataReader


class CSVDataReader(TextDataReader):
    """Reads the rows of a file, each a list of its columns."""

    def __init__(self, data_dir: str, sep: str = ",", **kwargs: Any) -> None:
        super().__init__(data_dir, **kwargs)
        self._sep = sep

    def read_records(self, task: Any) -> Iterator[List[str]]:
        lines = (line.decode() for line in super().read_records(task))
        yield from csv.reader(lines, delimiter=self._sep)
