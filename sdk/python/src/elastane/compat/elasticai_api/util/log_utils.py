"""Published loggers of training loops. Owns: their names. Does not know about: where lines go
(`elastane.logs`)."""

import logging
from typing import Iterable, Optional

from elastane import logs


def get_logger(
    name: str,
    level: str = "INFO",
    handlers: Optional[Iterable[logging.Handler]] = None,
    update: bool = False,
) -> logging.Logger:
    """`elastane.logs.get_logger`, by the order that this module publishes."""
    return logs.get_logger(name, level, handlers=handlers, update=update)


default_logger = get_logger("elastic.logger")

__all__ = ["default_logger", "get_logger"]
