"""The published optimizer of PyTorch. Owns: its name. Does not know about: how gradients are added
up (`elastane.loop_torch`)."""

from elastane.loop_torch import DistributedOptimizer

__all__ = ["DistributedOptimizer"]
