"""Optimizers of files of each age: taken over with their numbers, or refused by name."""

import os
import subprocess
import sys

import pytest
from conftest import needs

from elastane import backends, contract
from elastane.optimizers import SGD, Adagrad, Adam, OptimizerError

MODEL = """
import tensorflow as tf
def custom_model():
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])
def feed(dataset, mode, metadata): return dataset
def loss(labels, predictions): return 0.0
def optimizer(lr=0.25): return {made}
"""
TRAIN = "tf.compat.v1.train"


def optimizer(folder, made):
    (folder / "model.py").write_text(MODEL.format(made=made))
    backend = backends.choose(contract.load(str(folder / "model.py")))
    return backend.optimizer(), backend.learning_rate(3)


@pytest.mark.parametrize(
    "made, same",
    [
        ("tf.train.GradientDescentOptimizer(lr)", SGD(0.25)),
        (f"{TRAIN}.MomentumOptimizer(lr, 0.5, use_nesterov=True)", SGD(0.25, 0.5, True)),
        (f"{TRAIN}.AdamOptimizer(lr, beta1=0.5)", Adam(0.25, 0.5, 0.999, 1e-8)),
        ("tf.train.AdamOptimizer(learning_rate=lr)", Adam(0.25, 0.9, 0.999, 1e-8)),
        (f"{TRAIN}.AdagradOptimizer(lr, 0.5)", Adagrad(0.25, 0.0, 0.5)),
        ("tf.keras.optimizers.SGD(lr=lr, momentum=0.5)", SGD(0.25, 0.5)),
        ("tf.optimizers.Adam(lr=lr)", Adam(0.25)),
        ("__import__('elastane').optimizers.SGD(lr)", SGD(0.25)),
    ],
)
def test_taken_over_with_their_numbers(tmp_path, made, same):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    found, rate = optimizer(tmp_path, made)
    assert found.kind == same.kind and rate == 0.25
    assert found.arguments == pytest.approx(same.arguments)


@pytest.mark.parametrize(
    "made, says",
    [
        (f"{TRAIN}.RMSPropOptimizer(lr)", "no optimizer RMSPropOptimizer; use Gradient.*, or SGD"),
        (f"{TRAIN}.FtrlOptimizer(lr)", "no optimizer FtrlOptimizer; use"),
        (f"{TRAIN}.AdamOptimizer(lambda: lr)", "has a function as learning_rate: give .* Learning"),
        ("tf.keras.optimizers.SGD(lr, decay=0.1)", "SGD has decay=0.1: give learning_rate a sched"),
        ("tf.keras.optimizers.RMSprop(lr=lr)", "no optimizer RMSprop; it has SGD, Adam and Adagr"),
        ("'adam'", "model.py returned str: return one of tf.keras.optimizers or elastane.optimize"),
    ],
)
def test_refused_by_name(tmp_path, made, says):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    with pytest.raises(OptimizerError, match=says):
        optimizer(tmp_path, made)


def test_legacy_keras_does_not_lose_the_rate(tmp_path):
    needs("tensorflow", "tf_keras")
    (tmp_path / "model.py").write_text(MODEL.format(made="tf.keras.optimizers.SGD(lr=lr)"))
    program = (
        "import sys; from elastane import backends, contract; "
        "backend = backends.choose(contract.load(sys.argv[1])); "
        "print(backend.optimizer().learning_rate, backend.learning_rate(3))"
    )
    environment = dict(
        os.environ, TF_USE_LEGACY_KERAS="1", PYTHONPATH=os.pathsep.join(sys.path)
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["0.25", "0.25"], done.stderr


def test_torch_is_refused_by_name(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "model.py").write_text(
        "import torch\ndef custom_model(): return torch.nn.Linear(1, 1)\n"
        "def feed(records, mode, metadata): return records, records\n"
        "def loss(labels, predictions): return predictions\n"
        "def optimizer(lr=0.1): return 'sgd'\n"
    )
    with pytest.raises(OptimizerError, match="returned str: return one of torch.optim or elastane"):
        backends.choose(contract.load(str(tmp_path / "model.py")))


def test_an_object_is_refused_with_what_to_define(tmp_path):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    text = MODEL.format(made="1") + "optimizer = tf.keras.optimizers.SGD(0.1)\n"
    (tmp_path / "model.py").write_text(text)
    says = r"is SGD, not a function: define optimizer\(\)"
    with pytest.raises(contract.ContractError, match=says):
        contract.load(str(tmp_path / "model.py"))
