"""Copies of checkpoints in the memory of a workload.

Owns: their form in the folder of a pod, which of them are whole, and how much memory is left for one. Does not
know about: who saves, and where a checkpoint goes.

    SLOT-N.bin    a checkpoint
    SLOT-N.json   says that it is whole, and where it belongs; written last
    SLOT.part     one that is being written, or room for the next
    SLOT.lock     held by the process that has the slot

The supervisor of a run writes what a run leaves here unwritten (`crates/engine-channel`).
"""

import fcntl
import io
import json
import os
import zlib

VARIABLE = "ELASTANE_MEMORY_DIR"
_SLOTS_MAX = 64
# Between two looks at how much memory is left, and what stays free for the training.
_LOOK_BYTES = 16 << 20
_MARGIN_BYTES = 64 << 20
_CHUNK = 8 << 20


class NoRoom(OSError):
    """The memory of the workload is too small for another copy."""


class Copy:
    """A whole copy. `saved_ns`: when its content was taken; `crc32`: None until it is on disk."""

    def __init__(self, folder, slot, number, path, size, saved_ns, step=None, crc32=None, written=False):
        self.name = os.path.join(folder, f"{slot}-{number}.bin")
        self.manifest = os.path.join(folder, f"{slot}-{number}.json")
        self.slot, self.number = slot, number
        # The folder is of one pod, and a slot of one process: `finish` in Rust has the same.
        self.mark = f"{os.path.basename(os.path.normpath(folder))}-{slot}"
        self.path, self.size, self.saved_ns = path, size, saved_ns
        self.step, self.crc32, self.written = step, crc32, written

    def note(self):
        """Writes the manifest, which makes it count."""
        what = {"path": self.path, "bytes": self.size, "saved_ns": self.saved_ns, "step": self.step,
                "crc32": self.crc32, "written": self.written}
        new = self.manifest + ".new"
        try:
            with open(new, "w", encoding="utf-8") as file:
                json.dump(what, file)
            os.replace(new, self.manifest)
        except OSError:
            _remove(new)
            raise

    def open(self):
        """Opens it for reading; None if it is not whole. It is not written over while it is open."""
        try:
            file = open(self.name, "rb")
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_size == self.size and self._is_sound(file):
                return file
        except BlockingIOError:
            pass
        file.close()
        return None

    def _is_sound(self, file):
        if self.crc32 is None:
            return True
        found = 0
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
        file.seek(0)
        return found == self.crc32


def copies(folder):
    """All whole copies of a folder, the newest last."""
    found = []
    for name in os.listdir(folder):
        slot, dash, number = name.removesuffix(".json").rpartition("-")
        if not (name.endswith(".json") and dash and number.isdigit()):
            continue
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                what = json.load(file)
            copy = Copy(folder, slot, int(number), what["path"], what["bytes"], what["saved_ns"],
                        what["step"], what["crc32"], what["written"])
            if os.stat(copy.name).st_size == copy.size:
                found.append(copy)
        except FileNotFoundError:
            continue  # written over just now
    return sorted(found, key=lambda copy: (copy.saved_ns, copy.number))


class Slot:
    """The place of one process: two copies at most."""

    def __init__(self, folder, rank):
        self.folder = folder
        for number in range(_SLOTS_MAX):
            self.name = rank if number == 0 else f"{rank}.{number}"
            self._lock = open(os.path.join(folder, f"{self.name}.lock"), "wb")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                self._lock.close()
        else:
            raise NoRoom(f"{_SLOTS_MAX} processes have copies in {folder}")
        self.part = os.path.join(folder, f"{self.name}.part")
        self.copies = [copy for copy in copies(folder) if copy.slot == self.name]

    def begin(self, writing):
        """Opens the file for the next copy: in place of the older of two, but not of the one that is being
        written to disk. Its pages are used again, which is several times faster than new ones. The newest
        stays until the next is whole, unless it is on disk."""
        if len(self.copies) >= 2:
            old = next(copy for copy in self.copies if copy is not writing)
            if old.written or old is not self.copies[-1]:
                self.copies.remove(old)
                os.unlink(old.manifest)
                os.replace(old.name, self.part)
        file = self._open_part()
        if file is None:
            # Something reads what was a copy before.
            os.unlink(self.part)
            file = self._open_part()
        return Part(file)

    def _open_part(self):
        """Keeps others from reading it as the copy that it was; None if one does."""
        file = open(os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            file.close()
            return None

    def add(self, path, size, saved_ns, step, writing):
        """Makes what was written a whole copy; two at most stay, of which one may be that which is being
        written to disk."""
        number = 1 + max((copy.number for copy in self.copies), default=0)
        copy = Copy(self.folder, self.name, number, path, size, saved_ns, step)
        os.replace(self.part, copy.name)
        try:
            copy.note()
        except OSError:
            _remove(copy.name)
            raise
        self.copies.append(copy)
        while len(self.copies) > 2:
            old = next(one for one in self.copies if one is not writing)
            self.copies.remove(old)
            os.unlink(old.manifest)
            os.unlink(old.name)
        return copy


def _remove(path):
    if os.path.exists(path):
        os.unlink(path)


class Part(io.RawIOBase):
    """A file in memory that is being written. `failed`: why it cannot be, whatever its writer raised."""

    def __init__(self, file):
        self._file = file
        self._had = os.fstat(file.fileno()).st_size
        self._looked_at = self._had - _LOOK_BYTES
        self.size = 0
        self.failed = None

    def write(self, data):
        view = memoryview(data).cast("B")
        end = self._file.tell() + len(view)
        try:
            if end > self._had and end - self._looked_at >= _LOOK_BYTES:
                left = room()
                if left is not None and left - _MARGIN_BYTES < end - max(self._had, self.size):
                    raise NoRoom(f"the memory of the workload has {max(left, 0) >> 20} MiB left")
                self._looked_at = end
            done = 0
            while done < len(view):
                done += self._file.write(view[done:])
        except OSError as error:
            self.failed = error
            raise
        self.size = max(self.size, end)
        return len(view)

    def seek(self, offset, whence=os.SEEK_SET):
        if whence == os.SEEK_END:
            return self._file.seek(self.size + offset)
        return self._file.seek(offset, whence)

    def tell(self):
        return self._file.tell()

    def writable(self):
        return True

    def seekable(self):
        return True

    def close(self):
        if not self.closed:
            if self.failed is None:
                self._file.truncate(self.size)
            self._file.close()
        super().close()


def room():
    """How many bytes the control group of this process may have more; None without a limit."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    names = {"memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                        "total_inactive_file"),
             "": ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")}
    least = None
    for _, controllers, path in lines:
        if controllers not in names:
            continue
        root, limit, usage, droppable = names[controllers]
        # A container sees its own group as the root.
        while True:
            left = _left(root + path.rstrip("/"), limit, usage, droppable)
            if left is not None and (least is None or left < least):
                least = left
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return least


def _left(folder, limit, usage, droppable):
    def read(name):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    try:
        most, used = read(limit).strip(), int(read(usage))
        if most == "max" or int(most) >= 1 << 62:
            return None
        stat = dict(line.split(" ", 1) for line in read("memory.stat").splitlines())
    except (OSError, ValueError):
        return None  # not there, or not of this controller
    return int(most) - used + int(stat.get(droppable, 0))
