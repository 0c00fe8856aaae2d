"""Published names of `elastane.shards`. Owns: the names. Does not know about: the master."""

from elastane.shards import DataShardService, RecordIndexService, build_data_shard_service

__all__ = ["DataShardService", "RecordIndexService", "build_data_shard_service"]
