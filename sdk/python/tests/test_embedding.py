"""Embedding tables: adding up gradients, the models that have some, and the worker with them."""

import os
import threading
import time

import grpc
import numpy as np
import pytest
from conftest import EXAMPLES, said
from stand_in import Job

from elastane import backends, contract, embedding
from elastane.connection import CallError, Interrupted
from elastane.embedding import Embedding, EmbeddingError
from elastane.parameters import ParameterServers
from elastane.protocol import messages as pb

MODEL = os.path.join(EXAMPLES, "digits_embedding.py")


class Memory:
    """Rows in memory: row `id` is [id mod 10, 1, 1 ...], times a factor."""

    def __init__(self, factor=1.0):
        self.asked, self.factor = [], np.float32(factor)

    def rows(self, table, ids):
        self.asked.append(ids)
        out = np.ones((len(ids), table.dim), np.float32)
        out[:, 0] = ids % np.uint64(10)
        return out * self.factor


def table(dim=2, name="t"):
    made = Embedding(name, dim)
    made.source = Memory()
    return made


def test_a_lookup_asks_for_each_row_once_and_the_gradient_has_each_once():
    one = table()
    vectors = one(np.array([[7, 3], [7, -1]]))
    assert vectors.shape == (2, 2, 2)
    assert one.source.asked[0].tolist() == [3, 7, 2**64 - 1]
    assert vectors[..., 0].tolist() == [[7, 3], [7, 5]]
    one.backward(np.arange(8.0).reshape(2, 2, 2))
    ids, rows = one.gradient()
    assert ids.tolist() == [3, 7, 2**64 - 1] and ids.dtype == np.uint64
    assert rows.tolist() == [[2, 3], [4, 6], [6, 7]] and rows.dtype == np.float32


def test_lookups_of_one_step_are_added_up_and_the_next_step_begins_with_none():
    one = table()
    one(np.array([1, 2]))
    one(np.array([2, 3], np.uint64))
    # The last lookup first.
    one.backward(np.full((2, 2), 10.0))
    one.backward(np.full((2, 2), 1.0))
    ids, rows = one.gradient()
    assert ids.tolist() == [1, 2, 3] and rows[:, 0].tolist() == [1, 11, 10]
    with pytest.raises(EmbeddingError, match="backward was called more often"):
        one.backward(np.ones((2, 2)))
    one.begin()
    assert len(one.gradient()[0]) == 0


def test_what_cannot_be_is_refused_with_the_name_of_the_table():
    for made, what in (
        (lambda: Embedding("", 2), "needs a name"),
        (lambda: Embedding("t", 0), "dim is 0"),
        (lambda: Embedding("t", 2, "glorot"), "no initializer 'glorot'; there are uniform"),
        (lambda: table()(np.array([1.5])), "'t' got ids of float64"),
        (lambda: Embedding("t", 2)(np.array([1])), "'t' are on parameter servers"),
        (lambda: embedding.check([table(), table()]), "two embedding tables are called 't'"),
    ):
        with pytest.raises(EmbeddingError, match=what):
            made()
    one = table()
    one(np.array([1]))
    with pytest.raises(EmbeddingError, match="1 ids were looked up, and backward got .* of 3"):
        one.backward(np.ones((3, 2)))
    one(np.array([4, 5]))
    one.backward(np.array([[1, 1], [np.nan, 1]]))
    with pytest.raises(FloatingPointError, match="row 5 of embedding table 't' is not finite"):
        one.gradient()


def test_rows_go_to_the_server_of_their_id():
    class Server:
        def __init__(self):
            self.requests = []

        def call(self, name, request, wait_ms, interrupted):
            self.requests.append(request)

    servers = [Server() for _ in range(3)]
    one = table()
    both = ParameterServers(servers, lambda: False)
    both.serve([one])
    assert both.rows(one, np.array([4], np.uint64)).tolist() == [[0, 0]], "before there is a model"
    ids = np.array([0, 1, 4, 5, 2**64 - 1], np.uint64)
    one.add(ids, np.arange(10, dtype=np.float32).reshape(5, 2))
    both.push(0, 1, 1, 0, {}, {}, 0.1, 5, {})
    found = []
    for server in servers:
        (rows,) = server.requests[0].rows
        found.append(np.frombuffer(rows.ids, "<u8").tolist())
        assert np.frombuffer(rows.values, "<f4").size == 2 * len(found[-1])
        assert (rows.table, rows.dim) == ("t", 2)
    assert found == [[0, 2**64 - 1], [1, 4], [5]]


