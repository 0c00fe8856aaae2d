"""The worker of an elastic training: `python3 -m elastane.worker`.

Owns: the loop over tasks, and leaving in order. Does not know about: how gradients are computed
(`backends`), how calls are repeated (`connection`).

A worker registers with the master, loads the model and the data that the settings name, and works
through tasks until there are no more. SIGTERM, or the master's word, makes it finish the minibatch
that it computes, hand its tasks back with the number of finished records, and leave. Exit codes: 0
done, 143 it was to leave, 1 the model, the data or the code failed, 2 the master refuses this worker
or cannot be reached.
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
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from . import backends, codec, master
from .backends import Backend, Batch
from .connection import CallError, Connection, Interrupted, Outdated
from .contract import Contract, ContractError
from .master import Membership, Prefetch, Work
from .metrics import Metrics
from .parameters import ParameterServers, Pulled
from .protocol import messages as pb
from .settings import Data, Settings, SettingsError, shards

_REJECTIONS_MAX = 64
_PROGRESS_EVERY_S = 0.5
# Between two looks at a worker that was given up.
_LOOK_S = 0.1
# After SIGTERM, if the master has not said how long: less than what engines give by default.
_GRACE_S = 20.0
# A worker that was given up and does not come to its next minibatch or task for so long hangs, if
# that is also so many times its longest step.
_HANGS_S, _HANGS_STEPS = 60.0, 3.0
EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_TERMINATED = 0, 1, 2, 143


class Leaving(Exception):
    """The worker is to hand back and go."""


class Dropped(Exception):
    """The task in hand is not this worker's any more."""


class Stuck(Exception):
    """A minibatch was rejected again and again."""


