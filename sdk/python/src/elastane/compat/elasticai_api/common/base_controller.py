"""The published base of controllers. Owns: its names, and refusing those of Horovod when they are
called. Does not know about: how gradients are added up (`elastane.loop_controller`)."""

from elastane.loop_controller import AllReduceController
from elastane.refused import refused

# As published; workers that come and go are noticed at once here.
DEFAULT_MAX_ALLREDUCE_RETRY_NUM = 5
DEFAULT_SECS_TO_CHECK_RENDEZVOUS = 30
RETRY_ALLREDUCE_INTERVAL_SECS = 30

RendevousManager = refused(
    "elasticai_api.common.base_controller.RendevousManager",
    "workers meet without Horovod: call create_elastic_controller of elasticai_api.pytorch.controller "
    "or elasticai_api.tensorflow.controller",
)

__all__ = [
    "AllReduceController",
    "DEFAULT_MAX_ALLREDUCE_RETRY_NUM",
    "DEFAULT_SECS_TO_CHECK_RENDEZVOUS",
    "RETRY_ALLREDUCE_INTERVAL_SECS",
    "RendevousManager",
]
