"""Published modules under their own names: each name of them is given, or refused when it is used
with a reason and what to do instead."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest
from conftest import needs

from elastane import contract
from elastane.callbacks import Callbacks
from elastane.readers import DataError

HERE = pathlib.Path(__file__).parent
NAMES = HERE / "published_names.json"
REFERENCE = HERE.parents[2] / "docs" / "reference" / "elasticdl.md"
# Before an installed wheel.
sys.path.insert(0, contract.compatibility_path())


def documented():
    """For each module of the reference's table, the names that are given and those that are
    refused."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \| (.*) \|$", section(), re.M)
    return {module: [re.findall(r"`([\w.]+)`", cell) for cell in cells] for module, *cells in rows}


def section():
    return REFERENCE.read_text(encoding="utf-8").partition("\n## Published modules\n")[2]


def test_the_reference_lists_what_is_published():
    published = json.loads(NAMES.read_text(encoding="utf-8"))
    listed = {of: sorted(given + refused) for of, (given, refused) in documented().items()}
    assert listed == {of: sorted(names) for of, names in published.items()}


def test_each_module_of_the_compatibility_packages_is_listed():
    """A module that has more than its description has published names."""
    folder = pathlib.Path(contract.compatibility_path())
    found = set()
    for path in folder.rglob("*.py"):
        is_package = path.name == "__init__.py"
        if is_package and not re.search("^from ", path.read_text(encoding="utf-8"), re.M):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        found.add(".".join(part for part in parts if part != "__init__"))
    assert found == set(documented())