def log(text: str) -> None:
    """A line for people, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Worker:
    """A process that works for a job, under one number at a time."""

    def __init__(self, connection: Connection, pod: str, host: str, patience_s: float, token: str):
        self._master = connection
        self._pod, self._host = pod, host
        self._patience_s, self._token = patience_s, token
        self.terminated = False
        # Whether it does what may take longer than any step.
        self._is_unhurried = False
        self._longest_step_s = 0.0
        self._backend: Optional[Backend] = None
        self._data: Optional[Data] = None
        # The values before any training, if the servers have to begin again from nothing.
        self._initial: Optional[Tuple[backends.Arrays, backends.Arrays]] = None
        self._steps = 0
        self._reported_at = 0.0
        self._rate_since, self._rate_records = time.monotonic(), 0
        self.join()

    def join(self) -> None:
        """Gets a number of the master: at the start, and after the master has given it up."""
        instance = random.SystemRandom().getrandbits(63)
        request = pb.RegisterRequest(pod=self._pod, instance=instance, host=self._host)
        registered = self._master.call("Register", request, interrupted=lambda: self.terminated)
        self.id = int(registered.worker_id)
        self.settings = Settings(registered.settings)
        self._needs_data = registered.needs_data
        self._members = Membership(self._master, self.id, registered, self._given_up)
        servers = range(self.settings.message.parameter_servers)
        self._servers = ParameterServers([self._server(n) for n in servers], self._is_leaving)
        self._prefetch: Optional[Prefetch] = None
        # What the backend has: of which life of the model, and its version plus 1 (0: nothing).
        self._generation = self._version_known = self._steps_since_pull = 0
        log(f"worker {self.id} of job {self.settings.message.job_name}, pod {self._pod}")

    def _server(self, index: int) -> Connection:
        limit = self.settings.message.message_bytes_max or 256 * 1024 * 1024
        members = self._members
        return Connection(
            "ParameterServer", lambda: members.server(index), self._token, self._patience_s, limit
        )

    def _is_leaving(self) -> bool:
        return self.terminated or self._members.leaving.is_set()

    def _given_up(self, members: Membership) -> None:
        """By the heartbeat thread: the master does not want this number any more. The main thread
        sees that and joins again, unless it hangs: then another worker is to have its place."""
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
    def _unhurried(self) -> Iterator[None]:
        """Around what may take long without hanging: loading and writing."""
        self._is_unhurried = True
        try:
            yield
        finally:
            self._is_unhurried = False

    # Before the first task.

    def prepare(self) -> None:
        """Loads the model, once, opens the data, and begins to ask for tasks."""
        with self._unhurried():
            self._load()
        held_max = self.settings.message.held_max
        self._prefetch = Prefetch(self._master, self.id, held_max, self._read, self._is_leaving)

    def _load(self) -> None:
        if self._backend is None or self._data is None:
            logging.basicConfig(level=self.settings.get("log_level") or logging.WARNING)
            model = self.settings.load_model()
            self._backend = backends.choose(model)
            self._backend.codec_type = self.settings.get("codec_type") or codec.TYPES[0]
            self._data = self.settings.open_data(model)
            self._backend.metadata = self._data.main.metadata
            self._check_predictions(model)
            for warning in self._data.main.warnings():
                log(f"warning: {warning}")
            log(f"model {model.path} with {self._backend.name}")
        self._servers.serve(self._backend.embeddings())
        if self._needs_data:
            request = pb.ReportDataRequest(
                worker_id=self.id,
                shards=shards(self._data.main),
                validation_shards=shards(self._data.validation),
            )
            self._master.call("ReportData", request, interrupted=self._is_leaving)

    def _check_predictions(self, model: Contract) -> None:
        if self.settings.mode == "prediction" and model.prediction_outputs_processor is None:
            raise ContractError(
                f"the model {model.path} has no 'PredictionOutputsProcessor': define a class with "
                "process(predictions, worker_id)"
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
            self._hand_back()
            self._leave(pb.LEAVE_REASON_PREEMPTED)
            return EXIT_TERMINATED
        if self._backend is not None:
            with self._unhurried():
                self._backend.end()
        self._leave(pb.LEAVE_REASON_DONE)
        return EXIT_DONE

    def stop_asking(self) -> None:
        """Ends the threads of the number that the worker has now."""
        self._members.stop()
        if self._prefetch is not None:
            self._prefetch.stop()

    def _loop(self) -> None:
        assert self._prefetch is not None, "run comes after prepare"
        while not self._members.ended.is_set():
            self._check()
            work, is_done = self._prefetch.next()
            if work is None and is_done:
                return
            if work is not None:
                self._do(work)

    def _check(self) -> None:
        """Whether to go on."""
        if self._is_leaving():
            raise Leaving()
        failure = self._members.failure or (self._prefetch and self._prefetch.failure)
        if failure:
            raise failure

    def _check_task(self, work: Work) -> None:
        self._check()
        if 0 < work.task.model_generation < self._members.generation:
            raise Dropped()

    def _do(self, work: Work) -> None:
        assert self._prefetch is not None, "tasks come from it"
        try:
            self._check_task(work)
            if work.error is not None:
                self._failed(work, work.error)
            elif work.task.kind == pb.TASK_KIND_TRAIN:
                self._train(work)
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
            self._members.await_generation(work.task.model_generation, 5.0)
            self._version_known = 0
        except CallError:
            raise
        except Exception:
            trace = traceback.format_exc()
            log(f"task {work.task.task_id} failed:\n{trace}")
            self._failed(work, trace)
        self._prefetch.drop(work)

    def _failed(self, work: Work, trace: str) -> None:
        master.report(self._master, self.id, work, pb.TASK_OUTCOME_FAILED, trace[-16_000:])

    def _finish(self, work: Work, **counts: int) -> None:
        work.visited = work.count
        outcome = pb.TASK_OUTCOME_FINISHED
        if not master.report(self._master, self.id, work, outcome, **counts):
            raise Dropped()

    def _batches(self, work: Work, mode: str) -> Any:
        assert self._backend is not None, "tasks come after prepare"
        return self._backend.batches(
            work.records, mode, self.settings.minibatch_size, work.note_bad
        )

    # The model.

    def _await_model(
        self,
        work: Work,
        batch: Optional[Batch],
        for_training: bool = False,
        flush: bool = False,
        version: int = 0,
    ) -> Pulled:
        """Pulls until the model is there; creates it if there is none."""
        assert self._backend is not None, "tasks come after prepare"
        if self._initial is None and batch is not None:
            self._backend.build(batch)
            self._initial = (self._backend.parameters(), self._backend.state())
        while True:
            self._check_task(work)
            generation = work.task.model_generation
            if generation != self._generation:
                self._generation, self._version_known = generation, 0
            pulled = self._servers.pull(
                self.id, generation, version, for_training, flush, self._version_known
            )
            if pulled.outcome == pb.PULL_OUTCOME_UNINITIALIZED:
                self._init(pulled.generation)
            elif pulled.outcome == pb.PULL_OUTCOME_READY:
                break
        if pulled.parameters:
            self._take(pulled)
        self._version_known = pulled.version + 1
        return pulled

    def _init(self, generation: int) -> None:
        assert self._backend is not None, "tasks come after prepare"
        if self.settings.mode != "training":
            raise ContractError(
                "the parameter servers have no model: give --checkpoint_dir_for_init"
            )
        if self._initial is None:
            raise ContractError("the task has no record to build the model with")
        parameters, state = self._initial
        optimizer = self._backend.optimizer()
        self._servers.init(self.id, generation, parameters, state, optimizer)

    def _take(self, pulled: Pulled) -> None:
        assert self._backend is not None, "tasks come after prepare"
        mine = self._backend.parameters()
        wrong = backends.check_names(mine, pulled.parameters, "parameter")
        if wrong:
            raise ContractError(f"another model than the job's: {wrong}")
        self._backend.assign(pulled.parameters, pulled.state)

    # Kinds of tasks.

    def _train(self, work: Work) -> None:
        loss, steps = float("nan"), 0
        for batch in self._batches(work, "training"):
            visited = batch.records[-1][0] + 1 - work.task.start
            loss = self._step(work, batch, visited)
            work.visited, steps = visited, steps + 1
            self._note_step(batch, loss)
            if time.monotonic() - self._reported_at > _PROGRESS_EVERY_S:
                self._reported_at = time.monotonic()
                progress = pb.TASK_OUTCOME_PROGRESS
                if not master.report(self._master, self.id, work, progress):
                    raise Dropped()
        self._finish(work, batches=steps, trained_records=len(work.records))
        log(
            f"task {work.task.task_id}: trained on {len(work.records)} records of epoch "
            f"{work.task.epoch}, version {self._version_known - 1}, loss {loss:.4f}"
            + (f", {len(work.bad)} bad records" if work.bad else "")
        )

    def _step(self, work: Work, batch: Batch, visited: int) -> float:
        assert self._backend is not None, "tasks come after prepare"
        sequence = self._servers.next_push()
        for _ in range(_REJECTIONS_MAX):
            if self._steps_since_pull == 0 or work.task.model_generation != self._generation:
                self._await_model(work, batch, for_training=True)
            version = self._version_known - 1
            began = time.monotonic()
            step = self._backend.step(batch)
            self._longest_step_s = max(self._longest_step_s, time.monotonic() - began)
            # 0 would mean the optimizer's own: a schedule that says 0 gets the least there is.
            rate = max(self._backend.learning_rate(version), float(np.finfo(np.float32).tiny))
            reply = self._servers.push(
                self.id,
                work.task.model_generation,
                sequence,
                version,
                step.gradients,
                self._backend.state(),
                rate,
                {work.task.task_id: visited},
            )
            if reply.outcome == pb.PUSH_OUTCOME_ACCEPTED:
                every = max(1, self.settings.message.get_model_steps)
                self._steps_since_pull = (self._steps_since_pull + 1) % every
                return step.loss
            self._steps_since_pull = 0
        raise Stuck(f"a minibatch was rejected {_REJECTIONS_MAX} times, each time as too old")

    def _note_step(self, batch: Batch, loss: float) -> None:
        self._steps += 1
        self._rate_records += len(batch.records)
        seconds = time.monotonic() - self._rate_since
        report = pb.WorkerReport(
            model_version=self._version_known - 1, loss=loss, steps=self._steps
        )
        report.samples_per_second = self._members.report.samples_per_second
        if seconds >= 1.0:
            report.samples_per_second = self._rate_records / seconds
            self._rate_since, self._rate_records = time.monotonic(), 0
        self._members.report = report
        every = self.settings.number("log_loss_steps", 100)
        if every and self._steps % every == 0:
            log(f"step {self._steps}: version {report.model_version}, loss {loss:.4f}")

    def _evaluate(self, work: Work) -> None:
        assert self._backend is not None, "tasks come after prepare"
        metrics = Metrics(self._backend.contract)
        pulled, records = None, 0
        wanted = work.task.model_version if work.task.HasField("model_version") else 0
        for batch in self._batches(work, "evaluation"):
            self._check_task(work)
            if pulled is None:
                pulled = self._await_model(work, batch, version=wanted)
            metrics.update(batch.labels, self._backend.predict(batch))
            records += len(batch.records)
        work.visited = work.count
        self._report_bad(work)
        request = pb.ReportEvaluationRequest(
            worker_id=self.id,
            task_id=work.task.task_id,
            model_version=pulled.version if pulled else wanted,
            records=records,
            metrics=[
                pb.Metric(name=name, total=one.total, weight=one.weight)
                for name, one in sorted(metrics.result().items())
            ],
        )
        reply = self._master.call("ReportEvaluation", request)
        if not reply.held:
            raise Dropped()
        if reply.HasField("evaluation"):
            whole = reply.evaluation
            values = ((m.name, m.total / m.weight) for m in whole.metrics if m.weight)
            shown = ", ".join(f"{name} {value:.4f}" for name, value in values)
            log(f"version {whole.model_version} on {whole.records} records: {shown}")

    def _predict(self, work: Work) -> None:
        assert self._backend is not None, "tasks come after prepare"
        processor = self._backend.contract.prediction_outputs_processor
        assert processor is not None, "prepare has checked it"
        process = (processor() if isinstance(processor, type) else processor).process
        is_pulled = False
        for batch in self._batches(work, "prediction"):
            self._check_task(work)
            if not is_pulled:
                self._await_model(work, batch)
                is_pulled = True
            process(self._backend.predict(batch), self.id)
            work.visited = batch.records[-1][0] + 1 - work.task.start
        self._finish(work, predicted_records=len(work.records))

    def _save(self, work: Work) -> None:
        assert self._backend is not None, "tasks come after prepare"
        batch = next(iter(self._batches(work, "training")), None)
        pulled = self._await_model(work, batch, flush=True)
        output = self.settings.get("output")
        if output:
            with self._unhurried():
                self._backend.save(output)
            log(f"version {pulled.version} of the model is in {output}")
        self._finish(work)

    # The end.

    def _hand_back(self) -> None:
        """Every task with the number of its finished records, those read ahead included."""
        if self._prefetch is None:
            return
        self._prefetch.stop()
        until = time.monotonic() + (self._members.leave_within_ms / 1000 or _GRACE_S)
        for work in self._prefetch.held():
            request = pb.HandBackRequest(
                worker_id=self.id, task_id=work.task.task_id, finished_records=work.visited
            )
            self._report_bad(work)
            self._master.call("HandBack", request, interrupted=lambda: time.monotonic() > until)
            log(
                f"task {work.task.task_id}: handed back after {work.visited} of {work.count} records"
            )

    def _report_bad(self, work: Work) -> None:
        """Bad records that were visited; those behind are found again by the next worker."""
        end = work.task.start + work.visited
        work.bad = {at: why for at, why in work.bad.items() if at < end}
        if work.bad:
            master.report(self._master, self.id, work, pb.TASK_OUTCOME_PROGRESS)

    def _leave(self, reason: int, message: str = "") -> None:
        self.stop_asking()
        request = pb.LeaveRequest(worker_id=self.id, reason=reason, message=message)
        try:
            self._master.call("Leave", request, interrupted=lambda: True)
        except Interrupted:
            log("the master is away, so it finds out by itself that this worker has left")

    def leave_failed(self, trace: str) -> None:
        """Says that the code failed outside of a task."""
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
        return EXIT_TERMINATED
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
