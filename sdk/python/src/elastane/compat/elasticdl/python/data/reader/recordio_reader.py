"""A published reader of RecordIO. Owns: its published name and parameters. Does not know about: the format
(`elastane.readers`)."""

from typing import Any, Iterator

from elastane import readers

from .data_reader import AbstractDataReader, records_of


class RecordIODataReader(AbstractDataReader):
    """Reads files of RecordIO."""

    def __init__(self, data_dir: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._reader = readers.FileReader(data_dir, "RecordIO")

    def read_records(self, task: Any) -> Iterator[bytes]:
        name, start, end = records_of(task)
        for _, record in self._reader.read(name, range(start, end)):
            yield record

    def create_shards(self) -> Any:
        return self._reader.create_shards()
