"""The published choice of a reader. Owns: its name. Does not know about: how one is chosen
(`elastane.readers`)."""

from typing import Any, Optional

from .recordio_reader import RecordIODataReader
from .text_reader import TextDataReader


def create_data_reader(
    data_origin: str, records_per_task: Optional[int] = None, **kwargs: Any
) -> Any:
    """The reader of this origin: lines for a .csv file, else RecordIO."""
    if data_origin.endswith(".csv") or kwargs.pop("reader_type", None) == "CSV":
        return TextDataReader(data_origin, **kwargs)
    return RecordIODataReader(data_origin, **kwargs)
