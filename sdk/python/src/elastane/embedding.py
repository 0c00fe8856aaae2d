"""Embedding tables, whose rows are on the parameter servers.

Owns: which rows a step needs, adding up their gradients, and the names of initializers. Does not know
about: calls (`parameters`), frameworks (`torch`, `compat/elasticdl/layers` use this).

A model of plain numpy has its tables in a list `embeddings`, looks up in `forward`, and hands the
derivative of what it got to `backward`, of several lookups the last one first:

    class Model:
        def __init__(self):
            self.words = Embedding("words", 16)
            self.embeddings = [self.words]
            self.parameters = {...}

        def forward(self, features, training):
            vectors = self.words(features)          # ids of shape [n, k], vectors [n, k, 16]
            ...

        def backward(self, d_outputs):
            self.words.backward(d_vectors)          # of the shape of the vectors
            return {...}                            # gradients of the parameters, without the tables

An id is any whole number of 64 bits: a hash needs no table of its own. A row exists for each; its
first numbers follow from the name of the table, the id and the seed.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np

from .protocol import messages as pb

DIM_MAX = 65_536
# Before that `add.at` is slower than sorting.
HAS_FAST_ADD = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (1, 25)


class EmbeddingError(ValueError):
    """A table, or a use of one, that cannot be."""


class Initializer(NamedTuple):
    """Numbers of a row before its first gradient."""

    kind: str
    """`uniform` (from `first` to `second`), `normal` (mean, deviation) or `constant`."""
    first: float
    second: float = 0.0


def uniform(low: float = -0.05, high: float = 0.05) -> Initializer:
    """Each number between these."""
    return Initializer("uniform", float(low), float(high))


def normal(mean: float = 0.0, deviation: float = 0.05) -> Initializer:
    """Each number of this normal distribution."""
    return Initializer("normal", float(mean), float(deviation))


def constant(value: float) -> Initializer:
    """Each number this one."""
    return Initializer("constant", float(value))


_NAMED: Dict[str, Initializer] = {
    "uniform": uniform(),
    "random_uniform": uniform(),
    "normal": normal(),
    "random_normal": normal(),
    "zeros": constant(0.0),
    "ones": constant(1.0),
}


def initializer_of(given: Union[str, Initializer]) -> Initializer:
    """The initializer of this name, or the given one."""
    if isinstance(given, Initializer):
        return given
    if given not in _NAMED:
        raise EmbeddingError(
            f"there is no initializer {given!r}; there are {', '.join(_NAMED)}, and uniform(low, "
            "high), normal(mean, deviation) and constant(value) of elastane.embedding"
        )
    return _NAMED[given]


class Source(Protocol):
    """Where rows come from."""

    def rows(self, table: "Embedding", ids: np.ndarray) -> np.ndarray:
        """The rows of these ids, of shape [ids, dim]."""

    def stored_rows(self, table: "Embedding") -> Tuple[np.ndarray, np.ndarray]:
        """The rising ids of all rows that were trained, and these rows."""


class Embedding:
    """A table of rows of `dim` numbers, by id."""

    def __init__(
        self,
        name: str,
        dim: int,
        initializer: Union[str, Initializer] = "uniform",
        seed: int = 0,
    ) -> None:
        if not name:
            raise EmbeddingError("an embedding table needs a name")
        if not 1 <= dim <= DIM_MAX:
            raise EmbeddingError(f"embedding table {name!r}: dim is {dim}; it is 1 to {DIM_MAX}")
        self.name, self.dim, self.seed = name, int(dim), int(seed)
        self.initializer = initializer_of(initializer)
        self.source: Optional[Source] = None
        # State of this step: lookups that wait for their derivative, and gradients by id.
        self._lookups: List[Tuple[np.ndarray, np.ndarray]] = []
        self._gradients: List[Tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def begin(self) -> None:
        """Begins a step and drops the state of the last one."""
        self._lookups.clear()
        self._gradients.clear()

    def pull(self, ids: Any) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The different ids among these (rising), of each of these its place among them (flat), and
        their rows, of shape [different, dim], which the caller owns."""
        unique, places = different(as_ids(ids, self.name).reshape(-1))
        return unique, places, self._rows_from().rows(self, unique)

    def stored(self) -> Dict[str, np.ndarray]:
        """All rows that were trained, as arrays `NAME/ids` (uint64, rising) and `NAME/rows`."""
        ids, rows = self._rows_from().stored_rows(self)
        return {f"{self.name}/ids": ids, f"{self.name}/rows": rows}

    def _rows_from(self) -> Source:
        if self.source is None:
            raise EmbeddingError(
                f"the rows of embedding table {self.name!r} are on parameter servers: the model "
                "works in a job of elasticdl, or give the table another source"
            )
        return self.source

    def __call__(self, ids: Any) -> np.ndarray:
        """The vectors of these ids, of their shape and one axis more."""
        unique, places, rows = self.pull(ids)
        self._lookups.append((unique, places))
        return rows[places].reshape(*np.shape(ids), self.dim)

    def backward(self, derivative: np.ndarray) -> None:
        """The derivative of the loss by what the last lookup without one gave."""
        if not self._lookups:
            raise EmbeddingError(
                f"embedding table {self.name!r}: backward was called more often than the table"
            )
        unique, places = self._lookups.pop()
        flat = np.asarray(derivative, np.float32).reshape(-1, self.dim)
        if len(flat) != len(places):
            raise EmbeddingError(
                f"embedding table {self.name!r}: {len(places)} ids were looked up, and backward got "
                f"the derivative of {len(flat)}"
            )
        self._gradients.append((unique, places, flat))

    def add(self, ids: np.ndarray, gradient: np.ndarray) -> None:
        """A gradient of rows of these ids, which may come several times."""
        self._gradients.append((*different(ids), gradient))

    def gradient(self) -> Tuple[np.ndarray, np.ndarray]:
        """Rising ids, and of each the sum of its gradients in this step."""
        if not self._gradients:
            return np.empty(0, np.uint64), np.empty((0, self.dim), np.float32)
        ids, places, rows = self._gradients[0]
        if len(self._gradients) > 1:
            ids, places = different(np.concatenate([ids[at] for ids, at, _ in self._gradients]))
            rows = np.concatenate([rows for _, _, rows in self._gradients])
        rows = sum_by_place(places, rows, len(ids))
        if not np.isfinite(rows).all():
            bad = ids[~np.isfinite(rows).all(axis=1)][0]
            raise FloatingPointError(
                f"the gradient of row {bad} of embedding table {self.name!r} is not finite: the "
                "loss diverges; try a smaller learning rate"
            )
        return ids, rows

    def message(self) -> Any:
        """The table as the servers know it."""
        start = self.initializer
        described = pb.RowInitializer(seed=self.seed % 2**64)
        if start.kind == "uniform":
            described.uniform.CopyFrom(pb.Uniform(low=start.first, high=start.second))
        elif start.kind == "normal":
            described.normal.CopyFrom(pb.Normal(mean=start.first, deviation=start.second))
        else:
            described.constant = start.first
        return pb.EmbeddingTable(name=self.name, dim=self.dim, initializer=described)


