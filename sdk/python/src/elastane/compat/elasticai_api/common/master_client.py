"""The published name of this worker's connection to its job. Owns: the name. Does not know about:
its calls (`elastane.loop`)."""

from elastane.loop import of_environment as build_master_client

__all__ = ["build_master_client"]
