"""Checkpoints that go to disk while the training goes on.

Owns: when a copy in memory is written, what is reported of it, and which one is loaded. Does not know about: the
form of copies in memory (`memory`), and what is in a checkpoint.

    elastane.save("/shared/model.pt", lambda file: torch.save(model.state_dict(), file), step=step)

copies the state into memory of the workload and returns; a thread writes it, and reports it to the scheduler
when it is on disk. A process that starts again on the machine loads the newest, from memory if it was not
written yet:

    with elastane.load("/shared/model.pt") as file:
        model.load_state_dict(torch.load(file))

If the process is killed before, the supervisor of the run writes it.
"""

import json
import os
import tempfile
import threading
import time
import warnings
import zlib

from . import channel, memory, s3

_CHUNK = 8 << 20
_keepers = {}
_said = set()


def save(path, write, step=None, next_in=None):
    """Saves a checkpoint.

    `path`: the file, or an object in a bucket (s3://BUCKET/KEY), which is replaced at once and only when
    the new one is complete. `write`: its bytes, or a
    function that writes them into the open file that it gets, perhaps twice. `step`, `next_in`: as in
    `elastane.checkpoint`, which needs not be called.

    Returns when the state was copied into memory, so it may change again. Outside of a workload, or where
    memory is short, it returns when the file is on disk; a warning says so once. Of checkpoints that come
    faster than the disk takes them only the newest are written.
    """
    path = _absolute(path)
    why = "this workload has no memory for copies" if os.environ.get(channel.VARIABLE) else None
    keeper = _keeper()
    if keeper is not None:
        why = keeper.save(path, write, step, next_in)
        if why is None:
            return
    if why is not None and not _said.intersection([str(why)]):
        _said.add(str(why))
        warnings.warn(f"the training waits while checkpoints are written: {why}", stacklevel=2)
    if keeper is not None:
        keeper.settle(None)  # an older one must not come after this one
    saved_ns = time.time_ns()
    if s3.is_address(path):
        with tempfile.TemporaryFile() as file:
            _write_into(file, write)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            s3.Object(path).put(file, size, saved_ns)
    else:
        with Durable(path, str(os.getpid()), saved_ns) as file:
            _write_into(file, write)
    _report(path, step, next_in)


def load(path):
    """Opens the newest checkpoint of this path for reading, in memory or on disk; if the path is a folder, the
    newest in it. None if there is none. Read it before you save the next ones."""
    path = _absolute(path)
    folder = os.environ.get(memory.VARIABLE)
    on_disk = _in_bucket(path) if s3.is_address(path) else _newest(path)
    # What a process before this one left in memory is written from now on.
    if _keeper() is not None:
        for copy in reversed(memory.copies(folder)):
            if path.rstrip("/") not in (copy.path, os.path.dirname(copy.path)):
                continue
            if on_disk is not None and on_disk[0] > copy.saved_ns:
                break
            file = copy.open()
            if file is not None:
                return file
    if on_disk is None:
        return None
    return on_disk[1].open() if s3.is_address(path) else open(on_disk[1], "rb")


def saved(timeout=None):
    """Waits until what this process saved is on disk, at most so many seconds. Returns whether it is; raises
    what went wrong with the newest."""
    keeper = _keepers.get(os.getpid())
    if keeper is None:
        return True
    done, error = keeper.settle(timeout)
    if error is not None:
        raise error
    return done


def _absolute(path):
    return path if s3.is_address(path) else os.path.abspath(os.fspath(path))


def _in_bucket(address):
    """The object with this address, or the newest in a folder of this address."""
    found = s3.Object(address)
    saved_ns = found.saved_ns() if found.key and not found.key.endswith("/") else None
    if saved_ns is None:
        found = found.newest()
        saved_ns = found and found.saved_ns()
    return None if saved_ns is None else (saved_ns, found)


def _report(path, step, next_in):
    """The scheduler looks at files: of an object there is a note in the folder of the pod."""
    folder = os.environ.get("ELASTANE_CHECKPOINT_DIR")
    if s3.is_address(path):
        if not (folder and os.environ.get(channel.VARIABLE)):
            return
        note = os.path.join(folder, "saved-in-bucket.json")
        with Durable(note, str(os.getpid()), time.time_ns()) as file:
            file.write(json.dumps({"object": path, "step": step}).encode())
        path = note
    channel.checkpoint(path, step, next_in)


