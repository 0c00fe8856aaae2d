"""Labels in the shape that a loss or a metric takes. Owns: the choice between labels of shape
[records, 1] and of shape [records]. Does not know about: frameworks, but for the methods of arrays.

Published files have labels of both shapes. A function that gets the wrong one fails, or, worse,
compares each label with all predictions and returns a plausible number. A mean over records is
known by its records: it is the mean of what the function returns for each record alone, and both
shapes agree on that. So the choice is made once, by a few records whose labels differ. Their
outputs may be alike, so both shapes are also compared with outputs that are made up.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import numpy as np

Given = Tuple[Any, Any]
"""Labels and outputs."""
Shaped = Callable[[Any, Any], Given]
"""What becomes of labels and outputs before a function gets them."""

# Records that the choice is made by.
_RECORDS_MAX = 8


def as_given(labels: Any, outputs: Any) -> Given:
    """Both as they are."""
    return labels, outputs


def flat_labels(labels: Any, outputs: Any) -> Given:
    """Labels of shape [records, 1] as [records]."""
    return labels[:, 0], outputs


def flat_outputs(labels: Any, outputs: Any) -> Given:
    """Outputs of shape [records, 1] as [records], for labels of this shape."""
    return labels, outputs[:, 0]


def _rank(value: Any) -> int:
    shape = getattr(value, "shape", None)
    return len(shape) if shape is not None else -1


def _is_column(value: Any) -> bool:
    return _rank(value) == 2 and value.shape[1] == 1


def other_shape(labels: Any, outputs: Any) -> Any:
    """The other shape that a function may want, or None: there is no doubt then."""
    if _is_column(labels):
        return flat_labels
    return flat_outputs if _rank(labels) == 1 and _is_column(outputs) else None


def _part(value: Any, begin: int, end: int) -> Any:
    if isinstance(value, dict):
        return {name: _part(one, begin, end) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_part(one, begin, end) for one in value]
    return value[begin:end]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.allclose(one, other, 1e-4, 1e-6, equal_nan=True)


def _numbers(value: Any) -> np.ndarray:
    """Labels of the records, as a vector. Raises ValueError or TypeError if they are no numbers."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().double()
    array = value.numpy() if hasattr(value, "numpy") else value
    return np.asarray(array, np.float64).reshape(-1)


def _window(truth: np.ndarray) -> Tuple[int, int]:
    """The first records that have two labels, if there are two."""
    differing = np.flatnonzero(truth != truth[0])
    first = int(differing[0]) if len(differing) else 0
    begin = max(0, first - _RECORDS_MAX + 1)
    return begin, min(len(truth), begin + _RECORDS_MAX)


def _like(outputs: Any, values: np.ndarray) -> Any:
    if hasattr(outputs, "new_tensor"):
        return outputs.new_tensor(values.tolist())
    return outputs * 0 + values.tolist()


def _made_up(truth: np.ndarray, outputs: Any) -> List[Any]:
    """Outputs of this shape that differ as the labels do: probabilities and the labels themselves
    for one output of a record, else their classes."""
    if _rank(outputs) == 2 and outputs.shape[1] > 1:
        width = int(outputs.shape[1])
        return [_like(outputs, np.eye(width)[truth.astype(np.int64) % width])]
    if _rank(outputs) != 1 and not _is_column(outputs):
        return []
    shape = (len(truth),) if _rank(outputs) == 1 else (len(truth), 1)
    ranks = np.argsort(np.argsort(truth, kind="stable"))
    return [_like(outputs, one.reshape(shape)) for one in ((ranks + 1) / (len(truth) + 1), truth)]


class _Trial:
    """A function on some records, with labels or outputs of two shapes."""

    def __init__(self, function: Callable[[Any, Any], Any], labels: Any, other: Shaped) -> None:
        self._function, self._labels, self._other = function, labels, other
        self._count = int(labels.shape[0])

    def mean(self, shaped: Shaped, outputs: Any, begin: int = 0, end: int = _RECORDS_MAX) -> Any:
        """What the function returns for these records."""
        given = shaped(_part(self._labels, begin, end), _part(outputs, begin, end))
        return np.asarray(self._function(*given), dtype=np.float64)

    def decide(self, outputs: Any) -> Optional[Shaped]:
        """The shape by these outputs; None if both give the same, or no number."""
        plain, reshaped = self.mean(as_given, outputs), self.mean(self._other, outputs)
        is_finite = np.isfinite(plain).all() and np.isfinite(reshaped).all()
        if not is_finite or _same(plain, reshaped):
            return None
        try:
            alone = [self.mean(as_given, outputs, one, one + 1) for one in range(self._count)]
        except Exception:
            # It takes no single records, so they do not tell.
            return as_given
        mean = np.mean(alone, axis=0)
        is_other = _same(reshaped, mean) and not _same(plain, mean)
        return self._other if is_other else as_given

    def decide_by(self, truth: np.ndarray, outputs: Any) -> Optional[Shaped]:
        """The shape by outputs that are made up; None if both always give the same."""
        for made in _made_up(truth, outputs):
            try:
                found = self.decide(made)
            except Exception:
                # Nothing of the records: the function does not take such outputs.
                continue
            if found is not None:
                return found
        return None


def choose(function: Callable[[Any, Any], Any], labels: Any, outputs: Any) -> Tuple[Shaped, bool]:
    """The shape that `function(labels, outputs)` takes, which returns means over records as
    numbers; and whether that is certain: a single record, or records of one label, do not tell.

    Raises the error of the function if it takes neither shape.
    """
    other = other_shape(labels, outputs)
    if other is None:
        return as_given, True
    try:
        truth = _numbers(labels)
    except (TypeError, ValueError):
        truth = np.zeros(int(labels.shape[0]))
    begin, end = _window(truth)
    labels, outputs, truth = _part(labels, begin, end), _part(outputs, begin, end), truth[begin:end]
    trial = _Trial(function, labels, other)
    try:
        trial.mean(as_given, outputs)
    except Exception as error:
        try:
            trial.mean(other, outputs)
        except Exception:
            # The file has an error of its own, which the caller reports.
            raise error from None
        return other, True
    try:
        found = trial.decide(outputs)
    except Exception:
        return as_given, True
    if found is not None:
        return found, True
    if len(set(truth.tolist())) < 2:
        return as_given, False
    return trial.decide_by(truth, outputs) or as_given, True
