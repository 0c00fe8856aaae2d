"""A small master and parameter server for tests of the worker, in this process.

It hands out tasks, judges pushes by their numbers, keeps a model with plain gradient descent, and
rejects gradients computed on an older version. The real ones are programs of Rust; tests with them
are the system tests of the repository.
"""

import threading
from concurrent import futures

import grpc
import numpy as np

from elastane import protocol
from elastane.protocol import messages as pb
from elastane.tensors import from_variables, to_variables


class Abort(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code, self.text = code, text


class Job:
    SERVICES = {
        "Master": (
            "Register",
            "ReportData",
            "GetTask",
            "ReportTask",
            "HandBack",
            "ReportEvaluation",
            "Watch",
            "Leave",
            "Tell",
        ),
        "ParameterServer": ("InitModel", "Pull", "PullRows", "PushGradients"),
    }

    def __init__(
        self,
        arguments,
        records_per_task=100,
        epochs=1,
        kind=pb.JOB_KIND_TRAIN,
        minibatch=10,
        saves=False,
        protocol_version=protocol.VERSION,
    ):
        self.arguments, self.kind, self.minibatch = arguments, kind, minibatch
        self.records_per_task, self.epochs, self.saves = records_per_task, epochs, saves
        self.protocol_version = protocol_version
        self.lost = []
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.todo, self.doing, self.next_task = None, {}, 1
        self.workers, self.next_worker = {}, 0
        self.visited, self.bad, self.failures, self.handed_back = [], [], [], []
        self.left, self.metrics = {}, {}
        self.generation, self.version = 1, 0
        self.parameters, self.state, self.initial = None, None, None
        # Rows of the one embedding table that a model may have.
        self.rows, self.dim = {}, 0
        self.pushes, self.duplicates, self.rejected, self.last = 0, 0, 0, {}
        self.leaving = set()
        self.reject_next = self.lose_next_reply = 0
        self.on_push = lambda job: None
        self.server = None
        # Proxy between it and its workers.
        self.through = None
        self.port = 0
        self.start()

    # The server.

    def start(self):
        handlers = []
        for service, names in self.SERVICES.items():
            methods = {}
            for name in names:
                request, reply = protocol.messages.method(service, name)
                methods[name] = grpc.unary_unary_rpc_method_handler(
                    self.handler(getattr(self, name)),
                    request_deserializer=request.FromString,
                    response_serializer=reply.SerializeToString,
                )
            handlers.append(
                grpc.method_handlers_generic_handler(f"{protocol.PACKAGE}.{service}", methods)
            )
        self.server = grpc.server(
            futures.ThreadPoolExecutor(16), handlers, options=[("grpc.so_reuseport", 0)]
        )
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        self.server.start()

    def stop(self):
        self.server.stop(None).wait()

    def handler(self, method):
        def handle(request, context):
            given = dict(context.invocation_metadata())
            if given.get("authorization") != "Bearer secret":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "another token")
            if given.get("elastane-protocol") != self.protocol_version:
                context.abort(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    f"protocol {given.get('elastane-protocol')} here, {self.protocol_version} there",
                )
            try:
                with self.lock:
                    return method(request)
            except Abort as error:
                context.abort(error.code, error.text)

        return handle

    @property
    def address(self):
        return self.through.address if self.through else f"127.0.0.1:{self.port}"

    def servers(self):
        return [self.address]

    # The master.

    def Register(self, request):
        worker = self.next_worker
        self.next_worker += 1
        self.workers[worker] = request.pod
        settings = pb.JobSettings(
            job_name="test",
            job_id="job",
            kind=self.kind,
            minibatch_size=self.minibatch,
            arguments=self.arguments,
            parameter_servers=len(self.servers()),
            mode=pb.UPDATE_MODE_SYNCHRONOUS,
            grads_to_wait=1,
            get_model_steps=1,
            held_max=2,
            worker_timeout_ms=30_000,
        )
        return pb.RegisterReply(
            worker_id=worker,
            settings=settings,
            model_generation=self.generation,
            parameter_servers=self.servers(),
            needs_data=self.todo is None,
        )

    def known(self, worker):
        if worker not in self.workers:
            raise Abort(grpc.StatusCode.FAILED_PRECONDITION, f"worker {worker} was given up")

    def ReportData(self, request):
        kinds = {
            pb.JOB_KIND_TRAIN: pb.TASK_KIND_TRAIN,
            pb.JOB_KIND_EVALUATE: pb.TASK_KIND_EVALUATE,
            pb.JOB_KIND_PREDICT: pb.TASK_KIND_PREDICT,
        }
        if self.todo is not None:
            return pb.ReportDataReply()
        self.shards = [(one.name, one.start, one.count) for one in request.shards]
        self.todo = []
        for epoch in range(self.epochs):
            self.cut(request.shards, kinds[self.kind], epoch)
        if request.validation_shards:
            self.cut(request.validation_shards, pb.TASK_KIND_EVALUATE, 0)
        if self.saves:
            first = request.shards[0]
            self.add(pb.TASK_KIND_SAVE, first.name, 0, min(first.count, 10), 0)
        return pb.ReportDataReply()

    def cut(self, shards, kind, epoch):
        for shard in shards:
            for start in range(shard.start, shard.start + shard.count, self.records_per_task):
                end = min(start + self.records_per_task, shard.start + shard.count)
                self.add(kind, shard.name, start, end, epoch)

    def add(self, kind, shard, start, end, epoch):
        self.todo.append(
            pb.Task(
                task_id=self.next_task, kind=kind, shard=shard, start=start, end=end, epoch=epoch
            )
        )
        self.next_task += 1

    def GetTask(self, request):
        self.known(request.worker_id)
        for task_id, (worker, task) in self.doing.items():
            if worker == request.worker_id and task_id not in request.holding:
                return pb.GetTaskReply(kind=task.kind, task=task)
        trains = any(task.kind == pb.TASK_KIND_TRAIN for _, task in self.doing.values())
        if self.todo and not (trains and self.todo[0].kind != pb.TASK_KIND_TRAIN):
            task = self.todo.pop(0)
            task.model_generation = self.generation
            self.doing[task.task_id] = (request.worker_id, task)
            return pb.GetTaskReply(kind=task.kind, task=task)
        if not self.doing and self.todo is not None:
            return pb.GetTaskReply(kind=pb.TASK_KIND_DONE)
        self.changed.wait(0.05)
        return pb.GetTaskReply(kind=pb.TASK_KIND_WAIT)

    def count(self, task, start, end):
        self.visited += [(task.epoch, task.shard, n) for n in range(start, end)]
        task.start = end

    def held(self, request):
        self.known(request.worker_id)
        worker, task = self.doing.get(request.task_id, (None, None))
        return task if worker == request.worker_id else None

    def ReportTask(self, request):
        task = self.held(request)
        if task is None:
            return pb.ReportTaskReply(held=False)
        self.bad += [(task.shard, one.position, one.message) for one in request.bad_records]
        if request.outcome == pb.TASK_OUTCOME_FINISHED:
            self.count(task, task.start, task.end)
            del self.doing[task.task_id]
        elif request.outcome == pb.TASK_OUTCOME_FAILED:
            self.failures.append(request.message)
            del self.doing[task.task_id]
            if len(self.failures) < 3:
                self.todo.insert(0, task)
        self.changed.notify_all()
        return pb.ReportTaskReply(held=True)

    def HandBack(self, request):
        task = self.held(request)
        if task is None:
            return pb.HandBackReply(held=False)
        del self.doing[task.task_id]
        self.handed_back.append((task.task_id, request.finished_records))
        self.count(task, task.start, task.start + request.finished_records)
        if task.start < task.end:
            again = pb.Task()
            again.CopyFrom(task)
            again.task_id = self.next_task
            self.next_task += 1
            self.todo.insert(0, again)
        return pb.HandBackReply(held=True)

    def ReportEvaluation(self, request):
        task = self.held(request)
        if task is None:
            return pb.ReportEvaluationReply(held=False)
        self.count(task, task.start, task.end)
        del self.doing[task.task_id]
        for one in request.metrics:
            total, weight = self.metrics.get(one.name, (0.0, 0.0))
            self.metrics[one.name] = (total + one.total, weight + one.weight)
        return pb.ReportEvaluationReply(held=True)

    def Watch(self, request):
        self.known(request.worker_id)
        self.changed.wait(0.05)
        return pb.WatchReply(
            revision=request.revision,
            model_generation=self.generation,
            parameter_servers=self.servers(),
            leaving=request.worker_id in self.leaving,
            leave_within_ms=5_000,
        )

    def Leave(self, request):
        self.left[request.worker_id] = (request.reason, request.message)
        self.give_up(request.worker_id)
        return pb.LeaveReply()

    def Tell(self, request):
        gone = [id for id, pod in self.workers.items() if pod == request.pod_gone.pod]
        for worker in gone:
            self.lost.append(self.workers[worker])
            self.give_up(worker)
        return pb.TellReply()

    def give_up(self, worker):
        with self.lock:
            self.workers.pop(worker, None)
            for task_id, (of, task) in list(self.doing.items()):
                if of == worker:
                    del self.doing[task_id]
                    self.todo.insert(0, task)

    # The parameter server.

    def generation_of(self, request):
        if request.model_generation not in (0, self.generation):
            raise Abort(grpc.StatusCode.FAILED_PRECONDITION, "that life of the model is over")

    def restart_model(self):
        """The server of the model died and came back with nothing: its life begins again."""
        with self.lock:
            self.generation += 1
            self.version, self.parameters, self.state = 0, None, None
            self.rows.clear()
            self.doing.clear()
            self.visited.clear()
            self.todo.clear()
            for epoch in range(self.epochs):
                self.cut(
                    [pb.Shard(name=n, start=s, count=c) for n, s, c in self.shards],
                    pb.TASK_KIND_TRAIN,
                    epoch,
                )

    def InitModel(self, request):
        self.generation_of(request)
        if self.parameters is None:
            self.optimizer = request.optimizer
            for table in request.tables:
                self.dim = table.dim
            copy = {n: v.copy() for n, v in from_variables(request.trainable).items()}
            self.parameters = copy
            self.state = from_variables(request.state)
            self.initial = {n: v.copy() for n, v in copy.items()}
            self.changed.notify_all()
        return pb.InitModelReply()

    def Pull(self, request):
        self.generation_of(request)
        if self.parameters is None:
            return pb.PullReply(
                outcome=pb.PULL_OUTCOME_UNINITIALIZED, model_generation=self.generation
            )
        reply = pb.PullReply(
            outcome=pb.PULL_OUTCOME_READY, version=self.version, model_generation=self.generation
        )
        if request.known_version_plus_1 != self.version + 1:
            reply.trainable.extend(to_variables(self.parameters))
            reply.state.extend(to_variables(self.state))
        return reply

    def row(self, id_):
        random = np.random.default_rng(id_)
        return self.rows.get(id_, random.uniform(-0.05, 0.05, self.dim).astype(np.float32))

    def PullRows(self, request):
        self.generation_of(request)
        ids, more = np.frombuffer(request.ids, "<u8").tolist(), False
        if request.stored:
            # A few to a message.
            stored = sorted(id_ for id_ in self.rows if id_ >= request.stored_from)
            ids, more = stored[:100], len(stored) > 100
        values = b"".join(self.row(id_).tobytes() for id_ in ids)
        rows = pb.Rows(table=request.table, dim=self.dim, values=values)
        if request.stored:
            rows.ids = np.array(ids, "<u8").tobytes()
        return pb.PullRowsReply(rows=rows, version=self.version, more=more)

    def PushGradients(self, request):
        self.generation_of(request)
        if self.reject_next:
            self.reject_next -= 1
            self.rejected += 1
            return pb.PushGradientsReply(outcome=pb.PUSH_OUTCOME_REJECTED, version=self.version)
        if request.sequence <= self.last.get(request.worker_id, 0):
            self.duplicates += 1
            return pb.PushGradientsReply(outcome=pb.PUSH_OUTCOME_ACCEPTED, version=self.version)
        if request.version < self.version:
            self.rejected += 1
            return pb.PushGradientsReply(outcome=pb.PUSH_OUTCOME_REJECTED, version=self.version)
        self.last[request.worker_id] = request.sequence
        for name, gradient in from_variables(request.gradients).items():
            self.parameters[name] -= np.float32(request.learning_rate) * gradient
        for rows in request.rows:
            values = np.frombuffer(rows.values, "<f4").reshape(-1, rows.dim)
            for id_, gradient in zip(np.frombuffer(rows.ids, "<u8").tolist(), values):
                self.rows[id_] = self.row(id_) - np.float32(request.learning_rate) * gradient
        self.state = from_variables(request.state)
        self.version += 1
        self.pushes += 1
        self.on_push(self)
        if self.lose_next_reply:
            self.lose_next_reply -= 1
            raise Abort(grpc.StatusCode.UNAVAILABLE, "the reply is lost")
        return pb.PushGradientsReply(outcome=pb.PUSH_OUTCOME_ACCEPTED, version=self.version)
