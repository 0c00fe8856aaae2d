"""Files of checkpoints, on a disk or in a bucket (`s3://BUCKET/KEY`).

Owns: that one is there whole or not at all, wherever it is. Does not know about: what is in it."""

from __future__ import annotations

import os
import uuid
from typing import List, Optional, Sequence

from . import s3


def _sync(path: str) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write(path: str, beside: str, parts: Sequence[bytes]) -> None:
    """Writes a file; `beside` is where it is until it is complete."""
    if s3.is_address(path):
        s3.Object(path).write(parts)
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with open(beside, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    _sync(folder)
    _sync(os.path.dirname(folder))


def read(path: str, most: Optional[int] = None) -> bytes:
    """A file, or its beginning."""
    if s3.is_address(path):
        found = s3.Object(path).read(most)
        if found is None:
            raise FileNotFoundError(2, "it is not there", path)
        return found
    with open(path, "rb") as file:
        return file.read() if most is None else file.read(most)


def names(folder: str) -> List[str]:
    """The names in a folder. A bucket knows none that is empty."""
    if s3.is_address(folder):
        return s3.Object(folder).names()
    return os.listdir(folder)


def _entries(folder: str) -> List[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _take(entry: os.DirEntry[str], aside: Optional[str] = None) -> bool:
    """Deletes an entry, or moves it to a path if it is a folder and there is one.
    False: it stays."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
        elif aside is None:
            os.rmdir(entry.path)
        else:
            os.rename(entry.path, aside)
    except OSError:
        return False
    return True


def _remove_tree(folder: str) -> None:
    """Deletes a folder however deep it is, without recursion and by short paths: the folders in a
    folder move up to the top before it is deleted. Files that cannot be deleted stay."""
    if os.path.islink(folder):
        return
    advances = True
    while advances:
        advances = False
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                for inner in _entries(entry.path):
                    advances |= _take(inner, os.path.join(folder, uuid.uuid4().hex))
            advances |= _take(entry)
    try:
        os.rmdir(folder)
    except OSError:
        pass


def remove(folder: str) -> None:
    """Removes a folder with its files, if it is there."""
    if s3.is_address(folder):
        for name in names(folder):
            s3.Object(f"{folder}/{name}").delete()
    else:
        _remove_tree(folder)


def probe(folder: str) -> None:
    """Raises if no file can be written there."""
    path = f"{folder}/.probe-{os.getpid()}"
    if s3.is_address(folder):
        s3.Object(path).write([b"-"])
        s3.Object(path).delete()
        return
    os.makedirs(folder, exist_ok=True)
    with open(path, "wb"):
        pass
    os.remove(path)
