"""Labels of shape [records, 1] and [records], for losses and metrics that want the other one."""

import numpy as np
import pytest

from elastane import backends, contract
from elastane.labels import as_given, choose, flat_labels, flat_outputs
from elastane.metrics import Metrics

LABELS = np.array([1.0, 2.0, 4.0])
OUTPUTS = np.array([1.5, 2.0, 3.0])
COLUMN = LABELS[:, None]


def squares(labels, outputs):
    """A mean that broadcasts: with a column and a row, of each label with each output."""
    return np.mean(np.square(labels - outputs))


@pytest.mark.parametrize(
    "labels, outputs, wanted",
    [
        (LABELS, OUTPUTS, as_given),
        (COLUMN, OUTPUTS[:, None], as_given),
        (COLUMN, OUTPUTS, flat_labels),
        (LABELS, OUTPUTS[:, None], flat_outputs),
    ],
)
def test_a_mean_gets_the_shapes_in_which_it_is_that_of_its_records(labels, outputs, wanted):
    shaped, is_certain = choose(squares, labels, outputs)
    assert (shaped, is_certain) == (wanted, True)
    assert squares(*shaped(labels, outputs)) == pytest.approx(np.mean([0.25, 0, 1]))


def test_a_function_that_makes_a_column_itself_gets_labels_as_they_are():
    def own(labels, outputs):
        return squares(labels[:, None], outputs)

    assert choose(own, LABELS, OUTPUTS[:, None]) == (as_given, True)


def test_a_function_that_takes_one_shape_only_gets_it():
    def rows(labels, outputs):
        if labels.ndim != 1:
            raise ValueError("labels have 2 axes")
        return squares(labels, outputs)

    assert choose(rows, COLUMN, OUTPUTS) == (flat_labels, True)
    with pytest.raises(KeyError, match="nothing"):
        choose(lambda labels, outputs: {}["nothing"], COLUMN, OUTPUTS)


def test_what_is_no_mean_over_records_gets_labels_as_they_are():
    # Of all pairs, in either shape.
    def pairs(labels, outputs):
        return np.mean(np.subtract.outer(labels.ravel(), outputs) * np.max(labels))

    assert choose(pairs, COLUMN, OUTPUTS) == (as_given, True)


def test_a_single_record_does_not_tell():
    assert choose(squares, COLUMN[:1], OUTPUTS[:1]) == (as_given, False)
    assert choose(squares, COLUMN[:1], OUTPUTS[:1, None]) == (as_given, False)


@pytest.mark.parametrize("count", [20, 8])
def test_equal_labels_at_the_beginning_do_not_tell(count):
    labels = np.append(np.zeros(count - 1), 1.0) if count > 8 else np.zeros(count)
    outputs = np.linspace(0.1, 0.7, count)
    wanted = (flat_labels, True) if count > 8 else (as_given, False)
    assert choose(squares, labels[:, None], outputs) == wanted


def test_equal_outputs_do_not_tell():
    assert choose(squares, COLUMN, np.zeros(3)) == (flat_labels, True)
    assert choose(squares, LABELS, np.zeros((3, 1))) == (flat_outputs, True)
    assert choose(squares, COLUMN, np.zeros((3, 1))) == (as_given, True)
    # Outputs that differ, and count as one class.
    classes, outputs = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.3, 0.15])

    def accuracy(labels, outputs):
        return np.mean(np.round(outputs) == labels)

    assert choose(accuracy, classes[:, None], outputs) == (flat_labels, True)
    logits = np.array([[0.1, 0.0]] * 4)
    best = choose(lambda of, at: np.mean(np.argmax(at, 1) == of), classes[:, None], logits)
    assert best == (flat_labels, True)


def test_a_function_that_takes_no_single_record_gets_labels_as_they_are():
    def several(labels, outputs):
        if len(labels) == 1:
            raise ValueError("a single record")
        return squares(labels, outputs)

    assert choose(several, COLUMN, OUTPUTS) == (as_given, True)


