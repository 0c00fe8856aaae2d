"""The worker of an elastic training: `python3 -m elastane.worker`.

Owns: the loop over tasks, and leaving in order. Does not know about: how gradients are computed
(`backends`), how calls are repeated (`connection`).

A worker registers with the master, loads the model and the data that the settings name, and works
through tasks until there are no more. SIGTERM, or a request of the master, makes it finish the
minibatch that it computes, hand its tasks back with the number of finished records, and leave. Exit
codes: 0 done, 143 it was to leave, 1 the model, the data or the code failed, 2 the master refuses this worker
or cannot be reached, 3 it and another worker do not reach each other. In a pod with several GPUs it
runs once for each of them (`processes`).
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import socket
import sys
import time
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Tuple

from . import backends, codec, master, processes
from .allreduce import ByAllReduce
from .backends import Backend, Batch
from .connection import CallError, Connection, Interrupted, Outdated
from .contract import Contract, ContractError
from .master import Membership, Prefetch, Work
from .metrics import Metrics
from .protocol import messages as pb
from .settings import Data, Settings, SettingsError, shards
from .sharing import ByParameterServers, Dropped, Leaving, Sharing, Unshared, log

_PROGRESS_EVERY_S = 0.5
# Between two looks at a worker that was given up.
_LOOK_S = 0.1
# After SIGTERM, if the master has not said how long: less than what engines give by default.
_GRACE_S = 20.0
# A worker that was given up and does not come to its next minibatch or task for so long hangs, if
# that is also so many times its longest step.
_HANGS_S, _HANGS_STEPS = 60.0, 3.0
# A worker that was parted from another counts as failed, which bounds how many begin in its place; one
# that was to leave does not count.
EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_PARTED, EXIT_TERMINATED = 0, 1, 2, 3, 143


class Worker:
    """A process that works for a job, under one number at a time."""

    def __init__(self, connection: Connection, pod: str, host: str, patience_s: float, token: str):
        self.master = connection
        self._pod, self.host = pod, host
        self._patience_s, self.token = patience_s, token
        self.terminated = False
        # True while it does work that may take longer than any step.
        self._is_unhurried = False
        self._longest_step_s = 0.0
        self._backend: Optional[Backend] = None
        self._data: Optional[Data] = None
        # The values before any training, if the servers have to restart without a model.
        self._initial: Optional[Tuple[backends.Arrays, backends.Arrays]] = None
        self._steps = 0
        self._has_ended = False
        self._reported_at = 0.0
        self._rate_since, self._rate_records = time.monotonic(), 0
        self.join()

    def join(self) -> None:
        """Gets a number of the master: at the start, and after the master has given it up."""
        self._instance = random.SystemRandom().getrandbits(63)
        registered = self._register(self.host)
        self.id = int(registered.worker_id)
        self.settings = Settings(registered.settings)
        self._needs_data = registered.needs_data
        self.members = Membership(self.master, self.id, registered, self._given_up)
        self._prefetch: Optional[Prefetch] = None
        is_shared_by_all = self.settings.message.parameter_servers == 0
        self._sharing: Sharing = (ByAllReduce if is_shared_by_all else ByParameterServers)(self)
        log(f"worker {self.id} of job {self.settings.message.job_name}, pod {self._pod}")

    def _register(self, host: str) -> Any:
        request = pb.RegisterRequest(pod=self._pod, instance=self._instance, host=host)
        return self.master.call("Register", request, interrupted=lambda: self.terminated)

    def reachable(self, address: str) -> None:
        """Reports to the master the address at which others can connect to this worker."""
        self._register(address)

    def connection(
        self, service: str, address: Callable[[], Optional[str]], message_bytes_max: int
    ) -> Connection:
        """A connection to another part of the job, with its token."""
        return Connection(service, address, self.token, self._patience_s, message_bytes_max)

    def is_leaving(self) -> bool:
        """True if it has to hand back and leave."""
        return self.terminated or self.members.leaving.is_set()

    def _given_up(self, members: Membership) -> None:
        """Called by the heartbeat thread: the master does not want this number any more. The main
        thread sees that and joins again, unless it hangs: then another worker has to take its
        place."""
        since = time.monotonic()
        while not members.stopped:
            time.sleep(_LOOK_S)
            if self._is_unhurried:
                since = time.monotonic()
            hangs = time.monotonic() - since > max(_HANGS_S, _HANGS_STEPS * self._longest_step_s)
            if hangs and not members.stopped:
                log(
                    f"worker {members.worker} was given up and hangs; it ends, so that another "
                    "takes its place"
                )
                os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Around what may take long without hanging: loading and writing."""
        self._is_unhurried = True
        try:
            yield
        finally:
            self._is_unhurried = False

    # Before the first task.

    def prepare(self) -> None:
        """Loads the model, once, opens the data, and begins to ask for tasks."""
        with self.unhurried():
            self._load()
        held_max = self.settings.message.held_max
        self._prefetch = Prefetch(self.master, self.id, held_max, self._read, self.is_leaving)
        self._sharing.begin()

    def _load(self) -> None:
        if self._backend is None or self._data is None:
            logging.basicConfig(level=self.settings.get("log_level") or logging.WARNING)
            model = self.settings.load_model()
            self._backend = backends.choose(model)
            self.backend.codec_type = self.settings.get("codec_type") or codec.TYPES[0]
            self._data = self.settings.open_data(model)
            self.backend.metadata = self._data.main.metadata
            self._check_predictions(model)
            self.backend.callbacks.set_params(
                {
                    "batch_size": self.settings.minibatch_size,
                    "saved_model_path": self.settings.get("output"),
                    "checkpoint_path": self.settings.get("checkpoint_dir"),
                }
            )
            for warning in [*self._data.main.warnings(), *self.backend.callbacks.warnings()]:
                log(f"warning: {warning}")
            log(f"model {model.path} with {self.backend.name}")
        self._sharing.serve(self.backend.embeddings())
        if self._needs_data:
            request = pb.ReportDataRequest(
                worker_id=self.id,
                shards=shards(self._data.main),
                validation_shards=shards(self._data.validation),
            )
            self.master.call("ReportData", request, interrupted=self.is_leaving)

    def _check_predictions(self, model: Contract) -> None:
        if self.settings.mode == "prediction" and model.prediction_outputs_processor is None:
            log(
                f"warning: the model {model.path} has no 'PredictionOutputsProcessor': predictions are "
                "computed and kept nowhere; define a class with process(predictions, worker_id)"
            )

    def _read(self, work: Work) -> None:
        """The records of a task, by the prefetch thread."""
        assert self._data is not None, "tasks come after prepare"
        task = work.task
        is_measured = task.kind == pb.TASK_KIND_EVALUATE and self.settings.mode == "training"
        reader = self._data.validation if is_measured else self._data.main
        if reader is None:
            raise ContractError("a task measures the model, and the job has no --validation_data")
        if not task.records:
            places = range(task.start, task.end)
            read = reader.read(
                task.shard, places, lambda bad: work.note_bad(bad.record, bad.reason)
            )
            work.records = list(read)
            return
        for offset, record in enumerate(task.records):
            position = task.start + offset

            def on_bad(bad: Any, position: int = position) -> None:
                work.note_bad(position, str(bad))

            for _, payload in reader.read(record.shard, [record.index], on_bad):
                work.records.append((position, payload))

    # The loop.

    def run(self) -> int:
        """Works until there is no more, and leaves."""
        try:
            self._loop()
        except (Leaving, Interrupted):
            self._sharing.leave()
            self._hand_back()
            self._leave(pb.LEAVE_REASON_PREEMPTED)
            return self.exit_left()
        if self._backend is not None:
            with self.unhurried():
                self.backend.callbacks.train_end()
        self._leave(pb.LEAVE_REASON_DONE)
        return EXIT_DONE

    def exit_left(self) -> int:
        """The exit code of one that has left before the end."""
        if not self.members.parted or self.terminated:
            return EXIT_TERMINATED
        log("this worker and another do not reach each other: look at the network between the two")
        return EXIT_PARTED

    def stop_asking(self) -> None:
        """Ends the threads of the number that the worker has now."""
        self._sharing.stop()
        self.members.stop()
        if self._prefetch is not None:
            self._prefetch.stop()

    def _loop(self) -> None:
        assert self._prefetch is not None, "run comes after prepare"
        while True:
            work, is_done = None, self.members.ended.is_set()
            if not is_done:
                self._check()
                work, is_done = self._prefetch.next(self._sharing.patience_s)
            if work is not None:
                self._do(work)
            elif self._sharing.idle(is_done):
                return

    def _check(self) -> None:
        """Raises if the worker has to stop."""
        if self.is_leaving():
            raise Leaving()
        failure = self.members.failure or (self._prefetch and self._prefetch.failure)
        if failure:
            raise failure

    def check_task(self, work: Work) -> None:
        """Raises if the worker has to stop, or to drop the task."""
        self._check()
        if 0 < work.task.model_generation < self.members.generation:
            raise Dropped()

    def _do(self, work: Work) -> None:
        assert self._prefetch is not None, "tasks come from it"
        try:
            self.check_task(work)
            if work.error is not None:
                self._failed(work, work.error)
            elif work.task.kind == pb.TASK_KIND_TRAIN:
                self._train(work)
                return
            elif work.task.kind == pb.TASK_KIND_EVALUATE:
                self._evaluate(work)
            elif work.task.kind == pb.TASK_KIND_PREDICT:
                self._predict(work)
            elif work.task.kind == pb.TASK_KIND_SAVE:
                self._save(work)
            else:
                self._failed(work, f"this worker does not know tasks of kind {work.task.kind}")
        except (Leaving, Interrupted):
            raise
        except Dropped:
            log(f"task {work.task.task_id}: dropped, it was given to another")
        except Outdated as error:
            # The servers went back to a checkpoint, or are about to: the master says which life
            # of the model counts, and gives the records again.
            log(f"task {work.task.task_id}: dropped: {error}")
            self.members.await_generation(work.task.model_generation, 5.0)
            self._sharing.forget()
        except (CallError, Unshared):
            raise
        except Exception:
            trace = traceback.format_exc()
            log(f"task {work.task.task_id} failed:\n{trace}")
            self._failed(work, trace)
        self._prefetch.drop(work)

    def _failed(self, work: Work, trace: str) -> None:
        master.report(self.master, self.id, work, pb.TASK_OUTCOME_FAILED, trace[-16_000:])

    def _finish(self, work: Work, **counts: int) -> None:
        work.visited = work.count
        outcome = pb.TASK_OUTCOME_FINISHED
        if not master.report(self.master, self.id, work, outcome, **counts):
            raise Dropped()

    def _batches(self, work: Work, mode: str) -> Any:
        return self.backend.batches(
            work.records, mode, self.settings.minibatch_size, work.note_bad
        )

    # The model.

    @property
    def backend(self) -> Backend:
        """Backend that computes gradients."""
        assert self._backend is not None, "tasks come after prepare"
        return self._backend

    def initial(
        self, batch: Optional[Batch]
    ) -> Optional[Tuple[backends.Arrays, backends.Arrays]]:
        """The values before any training, if there is a minibatch to build the model with, or was."""
        if self._initial is None and batch is not None:
            self.backend.build(batch)
            self._initial = (self.backend.parameters(), self.backend.state())
        return self._initial

    def took(self, seconds: float) -> None:
        """A step has taken so long."""
        self._longest_step_s = max(self._longest_step_s, seconds)

    # Kinds of tasks.

    def _train(self, work: Work) -> None:
        loss, steps, trained = float("nan"), 0, 0
        for batch in self._batches(work, "training"):
            visited = batch.records[-1][0] + 1 - work.task.start
            found = self._sharing.step(work, batch, visited)
            if found is None:
                self._check_end()
                break
            loss = found
            steps, trained = steps + 1, trained + len(batch.records)
            self._note_step(batch, loss)
            if time.monotonic() - self._reported_at > _PROGRESS_EVERY_S:
                self._reported_at = time.monotonic()
                progress = pb.TASK_OUTCOME_PROGRESS
                if not master.report(self.master, self.id, work, progress):
                    raise Dropped()
        version = self._sharing.version
        self._sharing.when_safe(lambda: self._trained(work, (steps, trained), version, loss))

    def _check_end(self) -> None:
        """A callback has ended the training: what is left is visited without training."""
        if self.settings.number("num_epochs", 1) < 1 and not self.settings.number("max_step", 0):
            raise ContractError(
                "a callback has ended the training, and the job has no end (--num_epochs=0): give "
                "--max_step, or a number of epochs"
            )
        if not self._has_ended:
            self._has_ended = True
            log(
                f"a callback has ended the training at version {self._sharing.version}: the "
                "records that are left are visited without training"
            )

    def _trained(self, work: Work, done: Tuple[int, int], version: int, loss: float) -> None:
        """Reports a task that was trained on, with the number of its minibatches and records, and
        is in hand until then."""
        assert self._prefetch is not None, "tasks come from it"
        steps, trained = done
        try:
            self._finish(work, batches=steps, trained_records=trained)
            log(
                f"task {work.task.task_id}: trained on {trained} records of epoch "
                f"{work.task.epoch}, version {version}, loss {loss:.4f}"
                + (f", {len(work.bad)} bad records" if work.bad else "")
            )
        except Dropped:
            log(f"task {work.task.task_id}: dropped, it was given to another")
        self._prefetch.drop(work)

    def _note_step(self, batch: Batch, loss: float) -> None:
        self._steps += 1
        self._rate_records += len(batch.records)
        seconds = time.monotonic() - self._rate_since
        version = self._sharing.version
        report = pb.WorkerReport(model_version=version, loss=loss, steps=self._steps)
        report.samples_per_second = self.members.report.samples_per_second
        if seconds >= 1.0:
            report.samples_per_second = self._rate_records / seconds
            self._rate_since, self._rate_records = time.monotonic(), 0
        self.members.report = report
        every = self.settings.number("log_loss_steps", 100)
        if every and self._steps % every == 0:
            log(f"Loss {loss:.4f} at step {self._steps}, version {report.model_version}")

    def _evaluate(self, work: Work) -> None:
        metrics = Metrics(self.backend.contract)
        version, records = None, 0
        for batch in self._batches(work, "evaluation"):
            self.check_task(work)
            if version is None:
                version = self._sharing.fetch(work, batch)
            metrics.update(batch.labels, self.backend.predict(batch))
            records += len(batch.records)
        if self._sharing.mixed():
            log(f"task {work.task.task_id}: measured parts of {self._sharing.mixed()} of the model")
        work.visited = work.count
        self._report_bad(work)
        request = pb.ReportEvaluationRequest(
            worker_id=self.id,
            task_id=work.task.task_id,
            model_version=work.task.model_version if version is None else version,
            records=records,
            metrics=[
                pb.Metric(name=name, total=one.total, weight=one.weight)
                for name, one in sorted(metrics.result().items())
            ],
        )
        reply = self.master.call("ReportEvaluation", request)
        if not reply.held:
            raise Dropped()
        if reply.HasField("evaluation"):
            whole = reply.evaluation
            values = ((m.name, m.total / m.weight) for m in whole.metrics if m.weight)
            shown = ", ".join(f"{name} {value:.4f}" for name, value in values)
            log(f"version {whole.model_version} on {whole.records} records: {shown}")

    def _predict(self, work: Work) -> None:
        processor = self.backend.contract.prediction_outputs_processor
        made = processor() if isinstance(processor, type) else processor
        is_pulled = False
        for batch in self._batches(work, "prediction"):
            self.check_task(work)
            if not is_pulled:
                self._sharing.fetch(work, batch)
                is_pulled = True
            predictions = self.backend.predict(batch)
            if made is not None:
                made.process(predictions, self.id)
            work.visited = batch.records[-1][0] + 1 - work.task.start
        self._finish(work, predicted_records=len(work.records))

    def _save(self, work: Work) -> None:
        batch = next(iter(self._batches(work, "training")), None)
        version = self._sharing.fetch(work, batch, flush=True)
        output = self.settings.get("output")
        if output:
            with self.unhurried():
                self.backend.save(output)
            mixed = self._sharing.mixed()
            log(f"{mixed or f'version {version}'} of the model is in {output}")
        self._finish(work)

    # The end.

    def _hand_back(self) -> None:
        """Every task with the number of its finished records, those read ahead included."""
        if self._prefetch is None:
            return
        self._prefetch.stop()
        until = time.monotonic() + (self.members.leave_within_ms / 1000 or _GRACE_S)
        for work in self._prefetch.held():
            request = pb.HandBackRequest(
                worker_id=self.id, task_id=work.task.task_id, finished_records=work.visited
            )
            self._report_bad(work)
            self.master.call("HandBack", request, interrupted=lambda: time.monotonic() > until)
            log(
                f"task {work.task.task_id}: handed back after {work.visited} of {work.count} records"
            )

    def _report_bad(self, work: Work) -> None:
        """Bad records that were visited; those behind are found again by the next worker."""
        end = work.task.start + work.visited
        work.bad = {at: why for at, why in work.bad.items() if at < end}
        if work.bad:
            master.report(self.master, self.id, work, pb.TASK_OUTCOME_PROGRESS)

    def _leave(self, reason: int, message: str = "") -> None:
        self.stop_asking()
        request = pb.LeaveRequest(worker_id=self.id, reason=reason, message=message)
        try:
            self.master.call("Leave", request, interrupted=lambda: True)
        except Interrupted:
            log("the master is away, so it finds out by itself that this worker has left")

    def leave_failed(self, trace: str) -> None:
        """Reports that the code failed outside of a task."""
        self._leave(pb.LEAVE_REASON_CODE_ERROR, trace[-16_000:])


