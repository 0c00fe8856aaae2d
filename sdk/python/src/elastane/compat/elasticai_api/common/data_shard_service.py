"""Published names of `elastane.shards` and `elastane.indices`. Owns: the names. Does not know
about: the master."""

from elastane.indices import RecordIndexService
from elastane.shards import DataShardService, build_data_shard_service

__all__ = ["DataShardService", "RecordIndexService", "build_data_shard_service"]