def test_outputs_of_bfloat16_are_read(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    path = tmp_path / "model.py"
    text = TORCH.replace("FEATURES", "0").replace("LABELS", "1:")
    path.write_text(text.replace("features * self.a", "(features * self.a).bfloat16()"))
    backend = backends.choose(contract.load(str(path)))
    (batch,) = backend.batches(RECORDS, "training", 10, pytest.fail)
    assert backend.step(batch).loss == pytest.approx(np.mean([0.25, 0, 1]), rel=0.01)
    assert backend.predict(batch).tolist() == [1.5, 2, 3]


def test_keras_learns_from_a_last_layer_of_zeros(tmp_path):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    path = tmp_path / "model.py"
    path.write_text(KERAS)
    backend = backends.choose(contract.load(str(path)))
    (batch,) = backend.batches(RECORDS, "training", 10, pytest.fail)
    # Of (0 - y)^2 by the weight of x.
    expected = np.mean([-2 * 1 * 1.5, -2 * 2 * 2, -2 * 4 * 3])
    (gradient,) = backend.step(batch).gradients.values()
    assert gradient.ravel() == pytest.approx([expected])


KERAS = """
import tensorflow as tf
def custom_model():
    given = tf.keras.Input((1,))
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    return tf.keras.Model(given, layer(given))
def feed(dataset, mode, metadata):
    def parse(record):
        numbers = tf.strings.to_number(tf.strings.split(record, " "))
        return tf.reshape(numbers[:1], [1]), numbers[1]
    return dataset.map(parse)
def loss(labels, predictions): return tf.reduce_mean(tf.square(predictions - labels))
def optimizer(): return tf.keras.optimizers.SGD(0.1)
"""
NUMPY = """
import numpy as np
from elastane import optimizers
class Model:
    parameters = {"a": np.ones(1, np.float32)}
    def forward(self, features, training):
        self.features = features
        return features * self.parameters["a"]
    def backward(self, d_outputs):
        assert d_outputs.shape == self.features.shape, d_outputs.shape
        return {"a": np.array([np.sum(d_outputs * self.features)])}
def custom_model(): return Model()
def feed(records, mode, metadata):
    pairs = np.array([[float(of) for of in record.split()] for record in records])
    return pairs[:, FEATURES], pairs[:, LABELS]
def loss(labels, predictions):
    error = predictions - labels
    return np.mean(error ** 2), 2 * error / len(error)
def optimizer(): return optimizers.SGD(0.1)
def eval_metrics_fn():
    return {"mean": lambda labels, predictions: np.mean(np.abs(labels - predictions) < 0.6)}
"""
TORCH = """
import numpy as np
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.ones(1))
    def forward(self, features): return features * self.a
def custom_model(): return Model()
def feed(records, mode, metadata):
    pairs = np.array([[float(of) for of in record.split()] for record in records], np.float32)
    return pairs[:, FEATURES], pairs[:, LABELS]
def loss(labels, predictions): return torch.square(predictions - labels).mean()
def optimizer(parameters): return torch.optim.SGD(parameters, 0.1)
def eval_metrics_fn():
    return {"mean": lambda labels, values: np.mean(np.abs(np.array(labels) - values) < 0.6)}
"""
RECORDS = list(enumerate([b"1.5 1", b"2 2", b"3 4"]))


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("features, labels", [("0", "1:"), (":1", "1")])
def test_backends_shape_labels_for_loss_and_metrics(tmp_path, framework, features, labels):
    if framework == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    text = {"numpy": NUMPY, "torch": TORCH}[framework]
    path = tmp_path / "model.py"
    path.write_text(text.replace("FEATURES", features).replace("LABELS", labels))
    model = contract.load(str(path))
    backend = backends.choose(model)
    (batch,) = backend.batches(RECORDS, "training", 10, pytest.fail)
    step = backend.step(batch)
    assert step.loss == pytest.approx(np.mean([0.25, 0, 1]))
    # Of (a x - y)^2 by a, at 1.
    expected = np.mean([2 * 0.5 * 1.5, 0, -2 * 3])
    assert step.gradients["a"] == pytest.approx([expected], rel=1e-5)
    metrics = Metrics(model)
    metrics.update(batch.labels, backend.predict(batch))
    assert metrics.result()["mean"] == (pytest.approx(2), 3)