def test_each_published_name_is_given_or_refused_with_what_to_do_instead():
    needs("tensorflow", "torch")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), TF_CPP_MIN_LOG_LEVEL="3")
    command = [sys.executable, str(HERE / "import_published.py"), str(NAMES)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    for module, states in json.loads(done.stdout.splitlines()[-1]).items():
        given, refused = documented()[module]
        for name, state in states.items():
            if name in given:
                is_there = state == "given" or "pip install torchvision" in state
                assert is_there, f"{module}.{name}: {state}"
                continue
            what, says, instead = state.partition(" cannot be had here: ")
            assert name in refused and says and what.endswith(name), f"{module}.{name}: {state}"
            assert len(instead.split()) > 3, state


class Task:
    """A task as published readers get it."""

    def __init__(self, name, start, end):
        self.shard_name, self.start, self.end = str(name), start, end


@pytest.fixture
def iris(tmp_path):
    path = tmp_path / "iris.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = [["length", "width", "name"], [5, 3, "a;b"], [6, 2, "b"], [7, 1, "c"]]
        csv.writer(file, delimiter=";").writerows(rows)
    return path


def test_rows_of_named_columns(iris):
    from elasticdl.python.data.reader.csv_reader import CSVDataReader

    reader = CSVDataReader(sep=";", columns=["name", "length"])
    assert list(reader.read_records(Task(iris, 0, 2))) == [["a;b", "5"], ["b", "6"]]
    assert reader.metadata.column_names == ["name", "length"]
    with pytest.raises(DataError, match="data_dir=PATH"):
        reader.create_shards()
    of_file = CSVDataReader(str(iris), sep=";", columns=None)
    (shard,) = of_file.create_shards()
    assert (shard.start, shard.count) == (0, 3)
    assert list(of_file.read_records(Task(iris, 2, 3))) == [["7", "1", "c"]]
    without = CSVDataReader(str(iris), sep=";")
    assert len(list(without.read_records(Task(iris, 0, 4)))) == 4


def test_readers_take_tasks_of_both_ages_and_lines_in_another_order(iris):
    from elasticdl.python.data.reader.csv_reader import CSVDataReader
    from elasticdl.python.data.reader.text_reader import TextDataReader

    earlier = Task(iris, 1, 4)
    final = types.SimpleNamespace(shard=types.SimpleNamespace(name=str(iris), start=1, end=4))
    for reader in (TextDataReader(filename=str(iris)), CSVDataReader(sep=";")):
        assert list(reader.read_records(final)) == list(reader.read_records(earlier)) != []
    lines = TextDataReader(filename=str(iris), records_per_task=2)
    in_order = list(lines.read_records(final))
    assert sorted(lines.read_records(final, shuffle=True)) == sorted(in_order)


def test_columns_that_are_not_there_are_named(iris):
    from elasticdl.python.data.reader.csv_reader import CSVDataReader

    reader = CSVDataReader(sep=";", columns=["name", "height"])
    with pytest.raises(DataError, match="does not name height: it names length, width, name"):
        next(reader.read_records(Task(iris, 0, 1)))
    iris.write_text("a,b\n1\n")
    with pytest.raises(DataError, match="record 0 of .* has 1 columns, and the first line 2"):
        next(CSVDataReader(columns=["a"]).read_records(Task(iris, 0, 1)))


def test_a_type_of_readers_that_is_not_here_is_an_error(iris):
    from elasticdl.python.common.constants import ReaderType
    from elasticdl.python.data.reader.data_reader_factory import create_data_reader

    says = "reader_type 'ODPS' is not one of RecordIO, CSV: write the rows of the table .* to a .csv"
    with pytest.raises(DataError, match=says):
        create_data_reader("table", 10, reader_type=ReaderType.ODPS_READER)
    with pytest.raises(DataError, match="'Parquet' is not one of RecordIO, CSV; other sources"):
        create_data_reader(str(iris), reader_type="Parquet")
    assert len(list(create_data_reader(str(iris)).read_records(Task(iris, 0, 4)))) == 4
    assert create_data_reader(str(iris.parent), reader_type="CSV").get_size() == 4
    with pytest.raises(DataError, match="files of lines end in .csv"):
        create_data_reader(str(iris), reader_type="RecordIO").create_shards()


def test_schedules_of_both_ages():
    from elasticdl.python.common import lr_scheduler
    from elasticdl.python.elasticdl.callbacks import LearningRateScheduler

    with pytest.raises(TypeError, match="takes one argument, the version of the model"):
        LearningRateScheduler(lambda version, rate: rate)
    earlier = lr_scheduler.LearningRateScheduler(lambda version: 0.5**version, model_version=2)
    assert earlier.get_learning_rate() == 0.25
    earlier.set_model_version(3)
    assert earlier.get_learning_rate() == 0.125
    assert lr_scheduler.LearningRateScheduler(0.3).get_learning_rate() == 0.3
    assert Callbacks([earlier], None, None).rate(1) == 0.5


def test_hooks_that_require_logs_get_empty_ones():
    class Noted:
        called = []

        def on_train_batch_begin(self, batch, logs):
            self.called.append((batch, logs))

        def on_train_end(self, logs):
            self.called.append(logs)

    callbacks = Callbacks([Noted()], None, None)
    callbacks.batch_begin(7)
    callbacks.train_end()
    assert Noted.called == [(7, {}), {}]


def test_helpers_that_load_a_model(tmp_path):
    from elasticdl.python.common import model_utils

    (tmp_path / "zoo").mkdir()
    path = model_utils.get_module_file_path(str(tmp_path), "zoo.mine.custom_model")
    assert path == str(tmp_path / "zoo" / "mine.py")
    (tmp_path / "zoo" / "mine.py").write_text("def custom_model(size=1): return [size]")
    module = vars(model_utils.load_module(path))
    make = model_utils.load_model_from_module
    assert make("zoo.mine.custom_model", module, "size=3") == [3] and make("custom_model", module) == [1]
    with pytest.raises(ValueError, match="no 'other', which mine.other names"):
        make("mine.other", module)
    assert model_utils.get_dict_from_params_str("a=1; b='x=y';c=text") == {
        "a": 1,
        "b": "x=y",
        "c": "text",
    }
    assert model_utils.get_dict_from_params_str("") is None
    kinds = {name: type(name, (), {"trainable_variables": [name]}) for name in ("Dense", "Table")}
    dense, table = kinds["Dense"](), kinds["Table"]()
    inner = types.SimpleNamespace(layers=[table])
    model = types.SimpleNamespace(layers=[dense, inner], trainable_variables=["Dense", table])
    assert model_utils.find_layer(model, kinds["Table"]) == [table]
    assert model_utils.get_non_embedding_trainable_vars(model, [dense]) == [table]


def test_loggers(tmp_path):
    from elasticai_api.util.log_utils import default_logger, get_logger
    from elasticdl.python.common import log_utils

    assert default_logger.name == "elastic.logger"
    assert get_logger("of a loop", "INFO", None, True).handlers == []
    file = tmp_path / "log"
    for _ in range(2):
        log_utils.get_logger("of a test", "WARNING", str(file)).warning("said")
    assert file.read_text() == "said\nsaid\n"


def test_images_of_a_folder_by_the_records_of_a_service(monkeypatch):
    class ImageFolder:
        def __init__(self, root, transform=None):
            self.samples = [f"{root}/{number}" for number in range(3)]

        def __len__(self):
            return len(self.samples)

        def __getitem__(self, index):
            return self.samples[index]

    for name in ("torchvision", "torchvision.datasets", "torchvision.datasets.folder"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["torchvision.datasets"].ImageFolder = ImageFolder
    sys.modules["torchvision.datasets.folder"].IMG_EXTENSIONS = (".png",)
    monkeypatch.delitem(sys.modules, "elasticai_api.pytorch.dataset", raising=False)
    from elasticai_api.pytorch.dataset import ElasticImageFolder

    images = ElasticImageFolder("of")
    assert (len(images), images[1]) == (3, "of/1")
    images.set_data_shard_service(types.SimpleNamespace(fetch_record_index=lambda: 2))
    assert (len(images), images[1]) == (sys.maxsize, "of/2")
    sys.modules.pop("elasticai_api.pytorch.dataset")
