"""Backends: what computes gradients. Owns: what one has to do, what all have in common, and which
one a model needs. Does not know about: tasks, the master, the parameter server."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import codec
from ..callbacks import Callbacks
from ..contract import Contract, ContractError
from ..embedding import Embedding
from ..optimizers import Optimizer, OptimizerError
from ..readers import Metadata

Arrays = Dict[str, np.ndarray]
"""Arrays of float32 by name."""
Record = Tuple[int, Any]
"""Place in the shard, and the record: bytes, or what a reader of the model's own gives."""


class Step(NamedTuple):
    """Results of one minibatch."""

    loss: float
    gradients: Arrays
    """Gradient of each parameter, in its shape; the mean over the records of the minibatch."""


class Batch(NamedTuple):
    """A minibatch, ready to compute with."""

    features: Any
    labels: Any
    """None for predictions."""
    records: List[Record]
    """Records that it was made of; records that could not be decoded are not in it."""


class Backend:
    """Base of the backends. A subclass has the methods that raise here."""

    name = ""

    def __init__(self, contract: Contract, optimizer: Any = None) -> None:
        """`optimizer` is what callbacks see as `model.optimizer`, unless it is one of the servers,
        whose rate they cannot set."""
        self.contract = contract
        own = None if isinstance(optimizer, Optimizer) else optimizer
        self.callbacks = Callbacks(contract.callbacks, contract.model, own)
        self.metadata: Any = Metadata()
        self.codec_type = codec.TYPES[0]
        # True once `feed` has worked: if it never has, the code is wrong.
        self._has_fed = False

    # Methods of a subclass.

    def build(self, batch: Batch) -> None:
        """Creates parameters that exist only after a first pass."""

    def parameters(self) -> Arrays:
        """Trained values, by name."""
        raise NotImplementedError

    def state(self) -> Arrays:
        """Values that change in training without a gradient: moving means of normalisation."""
        return {}

    def embeddings(self) -> List[Embedding]:
        """The embedding tables of the model. `step` begins a step of each."""
        return []

    def assign(self, parameters: Arrays, state: Arrays) -> None:
        """Takes over these values; names that are not given stay as they are."""
        raise NotImplementedError

    def step(self, batch: Batch) -> Step:
        """Loss and gradients of a minibatch."""
        raise NotImplementedError

    def predict(self, batch: Batch) -> Any:
        """The outputs for a minibatch: an array whose first axis is the records, or a dict."""
        raise NotImplementedError

    def optimizer(self) -> Optimizer:
        """Optimizer for the parameter server to apply."""
        raise NotImplementedError

    def save(self, path: str) -> None:
        """Writes the model for use elsewhere."""
        raise NotImplementedError

    def feed(self, records: Sequence[Any], mode: str) -> Tuple[Any, Any]:
        """Features and labels of these records."""
        assert self.contract.feed is not None, "a contract has it in every mode"
        if self.contract.seed_form:
            return self._seed_feed(records)
        fed = self.contract.feed(list(records), mode, self.metadata)
        return (fed, None) if mode == "prediction" and not isinstance(fed, tuple) else fed

    # Common methods of all backends.

    def _seed_feed(self, records: Sequence[bytes]) -> Tuple[Any, Any]:
        """The columns of the old form drive the decoding and the order of the model's inputs."""
        described = self.contract.feature_columns + self.contract.label_columns
        columns = [
            # A dtype is one of TensorFlow or numpy.
            codec.Column(
                c.key, np.dtype(getattr(c.dtype, "as_numpy_dtype", c.dtype)), tuple(c.shape)
            )
            for c in described
        ]
        assert self.contract.feed is not None, "a contract of the old form has input_fn"
        features, labels = self.contract.feed(codec.batch(columns, records, self.codec_type))
        inputs = [features[column.key] for column in self.contract.feature_columns]
        return (inputs[0] if len(inputs) == 1 else inputs), labels

    def learning_rate(self, version: int) -> float:
        """The learning rate of a step that starts at this version of the model."""
        rate = self.callbacks.rate(version)
        return self.optimizer().learning_rate if rate is None else rate

    def batches(
        self,
        records: Sequence[Record],
        mode: str,
        minibatch_size: int,
        on_bad: Callable[[int, str], None],
    ) -> Iterator[Batch]:
        """Minibatches of these records, in their order; a record that cannot be decoded is
        reported with its place and left out."""
        for begin in range(0, len(records), minibatch_size):
            yield from self._batch(list(records[begin : begin + minibatch_size]), mode, on_bad)

    def _batch(
        self, records: List[Record], mode: str, on_bad: Callable[[int, str], None]
    ) -> Iterator[Batch]:
        try:
            features, labels = self.feed([record for _, record in records], mode)
        except Exception as error:
            records = self._decodable(records, mode, error, on_bad)
            if not records:
                return
            features, labels = self.feed([record for _, record in records], mode)
        self._has_fed = True
        yield Batch(features, labels, records)

    def _decodable(
        self,
        records: List[Record],
        mode: str,
        error: Exception,
        on_bad: Callable[[int, str], None],
    ) -> List[Record]:
        """Records that can be decoded alone. If none ever could, the code is wrong, not the
        data."""
        good: List[Record] = []
        bad: List[Tuple[int, str]] = []
        for place, record in records:
            try:
                self.feed([record], mode)
                good.append((place, record))
            except Exception as alone:
                bad.append((place, f"{type(alone).__name__}: {alone}"))
        if not bad or not (good or self._has_fed):
            raise error
        for place, reason in bad:
            on_bad(place, reason)
        return good


