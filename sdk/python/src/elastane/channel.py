"""Reports of a workload about its checkpoints.

Owns: the protocol, and finding the newest file of a checkpoint. Does not know about: the contents
of one. Only the standard library is needed: a script may take this file along.

A scheduler that has to stop one of several workloads stops the one that loses least, and counts the
work since the last checkpoint that it knows. `checkpoint` reports one:

    torch.save(state, path)
    elastane.checkpoint(path, step=step, next_in=60)

A script that calls `save_wanted` between its steps loses nothing when it is stopped, moved or gets
another number of GPUs: its place is taken when it has saved, within 20 s.

    if elastane.save_wanted():
        save(state, path)
        elastane.checkpoint(path, step=step)

Outside of a workload all functions do nothing and return False. A report that fails is a warning and
never an exception: the training goes on.
"""

import array
import json
import os
import socket
import stat
import time
import warnings

VARIABLE = "ELASTANE_CHANNEL"
_PATIENCE_S = 10
_ANSWER_BYTES_MAX = 4096
_DEPTH_MAX = 4
_ENTRIES_MAX = 10_000


def checkpoint(path, step=None, next_in=None):
    """Reports that a checkpoint was written completely.

    `path`: the file, or a folder, of which the newest file counts. The workload must be able to write it:
    the open file is what is passed to the server. `step`: a whole number that only rises. `next_in`: in
    how many seconds the next checkpoint will be complete; an eviction waits for one that is at most 20 s
    away.

    Returns whether it counts.
    """
    return _report(path, step, next_in)


def next_checkpoint(seconds):
    """Announces that the next checkpoint will be complete in so many seconds.

    Returns whether the server knows now.
    """
    return _report(None, None, seconds)


# On the monotonic clock: when it was answered last, and until when it does not ask.
_asked = {"at": None, "not_before": 0.0}


def save_wanted(every=1.0):
    """Checks if a checkpoint is wanted now, because the workload is to be stopped, moved or
    resized.

    `every`: shortest time between two requests to the server, in seconds, so it can be called after
    each step. The server does not wait for a script that has not asked for 30 s.

    Returns the seconds for which the server waits for the checkpoint; 0.0 if none is wanted.
    """
    channel, now = os.environ.get(VARIABLE), time.monotonic()
    asked_now = _asked["at"] is not None and now < _asked["at"] + every
    if not channel or asked_now or now < _asked["not_before"]:
        return 0.0
    try:
        answer = _ask(channel, {"asks": True}, None, patience_s=1.0)
        _asked["at"] = time.monotonic()
        return float(answer.get("save_within_s") or 0.0)
    except (AttributeError, OSError, TypeError, ValueError) as error:
        # A server that does not answer must not slow down each step.
        _asked["not_before"] = time.monotonic() + 30.0
        warnings.warn(f"whether a checkpoint is wanted is not known: {error}", stacklevel=2)
        return 0.0


def _report(path, step, next_in):
    channel = os.environ.get(VARIABLE)
    if not channel:
        return False
    what = {}
    try:
        if path is not None:
            what["checkpoint"] = {} if step is None else {"step": int(step)}
        if next_in is not None:
            what["next_in_s"] = float(next_in)
        reply = _ask(channel, what, path)
    except (OSError, OverflowError, TypeError, ValueError) as error:
        warnings.warn(f"the checkpoint was not reported: {error}", stacklevel=3)
        return False
    if reply.get("ok") is True:
        return True
    warnings.warn(f"the checkpoint does not count: {reply.get('why')}", stacklevel=3)
    return False


def _ask(channel, what, path, patience_s=_PATIENCE_S):
    file = None if path is None else _open(path)
    # The path may be too long for a socket's address.
    folder = os.open(os.path.dirname(channel) or "/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(patience_s)
            connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(channel)}")
            rights = []
            if file is not None:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
            connection.sendmsg([json.dumps(what).encode() + b"\n"], rights)
            answer = b""
            while len(answer) < _ANSWER_BYTES_MAX:
                part = connection.recv(_ANSWER_BYTES_MAX)
                if not part:
                    break
                answer += part
    finally:
        os.close(folder)
        if file is not None:
            os.close(file)
    reply = json.loads(answer)
    if not isinstance(reply, dict):
        raise ValueError("the answer of the server is not understood")
    return reply


def _open(path):
    """Opens a file, or the newest of those below a folder that have content, for writing."""
    path = os.fspath(path)
    if os.path.isdir(path):
        newest = _newest(path, _DEPTH_MAX, [_ENTRIES_MAX])
        if newest is None:
            raise FileNotFoundError(f"no file with content is in {path}")
        path = newest[1]
    # A pipe would be waited for.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _newest(folder, depth, left):
    found = None
    with os.scandir(folder) as entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                break
            status = entry.stat(follow_symlinks=False)
            one = None
            if stat.S_ISDIR(status.st_mode) and depth > 0:
                one = _newest(entry.path, depth - 1, left)
            elif stat.S_ISREG(status.st_mode) and status.st_size > 0:
                one = (status.st_mtime_ns, entry.path)
            if one is not None and (found is None or found < one):
                found = one
    return found
