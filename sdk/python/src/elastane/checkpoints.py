"""Checkpoints of models that workers hold themselves. Owns: the files, in the form of those of the
parameter servers (`elastic.proto`), so that each reads what the other has written. Does not know
about: when one is made."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from typing import Any, Dict, List, Tuple

import numpy as np
from google.protobuf.message import DecodeError

from . import files
from .optimizers import Optimizer, OptimizerError, make
from .parameters import optimizer_message
from .protocol import messages as pb
from .replica import Layout, Replica
from .tensors import TensorError, from_variables, to_variables

_FORM = 1
_FOLDER = re.compile(r"version-(\d+)")
_FILE = re.compile(r"variables-(\d+)-of-(\d+)\.ckpt")
_RULES = {"sgd": pb.Sgd, "adam": pb.Adam, "adagrad": pb.Adagrad}
# A file is one message of protobuf, which has less than 2 GiB.
BYTES_MAX = 2**31 - 1
_HEADER_BYTES_MAX = 64 * 1024
# Most bytes of an array in a file besides its numbers and its name: kind, shape, lengths.
_ARRAY_BYTES = 256


class CheckpointError(ValueError):
    """A checkpoint that is missing, incomplete, or of another job."""


def _folder(root: str, version: int) -> str:
    return os.path.join(root, f"version-{version}")


def size(replica: Replica) -> int:
    """About how many bytes the file of a checkpoint takes, never too few."""
    names = [*replica.trained.shapes, *replica.carried.shapes]
    arrays = sum(_ARRAY_BYTES + len(name.encode()) for name in names) * (1 + len(replica.slots))
    return sum(vector.nbytes for vector in replica.vectors()) + arrays


def write(root: str, job_id: str, replica: Replica) -> None:
    """Writes a checkpoint: it is there whole, also after a power cut, or not at all."""
    body = header(_FORM, job_id, replica.life, replica.version) + _body(replica).SerializeToString()
    file = path(root, replica.version)
    beside = f"{file}.{replica.life}.partial"
    files.write(file, beside, [hashlib.sha256(body).digest(), body])


def path(root: str, version: int) -> str:
    """The only file of a checkpoint that a worker has written."""
    return os.path.join(_folder(root, version), "variables-0-of-1.ckpt")


def header(form: int, job_id: str, life: int, version: int) -> bytes:
    """The header of such a file, with its length before it."""
    message = pb.CheckpointHeader(
        form=form, job_id=job_id, model_generation=life, version=version, index=0, servers=1
    ).SerializeToString()
    return len(message).to_bytes(4, "big") + bytes(message)


def _body(replica: Replica) -> Any:
    slots = [replica.trained.arrays(slot) for slot in replica.slots]
    trainable = []
    for variable in to_variables(replica.trained.arrays(replica.values)):
        name = variable.name  # type: ignore[attr-defined]
        kept = [to_variables({name: slot[name]})[0].value for slot in slots]  # type: ignore
        value = variable.value  # type: ignore[attr-defined]
        trainable.append(pb.TrainedVariable(name=name, value=value, slots=kept))
    return pb.CheckpointBody(
        optimizer=optimizer_message(replica.optimizer),
        steps=replica.steps,
        trainable=trainable,
        state=to_variables(replica.carried.arrays(replica.state)),
    )


def load(root: str, version: int, job_id: str) -> Replica:
    """The checkpoint of this version that this job has written."""
    return _load(_folder(root, version), job_id)


def newest(path: str) -> Replica:
    """The checkpoint of any job in this folder (version-N), or the newest whole one of a folder with
    several."""
    if _FOLDER.fullmatch(os.path.basename(os.path.normpath(path))):
        return _load(path)
    why = f"{path} has no whole checkpoint (version-V with variables-I-of-N.ckpt for each I)"
    for version in reversed(versions(path)):
        try:
            return _load(_folder(path, version))
        except CheckpointError as error:
            why = f"{why}; {error}"
    raise CheckpointError(why)


def candidates(given: str) -> Tuple[str, List[int]]:
    """A folder of checkpoints and the versions in it, whole or not, newest first. Of a folder
    `version-N` that version alone."""
    # Two slashes are part of the address of a bucket.
    root, name = os.path.split(given.rstrip("/"))
    found = _FOLDER.fullmatch(name)
    if found:
        return root, [int(found[1])]
    present = versions(given)
    if not present:
        raise CheckpointError(f"{given} has no folder version-N of a checkpoint")
    return given, present[::-1]


def versions(root: str) -> List[int]:
    """All versions in a folder, whole or not, oldest first."""
    try:
        names = files.names(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"checkpoints in {root} cannot be listed: {error}") from error
    return sorted(int(found[1]) for found in map(_FOLDER.fullmatch, names) if found)


def is_of(root: str, version: int, job_id: str) -> bool:
    """True if this job has written the checkpoint, according to its header; the rest is not
    read."""
    try:
        start = files.read(path(root, version), 36 + _HEADER_BYTES_MAX)
        length = int.from_bytes(start[32:36], "big")
        found = pb.CheckpointHeader.FromString(start[36 : 36 + length])
    except (OSError, DecodeError):
        return False
    return bool(found.job_id == job_id)


def remove(root: str, version: int) -> None:
    """Removes a checkpoint."""
    folder = _folder(root, version)
    try:
        files.remove(folder)
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder}: {error.strerror or error}") from error


def content(path: str, form: int) -> Tuple[Any, bytes]:
    """The header and the rest of a file of this form, which is sound."""
    try:
        whole = files.read(path)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path}: {error.strerror or error}") from error
    digest, rest = whole[:32], whole[32:]
    if not hmac.compare_digest(hashlib.sha256(rest).digest(), digest):
        raise CheckpointError(f"checkpoint {path}: its content does not match its digest")
    length = int.from_bytes(rest[:4], "big")
    try:
        found = pb.CheckpointHeader.FromString(rest[4 : 4 + length])
    except DecodeError as error:
        raise CheckpointError(f"checkpoint {path}: its header: {error}") from error
    if found.form != form:
        raise CheckpointError(f"checkpoint {path}: form {found.form}; {form} is needed here")
    return found, rest[4 + length :]


def _read(path: str) -> Tuple[Any, Any]:
    found, body = content(path, _FORM)
    try:
        return found, pb.CheckpointBody.FromString(body)
    except DecodeError as error:
        raise CheckpointError(
            f"checkpoint {path}: {len(body)} bytes that are no checkpoint or more than "
            f"{BYTES_MAX}: {error}"
        ) from error


def _load(folder: str, job_id: str = "") -> Replica:
    try:
        names = files.names(folder)
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder}: {error.strerror or error}") from error
    parts = [one for one in map(_FILE.fullmatch, names) if one]
    if not parts:
        raise CheckpointError(f"{folder} has no file variables-I-of-N.ckpt")
    servers = int(parts[0][2])
    bodies, attempts = [], set()
    for index in range(servers):
        file = os.path.join(folder, f"variables-{index}-of-{servers}.ckpt")
        found, body = _read(file)
        if job_id and found.job_id != job_id:
            raise CheckpointError(f"checkpoint {file}: it is of another job, {found.job_id}")
        attempts.add((found.job_id, found.model_generation, found.version))
        bodies.append(body)
    if len(attempts) > 1:
        raise CheckpointError(f"checkpoint {folder}: its files are of different attempts")
    try:
        return _replica(bodies, attempts.pop()[2])
    except (TensorError, OptimizerError, KeyError, ValueError) as error:
        raise CheckpointError(f"checkpoint {folder}: {error}") from error


def _replica(bodies: List[Any], version: int) -> Replica:
    trained = [one for body in bodies for one in body.trainable]
    values = from_variables(pb.Variable(name=one.name, value=one.value) for one in trained)
    state = from_variables(one for body in bodies for one in body.state)
    optimizer = _optimizer(bodies[0].optimizer)
    made = Replica(Layout.of(values), Layout.of(state), optimizer, version=version)
    made.steps = int(bodies[0].steps)
    made.trained.write(values, made.values)
    made.carried.write(state, made.state)
    for number, into in enumerate(made.slots):
        slot: Dict[str, np.ndarray] = {}
        for one in trained:
            if len(one.slots) != len(made.slots):
                raise ValueError(f"{one.name}: {len(one.slots)} slots, not {len(made.slots)}")
            slot.update(from_variables([pb.Variable(name=one.name, value=one.slots[number])]))
        made.trained.write(slot, into)
    return made


def _optimizer(message: Any) -> Optimizer:
    kind = message.WhichOneof("rule")
    if kind not in _RULES:
        raise ValueError("its optimizer is not known")
    rule = getattr(message, kind)
    arguments = {field.name: float(getattr(rule, field.name)) for field in rule.DESCRIPTOR.fields}
    return make(kind, {"learning_rate": message.learning_rate, **arguments})
