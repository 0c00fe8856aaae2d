"""Checkpoints in memory that are written behind, with a folder in memory like that of a workload."""

import json
import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import elastane
from elastane import channel, memory, saving


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """The folder in memory of a pod, in a process that has saved nothing yet."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setenv("ELASTANE_MEMORY_DIR", str(folder))
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(saving, "_keepers", {})
    monkeypatch.setattr(saving, "_said", set())
    monkeypatch.setattr(saving, "_stays", set())
    monkeypatch.setattr(saving, "_youngest_ns", 0)
    return folder


@pytest.fixture
def reports(monkeypatch):
    heard = []
    monkeypatch.setattr(channel, "checkpoint", lambda *report: heard.append(report))
    return heard


@pytest.fixture
def slow(monkeypatch):
    """A disk that waits. `begun`: it has one to write."""
    gate = threading.Event()
    gate.begun = threading.Event()
    write = saving._Keeper._write

    def when_open(keeper, copy):
        gate.begun.set()
        assert gate.wait(60)
        return write(keeper, copy)

    monkeypatch.setattr(saving._Keeper, "_write", when_open)
    yield gate
    gate.set()


def content(path):
    with elastane.load(path) as file:
        return file.read()


def names(folder, kind):
    return sorted(name for name in os.listdir(folder) if name.endswith(kind))


def test_a_checkpoint_is_written_behind_and_reported_when_it_is_on_disk(pod, reports, slow, tmp_path):
    path = tmp_path / "model"
    elastane.save(path, b"weights", step=7, next_in=60)
    assert not path.exists() and reports == [] and elastane.saved(timeout=0) is False
    assert content(path) == b"weights", "from memory"
    slow.set()
    assert elastane.saved()
    assert path.read_bytes() == b"weights" and reports == [(str(path), 7, 60)]
    assert [name for name in os.listdir(tmp_path) if "elastane" in name] == []
    assert elastane.load(tmp_path / "other") is None


def test_two_copies_at_most_and_the_newest_is_written(pod, reports, slow, tmp_path):
    path = tmp_path / "model"
    for step in range(5):
        elastane.save(path, lambda file, step=step: np.save(file, np.full(1000, step)), step=step)
        assert slow.begun.wait(60)
        assert len(names(pod, ".bin")) <= 2 and names(pod, ".part") == []
    with elastane.load(path) as file:
        assert np.load(file)[0] == 4
    slow.set()
    assert elastane.saved()
    assert np.load(path)[0] == 4
    assert [step for _, step, _ in reports] == [0, 4], "the others were replaced before their turn"


def test_a_file_that_is_read_is_not_written_over(pod, reports, tmp_path):
    path = tmp_path / "model"
    elastane.save(path, b"first")
    assert elastane.saved()
    with elastane.load(path) as file:
        for text in (b"second", b"third", b"fourth"):
            elastane.save(path, text)
            assert elastane.saved()
        assert file.read() == b"first"
    assert content(path) == b"fourth" and len(names(pod, ".bin")) == 2


def test_a_shorter_one_has_nothing_of_the_one_before(pod, reports, tmp_path):
    for text in (b"long" * 1000, b"other" * 1000, b"short"):
        elastane.save(tmp_path / "model", text)
        assert elastane.saved()
    assert content(tmp_path / "model") == b"short" == (tmp_path / "model").read_bytes()


def test_what_a_killed_process_left_is_loaded_and_written(pod, reports, tmp_path):
    path = tmp_path / "model"
    script = f"""
import os, signal, threading, elastane
from elastane import saving
begun = threading.Event()
saving._Keeper._write = lambda keeper, copy: begun.set() or threading.Event().wait()
elastane.save({str(path)!r}, b"first", step=1)
begun.wait()
elastane.save({str(path)!r}, b"second", step=2)
def torn(file):
    file.write(b"th")
    os.kill(os.getpid(), signal.SIGKILL)
elastane.save({str(path)!r}, torn)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert ended.returncode == -9 and not path.exists()
    assert names(pod, ".part") == ["0.part"]
    assert content(path) == b"second"
    assert elastane.saved()
    assert path.read_bytes() == b"second" and reports == [(str(path), 2, None)]


