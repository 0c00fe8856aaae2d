"""Checkpoints of custom training loops that add up their gradients. Owns: their files, beside those
of other jobs, and what is in one. Does not know about: when one is made (`leading`), frameworks.

A file has the frame and the header of every checkpoint (`elastic.proto`), with a form of its own,
and then the description of a model and its arrays (`trees`).
"""

from __future__ import annotations

import hashlib
import os
import struct
from typing import Any, List

import numpy as np

from . import checkpoints, files
from .checkpoints import CheckpointError
from .leading import Leader
from .protocol import messages as pb
from .sharing import log

_FORM = 3
_LENGTHS = struct.Struct(">QQ")


class Snapshot:
    """A model with its optimizer at a version, as a checkpoint has them."""

    def __init__(self, version: int, batches: int, description: bytes, arrays: List[np.ndarray]):
        self.version, self.batches = version, batches
        self.description, self.arrays = description, arrays
        # The model generation, and the random number that it has instead of a server's.
        self.life = self.instance = 0

    def copy(self) -> "Snapshot":
        """The snapshot with arrays that no update changes."""
        made = Snapshot(
            self.version, self.batches, self.description, [one.copy() for one in self.arrays]
        )
        made.life, made.instance = self.life, self.instance
        return made


def write(root: str, job_id: str, snapshot: Snapshot) -> None:
    """Writes a checkpoint: it is there whole, also after a power cut, or not at all."""
    header = checkpoints.header(_FORM, job_id, snapshot.life, snapshot.version)
    lengths = _LENGTHS.pack(snapshot.batches, len(snapshot.description))
    parts = [header, lengths, snapshot.description, *(one.tobytes() for one in snapshot.arrays)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    path = checkpoints.path(root, snapshot.version)
    files.write(path, f"{path}.{snapshot.life}.partial", [digest.digest(), *parts])


def load(root: str, version: int, job_id: str, model: Any) -> Snapshot:
    """Gives a model the values of the checkpoint of this version. `job_id`: the job that has
    written it; empty for any."""
    path = checkpoints.path(root, version)
    header, content = checkpoints.content(path, _FORM)
    if job_id and header.job_id != job_id:
        raise CheckpointError(f"checkpoint {path}: it is of another job, {header.job_id}")
    batches, length = _LENGTHS.unpack_from(content)
    at = _LENGTHS.size + length

    def fill(flat: np.ndarray) -> None:
        nonlocal at
        flat.view(np.uint8)[:] = np.frombuffer(content, np.uint8, flat.nbytes, at)
        at += flat.nbytes

    try:
        model.unpack(content[_LENGTHS.size : _LENGTHS.size + length], fill)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path} is of another model: {error}") from error
    return Snapshot(version, batches, b"", [])


def load_newest(given: str, model: Any) -> None:
    """Gives a model the values of the checkpoint of any job in this folder (version-N), or of the
    newest whole one of a folder with several."""
    root, present = checkpoints.candidates(given)
    why = f"{given} has no whole checkpoint of this model"
    for version in present:
        try:
            load(root, version, "", model)
            return
        except CheckpointError as error:
            why = f"{why}; {error}"
    raise CheckpointError(why)


class LoopLeader(Leader):
    """The leader for the model of a script."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self.model: Any = None

    @property
    def keeps(self) -> bool:
        """True if the job has a folder for checkpoints."""
        return bool(self._folder)

    def _check_size(self, replica: Any) -> None:
        """Its files may have any size."""

    def _find(self, orders: Any) -> Any:
        version, init = orders.checkpoint_version, self._worker.settings.get(
            "checkpoint_dir_for_init"
        )
        found = Snapshot(0, 0, b"", [])
        if version:
            found = load(self._folder, version, orders.job_id, self.model)
            log(f"the model goes on from the checkpoint of version {version}")
        elif init:
            load_newest(init, self.model)
        self._forget_later(version, orders.job_id)
        return found

    def _store(self, replica: Any) -> None:
        write(self._folder, self._worker.settings.message.job_id, replica)
