"""Published helpers of connections. Owns: their names, and refusing a connection to a master of the
published protocol. Does not know about: calls (`elastane.connection`)."""

import socket

from elastane.refused import refused

build_channel = refused(
    "elasticai_api.util.grpc_utils.build_channel",
    "the protocol of the master is another one: call build_master_client() of "
    "elasticai_api.common.master_client",
)


def find_free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])
