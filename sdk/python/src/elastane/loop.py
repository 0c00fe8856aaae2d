"""A process with a custom training loop as a worker of a job (`--job_command`). Owns: joining
the job by the variables of the pod, and leaving it in order. Does not know about: shards,
gradients.

Such a process is a script that the job starts in each worker. SIGTERM, or a request of the master,
is only noted; the script ends, with exit code 143, at its next call of a service, which hands its
tasks back.
"""

from __future__ import annotations

import atexit
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any, Callable, List, Optional

from .connection import CallError, Connection, Interrupted
from .master import Membership
from .protocol import messages as pb
from .settings import Settings
from .sharing import log

EXIT_TERMINATED = 143
_PATIENCE_S = 600.0
# For handing back, if the master has not said how long.
_GRACE_S = 20.0


class LoopError(RuntimeError):
    """A script that is in no job, or whose job cannot do what it asks for."""


class Loop:
    """This process as a worker."""

    def __init__(self, connection: Connection, pod: str, host: str, token: str) -> None:
        self.master, self.host, self.token = connection, host, token
        self._pod = pod
        self._instance = random.SystemRandom().getrandbits(63)
        self.terminated = False
        # The thread that leaves the job, and that it has left.
        self._leaver: Optional[int] = None
        self._has_left = threading.Event()
        self._leaving = threading.Lock()
        self._thread = threading.local()
        self._failure, self._is_lost, self._exit = "", False, ""
        # Processes that are forked from this one are no workers.
        self._process = os.getpid()
        self._at_end: List[Callable[[], None]] = []
        registered = self._register(host)
        self.id = int(registered.worker_id)
        self.settings = Settings(registered.settings)
        self.needs_data = bool(registered.needs_data)
        self.members = Membership(connection, self.id, registered)
        log(f"worker {self.id} of job {self.settings.message.job_name}, pod {pod}, its own loop")

    def _register(self, host: str) -> Any:
        request = pb.RegisterRequest(pod=self._pod, instance=self._instance, host=host)
        return self.master.call("Register", request, interrupted=lambda: self.terminated)

    def reachable(self, address: str) -> None:
        """Reports to the master the address at which others can connect to this worker."""
        self._register(address)

    def is_leaving(self) -> bool:
        """True if it has to hand back and leave."""
        return self.terminated or self.members.leaving.is_set()

    def check(self) -> None:
        """Raises the error of a master that is away or refuses this worker, and ends the process if
        it has to leave. No lock is held that a call at the end needs."""
        if os.getpid() != self._process:
            return
        is_own = getattr(self._thread, "is_own", False)
        if not is_own:
            # The script has not ended by it.
            self._exit = ""
        if self.members.failure is not None:
            raise self.members.failure
        if self.is_leaving():
            if not is_own:
                self.leave(pb.LEAVE_REASON_PREEMPTED)
            raise SystemExit(EXIT_TERMINATED)

    def add_own_thread(self) -> None:
        """The calling thread is one of a service: `check` ends it before the worker leaves."""
        self._thread.is_own = True

    def at_end(self, call: Callable[[], None]) -> None:
        """Called before the worker leaves; the last one first."""
        self._at_end.append(call)

    def has_until(self) -> Callable[[], bool]:
        """A function that returns true once the time to hand back is over."""
        seconds = self.members.leave_within_ms / 1000 or _GRACE_S
        until = time.monotonic() + seconds
        return lambda: time.monotonic() > until

    def leave(self, reason: int, message: str = "") -> None:
        """Leaves the job, once. A second thread returns when the first one has left."""
        thread = threading.get_ident()
        with self._leaving:
            is_first = self._leaver is None
            self._leaver = thread if is_first else self._leaver
        if is_first:
            try:
                self._leave(reason, message)
            finally:
                self._has_left.set()
        elif self._leaver != thread:
            self._has_left.wait()

    def _leave(self, reason: int, message: str) -> None:
        while self._at_end:
            try:
                self._at_end.pop()()
            except Exception:
                # The others are called all the same: tasks are handed back.
                log(f"an error while the worker leaves:\n{traceback.format_exc()}")
        self.members.stop()
        request = pb.LeaveRequest(worker_id=self.id, reason=reason, message=message)
        try:
            self.master.call("Leave", request, interrupted=lambda: True)
        except (CallError, Interrupted) as error:
            log(f"the master was not told; it notices by the missing heartbeat: {error}")

    # The end of the script.

    def watch_the_script(self) -> None:
        """Leaves when the script ends: with its trace, if it has failed, or what it gave to
        `sys.exit`. `os._exit` ends a script unnoticed, and `raise SystemExit` counts as done."""
        previous, leave_script = sys.excepthook, sys.exit
        is_main = threading.current_thread() is threading.main_thread()

        def failed(kind: Any, error: Any, trace: Any) -> None:
            self._failure = "".join(traceback.format_exception(kind, error, trace))
            previous(kind, error, trace)

        def left(status: Any = None) -> None:
            if status and threading.current_thread() is threading.main_thread():
                self._exit = f"sys.exit({status!r})\n"
            leave_script(status)

        sys.excepthook, sys.exit = failed, left  # type: ignore[assignment]
        atexit.register(self._end)
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, *_: Any) -> None:
        if os.getpid() != self._process:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        self.terminated = True

    def fail(self, error: BaseException) -> None:
        """A thread of the worker has failed, and the script may not notice: it fails at its end."""
        trace = traceback.format_exception(type(error), error, error.__traceback__)
        self._failure, self._is_lost = "".join(trace), True

    def _end(self) -> None:
        if os.getpid() != self._process:
            return
        failure = self._failure or self._exit
        if not failure:
            self.leave(pb.LEAVE_REASON_DONE)
            return
        self.leave(pb.LEAVE_REASON_CODE_ERROR, failure[-16_000:])
        if self._is_lost:
            print(self._failure, file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(1)


_LOOP: Optional[Loop] = None


def of_environment() -> Loop:
    """The worker that this process is, by the variables of its pod; one for the whole process.

    Raises LoopError outside of a job.
    """
    global _LOOP
    if _LOOP is None:
        environment = os.environ.get
        address, port = environment("MASTER_ADDR"), environment("MASTER_PORT")
        file = environment("ELASTANE_JOB_TOKEN_FILE")
        if not address or not file:
            missing = "ELASTANE_JOB_TOKEN_FILE" if address else "MASTER_ADDR"
            raise LoopError(
                f"{missing} is not in the environment: start the script with elasticdl train "
                "--job_command"
            )
        if port and ":" not in address:
            address = f"{address}:{port}"
        with open(file, encoding="utf-8") as opened:
            token = opened.read().strip()
        connection = Connection("Master", lambda: address, token, _PATIENCE_S)
        pod = environment("POD_NAME") or socket.gethostname()
        _LOOP = Loop(connection, pod, environment("MY_POD_IP") or "127.0.0.1", token)
        _LOOP.watch_the_script()
    return _LOOP
