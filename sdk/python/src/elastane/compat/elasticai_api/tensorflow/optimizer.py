"""Published optimizers of TensorFlow. Owns: their names, and refusing those of TensorFlow 1 when
they are called. Does not know about: how gradients are added up (`elastane.loop_keras`)."""

from elastane.loop_keras import DistributedOptimizer
from elastane.refused import all_refused

AdjustBackwardPassesPerStepHook, LocalGradientAggregationHelper = all_refused(
    "elasticai_api.tensorflow.optimizer",
    "sessions of TensorFlow 1 do not add up gradients: give DistributedOptimizer "
    "fixed_global_batch_size=True in a loop of TensorFlow 2",
    *("AdjustBackwardPassesPerStepHook", "LocalGradientAggregationHelper"),
)

__all__ = [
    "AdjustBackwardPassesPerStepHook",
    "DistributedOptimizer",
    "LocalGradientAggregationHelper",
]
