"""Loggers of models and scripts, in the published form. Owns: their levels and handlers. Does not
know about: where lines go without a handler; --log_level sets that."""

from __future__ import annotations

import logging
from typing import Iterable, Optional


def get_logger(
    name: str,
    level: str = "INFO",
    filename: Optional[str] = None,
    handlers: Optional[Iterable[logging.Handler]] = None,
    update: bool = False,
) -> logging.Logger:
    """The logger of this name. `handlers` take its lines in place of those of the process, and the
    file `filename` besides; `update` is for the published form only."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if handlers:
        logger.handlers, logger.propagate = list(handlers), False
    files = {getattr(one, "baseFilename", None) for one in logger.handlers}
    if filename:
        file = logging.FileHandler(filename, encoding="utf-8", delay=True)
        if file.baseFilename not in files:
            logger.addHandler(file)
    return logger