def test_all_servers_are_asked_for_rows_at_the_same_time():
    both_are_asked = threading.Barrier(2)

    class Server:
        def call(self, name, request, wait_ms, interrupted):
            if name == "PushGradients":
                return None
            # One after the other would wait here in vain.
            both_are_asked.wait(20)
            ids = np.frombuffer(request.ids, "<u8")
            if request.stored:
                ids = np.array([4] if self is servers[0] else [3], np.uint64)
            values = np.stack([ids, ids + 1], axis=1).astype("<f4")
            rows = pb.Rows(table="t", dim=2, ids=ids.tobytes(), values=values.tobytes())
            return pb.PullRowsReply(rows=rows)

    servers = [Server(), Server()]
    one = table()
    both = ParameterServers(servers, lambda: False)
    both.serve([one])
    both._at = (0, 1)
    ids = np.array([2, 5, 0], np.uint64)
    assert both.rows(one, ids).tolist() == [[2, 3], [5, 6], [0, 1]]
    stored = both.stored_rows(one)
    assert [part.tolist() for part in stored] == [[3, 4], [[3, 4], [4, 5]]]


@pytest.mark.parametrize("fails", [0, 1])
def test_a_refusal_of_one_server_ends_the_calls_to_the_others(fails):
    is_waiting, was_stopped = threading.Event(), threading.Event()

    class Server:
        def call(self, name, request, wait_ms, interrupted):
            if self is servers[fails]:
                assert is_waiting.wait(20)
                raise CallError("PullRows", grpc.StatusCode.INVALID_ARGUMENT, "no such table")
            # An absent server: the call is repeated until nothing needs it any more.
            is_waiting.set()
            for _ in range(2000):
                if interrupted():
                    was_stopped.set()
                    raise Interrupted()
                time.sleep(0.01)
            raise AssertionError("nothing has stopped it")

    servers = [Server(), Server()]
    one = table()
    both = ParameterServers(servers, lambda: False)
    both._at = (0, 1)
    ids = np.array([2, 5], np.uint64)
    for pull in (lambda: both.rows(one, ids), lambda: both.stored_rows(one)):
        is_waiting.clear()
        was_stopped.clear()
        # The refusal, and not that the other call was ended for it.
        with pytest.raises(CallError, match="no such table"):
            pull()
        assert was_stopped.wait(20)


def check_gradient(backend, batch, one, id_, column):
    """The gradient of a number of a row against the difference of the losses beside it."""
    step = backend.step(batch)
    ids, rows = one.gradient()
    found = rows[np.searchsorted(ids, np.uint64(id_))][column]
    losses = []
    plain = one.source.rows
    for by in (-1e-2, 1e-2):

        def moved(table, ids, by=by):
            out = plain(table, ids)
            out[ids == np.uint64(id_), column] += by
            return out

        one.source.rows = moved
        losses.append(backend.step(batch).loss)
    one.source.rows = plain
    assert found == pytest.approx((losses[1] - losses[0]) / 2e-2, rel=0.05, abs=1e-4)
    return step


def test_the_gradient_of_the_example_is_its_derivative():
    found = backends.choose(contract.load(MODEL))
    (one,) = found.embeddings()
    one.source = Memory(0.01)
    random = np.random.default_rng(3)
    ids = random.integers(0, 9, (5, 64)).astype(np.uint64)
    batch = backends.Batch(ids, random.integers(0, 10, 5), [(0, b"")])
    step = check_gradient(found, batch, one, 4, 1)
    assert set(step.gradients) == {"classes/kernel", "classes/bias"}


