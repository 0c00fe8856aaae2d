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
import socket
import tempfile
import threading
import time
import warnings
import zlib

from . import channel, memory, s3

_CHUNK = 8 << 20
_keepers = {}
_said = set()
# The paths of which this process has looked how old the checkpoint there is, and the youngest that it knows.
_looked_at = set()
_youngest_ns = 0
# Where one of another process stays, as it is younger than the newest of this one.
_stays = set()


def save(path, write, step=None, next_in=None):
    """Saves a checkpoint.

    `path`: the file, or an object in a bucket (s3://BUCKET/KEY); the new one takes its place in one step, when
    it is complete. `write`: its bytes, or a
    function that writes them into the open file that it gets, perhaps twice. `step`, `next_in`: as in
    `elastane.checkpoint`, which needs not be called.

    Returns when the state was copied into memory, so it may change again. Outside of a workload, or where
    memory is short, it returns when the file is on disk; a warning says so once. Of checkpoints that come
    faster than the disk takes them only the newest are written. `elastane.saved` waits for the last one.
    """
    path = _absolute(path)
    _look_at(path)
    why = "this workload has no memory for copies" if os.environ.get(channel.VARIABLE) else None
    try:
        keeper = _keeper()
    except OSError as error:
        keeper, why = None, error
    if keeper is not None:
        why = keeper.save(path, write, step, next_in)
        if why is None:
            return
    if why is not None and not _said.intersection([str(why)]):
        _said.add(str(why))
        warnings.warn(f"the training waits while checkpoints are written: {why}", stacklevel=2)
    if keeper is not None:
        keeper.settle(None)  # an older one must not come after this one
    saved_ns = _now_ns()
    if s3.is_address(path):
        with tempfile.TemporaryFile() as file:
            _write_into(file, write)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            is_there = s3.Object(path).put(file, size, saved_ns)
    else:
        durable = Durable(path, _mark(), saved_ns)
        with durable as file:
            _write_into(file, write)
        is_there = durable.is_there
    _note_whether(is_there, path)
    if is_there:
        _report(path, step, next_in)


def load(path):
    """Opens the newest checkpoint of this path for reading, in memory or on disk; if the path is a folder, the
    newest in it. None if there is none. Read it before you save the next ones."""
    path = _absolute(path)
    folder = os.environ.get(memory.VARIABLE)
    in_memory = []
    if folder and os.path.isdir(folder):
        try:
            _keeper()  # What a process before this one left in memory is written from now on.
        except OSError:
            pass  # `save` says so; what is there can be read.
        in_memory = memory.copies(folder)
    # In this order: what is removed from memory was written before.
    on_disk = _on_disk(path)
    for copy in reversed(in_memory):
        if path.rstrip("/") not in (copy.path, os.path.dirname(copy.path)):
            continue
        if on_disk is not None and on_disk[0] > copy.saved_ns:
            break
        file = copy.open()
        if file is not None:
            return file
        on_disk = _on_disk(path)
    if on_disk is None:
        return None
    return on_disk[1].open() if s3.is_address(path) else open(on_disk[1], "rb")


def saved(timeout=None):
    """Waits until what this process saved is on disk, at most so many seconds. Returns whether it is, which is
    False as well where a younger one of another process stays; raises what went wrong with the newest."""
    keeper = _keepers.get(os.getpid())
    if keeper is None:
        return not _stays
    done, error = keeper.settle(timeout)
    if error is not None:
        raise error
    return done and not _stays


def _absolute(path):
    return path if s3.is_address(path) else os.path.abspath(os.fspath(path))


