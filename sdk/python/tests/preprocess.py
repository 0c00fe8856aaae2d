"""Checks the published layers that prepare features, and trains and exports a model of them, with
the generation of Keras that TF_USE_LEGACY_KERAS names.

    python3 preprocess.py FOLDER
"""

import os
import sys

import numpy as np
import tensorflow as tf

from elastane import contract

sys.path.insert(0, contract.compatibility_path())
from elasticdl_preprocessing import layers  # noqa: E402
from elasticdl_preprocessing.feature_column import feature_column  # noqa: E402
from elasticdl_preprocessing.utils import analyzer_utils, decorators  # noqa: E402

NUMBERS = [[1.2], [1.6], [0.2], [3.1], [100.0]]


def raises(kind, says, call):
    try:
        call()
    except kind as error:
        assert says in str(error), error
        return
    raise AssertionError(f"{says} was not raised")


def sparse(rows):
    return tf.RaggedTensor.from_row_lengths(
        [one for row in rows for one in row], [len(row) for row in rows]
    ).to_sparse()


def values(layer, inputs):
    """The values for a dense tensor, and the same for a sparse and a ragged one."""
    dense = layer(tf.constant(inputs)).numpy()
    for other in (tf.sparse.from_dense(inputs), tf.RaggedTensor.from_tensor(tf.constant(inputs))):
        found = layer(other)
        assert type(found) is type(other) and found.dtype == dense.dtype, (layer, found)
        flat = found.values if isinstance(found, tf.SparseTensor) else found.flat_values
        assert np.array_equal(flat.numpy(), dense.reshape(-1)), layer
    again = type(layer).from_config(layer.get_config())
    assert np.array_equal(again(tf.constant(inputs)).numpy(), dense), layer
    return dense.tolist()


def of_each_value():
    assert values(layers.Normalizer(3.0, 4.0), [[3.0], [5.0], [7.0]]) == [[0.0], [0.5], [1.0]]
    raises(ValueError, "divisor of Normalizer is 0", lambda: layers.Normalizer(1.0, 0))
    ages = [[34, 45, 23, 67], [15, 37, 52, 47]]
    discretization = layers.Discretization(bins=[20, 30, 40, 50])
    assert values(discretization, ages) == [[2, 3, 1, 4], [0, 2, 4, 3]]
    assert discretization.num_bins() == 5
    log_round = layers.LogRound(num_bins=16, base=2)
    assert values(log_round, NUMBERS) == [[0], [1], [0], [2], [7]]
    assert log_round(tf.constant([-1.0, 1e30])).numpy().tolist() == [0, 0]
    assert layers.LogRound(3, default_value=9)(tf.constant([20.0, 7.4])).numpy().tolist() == [9, 2]
    identity = layers.RoundIdentity(max_value=5)
    assert values(identity, [[1.2], [1.6], [0.2], [3.1], [4.9]]) == [[1], [2], [0], [3], [5]]
    assert layers.RoundIdentity(2, 7)(tf.constant([-1.0, 2.4, 2.6])).numpy().tolist() == [7, 2, 7]
    raises(TypeError, "max_value", lambda: layers.RoundIdentity())
    texts = [["A"], ["B"], ["C"], ["D"], ["E"]]
    assert values(layers.Hashing(num_bins=3), texts) == [[1], [0], [1], [1], [2]]
    by_number = layers.Hashing(7)(tf.constant([12, 5])).numpy()
    assert by_number.tolist() == layers.Hashing(7)(tf.constant(["12", "5"])).numpy().tolist()
    lookup = layers.IndexLookup(vocabulary=["A", "B", "C"])
    assert values(lookup, texts) == [[0], [1], [2], [3], [3]] and lookup.vocab_size() == 4
    strict = layers.IndexLookup(["A"], num_oov_tokens=0)
    assert strict(tf.constant(["A", "B"])).numpy().tolist() == [0, -1]
    raises(ValueError, "'A' more than once", lambda: layers.IndexLookup(["A", "B", "A"]))
    number = layers.ToNumber(tf.float32, -1)
    assert number(tf.constant([["1.5"], [""]])).numpy().tolist() == [[1.5], [-1.0]]
    assert values(layers.ToNumber(tf.int8, 0), [["3"], ["4"]]) == [[3], [4]]
    assert values(layers.ToNumber("int64", 0), [[3.7], [4.0]]) == [[3], [4]]
    raises(ValueError, "string, not a type of numbers", lambda: layers.ToNumber(tf.string, 0))


