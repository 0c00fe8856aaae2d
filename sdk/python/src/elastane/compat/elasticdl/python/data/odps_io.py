"""Published names of tables of MaxCompute. Owns: refusing them when they are called. Does not know
about: tables."""

from elastane.refused import refused

_INSTEAD = (
    "elastane reads no table of MaxCompute: write its rows to a .csv file or RecordIO, or read them in "
    "custom_data_reader"
)
ODPSReader = refused("elasticdl.python.data.odps_io.ODPSReader", _INSTEAD)
ODPSWriter = refused("elasticdl.python.data.odps_io.ODPSWriter", _INSTEAD)


def is_odps_configured() -> bool:
    """Never."""
    return False
