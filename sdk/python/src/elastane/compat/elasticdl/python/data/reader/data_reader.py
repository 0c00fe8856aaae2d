"""The published base of readers. Owns: its methods. Does not know about: files."""

from typing import Any, Dict, Iterator, List, Tuple

from elastane.readers import Metadata

__all__ = ["AbstractDataReader", "Metadata", "check_required_kwargs"]


def check_required_kwargs(required_args: List[str], kwargs: Dict[str, Any]) -> None:
    """Raises ValueError with the names of required arguments that are missing."""
    missing = [name for name in required_args if name not in kwargs]
    if missing:
        raise ValueError(f"missing arguments: {', '.join(missing)}")


def records_of(task: Any) -> Tuple[str, int, int]:
    """The shard's name, the first record and the end of a task: the final form has them in
    `task.shard`, the earlier one in the task."""
    shard = getattr(task, "shard", None)
    if shard is None:
        return task.shard_name, task.start, task.end
    return shard.name, shard.start, shard.end


class AbstractDataReader:
    """Base of a model's own readers, which `custom_data_reader` returns."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def read_records(self, task: Any) -> Iterator[Any]:
        """The records of `task.shard`, from its `start` to its `end`."""
        raise NotImplementedError

    def create_shards(self) -> Any:
        """Shards as (name, start, count)."""
        raise NotImplementedError

    @property
    def records_output_types(self) -> Any:
        """The type of records: bytes."""
        return None

    @property
    def metadata(self) -> Metadata:
        """Description of a table for `feed`: empty."""
        return Metadata()

    def get_size(self) -> int:
        """Number of records."""
        return sum(count for _, _, count in self.create_shards())
