"""The published names of this worker's connection to its job. Owns: the names. Does not know about:
its calls (`elastane.loop`)."""

from elastane.loop import of_environment as build_master_client
from elastane.refused import RefusedAttribute, refused

_MODULE = "elasticai_api.common.master_client"
_WHY = (
    "the protocol of the master is another one: call build_master_client(), and "
    "build_data_shard_service(...) for shards"
)
MasterClient = refused(f"{_MODULE}.MasterClient", _WHY)


class GlobalMasterClient:
    """The connection of the process."""

    MASTER_CLIENT = RefusedAttribute(f"{_MODULE}.GlobalMasterClient.MASTER_CLIENT", _WHY)


__all__ = ["GlobalMasterClient", "MasterClient", "build_master_client"]
