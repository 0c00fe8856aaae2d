"""A model of numpy that counts what it is trained on and notices when it is read torn.

The table `seen` has a row for each record, to which a step adds 1: rows of an update are summed, so the
model counts whatever --grads_to_wait is. The parameters, which are spread over all servers, all are the
number of updates, and the rows of the table `pushes` the number of gradients. In the synchronous modes
a model with two different numbers is of two versions: TORN.

With ENDS_AT=N, ENDS_BY=SIGNAL and ENDS_ONCE=FILE the first worker that comes to its Nth minibatch gets
the signal there: the gradients of those before were accepted.
"""

import os
import time

import numpy as np

from elastane import optimizers
from elastane.embedding import Embedding, constant

PARTS = 16
GRADIENTS = int(os.environ.get("GRADIENTS_OF_AN_UPDATE", "0"))
ENDS_AT = int(os.environ.get("ENDS_AT", "0"))


def end_once():
    """Sends the signal to this process, unless another got it before."""
    try:
        os.close(os.open(os.environ["ENDS_ONCE"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), int(os.environ["ENDS_BY"]))


class Model:
    steps = 0

    def __init__(self):
        self.seen = Embedding("seen", 1, constant(0.0))
        self.pushes = Embedding("pushes", 1, constant(0.0))
        self.embeddings = [self.seen, self.pushes]
        self.parameters = {f"updates/{n}": np.zeros(64, np.float32) for n in range(PARTS)}

    def forward(self, features, training):
        updates = {float(value) for part in self.parameters.values() for value in part}
        if not training:
            # Long enough for updates between two minibatches.
            time.sleep(0.005)
        self.steps += training
        if training and self.steps == ENDS_AT:
            end_once()
        self.records = features
        self.count = (self.seen(features), self.pushes(np.arange(PARTS)))[1]
        pushes = {float(value) for value in self.count[:, 0]}
        if GRADIENTS:
            self.check(updates, pushes)
        return features

    def check(self, updates, pushes):
        assert len(updates) == 1 and len(pushes) == 1, f"TORN: {updates} updates, {pushes} pushes"
        (made,), (counted,) = updates, pushes
        # The last update is of the gradients that are left.
        is_one = (made - 1) * GRADIENTS < counted <= made * GRADIENTS or made == counted == 0
        assert is_one, f"TORN: {made} updates of {GRADIENTS} gradients, {counted} pushes"

    def backward(self, d_outputs):
        self.pushes.backward(-np.ones((PARTS, 1), np.float32))
        self.seen.backward(-np.ones((len(self.records), 1), np.float32))
        return {name: -np.ones(64, np.float32) for name in self.parameters}


def custom_model():
    return Model()


def feed(records, mode, metadata):
    numbers = np.array([int(record) for record in records])
    return numbers, numbers


def loss(labels, outputs):
    return 0.0, outputs


def optimizer():
    return optimizers.SGD(learning_rate=1.0)


def eval_metrics_fn():
    return {"count": lambda labels, outputs: np.ones(len(labels))}
