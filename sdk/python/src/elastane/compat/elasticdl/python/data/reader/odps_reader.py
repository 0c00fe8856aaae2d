"""Published readers of MaxCompute. Owns: refusing them when they are called. Does not know about:
tables."""

from elastane.refused import all_refused

ODPSDataReader, ParallelODPSDataReader, CustomParallelODPSDataReader = all_refused(
    "elasticdl.python.data.reader.odps_reader",
    "elastane reads no table of MaxCompute: read a .csv file, or write custom_data_reader",
    *("ODPSDataReader", "ParallelODPSDataReader", "CustomParallelODPSDataReader"),
)
