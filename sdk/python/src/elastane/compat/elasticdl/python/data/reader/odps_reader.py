"""Published readers of MaxCompute. Owns: refusing them when they are called. Does not know about:
tables."""

from elastane.refused import refused

_INSTEAD = "elastane reads no table of MaxCompute: read a .csv file, or write custom_data_reader"
ODPSDataReader = refused("elasticdl.python.data.reader.odps_reader.ODPSDataReader", _INSTEAD)
ParallelODPSDataReader = refused(
    "elasticdl.python.data.reader.odps_reader.ParallelODPSDataReader", _INSTEAD
)
