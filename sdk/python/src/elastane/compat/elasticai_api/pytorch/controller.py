"""The published controller of PyTorch. Owns: its names. Does not know about: how gradients are
added up (`elastane.loop_torch`)."""

from elastane.loop_torch import PyTorchAllReduceController, create_elastic_controller

__all__ = ["PyTorchAllReduceController", "create_elastic_controller"]