def of_what_is_there(folder):
    file = os.path.join(folder, "vocabulary")
    with open(file, "w", encoding="utf-8") as out:
        out.write("x\ny\n")
    assert layers.IndexLookup(file)(tf.constant(["y", "z"])).numpy().tolist() == [1, 2]
    found = layers.ToSparse()(tf.constant([["A", ""], ["B", "C"]]))
    assert found.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert found.values.numpy().tolist() == [b"A", b"B", b"C"]
    assert layers.ToSparse(0)(tf.constant([[0, 3]])).values.numpy().tolist() == [3]
    assert layers.ToRagged()(tf.constant([[1], [-1], [4]])).to_list() == [[1], [], [4]]
    texts = layers.ToRagged()(tf.constant([["1,2,3"], ["4,5"], [""]]))
    assert texts.to_list() == [[b"1", b"2", b"3"], [b"4", b"5"], []]
    assert layers.ToRagged(sep="|", ignore_value="-")(tf.constant([["a|-"]])).to_list() == [[b"a"]]
    together = layers.ConcatenateWithOffset([0, 10], axis=1)
    one, two = tf.constant([[1], [1]]), tf.constant([[2], [3]])
    assert together([one, two]).numpy().tolist() == [[1, 12], [1, 13]]
    ragged = layers.ConcatenateWithOffset([0, 10])([sparse([[1], []]), sparse([[2], [3]])])
    assert tf.sparse.to_dense(ragged, -1).numpy().tolist() == [[1, 12], [-1, 13]]
    raises(ValueError, "1 inputs for 2 offsets", lambda: together([one]))
    plain = layers.ConcatenateWithOffset(offsets=None, axis=1)
    assert plain([one, two]).numpy().tolist() == [[1, 2], [1, 3]]
    assert plain(one).numpy().tolist() == [[1], [1]]
    embedding = layers.Embedding(4, 2, combiner="sum", embeddings_initializer="ones")
    assert embedding(sparse([[0, 1], []])).numpy().tolist() == [[2, 2], [0, 0]]
    assert embedding(tf.constant([[3, 0], [0, 0]])).numpy().tolist() == [[1, 1], [0, 0]]
    wrong = {"combiner": "max"}
    raises(ValueError, "'max'; it is one of sum", lambda: layers.SparseEmbedding(4, 2, **wrong))


def of_statistics():
    """Those of a variable of the environment, and else the default."""
    os.environ.update(
        _age_min="15.5", _age_boundaries="40,20,40", _age_distinct_count="7", _work_vocab="/v"
    )
    assert (analyzer_utils.get_min("age", 1.0), analyzer_utils.get_min("work", 1.0)) == (15.5, 1.0)
    assert analyzer_utils.get_bucket_boundaries("age", []) == [20.0, 40.0]
    assert analyzer_utils.get_distinct_count("age", 1) == 7
    assert analyzer_utils.get_vocabulary("work", []) == "/v"
    for name in ("get_max", "get_avg", "get_stddev"):
        assert getattr(analyzer_utils, name)("age", 3.0) == 3.0, name
    named = decorators.declare_model_inputs("wide", "deep")(type("Model", (), {}))
    assert named._model_inputs == ["wide", "deep"]
    raises(ValueError, "give the name of each", decorators.declare_model_inputs)


def of_columns():
    """Ids of two columns side by side, those of the second behind those of the first."""
    of = tf.feature_column
    numbers = of.categorical_column_with_identity("number", 32)
    texts = of.categorical_column_with_vocabulary_list("text", ["a", "b", "c"])
    both = feature_column.concatenated_categorical_column([numbers, texts])
    assert both.num_buckets == 35
    assert type(both).from_config(both.get_config()) == both
    features = {
        "number": tf.constant([[1], [-1], [8]]),
        "text": tf.constant([[""], ["a"], ["c"]]),
    }
    if hasattr(tf.keras.layers, "DenseFeatures"):
        columns = [of.indicator_column(both), of.embedding_column(both, 2)]
        found = tf.keras.layers.DenseFeatures(columns)(features)
        ids = [[0, 1], [1, 32], [2, 8], [2, 34]]
        assert found.shape == (3, 37) and tf.where(found[:, 2:] > 0).numpy().tolist() == ids
    raises(ValueError, "no list", lambda: feature_column.concatenated_categorical_column([]))
    wrong = [of.numeric_column("x")]
    raises(
        ValueError,
        "no categorical column",
        lambda: feature_column.concatenated_categorical_column(wrong),
    )


def of_a_model(folder):
    """A functional model with missing values, as the published tutorial builds it."""
    education = tf.keras.layers.Input(shape=(1,), dtype=tf.string, name="education")
    age = tf.keras.layers.Input(shape=(1,), name="age")
    lookup = layers.IndexLookup(["Master", "Doctor", "Bachelor"])
    bins = layers.Discretization([30.0, 40.0])
    ids = layers.ConcatenateWithOffset([0, lookup.vocab_size()], axis=1)(
        [lookup(layers.ToSparse("")(education)), layers.ToSparse()(bins(age))]
    )
    width = lookup.vocab_size() + bins.num_bins()
    vectors = layers.SparseEmbedding(width, 2, combiner="sum")(ids)
    model = tf.keras.Model([education, age], tf.keras.layers.Dense(1)(vectors))
    inputs = [tf.constant([["Doctor"], [""], ["Master"]]), tf.constant([[20.0], [35.0], [50.0]])]
    labels = tf.constant([[1.0], [0.0], [1.0]])
    losses = []
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - labels))
        variables = model.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign(variable - 0.3 * tf.convert_to_tensor(gradient))
        losses.append(float(loss))
    assert losses[-1] < losses[0] * 0.5, losses
    expected = model(inputs).numpy()
    if hasattr(model, "export"):
        model.export(os.path.join(folder, "model"))
    else:
        model.save(os.path.join(folder, "model"), save_format="tf")
    assert np.isfinite(expected).all()


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(7)
    of_each_value()
    of_what_is_there(sys.argv[1])
    of_statistics()
    of_columns()
    of_a_model(sys.argv[1])
    print("done")
