"""Published loggers. Owns: their names. Does not know about: where lines go; --log_level sets that."""

import logging


def get_logger(name: str, level: str = "INFO", handlers: object = None) -> logging.Logger:
    """The logger of this name."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    return logger


default_logger = logging.getLogger("elasticdl")
