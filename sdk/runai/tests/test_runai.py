"""The module names of the published library. No framework but where one is installed."""

import http.server
import os
import signal
import subprocess
import sys
import threading

import pytest

import runai.elastic
import runai.hpo
import runai.reporter

PUBLISHED = {1: (4, 64), 2: (2, 64), 3: (1, 85), 4: (1, 64), 8: (1, 32)}
OURS = {1: (4, 64, 256), 2: (2, 64, 256), 3: (2, 43, 258), 4: (1, 64, 256), 8: (1, 32, 256)}


@pytest.mark.parametrize("gpus", OURS)
def test_table(gpus):
    assert runai.elastic.numbers(256, 64, gpus) == OURS[gpus]
    assert runai.elastic.numbers(256, 64, gpus, published=True)[:2] == PUBLISHED[gpus]


def test_no_batch_is_larger_than_the_gpu_holds():
    for global_batch in range(1, 300, 7):
        for largest in (1, 3, 64):
            for gpus in (1, 2, 3, 7):
                steps, batch, effective = runai.elastic.numbers(global_batch, largest, gpus)
                assert 1 <= batch <= largest and effective == steps * batch * gpus
    assert runai.elastic.numbers(100, 64, 1) == (2, 50, 100)
    assert runai.elastic.numbers(100, 64, 1, published=True) == (1, 100, 100)


def test_wrong_numbers():
    with pytest.raises(ValueError, match="gpus is 0"):
        runai.elastic.numbers(256, 64, 0)
    with pytest.raises(ValueError, match="max_gpu_batch_size is 1.5"):
        runai.elastic.numbers(256, 1.5, 1)


def test_switch_and_attributes(monkeypatch, capsys):
    runai.elastic._init(256, 64, 3)
    assert (runai.elastic.steps, runai.elastic.batch_size, runai.elastic.gpus) == (2, 43, 3)
    assert "an update sees 258 samples, not 256" in capsys.readouterr().out
    monkeypatch.setenv("RUNAI_ELASTIC_PUBLISHED", "1")
    runai.elastic._init(256, 64, 3)
    assert (runai.elastic.steps, runai.elastic.batch_size) == (1, 85)


def test_conflict_with_the_published_library_is_said():
    from importlib import metadata

    from runai.elastic._conflict import check

    class Both:
        PackageNotFoundError = metadata.PackageNotFoundError

        @staticmethod
        def version(name):
            return "0.4.1"

    with pytest.raises(ImportError, match="runai 0.4.1 and elastane-runai.*pip uninstall runai"):
        check(Both)


def test_beside_the_rest_client():
    """Both import as `runai`; the one that has no `__init__` is found in the other's folder."""
    pytest.importorskip("runai.runai_client", reason="the package runapy is not installed")
    import runai.ga  # noqa: F401
    from runai.configuration import Configuration

    assert Configuration and runai.elastic.numbers(256, 64, 4) == (1, 64, 256)


def test_grid_search(tmp_path):
    runai.hpo.init(str(tmp_path), "search")
    grid = {"rate": [0.1, 0.2], "size": [32]}
    assert runai.hpo.pick(grid) == {"rate": 0.1, "size": 32}
    runai.hpo.report(3, {"accuracy": 0.5})
    assert runai.hpo.pick(grid) == {"rate": 0.2, "size": 32}
    with pytest.raises(StopIteration, match="all 2"):
        runai.hpo.pick(grid)
    import yaml

    written = yaml.safe_load((tmp_path / "search" / "runai.yaml").read_text())
    first, second = written["experiments"]
    assert first["reports"] == [{"epoch": 3, "metrics": {"accuracy": 0.5}}]
    assert second["status"] == "assigned" and second["modificationTime"]


