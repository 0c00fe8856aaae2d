"""The published hook of sessions. Owns: reporting each of their steps. Does not know about: shards
(`elastane.shards`)."""

from typing import Any

import tensorflow as tf


class ElasticDataShardReportHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Reports each run of a `MonitoredSession`, or of an estimator, as a trained minibatch."""

    def __init__(self, data_shard_service: Any) -> None:
        self._service = data_shard_service

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """The minibatch is trained. Ends the script if the worker has to leave."""
        self._service.report_batch_done()