def test_a_table_of_pytorch_gets_the_derivative(tmp_path):
    torch = pytest.importorskip("torch")
    model = tmp_path / "model.py"
    model.write_text(
        "import torch\n"
        "from elastane.torch import Embedding\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.words, self.out = Embedding('words', 3), torch.nn.Linear(3, 2)\n"
        "    def forward(self, ids):\n"
        "        return self.out(self.words(ids).sum(1))\n"
        "custom_model = Model\n"
        "feed = lambda records, mode, metadata: records\n"
        "loss = torch.nn.functional.cross_entropy\n"
        "def loss(labels, outputs):\n"
        "    return torch.nn.functional.cross_entropy(outputs, labels)\n"
        "optimizer = lambda parameters: torch.optim.SGD(parameters, 0.1)\n"
    )
    found = backends.choose(contract.load(str(model)))
    (one,) = found.embeddings()
    one.source = Memory()
    ids = torch.tensor([[1, 2, 2], [2, -1, 4]])
    batch = backends.Batch(ids, torch.tensor([0, 1]), [(0, b"")])
    step = check_gradient(found, batch, one, 2, 1)
    assert set(step.gradients) == {"out.weight", "out.bias"}
    found.predict(batch)
    assert not one._gradients or found.step(batch), "a prediction has no gradient"


KERAS = '''
import tensorflow as tf
from elasticdl.python.elasticdl.layers.embedding import Embedding


def custom_model():
    ids = tf.keras.Input((3,), dtype="int64")
    one = Embedding(3, name="one")(ids)
    two = Embedding(3, name="two", combiner="mean")(ids)
    joined = tf.keras.layers.Concatenate()([tf.keras.layers.Flatten()(one), two])
    return tf.keras.Model(ids, tf.keras.layers.Dense(2)(joined))


def feed(dataset, mode, metadata):
    return dataset


def loss(labels, outputs):
    return tf.keras.losses.sparse_categorical_crossentropy(labels, outputs, from_logits=True)


def optimizer():
    return tf.keras.optimizers.SGD(0.1)
'''


def test_the_published_layer_of_keras(tmp_path):
    tf = pytest.importorskip("tensorflow")
    model = tmp_path / "model.py"
    model.write_text(KERAS)
    found = backends.choose(contract.load(str(model)))
    tables = {table.name: table for table in found.embeddings()}
    assert set(tables) == {"one", "two"}
    for table in tables.values():
        table.source = Memory(0.1)
    ids = tf.constant([[1, 2, 2], [2, -1, 4]], tf.int64)
    batch = backends.Batch(ids, tf.constant([0, 1]), [(0, b"")])
    found.build(batch)
    assert all("embedding" not in name for name in found.parameters())
    for name in tables:
        step = check_gradient(found, batch, tables[name], 2, 1)
    assert len(step.gradients) == 2
    before = found.predict(batch)
    # The exported model has the rows in it.
    for table in tables.values():
        known = np.array([1, 2, 4, 2**64 - 1], np.uint64)
        rows = table.source.rows(table, known)
        table.source.stored_rows = lambda table, known=known, rows=rows: (known, rows)
    found.save(str(tmp_path / "out"))
    exported = tf.saved_model.load(str(tmp_path / "out"))
    assert np.allclose(before, exported.serve(ids), atol=1e-6)

    def fails(table, ids):
        raise ConnectionError("the server is away")

    tables["two"].source.rows = fails
    with pytest.raises(ConnectionError, match="the server is away"):
        found.step(batch)


SPARSE = KERAS.replace(
    """    one = Embedding(3, name="one")(ids)
    two = Embedding(3, name="two", combiner="mean")(ids)
""",
    """    sparse = ToSparse(-1)(ids)
    one = Embedding(3, name="one", combiner="sum")(sparse)
    two = Embedding(3, name="two", combiner="sqrtn")(sparse)
""",
).replace("import Embedding\n", "import Embedding\nfrom elasticdl_preprocessing.layers import ToSparse\n")


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_sparse_ids_are_combined_like_dense_ones(combiner):
    tf = pytest.importorskip("tensorflow")
    from elastane.keras import Embedding as Layer

    layer = Layer(2, combiner=combiner)
    layer.lookup.table.source = Memory()
    dense = layer(tf.constant([[5, 7], [7, 7]])).numpy()
    # The second record has no id, the last one has them twice.
    ids = tf.SparseTensor([[0, 0], [0, 3], [2, 1], [2, 2]], [5, 7, 7, 7], [3, 4])
    found = layer(ids).numpy()
    assert np.allclose(found[[0, 2]], dense) and not found[1].any()


