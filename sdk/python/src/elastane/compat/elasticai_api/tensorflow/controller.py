"""The published controller of TensorFlow. Owns: its names. Does not know about: how gradients are
added up (`elastane.loop_keras`)."""

from elastane.loop_keras import TensorFlowV2AllReduceController, create_elastic_controller

__all__ = ["TensorFlowV2AllReduceController", "create_elastic_controller"]
