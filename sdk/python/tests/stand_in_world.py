"""A small master of workers that add up their gradients, for tests: worlds, and the calls of the
first worker. Its tasks are those of `stand_in`."""

import grpc
from stand_in import Abort, Job

from elastane.protocol import messages as pb


class WorldJob(Job):
    SERVICES = {
        "Master": (
            *Job.SERVICES["Master"],
            "Attend",
            "BeginCheckpoint",
            "EndCheckpoint",
            "ReportVersion",
        )
    }

    def __init__(self, arguments, first_size=1, checkpoint_steps=0, **settings):
        self.members, self.hosts, self.world = [], {}, 0
        # A pod to which no other can connect, and who has said so: worker, the other, for how long.
        self.apart, self.unreached = "", []
        # Workers that leave for that.
        self.parted = set()
        self.first_size, self.checkpoint_steps = first_size, checkpoint_steps
        self.instance, self.restored, self.checkpoints = None, 0, {}
        self.began, self.is_done, self.is_saved = None, False, False
        super().__init__(arguments, **settings)

    def servers(self):
        return []

    def Register(self, request):
        if request.host.count(":") == 0:
            return super().Register(request)
        (worker,) = [id for id, pod in self.workers.items() if pod == request.pod]
        if worker not in self.members:
            self.members.append(worker)
            self.hosts[worker] = "127.0.0.1:1" if request.pod == self.apart else request.host
            self.world += 1
            self.changed.notify_all()
        return pb.RegisterReply(worker_id=worker)

    def Watch(self, request):
        reply = super().Watch(request)
        if request.HasField("unreached") and request.unreached.generation == self.world:
            said = request.unreached
            self.unreached.append((request.worker_id, said.worker_id, said.for_ms))
            self.changed.notify_all()
        reply.parted = request.worker_id in self.parted
        reply.ended = self.todo == [] and not self.doing
        if request.worker_id in self.members and len(self.members) >= self.first_size:
            self.first_size = 1
            reply.world.CopyFrom(
                pb.World(
                    generation=self.world,
                    rank=self.members.index(request.worker_id),
                    size=len(self.members),
                    members=[pb.Member(worker_id=id, host=self.hosts[id]) for id in self.members],
                )
            )
        return reply

    def give_up(self, worker):
        with self.lock:
            super().give_up(worker)
            if worker in self.members:
                self.members.remove(worker)
                self.world += 1
                self.changed.notify_all()

    # Calls of the first worker.

    def Attend(self, request):
        is_lost = self.instance not in (None, request.instance) and not self.is_done
        if is_lost or request.unreadable_version:
            self.checkpoints.pop(request.unreadable_version, None)
            self.restored = max(self.checkpoints, default=0)
            self.go_back(self.checkpoints.get(self.restored))
        self.instance = request.instance
        self.is_done |= request.done
        self.is_saved = request.saved
        return pb.AttendReply(
            job_id="job",
            model_generation=self.generation,
            checkpoint_version=self.restored,
            settings=pb.ServerSettings(checkpoint_steps=self.checkpoint_steps),
        )

    def go_back(self, cut):
        """To the tasks that were open in a checkpoint, or to all."""
        self.generation += 1
        self.doing.clear()
        self.visited, self.todo = [], []
        if cut is None:
            shards = [pb.Shard(name=n, start=s, count=c) for n, s, c in self.shards]
            for epoch in range(self.epochs):
                self.cut(shards, pb.TASK_KIND_TRAIN, epoch)
            return
        self.visited, tasks = list(cut[0]), cut[1]
        for task in tasks:
            self.add(task.kind, task.shard, task.start, task.end, task.epoch)

    def BeginCheckpoint(self, request):
        self.check(request)
        positions = {one.task_id: one.finished_records for one in request.positions}
        visited, tasks = list(self.visited), []
        for task in [*(task for _, task in self.doing.values()), *self.todo]:
            rest = pb.Task()
            rest.CopyFrom(task)
            rest.start += positions.get(task.task_id, 0)
            visited += [(task.epoch, task.shard, n) for n in range(task.start, rest.start)]
            if rest.start < rest.end:
                tasks.append(rest)
        self.began = (request.model_version, (visited, tasks))
        return pb.BeginCheckpointReply()

    def EndCheckpoint(self, request):
        self.check(request)
        version, cut = self.began
        assert version == request.model_version
        self.checkpoints[version] = cut
        self.changed.notify_all()
        return pb.EndCheckpointReply()

    def ReportVersion(self, request):
        self.check(request)
        self.version = max(self.version, request.model_version)
        self.changed.notify_all()
        return pb.ReportVersionReply()

    def check(self, request):
        if request.model_generation != self.generation:
            raise Abort(grpc.StatusCode.FAILED_PRECONDITION, "that life of the model is over")
