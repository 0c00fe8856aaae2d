"""Published names for custom training loops with TensorFlow. Owns: refusing them when they
are called. Does not know about: rounds of workers, which loops of PyTorch have."""

from elastane.refused import refused

_INSTEAD = (
    "loops of TensorFlow do not add up gradients: write a model module with custom_model, feed, "
    "loss and optimizer, take elasticai_api.pytorch, or get records by "
    "elasticai_api.common.data_shard_service"
)
DistributedOptimizer = refused(
    "elasticai_api.tensorflow.optimizer.DistributedOptimizer", _INSTEAD
)
AdjustBackwardPassesPerStepHook = refused(
    "elasticai_api.tensorflow.optimizer.AdjustBackwardPassesPerStepHook", _INSTEAD
)