def _newest(path):
    if not os.path.isdir(path):
        try:
            return os.stat(path).st_mtime_ns, path
        except FileNotFoundError:
            return None
    with os.scandir(path) as entries:
        files = [entry for entry in entries if entry.is_file() and not entry.name.startswith(".")]
        return max(((entry.stat().st_mtime_ns, entry.path) for entry in files), default=None)


def _keeper():
    folder = os.environ.get(memory.VARIABLE)
    if not folder or not os.path.isdir(folder):
        return None
    # A child that was forked has none of the threads.
    keeper = _keepers.get(os.getpid())
    if keeper is None:
        rank = os.environ.get("LOCAL_RANK", "0")
        keeper = _keepers[os.getpid()] = _Keeper(folder, rank if rank.isdigit() else "0")
    return keeper


def _write_into(file, write):
    if callable(write):
        write(file)
    else:
        file.write(write)


class Durable:
    """A file that takes the place of another when it is complete. `saved_ns`: the age of its content; one that
    is younger stays."""

    def __init__(self, path, mark, saved_ns):
        folder, name = os.path.split(path)
        self._path, self._saved_ns = path, saved_ns
        self._new = os.path.join(folder, f".{name}.elastane-{mark}")

    def __enter__(self):
        self._file = open(self._new, "wb")
        return self._file

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._complete()
        finally:
            self._file.close()
            if os.path.exists(self._new):
                os.unlink(self._new)

    def _complete(self):
        self._file.flush()
        os.utime(self._file.fileno(), ns=(self._saved_ns, self._saved_ns))
        os.fsync(self._file.fileno())
        if os.path.isfile(self._path) and os.stat(self._path).st_mtime_ns > self._saved_ns:
            return
        os.replace(self._new, self._path)
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _Keeper:
    """Copies of this process in memory, and the thread that writes them."""

    def __init__(self, folder, rank):
        self._slot = memory.Slot(folder, rank)
        self._saving = threading.Lock()
        self._changed = threading.Condition()
        self._writing = None
        self._thread = None
        self._error = None
        self._next_in = None
        with self._changed:
            # What a process before this one left.
            self._write_newest()

    def save(self, path, write, step, next_in):
        """Returns why it cannot be held in memory; None if it is."""
        with self._saving:
            with self._changed:
                part = self._slot.begin(self._writing)
            try:
                with part:
                    _write_into(part, write)
            except Exception:
                if part.failed is None:
                    raise
            if part.failed is not None:
                os.unlink(self._slot.part)
                return part.failed
            with self._changed:
                self._slot.add(path, part.size, time.time_ns(), step)
                self._error, self._next_in = None, next_in
                self._write_newest()
        return None

    def settle(self, timeout):
        """Waits until nothing is being written. Returns whether it is so, and what went wrong."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout), self._error

    def _write_newest(self):
        has_more = self._slot.copies and not self._slot.copies[-1].written
        if has_more and self._thread is None:
            # No daemon: the end of the script waits for it.
            self._thread = threading.Thread(target=self._write_behind, name="elastane-save")
            self._thread.start()

    def _write_behind(self):
        while True:
            with self._changed:
                newest = self._slot.copies[-1]
                if newest.written or self._error is not None:
                    self._thread = None
                    self._changed.notify_all()
                    return
                self._writing, next_in = newest, self._next_in
            error = None
            try:
                newest.crc32 = self._write(newest)
                newest.written = True
                newest.note()
                _report(newest.path, newest.step, next_in)
            except OSError as failed:
                error = failed
                warnings.warn(f"a checkpoint is only in memory: {newest.path}: {error}", stacklevel=1)
            with self._changed:
                self._writing = None
                if error is not None and newest is self._slot.copies[-1]:
                    self._error = error

    def _write(self, copy):
        crc32 = 0
        if s3.is_address(copy.path):
            with open(copy.name, "rb") as source:
                s3.Object(copy.path).put(source, copy.size, copy.saved_ns)
                source.seek(0)
                while chunk := source.read(_CHUNK):
                    crc32 = zlib.crc32(chunk, crc32)
            return crc32
        with open(copy.name, "rb") as source, Durable(copy.path, copy.slot, copy.saved_ns) as file:
            while chunk := source.read(_CHUNK):
                crc32 = zlib.crc32(chunk, crc32)
                file.write(chunk)
        return crc32