def test_what_is_torn_or_changed_is_not_loaded(pod, reports, tmp_path):
    path = tmp_path / "model"
    elastane.save(path, b"weights")
    assert elastane.saved()
    [copy] = memory.copies(pod)
    with open(copy.name, "r+b") as file:
        file.write(b"W")
    os.utime(path, ns=(1, 1))
    assert content(path) == b"weights", "from disk: the checksum differs"
    os.truncate(copy.name, 3)
    assert memory.copies(pod) == []


def test_of_memory_and_disk_the_newer_is_loaded(pod, reports, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    elastane.save(folder / "model-1", b"first")
    assert elastane.saved()
    (folder / "model-2").write_bytes(b"second")
    os.utime(folder / "model-2", ns=(time.time_ns() + 10**9,) * 2)
    assert content(folder) == b"second" and content(folder / "model-1") == b"first"


@pytest.mark.filterwarnings("ignore:a checkpoint is not saved")
def test_a_checkpoint_does_not_take_the_place_of_a_younger_one(pod, reports, slow, tmp_path):
    path = tmp_path / "model"
    elastane.save(path, b"old")
    path.write_bytes(b"of another process")
    os.utime(path, ns=(time.time_ns() + 10**9,) * 2)
    slow.set()
    assert elastane.saved() is False and reports == []
    assert path.read_bytes() == b"of another process"


@pytest.mark.parametrize("has_memory", [True, False])
def test_a_clock_that_is_set_back_loses_none(pod, reports, tmp_path, monkeypatch, has_memory):
    if not has_memory:
        monkeypatch.delenv("ELASTANE_MEMORY_DIR")
    path, now = tmp_path / "model", time.time_ns()
    path.write_bytes(b"of a machine whose clock is ahead")
    os.utime(path, ns=(now + 10**13, now + 10**13))
    for step in (1, 2):
        monkeypatch.setattr(time, "time_ns", lambda step=step: now - step * 10**12)
        elastane.save(path, b"step %d" % step, step=step)
        assert elastane.saved() and path.read_bytes() == b"step %d" % step == content(path)
    assert [step for _, step, _ in reports] == [1, 2]


@pytest.mark.filterwarnings("ignore:a checkpoint is only in memory")
def test_one_that_leaves_memory_meanwhile_is_loaded_from_disk(pod, reports, slow, tmp_path, monkeypatch):
    """As when the supervisor writes what a run has left."""
    path = tmp_path / "model"

    def finish():
        for name in names(pod, ".json"):
            path.write_bytes(b"weights")
            os.unlink(pod / name)
            os.unlink(pod / name.replace(".json", ".bin"))

    list_all, open_one = memory.copies, memory.Copy.open
    elastane.save(path, b"weights")
    with monkeypatch.context() as patch:
        patch.setattr(memory.Copy, "open", lambda copy: finish() or open_one(copy))
        assert content(path) == b"weights"
    path.unlink()
    (pod / "1-1.bin").write_bytes(b"weights")
    (pod / "1-1.json").write_text("{}")
    monkeypatch.setattr(memory, "copies", lambda folder: finish() or list_all(folder))
    assert content(path) == b"weights"
    slow.set()
    with pytest.raises(FileNotFoundError):
        elastane.saved()


def test_two_pods_write_one_path_at_once(tmp_path):
    path, marks = tmp_path / "model", []
    for pod in ("a", "b"):
        (tmp_path / pod).mkdir()
        marks.append(memory.Copy(str(tmp_path / pod), "0", 1, str(path), 3, 1).mark)
    with saving.Durable(str(path), marks[0], 2) as one:
        one.write(b"one")
        with saving.Durable(str(path), marks[1], 1) as other:
            other.write(b"other")
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"one"


def test_one_whose_function_raises_leaves_the_one_before(pod, reports, slow, tmp_path):
    path = tmp_path / "model"
    elastane.save(path, b"first")
    assert slow.begun.wait(60)
    elastane.save(path, b"second")
    with pytest.raises(ZeroDivisionError):
        elastane.save(path, lambda file: file.write(bytes([1 // 0])))
    slow.set()
    assert elastane.saved() and path.read_bytes() == b"second"


@pytest.mark.filterwarnings("ignore:a checkpoint is only in memory")
def test_whatever_goes_wrong_the_next_ones_are_written(pod, reports, tmp_path, monkeypatch):
    write, path = saving._Keeper._write, tmp_path / "model"

    def fail(keeper, copy):
        raise ValueError("an odd header")

    monkeypatch.setattr(saving._Keeper, "_write", fail)
    elastane.save(path, b"first")
    with pytest.raises(ValueError, match="an odd header"):
        elastane.saved(60)
    monkeypatch.setattr(saving._Keeper, "_write", write)
    elastane.save(path, b"second")
    assert elastane.saved(60) and path.read_bytes() == b"second"


@pytest.mark.parametrize("where", ["Slot.__init__", "Slot.begin", "Copy.note"])
def test_where_the_memory_is_full_it_is_written_at_once(pod, reports, tmp_path, monkeypatch, where):
    def full(*_):
        raise OSError(28, "No space left on device")

    kind, _, name = where.partition(".")
    monkeypatch.setattr(getattr(memory, kind), name, full)
    path = tmp_path / "model"
    with pytest.warns(UserWarning, match="No space left"):
        elastane.save(path, b"weights", step=1)
    assert path.read_bytes() == b"weights" == content(path) and reports == [(str(path), 1, None)]
    assert names(pod, ".bin") == []


def test_what_is_on_disk_is_reported_where_the_memory_is_full_then(pod, reports, slow, tmp_path, monkeypatch):
    def full(copy):
        raise OSError(28, "No space left on device")

    elastane.save(tmp_path / "model", b"weights", step=1)
    monkeypatch.setattr(memory.Copy, "note", full)
    slow.set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert elastane.saved()
    assert reports == [(str(tmp_path / "model"), 1, None)]


@pytest.mark.filterwarnings("ignore:a checkpoint is only in memory")
def test_what_cannot_be_written_is_told_and_stays_in_memory(pod, reports, tmp_path):
    path = tmp_path / "missing" / "model"
    elastane.save(path, b"weights")
    with pytest.raises(FileNotFoundError):
        elastane.saved()
    assert content(path) == b"weights" and reports == []
    path.parent.mkdir()
    elastane.save(path, b"more weights")
    assert elastane.saved() and path.read_bytes() == b"more weights"


def test_without_room_it_is_written_at_once(pod, reports, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "room", lambda: 70 << 20)
    path = tmp_path / "model"
    elastane.save(path, bytes(1 << 20))
    assert elastane.saved()
    with pytest.warns(UserWarning, match="70 MiB left"):
        elastane.save(path, lambda file: [file.write(bytes(9 << 20)) for _ in range(3)], step=3)
    assert path.stat().st_size == 27 << 20 and reports[-1] == (str(path), 3, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elastane.save(path, bytes(20 << 20))
    assert content(path) == bytes(20 << 20), "not the older one in memory"


def test_outside_of_a_workload_it_is_written_at_once(reports, tmp_path, monkeypatch):
    monkeypatch.delenv("ELASTANE_MEMORY_DIR", raising=False)
    monkeypatch.delenv("ELASTANE_CHANNEL", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elastane.save(tmp_path / "model", b"weights", step=2)
    assert (tmp_path / "model").read_bytes() == b"weights" and reports == [(str(tmp_path / "model"), 2, None)]
    assert content(tmp_path) == b"weights"
    with pytest.raises(ZeroDivisionError):
        elastane.save(tmp_path / "model", lambda file: file.write(bytes([1 // 0])))
    assert content(tmp_path) == b"weights" and os.listdir(tmp_path) == ["model"]


def test_processes_of_a_pod_do_not_write_into_each_other(pod, reports, slow, tmp_path):
    elastane.save(tmp_path / "a", b"of one")
    other = saving._Keeper(str(pod), "0")
    assert other.save(str(tmp_path / "b"), b"of another", None, None) is None
    assert {json.loads((pod / name).read_text())["path"] for name in names(pod, ".json")} == {
        str(tmp_path / "a"), str(tmp_path / "b")}
    slow.set()
    assert elastane.saved() and other.settle(None) == (True, None)
    assert (tmp_path / "a").read_bytes() == b"of one" and (tmp_path / "b").read_bytes() == b"of another"