def as_ids(ids: Any, table: str) -> np.ndarray:
    """Whole numbers of any kind as unsigned ones; negative ones as their two's complement."""
    found = np.asarray(ids)
    if found.dtype.kind == "u":
        return found.astype(np.uint64, copy=False)
    if found.dtype.kind == "i":
        return found.astype(np.int64, copy=False).view(np.uint64)
    raise EmbeddingError(
        f"embedding table {table!r} got ids of {found.dtype}; ids are whole numbers of at most "
        "64 bits"
    )


def different(ids: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The different ids among these (rising), and of each of these its place among them."""
    unique, places = np.unique(ids, return_inverse=True)
    return unique, places.reshape(-1)


def sum_by_place(places: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Sums of rows by place; all `count` places occur in `places`."""
    if HAS_FAST_ADD:
        # Single numbers: with whole rows it is not fast.
        dim = rows.shape[1]
        sums = np.zeros(count * dim, np.float32)
        at = (places[:, None] * dim + np.arange(dim)).reshape(-1)
        np.add.at(sums, at, np.asarray(rows, np.float32).reshape(-1))
        return sums.reshape(count, dim)
    order = np.argsort(places, kind="stable")
    placed = places[order]
    starts = np.flatnonzero(np.concatenate(([True], placed[1:] != placed[:-1])))
    return np.add.reduceat(rows[order], starts, axis=0, dtype=np.float32)


def check(tables: Sequence[Embedding]) -> List[Embedding]:
    """These tables, if no two have the same name."""
    seen: Dict[str, Embedding] = {}
    for table in tables:
        if seen.setdefault(table.name, table) is not table:
            raise EmbeddingError(
                f"two embedding tables are called {table.name!r}: give each its own name"
            )
    return list(seen.values())