def _mark():
    """Mark of this process among those of all machines and containers, which may write to one
    disk."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _now_ns():
    """Time of a checkpoint that is taken now: younger than those before it, also if a clock is set
    back."""
    global _youngest_ns
    _youngest_ns = max(time.time_ns(), _youngest_ns + 1)
    return _youngest_ns


def _look_at(path):
    """A process goes on from what it finds, also if a machine wrote that whose clock is ahead."""
    if path in _looked_at:
        return
    _looked_at.add(path)
    try:
        _on_disk(path)
    except OSError:
        pass  # Writing it meets the same, and says so.


def _on_disk(path):
    """The newest on disk or in a bucket, and its age."""
    global _youngest_ns
    found = _in_bucket(path) if s3.is_address(path) else _newest(path)
    if found is not None:
        _youngest_ns = max(_youngest_ns, found[0])
    return found


def _note_whether(is_there, path):
    """Records if the newest checkpoint that this process has saved at a path is there."""
    if is_there:
        _stays.discard(path)
        return
    _stays.add(path)
    warnings.warn(f"a checkpoint is not saved: a younger one of another process stays: {path}", stacklevel=3)


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
        with Durable(note, _mark(), None) as file:
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
    """A file that takes the place of another when it is complete. `mark`: no other process has it. `saved_ns`:
    the age of its content, and one that is younger stays; None if none is. `is_there`: it did take the place."""

    def __init__(self, path, mark, saved_ns):
        folder, name = os.path.split(path)
        self._path, self._saved_ns, self.is_there = path, saved_ns, False
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
        if self._saved_ns is not None:
            os.utime(self._file.fileno(), ns=(self._saved_ns, self._saved_ns))
        os.fsync(self._file.fileno())
        if self._saved_ns is not None and os.path.isfile(self._path):
            if os.stat(self._path).st_mtime_ns > self._saved_ns:
                return
        os.replace(self._new, self._path)
        self.is_there = True
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
        # Copies that an earlier process left.
        self._left = list(self._slot.copies)
        with self._changed:
            self._write_newest()

    def save(self, path, write, step, next_in):
        """Returns an error if it cannot be held in memory; None if it is."""
        with self._saving:
            try:
                with self._changed:
                    part = self._slot.begin(self._writing)
            except OSError as error:
                return error
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
                try:
                    self._slot.add(path, part.size, _now_ns(), step, self._writing)
                except OSError as error:
                    return error
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
        try:
            self._write_all()
        except BaseException:
            with self._changed:
                self._thread = None  # None would be written after it, and `settle` would not end.
                self._changed.notify_all()
            raise

    def _write_all(self):
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
                newest.crc32, is_there = self._write(newest)
                newest.written = True
            except Exception as failed:  # Whatever it is: the next ones are written.
                error = failed
            with self._changed:
                self._writing = None
                if error is not None and newest is self._slot.copies[-1]:
                    self._error = error
            if error is not None:
                warnings.warn(f"a checkpoint is only in memory: {newest.path}: {error}", stacklevel=1)
            else:
                self._after(newest, is_there, next_in)

    def _after(self, copy, is_there, next_in):
        """Reports a written copy: a failure here does not make it less written."""
        try:
            if is_there:
                _report(copy.path, copy.step, next_in)
        except OSError as error:
            warnings.warn(f"a checkpoint is not reported: {copy.path}: {error}", stacklevel=1)
        if is_there or copy not in self._left:
            _note_whether(is_there, copy.path)
        with self._changed:
            if copy not in self._slot.copies:
                return
            try:
                copy.note()
            except OSError:
                pass  # The next process writes it once more, with the same content.

    def _write(self, copy):
        """Its checksum, and whether it is there: a younger one may have stayed."""
        crc32 = 0
        if s3.is_address(copy.path):
            with open(copy.name, "rb") as source:
                is_there = s3.Object(copy.path).put(source, copy.size, copy.saved_ns)
                source.seek(0)
                while chunk := source.read(_CHUNK):
                    crc32 = zlib.crc32(chunk, crc32)
            return crc32, is_there
        durable = Durable(copy.path, copy.mark, copy.saved_ns)
        with open(copy.name, "rb") as source, durable as file:
            while chunk := source.read(_CHUNK):
                crc32 = zlib.crc32(chunk, crc32)
                file.write(chunk)
        return crc32, durable.is_there
