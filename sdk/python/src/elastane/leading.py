"""Work of the first worker of a world for all. Owns: the place of the leader of the parameter
servers at the master, which this worker takes: where a model begins, checkpoints, versions. Does
not know about: rounds."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional

from . import checkpoints, files
from .checkpoints import CheckpointError
from .connection import CallError, Interrupted, Unreachable
from .protocol import messages as pb
from .replica import Replica
from .sharing import Unshared, log

if TYPE_CHECKING:
    from .worker import Worker

_REPORT_EVERY_S = 0.5


class Leader:
    """The leader for the model of a job whose workers hold it themselves."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._folder = worker.settings.get("checkpoint_dir")
        self._settings: Optional[Any] = None
        self._saved = 0
        self._evaluated = 0
        self._reported_at = 0.0
        self._writing: Optional[threading.Thread] = None

    def _call(self, name: str, request: Any) -> Any:
        return self._worker.master.call(name, request, interrupted=self._worker.is_leaving)

    def _attend(self, **fields: Any) -> Any:
        request = pb.AttendRequest(index=0, **fields)
        reply = self._call("Attend", request)
        self._settings = reply.settings
        return reply

    # Where a model begins.

    def begin(self) -> Replica:
        """The model, when no worker has it: of the newest checkpoint, or a new one. The master
        gives out again what is not in it."""
        instance = random.SystemRandom().getrandbits(63)
        orders = self._attend(instance=instance)
        while True:
            try:
                found = self._find(orders)
                break
            except CheckpointError as error:
                if not orders.checkpoint_version:
                    raise Unshared(str(error)) from error
                log(f"a checkpoint cannot be restored: {error}")
                orders = self._attend(
                    instance=instance,
                    unreadable_version=orders.checkpoint_version,
                    message=str(error),
                )
        self._check_size(found)
        found.life, found.instance = int(orders.model_generation), instance
        self._saved = found.version
        return found

    def _check_size(self, replica: Replica) -> None:
        """Before the training: the first checkpoint would fail only after it has begun."""
        size = checkpoints.size(replica)
        if self._folder and size > checkpoints.BYTES_MAX:
            raise Unshared(
                f"--checkpoint_dir: the model with what its optimizer keeps has {size} bytes, and "
                f"a file of a checkpoint {checkpoints.BYTES_MAX} at most: use the strategy "
                "ParameterServerStrategy with several servers, which have a file each"
            )

    def _find(self, orders: Any) -> Replica:
        version, init = orders.checkpoint_version, self._worker.settings.get(
            "checkpoint_dir_for_init"
        )
        if version:
            found = checkpoints.load(self._folder, version, orders.job_id)
            log(f"the model goes on from the checkpoint of version {version}")
        elif init:
            found = checkpoints.newest(init)
        else:
            initial = self._worker.initial(None)
            if initial is None:
                raise Unshared("the task has no record to build the model with")
            found = Replica.begin(*initial, self._worker.backend.optimizer())
        self._forget_later(version, orders.job_id)
        return found

    def _forget_later(self, version: int, job_id: str) -> None:
        """Removes checkpoints after this version: they belong to a discarded history."""
        if not self._folder:
            return
        self._check_folder()
        for later in checkpoints.versions(self._folder):
            if later > version and checkpoints.is_of(self._folder, later, job_id):
                checkpoints.remove(self._folder, later)

    def _check_folder(self) -> None:
        try:
            files.probe(self._folder)
        except OSError as error:
            raise Unshared(f"--checkpoint_dir: {error}") from error

    # Checkpoints.

    def _orders(self, replica: Replica) -> Any:
        """Orders of the master for checkpoints; the first call gets them."""
        if self._settings is None:
            self._attend(instance=replica.instance, model_generation=replica.life)
        return self._settings

    def is_due(self, replica: Replica) -> bool:
        """True if a checkpoint of this version is due."""
        if not self._folder or replica.version == self._saved:
            return False
        try:
            every = self._orders(replica).checkpoint_steps
        except (CallError, Interrupted) as error:
            log(f"no checkpoint of version {replica.version}: {error}")
            return False
        return every > 0 and replica.version // every > self._saved // every

    def save(self, replica: Replica, positions: List[Any]) -> None:
        """Makes a checkpoint: the ledger of the master is cut now, the file is written beside the
        training."""
        self._written()
        self._saved = replica.version
        if not self._begin(replica, positions):
            return
        copy = replica.copy()
        self._writing = threading.Thread(target=self._write, args=(copy,), name="checkpoint")
        self._writing.start()

    def _begin(self, replica: Replica, positions: List[Any]) -> bool:
        """Cuts the ledger of the master: the records up to these positions are in the model."""
        request = pb.BeginCheckpointRequest(
            model_generation=replica.life, model_version=replica.version, positions=positions
        )
        try:
            self._call("BeginCheckpoint", request)
        except (CallError, Interrupted) as error:
            log(f"no checkpoint of version {replica.version}: {error}")
            return False
        return True

    def _write(self, replica: Replica) -> bool:
        assert self._settings is not None, "a checkpoint begins with the orders"
        version, job_id = replica.version, self._worker.settings.message.job_id
        try:
            self._store(replica)
            kept = [
                one
                for one in checkpoints.versions(self._folder)
                if checkpoints.is_of(self._folder, one, job_id)
            ]
            most = int(self._settings.keep_checkpoint_max)
            oldest = kept[-most:][0] if most else kept[0]
            request = pb.EndCheckpointRequest(
                model_generation=replica.life, model_version=version, oldest_version=oldest
            )
            self._call("EndCheckpoint", request)
            for old in kept:
                if old < oldest:
                    checkpoints.remove(self._folder, old)
        except (OSError, CheckpointError, CallError, Interrupted) as error:
            log(f"the checkpoint of version {version} was not made: {error}")
            return False
        return True

    def _store(self, replica: Replica) -> None:
        checkpoints.write(self._folder, self._worker.settings.message.job_id, replica)

    def _written(self) -> None:
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def save_at_end(self, replica: Replica, positions: List[Any]) -> None:
        """All workers leave: the job goes on from here when others come."""
        self._written()
        self._orders(replica)
        if not self._folder:
            log("the model is not kept: the job has no --checkpoint_dir")
            return
        if not self._begin(replica, positions) or not self._write(replica):
            return
        self._saved = replica.version
        self._attend(instance=replica.instance, model_generation=replica.life, saved=True)
        log(f"version {replica.version} of the model is saved")

    def finish(self, replica: Replica) -> None:
        """The job has ended: the last checkpoint, then the master may end as well."""
        self._written()
        try:
            self._orders(replica)
            if self._folder and replica.version != self._saved and self._begin(replica, []):
                if not self._write(replica):
                    raise Unshared("the last checkpoint was not made")
                self._saved = replica.version
            self._attend(
                instance=replica.instance,
                model_generation=replica.life,
                model_version=replica.version,
                done=True,
            )
        except (Interrupted, Unreachable) as error:
            # It has ended, perhaps by this request, whose answer is lost. A refusal is an error.
            log(f"the master is away; it ends without this worker: {error}")

    # Versions.

    def reached(self, replica: Replica) -> None:
        """Reports the version of the model to the master: each version that is to be measured, and
        others now and then."""
        try:
            every = self._orders(replica).evaluation_steps
        except (CallError, Interrupted) as error:
            log(f"the master does not know of version {replica.version}: {error}")
            return
        is_measured = every > 0 and replica.version // every > self._evaluated // every
        if not is_measured and time.monotonic() - self._reported_at < _REPORT_EVERY_S:
            return
        self._reported_at, self._evaluated = time.monotonic(), replica.version
        request = pb.ReportVersionRequest(
            model_generation=replica.life, model_version=replica.version
        )
        try:
            self._call("ReportVersion", request)
        except (CallError, Interrupted) as error:
            log(f"the master does not know of version {replica.version}: {error}")

    def stop(self) -> None:
        """Waits for what is written."""
        self._written()
