"""Custom training loops of TensorFlow that add up their gradients, with a stand-in of the master;
scripts are processes of TensorFlow."""

import numpy as np
import pytest
from conftest import needs
from test_sums import SIZE, ended, make_job  # noqa: F401 (a fixture)

# As in test_sums: each minibatch adds 1 to its records, and the mean over minibatches counts.
SCRIPT = f"""
import json, os, signal, sys
import tensorflow as tf
from elasticai_api.tensorflow.controller import create_elastic_controller
from elasticai_api.tensorflow.optimizer import DistributedOptimizer

SIZE = {SIZE}
controller = create_elastic_controller(batch_size=4, num_epochs=1, dataset_size=SIZE)

class Counts(tf.keras.Model):
    def build(self, shape):
        of = dict(shape=(SIZE,), trainable=True)
        self.seen = self.add_weight(name="seen", initializer=tf.constant_initializer(START), **of)
        self.idle = self.add_weight(name="idle", initializer="zeros", **of)
        self.mean = self.add_weight(name="mean", shape=(), initializer="zeros", trainable=False)
        of = dict(shape=(), trainable=False, dtype="int64")
        self.calls = self.add_weight(name="calls", initializer="zeros", **of)
        # Keras 3 has the seed in a variable.
        self.noise = tf.keras.layers.Dropout(0.5, seed=int(START))
        self.built = True
    def call(self, records):
        self.calls.assign_add(1)
        self.mean.assign(tf.reduce_mean(tf.cast(records, tf.float32)))
        return tf.gather(self.seen, records)

model = Counts()
model.build((None,))
optimizer = DistributedOptimizer(tf.keras.optimizers.SGD(1.0, momentum=0.0), OPTIONS)
controller.set_broadcast_model(model)
controller.set_broadcast_optimizer(optimizer)
trained = []

WRAPPED
def train_one_batch(model, optimizer, records):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_sum(model(records))
    BEFORE
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss

def batches():
    while True:
        try:
            yield [controller.data_shard_service.fetch_record_index() for _ in range(4)]
        except StopIteration:
            return

with controller.scope():
    for records in batches():
        # As published: wrapped for each minibatch.
        elastic_train_one_batch = controller.elastic_run(train_one_batch)
        elastic_train_one_batch(model, optimizer, tf.constant(records))
        trained += records
        print("trained", *records, flush=True)
print(json.dumps(dict(
    seen=model.seen.numpy().tolist(), idle=model.idle.numpy().tolist(),
    mean=float(model.mean.numpy()), batches=controller.global_completed_batch_num,
    steps=int(optimizer.iterations.numpy()), calls=int(model.calls.numpy()),
    seeds=[one.numpy().tolist() for one in model.variables if "seed" in one.name],
)), flush=True)
"""
DIES = "os.kill(os.getpid(), signal.SIGTERM) if len(trained) == 8 else None"


@pytest.fixture(params=["3", "legacy"])
def start(request, start_script):
    """Starts a script as a worker of a job, with Keras 3 or legacy Keras; returns its process."""
    needs("tensorflow", "keras" if request.param == "3" else "tf_keras")

    def start(job, pod="worker-0", **given):
        script = SCRIPT
        parts = dict(START="0.0", OPTIONS="", BEFORE="pass", WRAPPED="")
        for name, value in {**parts, **given}.items():
            script = script.replace(name, value)
        legacy = "1" if request.param == "legacy" else "0"
        more = dict(TF_USE_LEGACY_KERAS=legacy, TF_CPP_MIN_LOG_LEVEL="3")
        return start_script(job, script, pod, WORKER_NUM="2", OMP_NUM_THREADS="1", **more)

    return start


def test_two_workers_have_the_same_model_and_each_record_counts_once(make_job, start):
    job = make_job(first_size=2)
    workers = [start(job, f"worker-{n}", START=f"{n}00.0") for n in range(2)]
    (code, one, first, error), (other_code, two, second, other_error) = map(ended, workers)
    assert (code, other_code) == (0, 0), error + other_error
    # A counter and a seed are each worker's own.
    own = [[last.pop("calls"), last.pop("seeds")] for last in (first, second)]
    assert first == second and sum(calls for calls, _ in own) >= SIZE // 4
    assert [seeds for _, seeds in own] in ([[[0, 0]], [[100, 0]]], [[], []])
    assert first["batches"] == len(one) + len(two) == SIZE // 4
    assert sorted(record for batch in one + two for record in batch) == list(range(SIZE))
    # All begin with the values of one of the two.
    seen = np.array(first["seen"])
    assert np.isin(seen - (100 if seen.min() >= 100 else 0), [0.5, 1]).all(), seen
    assert not any(first["idle"])
    assert SIZE // 8 <= first["steps"] <= SIZE // 4


