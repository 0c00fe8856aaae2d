"""Files that this process cannot read. Owns: saying which folder or file is closed to it, and what to type.
Does not know about: what the files are."""

from __future__ import annotations

import os


def unreadable(path: str, error: OSError) -> str:
    """Why this process cannot read a file, and what to do."""
    if not isinstance(error, PermissionError):
        return f"{path} cannot be read: {error.strerror or error}"
    at, closed = os.path.abspath(path), os.path.abspath(path)
    while at != os.path.dirname(at):
        at = os.path.dirname(at)
        if not os.access(at, os.X_OK):
            closed = at
    try:
        owner = f"; it is of the account with the number {os.stat(closed).st_uid}"
    except OSError:
        owner = ""
    mode = "a+rx" if closed != os.path.abspath(path) else "a+r"
    return (
        f"{path} cannot be read by the account with the number {os.getuid()}, under which this worker "
        f"runs: {closed} is closed to it{owner}; type chmod {mode} {closed}"
    )
