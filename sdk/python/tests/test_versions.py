"""The versions of the model that a worker reads from several parameter servers: one in the synchronous
modes; a range in the asynchronous ones, which it reports."""

import numpy as np
import pytest
from conftest import said
from stand_in import Job

from elastane.embedding import Embedding
from elastane.parameters import ParameterServers
from elastane.protocol import messages as pb
from elastane.sharing import ByParameterServers


class Server:
    """A parameter server that is at this version."""

    def __init__(self, version):
        self.version, self.asked = version, []

    def call(self, name, request, *_):
        if name == "PullRows":
            self.asked.append(request.version_plus_1 - 1)
            values = np.zeros(2, np.float32).tobytes()
            rows = pb.Rows(table=request.table, dim=2, values=values)
            return pb.PullRowsReply(rows=rows, version=self.version)
        return pb.PullReply(
            outcome=pb.PULL_OUTCOME_READY, version=self.version, model_generation=1
        )


def reading(*versions):
    """A worker's servers at these versions after a pull, and what it says of the model."""
    found = [Server(version) for version in versions]
    servers = ParameterServers(found, lambda: False)
    servers.serve([Embedding("table", 2)])
    assert servers.pull(0, 1, keeps_rows=True).version == versions[0]
    sharing = ByParameterServers.__new__(ByParameterServers)
    sharing._servers = servers
    return found, servers, sharing


def test_one_version_is_no_range():
    _, servers, sharing = reading(7, 7, 7)
    assert servers.versions == (7, 7) and sharing.mixed() == ""


def test_a_server_that_has_gone_on_makes_a_range():
    _, servers, sharing = reading(7, 9, 8)
    assert servers.versions == (7, 9) and sharing.mixed() == "versions 7 to 9"


def test_rows_belong_to_the_range_until_the_next_pull():
    found, servers, sharing = reading(7, 7)
    found[1].version = 12
    servers.rows(servers._tables[0], np.array([1], np.uint64))
    # Asked for by the version of the pull: a server that keeps it answers with that one.
    assert found[1].asked == [7] and sharing.mixed() == "versions 7 to 12"
    found[0].version = 12
    servers.pull(0, 1)
    assert servers.versions == (12, 12) and sharing.mixed() == ""


class TwoServers(Job):
    """A job whose second parameter server is two versions ahead."""

    def servers(self):
        return [self.address, self.address]

    def Pull(self, request):
        reply = super().Pull(request)
        reply.version += 2 * request.exact
        return reply


MODEL = """
import numpy as np
class Model:
    parameters = {"weight": np.ones(1, np.float32)}
    def forward(self, features, training): return features * self.parameters["weight"]
    def backward(self, d_outputs): return {}
def custom_model(): return Model()
def feed(records, mode, metadata):
    numbers = np.array([float(record) for record in records], np.float32)
    return numbers, numbers
def eval_metrics_fn(): return {"same": lambda labels, outputs: labels == outputs}
"""


@pytest.mark.parametrize("kind, jobs", [(Job, ""), (TwoServers, "measured parts of versions 0 to 2")])
def test_an_evaluation_says_which_versions_it_measured(tmp_path, start_worker, kind, jobs):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "numbers.csv").write_text("1\n2\n3\n")
    job = kind(
        {
            "model_zoo": str(tmp_path),
            "model_def": "model.custom_model",
            "validation_data": str(tmp_path / "numbers.csv"),
        },
        kind=pb.JOB_KIND_EVALUATE,
    )
    job.parameters, job.state = {"weight": np.ones(1, np.float32)}, {}
    try:
        process = start_worker(job)
        assert process.wait() == 0, said(process)
    finally:
        job.stop()
    assert job.metrics, said(process)
    assert ("measured parts of" in said(process)) == bool(jobs) and jobs in said(process)