def test_a_loop_whose_only_worker_gets_sigterm_goes_on_from_its_checkpoint(
    make_job, start, tmp_path
):
    job = make_job(checkpoint_dir=str(tmp_path / "checkpoints"))
    code, _, _, error = ended(start(job, START="5.0", BEFORE=DIES))
    assert code == 143 and job.is_saved, error
    code, batches, last, error = ended(start(job, "worker-1", START="100.0"))
    assert code == 0, error
    assert np.allclose(last["seen"], 6) and last["batches"] == last["steps"] == SIZE // 4
    assert len(batches) < SIZE // 4 <= last["calls"]
    assert last["seeds"] in ([[100, 0]], [])


def test_a_fixed_global_minibatch_is_that_of_all_workers_at_the_start(make_job, start):
    code, batches, last, error = ended(start(make_job(), OPTIONS="fixed_global_batch_size=True"))
    assert code == 0, error
    assert len(batches) == last["batches"] == SIZE // 4 and last["steps"] == SIZE // 8
    assert np.allclose(last["seen"], 0.5)


@pytest.mark.parametrize(
    "given, says",
    [
        (dict(WRAPPED="@tf.function"), "leave out tf.function around the function for elastic_run"),
        (dict(BEFORE="return loss"), "train_one_batch made no step of the optimizer"),
        (dict(OPTIONS="backward_passes_per_step=0"), "backward_passes_per_step is 0; at least 1"),
    ],
)
def test_what_cannot_be_is_named(make_job, start, given, says):
    code, _, _, error = ended(start(make_job(), **given))
    assert code == 1 and says in error, error


def test_a_checkpoint_of_a_model_of_other_shapes_changes_no_variable():
    needs("tensorflow")
    import tensorflow as tf

    from elastane.loop_keras import _KerasModel

    def model(*sizes):
        layers = [tf.keras.layers.Dense(size) for size in sizes]
        made = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
        return made, _KerasModel(made, tf.keras.optimizers.SGD(1.0))

    description, arrays = model(2, 3)[1].pack()
    (made, other), at = model(2, 4), iter(arrays)
    before = [one.numpy() for one in made.variables]

    def fill(flat):
        flat[:] = next(at).ravel()

    with pytest.raises(ValueError, match=r"shape \[2, 3\], and \[2, 4\] here"):
        other.unpack(description, fill)
    assert all(map(np.array_equal, before, [one.numpy() for one in made.variables]))


def test_what_is_of_tensorflow_1_is_refused_when_it_is_called():
    needs("tensorflow")
    from elastane.compat.elasticai_api.tensorflow import controller, optimizer

    with pytest.raises(NotImplementedError, match="build_data_shard_service and ElasticDataShard"):
        controller.TensorFlowV1AllReduceController(None, None)
    with pytest.raises(NotImplementedError, match="sessions of TensorFlow 1"):
        optimizer.AdjustBackwardPassesPerStepHook(None)
    with pytest.raises(ValueError, match="the optimizer is a int: take one of tf.keras.optimizers"):
        optimizer.DistributedOptimizer(3)


def test_a_hook_of_sessions_reports_each_of_their_steps():
    needs("tensorflow")
    import tensorflow as tf

    from elastane.compat.elasticai_api.tensorflow.hooks import ElasticDataShardReportHook

    class Service:
        reported = 0

        def report_batch_done(self):
            self.reported += 1

    service = Service()
    with tf.Graph().as_default():
        step = tf.constant(1)
        hooks = [ElasticDataShardReportHook(service)]
        with tf.compat.v1.train.MonitoredSession(hooks=hooks) as session:
            assert [session.run(step) for _ in range(3)] == [1, 1, 1]
    assert service.reported == 3
