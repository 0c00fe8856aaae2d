"""Model files in each published form, each age of it, with Keras 3 and with legacy Keras."""

import json
import os
import subprocess
import sys

import pytest
from conftest import needs

from elastane import contract
from elastane.readers import FileReader

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = [
    *("may_2019", "june_2019", "july_2019", "adam_2019"),
    *("functional_2020", "subclass_2020", "regression_2020", "lines", "preprocess_2020"),
]


def train(folder, forms, legacy):
    needs("tensorflow", *(["tf_keras"] if legacy else []))
    environment = dict(
        os.environ,
        TF_USE_LEGACY_KERAS=str(int(legacy)),
        TF_CPP_MIN_LOG_LEVEL="3",
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    command = [sys.executable, os.path.join(HERE, "train_forms.py"), str(folder), *forms]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line.pop("form"): line for line in lines}


@pytest.mark.parametrize("legacy", [False, True], ids=["keras-3", "legacy"])
def test_each_form_trains_is_measured_and_exported(tmp_path, legacy):
    forms = [*FORMS, "columns"] if legacy else FORMS
    found = train(tmp_path, [*forms, "nothing_learned"], legacy)
    unlearned = found.pop("nothing_learned")
    assert "does not depend on any of its parameters" in unlearned["error"], unlearned
    assert list(found) == forms
    for form, line in found.items():
        assert "error" not in line, f"{form}: {line['error']}"
        print(f"{form}: {line}")
        assert line["bad"] == 0 and line["after"] < line["before"] * 0.6, f"{form}: {line}"
        # The form of May 2019 had no metrics yet.
        values = [value for value in line["metrics"].values()]
        assert values or form == "may_2019", form
        assert all(0.75 < value <= 1 for value in values), f"{form}: {line}"
        assert all(abs(line["exported"] - value) < 1e-3 for value in values), f"{form}: {line}"
        assert line["exported"] > 0.75, f"{form}: {line}"
        assert "saved_model.pb" in line["saved"], f"{form}: {line}"
    warned = {form for form, line in found.items() if line["warnings"]}
    assert warned == {"subclass_2020"}
    (warning,) = found["subclass_2020"]["warnings"]
    assert "dense_" in warning or "unused" in warning, warning


MODEL = """
{more}
class Model:
    parameters = {{"a": 0}}
    def forward(self, features, training): return features
    def backward(self, d_outputs): return {{}}
def custom_model(): return Model()
def feed(records, mode, metadata): return records, records
def loss(labels, predictions): return 0.0, 0.0
def optimizer(): return None
def eval_metrics_fn(): return {{}}
"""


def load(folder, more):
    (folder / "model.py").write_text(MODEL.format(more=more))
    return contract.load_definition(str(folder), "model.custom_model")


@pytest.mark.parametrize(
    "line, says",
    [
        (
            "from elasticdl.python.data.odps_io import ODPSReader as called",
            "elasticdl.python.data.odps_io.ODPSReader cannot be had here: .* custom_data_reader",
        ),
        (
            "from elasticdl.python.data.reader.odps_reader import ODPSDataReader as called",
            "ODPSDataReader cannot be had here",
        ),
        (
            "from elasticdl.callbacks import SavedModelExporter as called",
            "elasticdl.callbacks.SavedModelExporter cannot be had here: --output=FOLDER",
        ),
    ],
)
def test_published_names_are_refused_when_they_are_called(tmp_path, line, says):
    load(tmp_path, line)
    called = sys.modules["elastane_model_model"].called
    with pytest.raises(NotImplementedError, match=says):
        called("a", b=1)


def test_published_names_that_are_given(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("1,2\n3,4\n")
    load(
        tmp_path,
        f"""
from elasticdl.python.common.constants import MaxComputeConfig
from elasticdl.python.common.log_utils import default_logger
from elasticdl.python.data.odps_io import is_odps_configured
from elasticdl.python.data.reader.data_reader import AbstractDataReader, Metadata
from elasticdl.python.data.reader.csv_reader import CSVDataReader
from elasticdl.python.worker.prediction_outputs_processor import BasePredictionOutputsProcessor
class PredictionOutputsProcessor(BasePredictionOutputsProcessor): pass
class Task: shard_name, start, end = {str(data)!r}, 0, 2
rows = list(CSVDataReader({str(data)!r}).read_records(Task))
assert not is_odps_configured()
""",
    )
    assert sys.modules["elastane_model_model"].rows == [["1", "2"], ["3", "4"]]


def test_a_zoo_hides_no_installed_package_and_its_files_import_each_other(tmp_path):
    zoo = tmp_path / "models"
    (zoo / "numpy").mkdir(parents=True)
    (zoo / "numpy" / "__init__.py").write_text("raise ImportError('of the zoo')")
    (zoo / "losses").mkdir()
    (zoo / "losses" / "mine.py").write_text("VALUE = 7")
    sys.modules.pop("model_zoo", None)
    load(zoo, "import json\nfrom model_zoo.losses.mine import VALUE\nassert VALUE == 7")
    assert sys.path[-1] == str(zoo) and sys.path.index(str(zoo)) > 0
    sys.modules.pop("model_zoo", None)


@pytest.mark.parametrize(
    "signature, output_first",
    [("output, labels", True), ("labels, predictions", False), ("y_true, y_pred", False)],
)
def test_the_order_of_labels_and_output_is_that_of_their_names(tmp_path, signature, output_first):
    text = MODEL.format(more="").replace(
        "def loss(labels, predictions): return 0.0, 0.0",
        f"def loss({signature}): return {signature}",
    )
    (tmp_path / "model.py").write_text(text)
    found = contract.load_definition(str(tmp_path), "model.custom_model")
    given = ("of output", "of labels") if output_first else ("of labels", "of output")
    assert found.loss("of labels", "of output") == given


def errors_as(account, loads):
    """The errors of these calls in a process of another account."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(account)
            os.setuid(account)
            said = []
            for load, path in loads:
                try:
                    load(str(path))
                except ValueError as error:
                    said.append(str(error))
            os.write(writable, json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can take another account")
def test_what_the_account_of_a_worker_cannot_read_is_named(tmp_path):
    folder, single = tmp_path / "closed", tmp_path / "single.py"
    folder.mkdir()
    inside = folder / "model.py"
    for path in (inside, single):
        path.write_text(MODEL.format(more=""))
    for above in [tmp_path, *tmp_path.parents][:3]:
        above.chmod(0o755)
    folder.chmod(0o700)
    single.chmod(0o600)
    loads = [(load, path) for path in (inside, single) for load in (contract.load, FileReader)]
    # Opened when its records are counted.
    loads[3] = (lambda path: FileReader(path).create_shards(), single)
    said = errors_as(65534, loads)
    assert len(said) == 4
    account = "by the account with the number 65534, under which this worker runs"
    for line, closed, mode in zip(said, [folder] * 2 + [single] * 2, ["a+rx"] * 2 + ["a+r"] * 2):
        assert f"cannot be read {account}: {closed} is closed to it" in line
        assert line.endswith(f"it is of the account with the number 0; type chmod {mode} {closed}")
