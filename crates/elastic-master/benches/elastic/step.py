"""What a step costs a worker besides its gradient: `step.py STEPS`, with the variables of a worker.

A real worker, with a model as large as that of the published example whose gradient costs nothing.
Prints milliseconds of each part, the median of all steps, as JSON.
"""

import json
import os
import statistics
import sys
import time

import numpy as np

from elastane import optimizers, parameters, worker
from elastane.backends import Batch, Step
from elastane.connection import Connection
from elastane.master import Work
from elastane.protocol import messages as pb

SHAPES = {"a": (784, 128), "b": (128,), "c": (84, 128), "d": (10,)}
ARRAYS = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
spent = {}


def timed(owner, name, part):
    original = getattr(owner, name)

    def call(*arguments, **named):
        begin = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            spent[part] = spent.get(part, 0.0) + (time.perf_counter() - begin) * 1000

    setattr(owner, name, call)


class Backend:
    def build(self, batch):
        pass

    def parameters(self):
        return ARRAYS

    def state(self):
        return {}

    def assign(self, taken, state):
        pass

    def step(self, batch):
        return Step(0.0, ARRAYS)

    def learning_rate(self, version):
        return 0.1

    def optimizer(self):
        return optimizers.SGD(learning_rate=0.1)


def main():
    with open(os.environ["ELASTANE_JOB_TOKEN_FILE"], encoding="utf-8") as file:
        token = file.read().strip()
    address = os.environ["MASTER_ADDR"]
    connection = Connection("Master", lambda: address, token, 30)
    one = worker.Worker(connection, "worker-0", "127.0.0.1", 30, token)
    one._backend = Backend()
    work = Work(pb.Task(task_id=1, start=0, end=1, model_generation=1))
    batch = Batch(None, None, [(0, b"")])
    one._sharing.step(work, batch, 1)
    timed(parameters.ParameterServers, "pull", "pull")
    timed(parameters.ParameterServers, "push", "push")
    timed(parameters, "to_variables", "encode")
    timed(parameters, "from_variables", "decode")
    steps = []
    for _ in range(int(sys.argv[1])):
        spent.clear()
        begin = time.perf_counter()
        one._sharing.step(work, batch, 1)
        whole = (time.perf_counter() - begin) * 1000
        pull, push = spent["pull"] - spent["decode"], spent["push"] - spent["encode"]
        steps.append({**spent, "pull": pull, "push": push, "step": whole})
    print(json.dumps({part: statistics.median(s[part] for s in steps) for part in steps[0]}))
    sys.stdout.flush()
    os._exit(0)


main()