def _options(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="elastane.worker", description="A worker of a training.")
    environment = os.environ.get
    address, port = environment("MASTER_ADDR"), environment("MASTER_PORT")
    if address and port and ":" not in address:
        address = f"{address}:{port}"
    parser.add_argument("--master", default=address, help="HOST:PORT")
    parser.add_argument(
        "--token-file",
        default=environment("ELASTANE_JOB_TOKEN_FILE"),
        help="file with the token of the job",
    )
    parser.add_argument("--pod", default=environment("POD_NAME") or socket.gethostname())
    parser.add_argument("--host", default=environment("MY_POD_IP") or "127.0.0.1")
    parser.add_argument(
        "--devices",
        type=processes.split,
        default=processes.of_pod(),
        help="GPUs as 0,1: with several a process runs for each (default: those of the pod)",
    )
    parser.add_argument(
        "--patience-s",
        type=float,
        default=600.0,
        help="how long master or parameter server may be away (default: 600)",
    )
    options = parser.parse_args(arguments)
    if not options.master:
        parser.error("--master HOST:PORT is missing (or MASTER_ADDR in the environment)")
    if not options.token_file:
        parser.error("--token-file is missing (or ELASTANE_JOB_TOKEN_FILE in the environment)")
    return options


def main(arguments: Optional[List[str]] = None) -> int:
    """The program; returns its exit code."""
    options = _options(arguments)
    try:
        with open(options.token_file, encoding="utf-8") as file:
            token = file.read().strip()
    except OSError as error:
        print(f"error: the token of the job cannot be read: {error}", file=sys.stderr)
        return EXIT_REFUSED
    connection = Connection("Master", lambda: options.master, token, options.patience_s)
    if len(options.devices) > 1:
        own = sys.argv[1:] if arguments is None else arguments
        return processes.run(
            options.devices, options.pod, own, lambda name: _gone(connection, name)
        )
    terminated: List[bool] = []
    worker: List[Worker] = []

    def on_term(*_: Any) -> None:
        terminated.append(True)
        for one in worker:
            one.terminated = True

    signal.signal(signal.SIGTERM, on_term)
    try:
        worker.append(Worker(connection, options.pod, options.host, options.patience_s, token))
        worker[0].terminated = bool(terminated)
    except (CallError, SettingsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return _work(worker[0])


def _gone(connection: Connection, name: str) -> None:
    """Reports to the master that a process of this pod has failed: the others need not wait for
    it."""
    request = pb.TellRequest(pod_gone=pb.PodGone(pod=name))
    try:
        connection.call("Tell", request, interrupted=lambda: True)
    except (CallError, Interrupted) as error:
        log(f"the master finds out by itself that {name} is gone: {error}")


def _work(worker: Worker) -> int:
    try:
        while True:
            try:
                worker.prepare()
                return worker.run()
            except Outdated as error:
                log(
                    f"the master has given worker {worker.id} up: {error}; it joins under a new number"
                )
                worker.stop_asking()
                worker.join()
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except Interrupted:
        return worker.exit_left()
    except Exception:
        trace = traceback.format_exc()
        print(trace, file=sys.stderr)
        try:
            worker.leave_failed(trace)
        except CallError as error:
            print(f"error: {error}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of gRPC and of frameworks may still wait for something; nothing of theirs counts.
    os._exit(code)
