"""Metrics as sums that can be added over workers.

Owns: totals and weights of what `eval_metrics_fn` defines. Does not know about: which framework
computes them.

A function of labels and predictions gives a value for each record, or one for the minibatch, which
then counts with the number of its records. A metric of Keras keeps its own sums over the records of
a task; its result counts with their number, which is exact for means and an approximation for
metrics that are none (AUC).
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from .contract import Contract, ContractError


class Sum(NamedTuple):
    """The value is `total / weight`."""

    total: float
    weight: float


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype=np.float64)


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


def _of_records(metric: Any, labels: Any, predictions: Any, count: int) -> Any:
    """The value of a function. Labels of shape [records, 1] are flattened where it compares each
    of them with all predictions."""
    value = metric(labels, predictions)
    shape = np.shape(value)
    is_column = not isinstance(labels, (dict, list, tuple)) and np.shape(labels) == (count, 1)
    if is_column and count > 1 and shape == (count, count):
        flat = labels.reshape(-1) if isinstance(labels, np.ndarray) else labels.numpy().reshape(-1)
        return metric(flat, predictions)
    return value


class Metrics:
    """The metrics of one task."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._sums: Dict[str, List[float]] = {}
        self._records = 0
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
                self._add(name, _of_records(metric, truth, of, count), count)
        if self._contract.seed_metrics is not None:
            for name, value in self._contract.seed_metrics(predictions, labels).items():
                self._add(name, value, count)

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