def test_preempted_experiment_is_picked_first(tmp_path):
    grid = {"rate": [0.1, 0.2, 0.3]}
    script = (
        "import runai.hpo, time\n"
        f"runai.hpo.init({str(tmp_path)!r})\n"
        f"print(runai.hpo.pick({grid})['rate'], flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "0.1\n"
    runai.hpo.init(str(tmp_path))
    assert runai.hpo.pick(grid)["rate"] == 0.2
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 1
    assert runai.hpo.pick(grid)["rate"] == 0.1
    assert runai.hpo.pick(grid)["rate"] == 0.3
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Gateway(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.pushed.append((self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def gateway(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    server.pushed, server.status = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("reporterGatewayURL", f"127.0.0.1:{server.server_port}")
    monkeypatch.setenv("podUUID", "pod/1")
    yield server
    server.shutdown()


def test_reports_reach_the_gateway(gateway):
    with runai.reporter.Reporter() as reporter:
        reporter.reportMetric("val-accuracy", 0.5)
        reporter.reportParameter("optimizer", 'S"GD')
    (path, metric), (_, parameter) = gateway.pushed
    assert path == "/metrics/job/reporter_pod_info/podUUID/pod%2F1"
    name = "reporter_push_gateway_metric_val_accuracy"
    labels = 'metric_name="val-accuracy",push_gateway_type="metric"'
    assert metric == f"# TYPE {name} gauge\n{name}{{{labels}}} 0.5\n"
    name = "reporter_push_gateway_parameter_optimizer"
    labels = 'param_name="optimizer",param_value="S\\"GD",push_gateway_type="parameter"'
    assert parameter == f"# TYPE {name} gauge\n{name}{{{labels}}} 1\n"


def test_keras_reports_what_its_switches_say(gateway):
    pytest.importorskip("keras", reason="Keras is not installed")
    import keras

    import numpy as np

    import runai.reporter.keras as reporting

    points = np.arange(24, dtype=np.float32).reshape(12, 2) / 24
    with reporting.Reporter(autolog=True) as reporter:
        assert reporting.autologged()
        with pytest.raises(TypeError, match="no switch 'lr'; it has accuracy, loss"):
            reporter.autolog(lr=True)
        reporter.autolog(step=False, loss_method=True)
        model = keras.Sequential([keras.layers.Dense(1, "sigmoid")])
        model.compile(keras.optimizers.SGD(0.125), "binary_crossentropy", metrics=["accuracy"])
        model.fit(points, points[:, :1] > 0.5, 4, epochs=2, verbose=0)
    assert not reporting.autologged()
    pushed = [body.split("\n")[1] for _, body in gateway.pushed]
    kinds = {line.split("{")[0].removeprefix("reporter_push_gateway_") for line in pushed}
    assert kinds == {
        *(f"metric_{name}" for name in ("accuracy", "loss", "epoch", "batch_size")),
        *("metric_overall_epochs", "metric_number_of_layers"),
        *(f"parameter_{name}" for name in ("optimizer_name", "learning_rate", "loss_method")),
    }
    assert any('param_name="learning_rate",param_value="0.125"' in line for line in pushed)
    assert any('metric_name="batch_size"' in line and line.endswith(" 4.0") for line in pushed)


def test_reporter_gives_up_after_three_failures(gateway, capsys):
    gateway.status = 500
    with runai.reporter.Reporter() as reporter:
        for n in range(6):
            reporter.reportMetric("loss", n)
    assert len(gateway.pushed) == 3
    assert "no more is pushed" in capsys.readouterr().err


def test_torch_accumulates():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import runai.ga.torch.optim as optim

    def run(make):
        weight = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = make([weight])
        for factor in (1.0, 3.0, 5.0, 7.0):
            optimizer.zero_grad()
            (weight * factor).sum().backward()
            optimizer.step()
        return float(weight.detach()), optimizer

    # Sums of 1 + 3 and 5 + 7, each times the rate.
    assert run(lambda p: optim.SGD(2, p, lr=0.01))[0] == pytest.approx(1 - 0.04 - 0.12)
    averaged = run(lambda p: optim.Optimizer(torch.optim.SGD(p, lr=0.01), 2, average=True))
    assert averaged[0] == pytest.approx(1 - 0.02 - 0.06)
    assert averaged[1].state_dict()["param_groups"][0]["runai_ga_calls"] == 0
    import runai.elastic.torch

    runai.elastic.torch.init(256, 64, gpus=2)
    assert runai.elastic.steps == 2


def test_keras_accumulates():
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    import numpy as np

    import runai.elastic.keras

    runai.elastic.keras.init(4, 2, gpus=1)
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = runai.elastic.keras.models.Model(keras.Sequential([keras.Input((1,)), layer]))
    model.compile(keras.optimizers.SGD(0.01), loss=lambda labels, outputs: outputs)
    model.fit(
        np.array([[1.0], [1.0], [3.0], [3.0]]),
        np.zeros((4, 1)),
        verbose=0,
        shuffle=False,
        batch_size=runai.elastic.batch_size,
    )
    # The mean of 1 and 3, once.
    assert float(layer.kernel.numpy()[0, 0]) == pytest.approx(1 - 0.02)
    with pytest.raises(ValueError, match="give an object"):
        model.compile("sgd")
    with pytest.raises(ValueError, match="give a tf.data.Dataset"):
        model.fit(iter([(np.ones((2, 1)), np.zeros((2, 1)))]), verbose=0)

    class Own(keras.Model):
        def train_step(self, data):
            return {}

    with pytest.raises(RuntimeError, match="a train_step of its own"):
        runai.elastic.keras.models.Model(Own()).compile(keras.optimizers.SGD(0.01), loss="mse")


def test_keras_learns_the_same_on_any_number_of_gpus(tmp_path):
    pytest.importorskip("keras", reason="Keras is not installed")
    script = """
import keras
import numpy as np
import tensorflow as tf

import runai.elastic.keras

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
inputs = np.random.RandomState(1).rand(70, 8).astype("float32")
labels = inputs[:, :4].argmax(1)

def learn(strategy, most, gpus, dataset, updates, weights=None):
    keras.utils.set_random_seed(3)
    runai.elastic.keras.init(16, most, gpus)
    with strategy.scope():
        layers = [keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(4)]
        model = runai.elastic.keras.models.Model(keras.Sequential(layers))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=loss, metrics=["accuracy"])
        model.optimizer.build(model.trainable_variables)
        if weights:
            model.load_weights(weights)
    if dataset:
        data = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(runai.elastic.batch_size)
        told = model.fit(data, steps_per_epoch=5, shuffle=False, verbose=0)
    else:
        size = runai.elastic.batch_size
        told = model.fit(inputs, labels, batch_size=size, shuffle=False, verbose=0)
    assert int(keras.ops.convert_to_numpy(model.optimizer.iterations)) == updates
    return model, model.get_weights(), told.history

def same(one, other, names=("loss", "accuracy")):
    for left, right in zip(one[1], other[1]):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    for name in names:
        np.testing.assert_allclose(one[2][name], other[2][name], rtol=1e-4)

# 70 samples are 4 updates of 16 and one of 6.
alone = learn(tf.distribute.get_strategy(), 16, 1, False, 5)
same(alone, learn(tf.distribute.get_strategy(), 4, 1, False, 5))
same(alone, learn(mirrored, 4, 2, False, 5))
same(alone, learn(mirrored, 4, 2, True, 5))
# 8 pieces of the 3 samples that each GPU has in the end.
same(alone, learn(mirrored, 1, 2, False, 5), ["loss"])
# A checkpoint of one size goes on with another, with what the optimizer knows.
alone[0].save_weights("one.weights.h5")
again = learn(tf.distribute.get_strategy(), 16, 1, False, 10, "one.weights.h5")
same(again, learn(mirrored, 4, 2, False, 10, "one.weights.h5"))
"""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
