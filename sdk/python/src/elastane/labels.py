"""Labels in the shape that a loss or a metric takes. Owns: the choice between labels of shape
[records, 1] and of shape [records]. Does not know about: frameworks, but for the methods of arrays.

Published files have labels of both shapes. A function that gets the wrong one fails, or, worse,
compares each label with all predictions and returns a plausible number. A mean over records is
known by its records: it is the mean of what the function returns for each record alone, and both
shapes agree on that. So the choice is made once, by a few records.
"""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

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


def choose(function: Callable[[Any, Any], Any], labels: Any, outputs: Any) -> Tuple[Shaped, bool]:
    """The shape that `function(labels, outputs)` takes, which returns means over records as
    numbers; and whether that is certain: a single record does not tell.

    Raises the error of the function if it takes neither shape.
    """
    other = other_shape(labels, outputs)
    if other is None:
        return as_given, True
    count = min(_RECORDS_MAX, int(labels.shape[0]))
    labels, outputs = _part(labels, 0, count), _part(outputs, 0, count)

    def means(shaped: Shaped, begin: int = 0, end: int = count) -> np.ndarray:
        given = shaped(_part(labels, begin, end), _part(outputs, begin, end))
        return np.asarray(function(*given), dtype=np.float64)

    try:
        plain = means(as_given)
    except Exception as error:
        try:
            means(other)
        except Exception:
            # The file has an error of its own, which the caller reports.
            raise error from None
        return other, True
    try:
        reshaped = means(other)
    except Exception:
        return as_given, True
    if count == 1 or _same(plain, reshaped):
        return as_given, count > 1
    alone: List[np.ndarray] = [means(as_given, one, one + 1) for one in range(count)]
    mean = np.mean(alone, axis=0)
    return (other if _same(reshaped, mean) and not _same(plain, mean) else as_given), True
