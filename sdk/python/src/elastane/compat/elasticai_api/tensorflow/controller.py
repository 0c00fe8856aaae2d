"""The published controllers of TensorFlow. Owns: their names, and refusing that of TensorFlow 1 when
it is called. Does not know about: how gradients are added up (`elastane.loop_keras`)."""

from elastane.loop_keras import TensorFlowV2AllReduceController, create_elastic_controller
from elastane.refused import refused

TensorFlowV1AllReduceController = refused(
    "elasticai_api.tensorflow.controller.TensorFlowV1AllReduceController",
    "sessions of TensorFlow 1 do not add up gradients: call create_elastic_controller in a loop of "
    "TensorFlow 2, or share records alone, by build_data_shard_service and ElasticDataShardReportHook",
)

__all__ = [
    "TensorFlowV1AllReduceController",
    "TensorFlowV2AllReduceController",
    "create_elastic_controller",
]
