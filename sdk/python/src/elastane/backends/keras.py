"""Models of TensorFlow-Keras, of either generation. Owns: feeding by `tf.data`, gradients by a tape,
names of variables. Does not know about: distribution strategies; each worker computes for itself.

`feed(dataset, mode, metadata)` is traced once and runs on the records of one minibatch at a time,
so what it shuffles stays within the minibatch and the finished records of a task are its first ones.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from .. import codec
from ..contract import Contract
from ..embedding import Embedding, check
from ..keras import Embedding as Layer
from ..labels import Shaped, as_given, choose
from ..optimizers import Optimizer, OptimizerError, from_keras, from_version_one
from . import Arrays, Backend, Batch, Step, Unconnected, float32, need_optimizer


def _key(variable: Any) -> str:
    """The name that tells variables apart: Keras 3 has several called `kernel`."""
    return str(getattr(variable, "path", None) or variable.name)


def _watched(variable: Any) -> Any:
    """The variable of TensorFlow, which a tape watches: that of Keras 3 is in one of its own."""
    return variable.value if hasattr(variable, "path") else variable


def _signature(features: Any) -> Optional[List[Any]]:
    """The type of any number of records like these, as an export takes it; nothing for sparse and
    ragged tensors."""
    leaves = tf.nest.flatten(features)
    if not all(isinstance(one, (tf.Tensor, np.ndarray)) for one in leaves):
        return None

    def of(one: Any) -> Any:
        return tf.TensorSpec([None, *one.shape[1:]], one.dtype)

    return [tf.nest.map_structure(of, features)]


class KerasBackend(Backend):
    """Computes with TensorFlow."""

    name = "keras"

    def __init__(self, contract: Contract) -> None:
        self._optimizer = _optimizer(contract) if contract.optimizer else None
        super().__init__(contract, self._optimizer)
        self._model = contract.model
        # What the loss gets, once it is known.
        self._shaped: Optional[Shaped] = None
        self._feeds: Dict[str, Callable[..., Any]] = {}
        self._unconnected = Unconnected(contract.path)
        # Variables with a gradient in the step that was traced last, and whether rows have one.
        self._is_connected: List[bool] = []
        self._has_row_gradients = False
        # The type of the features that the model was applied to.
        self._signature: Optional[List[Any]] = None
        self._gradients = tf.function(self._compute, reduce_retracing=True)
        self._outputs = tf.function(self._call, reduce_retracing=True)

    # Features and labels.

    def feed(self, records: Sequence[Any], mode: str) -> Tuple[Any, Any]:
        if self.contract.seed_form:
            return self._decoded(records) or super().feed(records, mode)
        if not all(isinstance(record, bytes) for record in records):
            return self._split(
                self._fed(tf.data.Dataset.from_tensor_slices(list(records)), mode), mode
            )
        if mode not in self._feeds:
            signature = [tf.TensorSpec([None], tf.string)]
            self._feeds[mode] = tf.function(
                lambda raw: self._fed(tf.data.Dataset.from_tensor_slices(raw), mode),
                input_signature=signature,
            )
        return self._split(self._feeds[mode](tf.constant(list(records), tf.string)), mode)

    def _decoded(self, records: Sequence[Any]) -> Any:
        """Features and labels by `input_fn(records, decode_fn)`, the form of June 2019: it decodes each
        record by a description of its columns. Nothing for the form without `decode_fn`."""
        input_fn = self.contract.feed
        assert input_fn is not None, "a contract of the old form has it"
        wanted = inspect.signature(input_fn).parameters
        return input_fn(list(records), self._decode) if len(wanted) == 2 else None

    def _decode(self, record: bytes, described: Dict[str, Any]) -> Dict[str, Any]:
        if self.codec_type == "tf_example":
            return tf.io.parse_single_example(record, described)
        columns = [
            codec.Column(name, np.dtype(of.dtype.as_numpy_dtype), tuple(of.shape))
            for name, of in described.items()
        ]
        values = codec.decode(columns, record)
        return {name: tf.convert_to_tensor(value) for name, value in values.items()}

    def _fed(self, dataset: Any, mode: str) -> Any:
        assert self.contract.feed is not None, "a contract has it in every mode"
        fed = self.contract.feed(dataset, mode, self.metadata)
        return fed.batch(np.iinfo(np.int64).max).get_single_element()

    @staticmethod
    def _split(fed: Any, mode: str) -> Tuple[Any, Any]:
        if isinstance(fed, tuple) and len(fed) == 2:
            return fed[0], None if mode == "prediction" else fed[1]
        return fed, None

    # Variables.

    def build(self, batch: Batch) -> None:
        self._call(batch.features, False)

    def _trainable(self) -> List[Any]:
        return list(self._model.trainable_variables)

    def _carried(self) -> List[Any]:
        """Moving means and variances; not counters and seeds, which are each worker's own."""
        return [
            variable
            for variable in self._model.non_trainable_variables
            if "float" in str(variable.dtype)
        ]

    def parameters(self) -> Arrays:
        return float32({_key(v): v.numpy() for v in self._trainable()})

    def state(self) -> Arrays:
        return float32({_key(v): v.numpy() for v in self._carried()})

    def _lookups(self) -> List[Any]:
        layers = self._model._flatten_layers()
        return [layer.lookup for layer in layers if isinstance(layer, Layer)]

    def embeddings(self) -> List[Embedding]:
        return check([lookup.table for lookup in self._lookups()])

    def assign(self, parameters: Arrays, state: Arrays) -> None:
        for variables, values in ((self._trainable(), parameters), (self._carried(), state)):
            for variable in variables:
                value = values.get(_key(variable))
                if value is not None:
                    variable.assign(value)

    # Steps.

    def _call(self, features: Any, training: bool) -> Any:
        features = self._of_inputs(features)
        self._signature = _signature(features)
        return self._model(features, training=training)

    def _of_inputs(self, features: Any) -> Any:
        """Features as a functional model takes them: one of one input gets its tensor, whatever `feed`
        calls it."""
        inputs = getattr(self._model, "inputs", None)
        takes_one = isinstance(inputs, (list, tuple)) and len(inputs) == 1
        if not takes_one or isinstance(getattr(self._model, "input", None), dict):
            return features
        if isinstance(features, dict) and len(features) == 1:
            return next(iter(features.values()))
        if isinstance(features, (list, tuple)) and len(features) == 1:
            return features[0]
        return features

    def _mean_loss(self, labels: Any, outputs: Any) -> Any:
        assert self.contract.loss is not None, "a contract of training has it"
        return tf.reduce_mean(self.contract.loss(labels, outputs))

    def _shape_for_loss(self, batch: Batch) -> Shaped:
        """The shape of labels that the loss takes; see `labels`."""
        if not isinstance(batch.labels, (tf.Tensor, np.ndarray)):
            return as_given
        if self._shaped is not None:
            return self._shaped
        outputs = self._run(self._outputs, batch.features, False)
        labels = tf.convert_to_tensor(batch.labels)
        shaped, is_certain = choose(self._mean_loss, labels, outputs)
        self._shaped = shaped if is_certain else None
        return shaped

    def _compute(
        self, features: Any, labels: Any, shaped: Shaped = as_given
    ) -> Tuple[Any, List[Any]]:
        variables = [_watched(variable) for variable in self._trainable()]
        # Anchors that the gradients of rows of embedding tables pass through.
        anchors = [lookup.anchor for lookup in self._lookups()]
        with tf.GradientTape() as tape:
            tape.watch(anchors)
            outputs = self._call(features, True)
            loss = self._mean_loss(*shaped(labels, outputs))
            if self._model.losses:
                loss += tf.add_n(self._model.losses)
        found = tape.gradient(loss, variables + anchors)
        self._has_row_gradients = any(one is not None for one in found[len(variables) :])
        self._is_connected = [one is not None for one in found[: len(variables)]]
        return loss, [
            tf.zeros_like(variable) if gradient is None else tf.convert_to_tensor(gradient)
            for variable, gradient in zip(variables, found)
        ]

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a graph; what a lookup in it has raised comes out as it was."""
        lookups = self._lookups()
        try:
            return function(*arguments)
        except tf.errors.OpError:
            for lookup in lookups:
                if lookup.failure is not None:
                    failure, lookup.failure = lookup.failure, None
                    raise failure from None
            raise

    def step(self, batch: Batch) -> Step:
        shaped = self._shape_for_loss(batch)
        for table in self.embeddings():
            table.begin()
        loss, found = self._run(self._gradients, batch.features, batch.labels, shaped)
        names = [_key(variable) for variable in self._trainable()]
        self._unconnected.check(names, self._is_connected, self._has_row_gradients)
        gradients = {name: value.numpy() for name, value in zip(names, found)}
        return Step(float(loss), float32(gradients))

    def predict(self, batch: Batch) -> Any:
        outputs = self._run(self._outputs, batch.features, False)
        return tf.nest.map_structure(lambda one: one.numpy(), outputs)

    # Optimizer.

    def _rate(self, version: int) -> float:
        rate = getattr(self._optimizer, "_learning_rate", None)
        if rate is None:
            rate = self._optimizer.learning_rate
        is_schedule = callable(rate) and not hasattr(rate, "numpy")
        return float(rate(version)) if is_schedule else float(rate)

    def optimizer(self) -> Optimizer:
        if isinstance(self._optimizer, Optimizer):
            return self._optimizer
        return from_keras(self._optimizer, self._rate(0))

    def learning_rate(self, version: int) -> float:
        rate = self.callbacks.rate(version)
        if rate is not None or isinstance(self._optimizer, Optimizer):
            return super().learning_rate(version)
        return self._rate(version)

    def save(self, path: str) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        for lookup in self._lookups():
            lookup.freeze()
        try:
            export = getattr(self._model, "export", None)
            takes = inspect.signature(export).parameters if export else ()
            if export and "verbose" in takes:
                export(path, verbose=False, **self._export_types(takes))
            else:
                # Legacy Keras, whose export takes no model of several features by name.
                self._model.save(path, save_format="tf")
        finally:
            for lookup in self._lookups():
                lookup.frozen = None

    def _export_types(self, takes: Any) -> Dict[str, Any]:
        """The types of the inputs of a model that has none of its own, which Keras would export as
        float32."""
        has_own = getattr(self._model, "inputs", None) is not None
        if has_own or self._signature is None or "input_signature" not in takes:
            return {}
        return {"input_signature": self._signature}


def _optimizer(contract: Contract) -> Any:
    """The optimizer of the file: one of Keras, or one of the servers."""
    found = need_optimizer(contract)()
    if isinstance(found, tf.compat.v1.train.Optimizer):
        return from_version_one(found)
    if not isinstance(found, Optimizer) and not hasattr(found, "get_config"):
        raise OptimizerError(
            f"optimizer of the model {contract.path} returned {type(found).__name__}: return one "
            "of tf.keras.optimizers or elastane.optimizers"
        )
    return found
