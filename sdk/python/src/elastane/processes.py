"""A process for each GPU of a worker that has several: CUDA gives a process its devices when it begins,
and a worker computes on one.

Owns: starting them, each with its GPU and its name; that a signal reaches all of them; what becomes of
the others when one fails; the exit code of the pod. Does not know about: tasks and models, and how the
master gets to know of a process that is gone.

The processes are workers of their own for the master: process N of the pod P is the worker `P/N`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable, Dict, List, Optional

from .sharing import log

TERMINATED = 128 + signal.SIGTERM
# Between two looks at the processes.
_LOOK_S = 0.05
# Seconds for the others to hand back after one has failed.
_LEAVE_S = 30.0
# Seconds for the last calls to the master about failed processes, after all have ended.
_TELL_S = 5.0
# Seconds for lines after the end of a process: others that it has started may hold its output.
_LINES_S = 2.0


def of_pod() -> List[str]:
    """The GPUs of the pod that this process is the program of; none outside of a pod."""
    if "RUNAI_NUM_OF_GPUS" not in os.environ:
        return []
    return split(os.environ.get("CUDA_VISIBLE_DEVICES", ""))


def split(devices: str) -> List[str]:
    """GPUs by index or UUID, as CUDA_VISIBLE_DEVICES has them."""
    return [one.strip() for one in devices.split(",") if one.strip()]


class _Process:
    """One of them, and the threads that hand on its lines."""

    def __init__(self, command: List[str], device: str, rank: int, ranks: int) -> None:
        own = {
            "CUDA_VISIBLE_DEVICES": device,
            "RUNAI_NUM_OF_GPUS": "1",
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(ranks),
        }
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._threads = [
            threading.Thread(target=_hand_on, args=(source, to, f"[{rank}] "), daemon=True)
            for source, to in (
                (self._process.stdout, sys.stdout),
                (self._process.stderr, sys.stderr),
            )
        ]
        for thread in self._threads:
            thread.start()

    def code(self) -> Optional[int]:
        """How it ended, as shells say it; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        for thread in self._threads:
            thread.join(_LINES_S)
        return 128 - code if code < 0 else code

    def signal(self, number: int) -> None:
        """Nothing happens if it has ended."""
        self._process.send_signal(number)


def _hand_on(source: Optional[IO[bytes]], to: Any, prefix: str) -> None:
    assert source is not None, "its output is a pipe"
    for line in source:
        # One write for each line: those of the others come between lines.
        whole = prefix.encode() + line
        to.buffer.write(whole if line.endswith(b"\n") else whole + b"\n")
        to.buffer.flush()


def run(
    devices: List[str], pod: str, arguments: List[str], gone: Callable[[str], None]
) -> int:
    """Runs `elastane.worker` once for each device, with these arguments, until all have ended. `gone`
    gets the name of each that has failed, in a thread of its own.

    SIGTERM is handed on. When one fails or leaves for itself the others hand back, and the pod has its
    exit code: as with one process, a new pod takes its place. Returns 0 if all ended well, 143 if some
    were to leave.
    """
    running: Dict[str, _Process] = {}
    is_leaving, is_told = threading.Event(), False
    # The signal does not go to the others from here: it may come while one of them is being
    # started.
    signal.signal(signal.SIGTERM, lambda *_: is_leaving.set())
    for rank, device in enumerate(devices):
        name = f"{pod}/{rank}"
        command = [sys.executable, "-m", "elastane.worker", *arguments]
        command += ["--pod", name, "--devices", device]
        running[name] = _Process(command, device, rank, len(devices))
    log(f"pod {pod}: {len(devices)} processes, for the GPUs {', '.join(devices)}")
    failed, ended, until = 0, 0, 0.0
    telling: List[threading.Thread] = []
    while running:
        time.sleep(_LOOK_S)
        codes = {name: process.code() for name, process in running.items()}
        over = {name: code for name, code in codes.items() if code is not None}
        wrong = {name: code for name, code in over.items() if code not in (0, TERMINATED)}
        for name, code in over.items():
            del running[name]
            ended = max(ended, code)
        if wrong and not failed:
            failed, until = next(iter(wrong.values())), time.monotonic() + _LEAVE_S
            is_leaving.set()
        if TERMINATED in over.values() and not is_leaving.is_set():
            # The process handed back for itself: only a new pod can take its place.
            until = time.monotonic() + _LEAVE_S
            is_leaving.set()
        if is_leaving.is_set() and not is_told:
            is_told = True
            for process in running.values():
                process.signal(signal.SIGTERM)
        for name, code in wrong.items():
            log(f"process {name} has failed with the exit code {code}")
            # A master that does not answer holds nothing up here.
            telling.append(threading.Thread(target=gone, args=(name,), daemon=True))
            telling[-1].start()
        if until and time.monotonic() > until:
            for process in running.values():
                process.signal(signal.SIGKILL)
    heard_until = time.monotonic() + _TELL_S
    for thread in telling:
        thread.join(max(0.0, heard_until - time.monotonic()))
    return failed or ended
