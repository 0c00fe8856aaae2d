"""Published barriers of workers. Owns: refusing them when they are called. Does not know about:
workers."""

from elastane.refused import all_refused

worker_sync, wait_worker_sync, delete_worker_sync, delete_all_worker_sync = all_refused(
    "elasticai_api.common.synchronization",
    "a worker that comes or goes would break a barrier of named workers: a step of "
    "create_elastic_controller(...) waits for all workers that are present",
    *("worker_sync", "wait_worker_sync", "delete_worker_sync", "delete_all_worker_sync"),
)