def test_a_model_with_sparse_ids_trains_and_is_exported(tmp_path):
    tf = pytest.importorskip("tensorflow")
    (tmp_path / "model.py").write_text(SPARSE)
    found = backends.choose(contract.load(str(tmp_path / "model.py")))
    tables = {table.name: table for table in found.embeddings()}
    for table in tables.values():
        table.source = Memory(0.1)
    ids = tf.constant([[1, 2, 2], [-1, -1, 4]], tf.int64)
    batch = backends.Batch(ids, tf.constant([0, 1]), [(0, b"")])
    found.build(batch)
    for table in tables.values():
        check_gradient(found, batch, table, 2, 1)
    before = found.predict(batch)
    for table in tables.values():
        known = np.array([1, 2, 4], np.uint64)
        rows = table.source.rows(table, known)
        table.source.stored_rows = lambda table, known=known, rows=rows: (known, rows)
    found.save(str(tmp_path / "out"))
    exported = tf.saved_model.load(str(tmp_path / "out"))
    assert np.allclose(before, exported.serve(ids), atol=1e-6)


def test_what_the_layer_of_keras_cannot_do_is_refused(tmp_path):
    tf = pytest.importorskip("tensorflow")
    from elastane.keras import Embedding as Layer

    for made, what in (
        (lambda: Layer(3, combiner="max"), "combiner is 'max'; it is one of sum, mean, sqrtn"),
        (
            lambda: Layer(3, embeddings_initializer=tf.keras.initializers.GlorotNormal()),
            "rows cannot begin with GlorotNormal",
        ),
        (lambda: Layer(3)(tf.ragged.constant([[1], [2, 3]])), r"make it sparse, with to_sparse\(\)"),
        (lambda: Layer(3)(tf.sparse.from_dense([[1]])), "got a SparseTensor: give it a combiner"),
    ):
        with pytest.raises(EmbeddingError, match=what):
            made()
    layer = Layer(3, input_dim=4, name="small")
    layer.lookup.table.source = Memory()
    with pytest.raises(EmbeddingError, match="'small' got id 4; input_dim is 4"):
        layer(tf.constant([[1, 4]]))
    three = tf.keras.initializers.Constant(3.0)
    assert Layer(3, embeddings_initializer=three).lookup.table.initializer == embedding.constant(3)


def test_a_worker_trains_a_table(digits, start_worker, monkeypatch, tmp_path):
    # The server of these tests knows plain gradient descent only.
    monkeypatch.setenv("LEARNING_RATE", "0.2")
    arguments = {
        "model_file": MODEL,
        "training_data": str(digits / "train"),
        "validation_data": str(digits / "test"),
        "output": str(tmp_path / "out"),
    }
    job = Job(arguments, epochs=3, saves=True)
    try:
        workers = [start_worker(job, f"worker-{n}") for n in range(2)]
        assert [worker.wait(300) for worker in workers] == [0, 0], said(workers[0])
        total, weight = job.metrics["accuracy"]
        assert total / weight > 0.9, said(workers[0])
        # Words of digits only: most of the 1,088 come in them, and no others.
        assert 500 < len(job.rows) <= 1088
        with np.load(tmp_path / "out" / "model.npz") as saved:
            ids, rows = saved["words/ids"], saved["words/rows"]
        assert ids.tolist() == sorted(job.rows)
        assert np.array_equal(rows, np.stack([job.rows[i] for i in ids.tolist()]))
    finally:
        job.stop()


@pytest.mark.parametrize("has_fast_add", [True, False])
def test_both_ways_of_adding_up_give_the_sum_of_each_id(monkeypatch, has_fast_add):
    monkeypatch.setattr(embedding, "HAS_FAST_ADD", has_fast_add)
    random = np.random.default_rng(5)
    ids = random.zipf(1.3, 3000).astype(np.uint64) % np.uint64(700) * np.uint64(0x9E3779B97F4A7C15)
    rows = random.standard_normal((3000, 5)).astype(np.float32)
    one = embedding.Embedding("words", 5)
    for start in (0, 1000, 2000):
        one.add(ids[start : start + 1000], rows[start : start + 1000])
    found, sums = one.gradient()
    assert found.tolist() == sorted(set(ids.tolist())) and sums.dtype == np.float32
    wanted = [rows[ids == id].sum(axis=0, dtype=np.float64) for id in found]
    np.testing.assert_allclose(sums, wanted, atol=1e-4)