class Unconnected:
    """Parameters that the loss does not depend on. All of a model is an error: nothing would be
    trained; some are a warning, once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._warned = False

    def check(self, names: Sequence[str], connected: Sequence[bool], has_rows: bool) -> None:
        """`connected` is true for each name with a gradient, `has_rows` if rows of embedding tables
        have one."""
        missing = [name for name, has_one in zip(names, connected) if not has_one]
        if not missing:
            return
        shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if missing[8:] else "")
        if len(missing) == len(names) and not has_rows:
            raise ContractError(
                f"the loss of the model {self._path} does not depend on any of its parameters "
                f"({shown}): nothing can be trained; loss(labels, predictions) has to compute with "
                "the predictions, without numpy() and without argmax"
            )
        if not self._warned:
            self._warned = True
            print(
                f"warning: the loss of the model {self._path} does not depend on {shown}: "
                "these stay as they are",
                file=sys.stderr,
                flush=True,
            )


def _ancestry(model: Any) -> List[str]:
    return [kind.__module__ + "." for kind in type(model).__mro__]


def choose(contract: Contract) -> Backend:
    """The backend of a model, by what the model is."""
    ancestry = _ancestry(contract.model)
    if any(module.startswith("torch.") for module in ancestry):
        from .torch import TorchBackend

        return TorchBackend(contract)
    if any(module.startswith(("keras.", "tf_keras.", "tensorflow.")) for module in ancestry):
        from .keras import KerasBackend

        return KerasBackend(contract)
    from .plain import PlainBackend, is_plain

    if is_plain(contract.model):
        return PlainBackend(contract)
    raise ContractError(
        f"the model {contract.path} is {type(contract.model).__name__}: return a Keras model, a "
        "torch.nn.Module, or an object with parameters, forward(features, training) and "
        "backward(d_outputs)"
    )


def need_optimizer(contract: Contract) -> Callable[..., Any]:
    """The model's `optimizer`, which a contract of evaluations may lack."""
    if contract.optimizer is None:
        raise OptimizerError(f"the model {contract.path} has no 'optimizer'")
    return contract.optimizer


def stored(tables: Sequence[Embedding]) -> Dict[str, np.ndarray]:
    """The trained rows of these tables, by name."""
    return {name: value for table in tables for name, value in table.stored().items()}


def float32(arrays: Dict[str, Any]) -> Arrays:
    """Copies of the arrays as float32, contiguous: frameworks change theirs in place."""
    return {name: np.array(value, dtype=np.float32, order="C") for name, value in arrays.items()}


def check_names(mine: Arrays, theirs: Arrays, what: str) -> Optional[str]:
    """Why the parameters of this model are not those of the server, or nothing."""
    for name in sorted(set(mine) | set(theirs)):
        if name not in mine:
            return f"the server has {what} {name!r}, which this model does not have"
        if name not in theirs:
            return f"this model has {what} {name!r}, which the server does not have"
        if mine[name].shape != theirs[name].shape:
            return (
                f"{what} {name!r} has shape {mine[name].shape} here and {theirs[name].shape} on "
                "the server"
            )
    return None
