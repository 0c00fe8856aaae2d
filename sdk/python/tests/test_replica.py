"""A model that each worker has whole: updates, and the files of checkpoints."""

import hashlib
import os

import numpy as np
import pytest

from elastane import checkpoints
from elastane.checkpoints import CheckpointError
from elastane.optimizers import SGD, Adagrad, Adam
from elastane.replica import Layout, Replica


def after(optimizer, gradients):
    """The value of a variable that begins at 1 and gets these gradients, with rate 0.1."""
    one = Replica.begin({"w": np.ones(1, np.float32)}, {}, optimizer)
    for gradient in gradients:
        one.update(np.array([gradient], np.float32), 0.1)
    return float(one.values[0])


def test_updates_are_those_of_the_parameter_servers():
    # The numbers of the tests of crates/elastic-ps/src/optimizer.rs.
    factor = 0.1 * np.sqrt(1 - 0.9801) / 0.19 * 0.27
    for optimizer, gradients, expected in [
        (SGD(), [1, 2], 0.7),
        (SGD(momentum=0.5), [1, 2], 0.65),
        (SGD(momentum=0.5, nesterov=True), [1, 2], 0.525),
        (Adam(beta_2=0.99, epsilon=0), [3], 0.9),
        (Adam(beta_2=0.99, epsilon=0), [3, 0], 0.9 - factor / np.sqrt(0.0891)),
        (Adam(beta_2=0.99, epsilon=0, amsgrad=True), [3, 0], 0.9 - factor / 0.3),
        (Adagrad(epsilon=0, initial_accumulator=0), [3, 4], 1 - 0.1 - 0.1 * 0.8),
        (Adagrad(epsilon=0, initial_accumulator=16), [3], 1 - 0.1 * 0.6),
    ]:
        assert after(optimizer, gradients) == pytest.approx(expected, abs=1e-5), optimizer


def test_arrays_keep_their_places_in_a_vector():
    arrays = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.float32(7),
        "none": np.zeros((0, 4), np.float32),
    }
    layout = Layout.of(arrays)
    vector = layout.vector(arrays)
    assert vector.tolist() == [7, 0, 1, 2, 3, 4, 5]
    for name, value in layout.arrays(vector).items():
        assert np.array_equal(value, arrays[name]) and value.shape == np.shape(arrays[name])


def trained(optimizer=None):
    made = Replica.begin(
        {"w": np.ones((2, 3), np.float32), "b": np.zeros(3, np.float32)},
        {"mean": np.full(2, 0.5, np.float32)},
        optimizer or Adam(amsgrad=True),
    )
    for step in range(5):
        made.update(np.linspace(-1, step, 9).astype(np.float32), 0.1)
    made.life = 3
    return made


def same(one, other):
    pairs = zip(one.vectors(), other.vectors())
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert (one.version, one.steps) == (other.version, other.steps)
    assert len(one.vectors()) == len(other.vectors())


@pytest.mark.parametrize("optimizer", [SGD(), SGD(momentum=0.5), Adam(), Adagrad()])
def test_a_checkpoint_has_all_of_a_model(tmp_path, optimizer):
    one = trained(optimizer)
    checkpoints.write(str(tmp_path), "job", one)
    same(checkpoints.load(str(tmp_path), 5, "job"), one)
    same(checkpoints.newest(str(tmp_path)), one)
    same(checkpoints.newest(str(tmp_path / "version-5")), one)
    same(one.copy(), one)
    assert checkpoints.is_of(str(tmp_path), 5, "job")
    assert not checkpoints.is_of(str(tmp_path), 5, "another")
    # The copy continues like the original.
    again = checkpoints.load(str(tmp_path), 5, "job")
    for both in (one, again):
        both.update(np.ones(9, np.float32), 0.1)
    assert np.allclose(one.values, again.values, atol=1e-6)


def test_a_checkpoint_that_is_none_is_refused(tmp_path):
    root = str(tmp_path)
    with pytest.raises(CheckpointError, match="has no whole checkpoint"):
        checkpoints.newest(root)
    checkpoints.write(root, "job", trained())
    with pytest.raises(CheckpointError, match="it is of another job, job"):
        checkpoints.load(root, 5, "another")
    with pytest.raises(CheckpointError, match="version-6: No such file"):
        checkpoints.load(root, 6, "job")
    path = tmp_path / "version-5" / "variables-0-of-1.ckpt"
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="does not match its digest"):
            checkpoints.load(root, 5, "job")
    # An older whole one counts.
    older = trained()
    older.version = 4
    checkpoints.write(root, "job", older)
    assert checkpoints.newest(root).version == 4
    os.rename(path, path.with_name("variables-1-of-2.ckpt"))
    with pytest.raises(CheckpointError, match="variables-0-of-2"):
        checkpoints.newest(str(tmp_path / "version-5"))


def test_content_that_is_no_message_is_refused(tmp_path):
    root = str(tmp_path)
    checkpoints.write(root, "job", trained())
    path = tmp_path / "version-5" / "variables-0-of-1.ckpt"
    rest = path.read_bytes()[32:]
    length = int.from_bytes(rest[:4], "big")
    for damaged in (rest[: 4 + length] + b"\xff" * 9, b"\0\0\0\2\xff\xff"):
        path.write_bytes(hashlib.sha256(damaged).digest() + damaged)
        with pytest.raises(CheckpointError, match="variables-0-of-1.ckpt: "):
            checkpoints.load(root, 5, "job")
    assert not checkpoints.is_of(root, 5, "job")


def test_whose_a_checkpoint_is_needs_its_header_alone(tmp_path):
    checkpoints.write(str(tmp_path), "job", trained())
    path = tmp_path / "version-5" / "variables-0-of-1.ckpt"
    with open(path, "r+b") as file:
        file.truncate(100)
    assert checkpoints.is_of(str(tmp_path), 5, "job")
    assert not checkpoints.is_of(str(tmp_path), 5, "another")
    path.write_bytes(b"")
    assert not checkpoints.is_of(str(tmp_path), 5, "job")


@pytest.mark.parametrize("optimizer", [SGD(), Adam(amsgrad=True)])
def test_the_size_of_a_file_is_bounded_before_it_is_written(tmp_path, optimizer):
    one = trained(optimizer)
    checkpoints.write(str(tmp_path), "job", one)
    written = (tmp_path / "version-5" / "variables-0-of-1.ckpt").stat().st_size
    assert written <= checkpoints.size(one) <= written + 10_000
