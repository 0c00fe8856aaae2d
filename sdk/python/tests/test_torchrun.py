"""Real processes of `torchrun` whose default rendezvous is the server's where the server leaves the
choice to the image."""

import os
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from meeting_server import Server, opens

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from elastane import torchrun

SDK = Path(__file__).parent.parent
PROGRAMS = {"torchrun": "torch.distributed.run", "elastane.torchrun": "elastane.torchrun"}
SCRIPT = """
import os, torch.distributed as dist
dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of", dist.get_world_size(), "by", os.environ["PET_RDZV_BACKEND"])
dist.destroy_process_group()
"""


def entry_points():
    text = (SDK / "pyproject.toml").read_text()
    group = '[project.entry-points."torchrun.handlers"]'
    name, value = text.split(group)[1].strip().splitlines()[0].split(" = ")
    return name, value.strip('"')


def test_pytorch_finds_the_rendezvous_by_the_wheel():
    entry = metadata.EntryPoint(*entry_points(), "torchrun.handlers")
    assert (entry.name, entry.load()()) == (torchrun.NAME, torchrun.create)


@pytest.fixture(params=PROGRAMS)
def start(request, tmp_path):
    """Runs `torchrun` in a pod of an elastic training; returns its output and the questions that it
    asked the server."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if request.param == "torchrun" and version < (2, 5):
        pytest.skip(f"PyTorch {torch.__version__} looks for no rendezvous in wheels")
    # As pip installs the wheel: modules and entry points.
    installed = tmp_path / "elastane-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: elastane\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text(
        "[torchrun.handlers]\n{} = {}\n".format(*entry_points())
    )
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    server = Server(tmp_path / "socket", opens)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"

    def run(*options, **variables):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{SDK / 'src'}:{tmp_path}",
            "OMP_NUM_THREADS": "1",
            "USE_LIBUV": "0",
            "ELASTANE_CHANNEL": str(tmp_path / "socket"),
            # Variables that the server sets in the first pod of two; one pod is enough here.
            "PET_NNODES": "1:2",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": endpoint,
            "PET_RDZV_ID": "training",
            "PET_RDZV_CONF": "is_host=1,last_call_timeout=1",
            "PET_LOCAL_ADDR": "127.0.0.1",
            "ELASTANE_RDZV_BACKEND": "elastane",
            # The defaults of PyTorch 1.13 fail with Python 3.11.
            "PET_TEE": "1",
            "PET_REDIRECTS": "1",
            **variables,
        }
        command = [sys.executable, "-m", PROGRAMS[request.param], *options, str(script)]
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ended = subprocess.run(command, env=environment, timeout=300, **pipes)
        assert ended.returncode == 0, ended.stdout
        asked, server.asked[:] = list(server.asked), []
        return ended.stdout, asked

    run.server = server
    return run


def test_pods_of_an_image_with_the_wheel_meet_at_the_server_by_default(start):
    said, asked = start()
    assert "rank 0 of 1 by elastane" in said
    assert any(one.get("arrives") for one in asked) and asked[-1].get("done")


def test_a_choice_of_the_user_is_kept(start):
    # The server sets its variable only where the user has chosen no rendezvous.
    said, asked = start(ELASTANE_RDZV_BACKEND="")
    assert "rank 0 of 1 by c10d" in said and not asked
    said, asked = start("--rdzv_backend", "c10d")
    assert "rank 0 of 1" in said and not asked


def test_a_torchrun_of_one_pod_alone_does_not_meet_the_others(start):
    said, asked = start("--nnodes", "1")
    assert "rank 0 of 1" in said and "--nnodes is not that of the pods" in said
    assert not asked


def test_a_second_torchrun_of_a_pod_uses_pytorchs_own_rendezvous(start):
    used = {"generation": 0, "size": 0, "changed": False, "over": True, "used": True}
    start.server.answers = lambda _: {"ok": True, "world": used}
    said, asked = start()
    assert "rank 0 of 1" in said and "another torchrun of this pod has met" in said
    assert not any(one.get("arrives") for one in asked)
