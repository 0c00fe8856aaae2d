"""Metrics as sums that can be added over workers.

Owns: totals and weights of what `eval_metrics_fn` defines. Does not know about: which framework
computes them.

A function of labels and predictions gives a value for each record, or one for the minibatch, which
then counts with the number of its records. A metric of Keras keeps its own sums over the records of
a task; its result counts with their number, which is exact for means and an approximation for
metrics that are none (AUC).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from .contract import Contract, ContractError
from .labels import Given, Shaped, choose


class Sum(NamedTuple):
    """The value is `total / weight`."""

    total: float
    weight: float


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype=np.float64)


def _mean_of(metric: Any) -> Callable[[Any, Any], Any]:
    return lambda labels, predictions: _array(metric(labels, predictions)).mean()


def _means_of(values_of: Callable[[Any, Any], Dict[str, Any]]) -> Callable[[Any, Any], Any]:
    def means(labels: Any, predictions: Any) -> List[float]:
        values = values_of(predictions, labels)
        return [float(_array(values[name]).mean()) for name in sorted(values)]

    return means


def _count(labels: Any) -> int:
    first = labels
    while isinstance(first, (dict, list, tuple)):
        first = next(iter(first.values() if isinstance(first, dict) else first))
    return int(np.shape(first)[0])


def _flat(metrics: Dict[str, Any]) -> Iterator[Tuple[str, Optional[str], Any]]:
    """Name, output and metric; with several outputs a name is `output.name`."""
    for name, metric in metrics.items():
        if isinstance(metric, dict):
            for inner, one in metric.items():
                yield f"{name}.{inner}", name, one
        else:
            yield name, None, metric


class Metrics:
    """The metrics of one task."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._sums: Dict[str, List[float]] = {}
        self._records = 0
        # What a function gets, once it is known; by name.
        self._shaped: Dict[str, Shaped] = {}
        for _, _, metric in _flat(contract.eval_metrics):
            if hasattr(metric, "update_state"):
                reset = getattr(metric, "reset_state", None) or metric.reset_states
                reset()

    def update(self, labels: Any, predictions: Any) -> None:
        """Adds a minibatch."""
        count = _count(labels)
        self._records += count
        for name, output, metric in _flat(self._contract.eval_metrics):
            of = predictions if output is None else predictions[output]
            truth = labels[output] if isinstance(labels, dict) and output in labels else labels
            if hasattr(metric, "update_state"):
                metric.update_state(truth, of)
            else:
                given = self._shape(name, _mean_of(metric), truth, of)
                self._add(name, metric(*given), count)
        values_of = self._contract.seed_metrics
        if values_of is not None:
            truth, of = self._shape("", _means_of(values_of), labels, predictions)
            for name, value in values_of(of, truth).items():
                self._add(name, value, count)

    def _shape(
        self, name: str, means: Callable[[Any, Any], Any], labels: Any, predictions: Any
    ) -> Given:
        """Both in the shape that the function of this name takes; see `labels`."""
        shaped = self._shaped.get(name)
        if shaped is None:
            shaped, is_certain = choose(means, labels, predictions)
            if is_certain:
                self._shaped[name] = shaped
        return shaped(labels, predictions)

    def _add(self, name: str, value: Any, count: int) -> None:
        values = _array(value)
        if values.ndim and values.shape[0] != count:
            raise ContractError(
                f"metric {name!r} gave {values.shape[0]} values for {count} records: return one for "
                "each, or their mean"
            )
        sums = self._sums.setdefault(name, [0.0, 0.0])
        if values.ndim:
            sums[0] += float(values.sum())
            sums[1] += float(values.size)
        else:
            sums[0] += float(values) * count
            sums[1] += count

    def result(self) -> Dict[str, Sum]:
        """Sums by name."""
        out = {name: Sum(*sums) for name, sums in self._sums.items()}
        for name, _, metric in _flat(self._contract.eval_metrics):
            if hasattr(metric, "update_state"):
                out[name] = Sum(float(_array(metric.result())) * self._records, self._records)
        return out
