"""Published loggers of training loops. Owns: their names. Does not know about: where lines go
(`elastane.logs`)."""

from elastane.logs import get_logger

default_logger = get_logger("elastic.logger")

__all__ = ["default_logger", "get_logger"]
