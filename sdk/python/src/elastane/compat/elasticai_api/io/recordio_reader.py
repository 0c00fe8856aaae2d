"""A published reader of RecordIO. Owns: several files as one sequence of records. Does not know
about: the format (`elastane.readers`)."""

from typing import Any, Iterator, List, NamedTuple, Sequence

from elastane.readers import DataError, FileReader


class RecordBlock(NamedTuple):
    """The numbers of the records of a file."""

    name: str
    start: int
    end: int
    """Exclusive."""


class RecordIOReader:
    """The records of several files, numbered from the first to the last."""

    def __init__(self, recordio_files: Sequence[str]) -> None:
        self._files: List[Any] = []
        self._count = 0
        for path in recordio_files:
            reader = FileReader(path, "RecordIO")
            for shard in reader.create_shards():
                end = self._count + shard.count
                self._files.append((reader, RecordBlock(shard.name, self._count, end)))
                self._count = end

    def __len__(self) -> int:
        return self._count

    def read_records(self, start: int, end: int) -> Iterator[bytes]:
        """The records from `start` to `end` (exclusive), as many of them as there are.

        Raises DataError for a record that is damaged.
        """

        def on_bad(bad: Any) -> None:
            raise DataError(str(bad))

        for reader, block in self._files:
            first, last = max(start, block.start), min(end, block.end)
            places = range(first - block.start, last - block.start)
            for _, record in reader.read(block.name, places, on_bad):
                yield record
