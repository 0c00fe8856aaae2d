"""The published choice of a reader. Owns: its name. Does not know about: which types there are
(`elastane.readers`)."""

from typing import Any, Optional

from elastane.readers import check_type

from .recordio_reader import RecordIODataReader
from .text_reader import TextDataReader


def create_data_reader(
    data_origin: str,
    records_per_task: Optional[int] = None,
    reader_type: Optional[str] = None,
    **kwargs: Any,
) -> Any:
    """The reader of this origin: by `reader_type` (`CSV`, `RecordIO`), else lines for a .csv file and
    RecordIO for others. Raises DataError for another type."""
    check_type(reader_type)
    if reader_type == "CSV" or (reader_type is None and data_origin.endswith(".csv")):
        return TextDataReader(data_origin, **kwargs)
    return RecordIODataReader(data_origin, **kwargs)
