"""The published base of readers. Owns: its methods. Does not know about: files."""

from typing import Any, Dict, Iterator, List

from elastane.readers import Metadata

__all__ = ["AbstractDataReader", "Metadata", "check_required_kwargs"]


def check_required_kwargs(required_args: List[str], kwargs: Dict[str, Any]) -> None:
    """Raises ValueError with the names of required arguments that are missing."""
    missing = [name for name in required_args if name not in kwargs]
    if missing:
        raise ValueError(f"missing arguments: {', '.join(missing)}")


class AbstractDataReader:
    """Base of a model's own readers, which `custom_data_reader` returns."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def read_records(self, task: Any) -> Iterator[Any]:
        """The records of `task.shard`, from `task.start` to `task.end`."""
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
