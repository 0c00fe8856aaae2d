"""Published names for training loops of one's own with TensorFlow. Owns: refusing them when they are called. Does not
know about: the protocol that they would speak."""

from elastane.refused import refused

_INSTEAD = (
    "training loops of one's own (--job_command) get no shards of the master: write a model module with "
    "custom_model, feed, loss and optimizer, or start the loop with torchrun, whose workers come and go"
)
create_elastic_controller = refused("elasticai_api.tensorflow.controller.create_elastic_controller", _INSTEAD)
TensorFlowV2AllReduceController = refused("elasticai_api.tensorflow.controller.TensorFlowV2AllReduceController", _INSTEAD)
