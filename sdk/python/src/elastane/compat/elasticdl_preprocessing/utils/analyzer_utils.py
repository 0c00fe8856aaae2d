"""Published statistics of features. Owns: reading them from the variables of the environment. Does
not know about: who computes them."""

import os
from typing import Any, Callable, List, TypeVar

from elasticdl_preprocessing.constants import AnalysisEnvTemplate as Env

Value = TypeVar("Value")


def _read(template: str, feature: str, default: Value, parse: Callable[[str], Any]) -> Value:
    text = os.environ.get(template.format(feature))
    return default if text is None else parse(text)


def _boundaries(text: str) -> List[float]:
    return sorted({float(part) for part in text.split(",")})


def get_min(feature_name: str, default_value: float) -> float:
    """The smallest value of a feature; `default_value` without the variable, as with the others."""
    return _read(Env.MIN_ENV, feature_name, default_value, float)


def get_max(feature_name: str, default_value: float) -> float:
    """The largest value of a feature."""
    return _read(Env.MAX_ENV, feature_name, default_value, float)


def get_avg(feature_name: str, default_value: float) -> float:
    """The mean of a feature."""
    return _read(Env.AVG_ENV, feature_name, default_value, float)


def get_stddev(feature_name: str, default_value: float) -> float:
    """The standard deviation of a feature."""
    return _read(Env.STDDEV_ENV, feature_name, default_value, float)


def get_bucket_boundaries(feature_name: str, default_value: List[float]) -> List[float]:
    """The boundaries of the bins of a feature, each once, from the smallest on."""
    return _read(Env.BUCKET_BOUNDARIES_ENV, feature_name, default_value, _boundaries)


def get_distinct_count(feature_name: str, default_value: int) -> int:
    """The number of different values of a feature."""
    return _read(Env.DISTINCT_COUNT_ENV, feature_name, default_value, int)


def get_vocabulary(feature_name: str, default_value: Any) -> Any:
    """The path of the vocabulary of a feature, which `IndexLookup` takes like a list."""
    return _read(Env.VOCABULARY_ENV, feature_name, default_value, str)
