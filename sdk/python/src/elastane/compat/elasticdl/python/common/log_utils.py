"""Published loggers of models. Owns: their names. Does not know about: where lines go
(`elastane.logs`)."""

import logging

from elastane.logs import get_logger

default_logger = logging.getLogger("elasticdl")
stdout_logger = get_logger("elasticdl_stdout")

__all__ = ["default_logger", "get_logger", "stdout_logger"]
