import contextlib
import importlib.util
import os
import signal
import subprocess
import sys

import pytest

from elastane import contract

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, os.pardir, "examples")


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A folder of records of real digits, `train` and `test`."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    from elastane.digits import write

    folder = tmp_path_factory.mktemp("digits")
    write(str(folder))
    return folder


@pytest.fixture
def start_worker(tmp_path):
    """Starts `python3 -m elastane.worker`; what is left of it is killed at the end."""
    processes = []
    token = tmp_path / "token"
    token.write_text("secret\n")

    def start(job, pod="worker-0", patience_s=30, token_file=token, before=None, more=()):
        """`before` is Python that the process runs first, with the worker as `w`; `more` are further
        arguments."""
        program = ["-m", "elastane.worker"]
        if before:
            program = ["-c", f"{before}; raise SystemExit(w.main())"]
        command = [sys.executable, *program, "--master", job.address]
        command += ["--token-file", str(token_file), "--pod", pod, "--patience-s", str(patience_s)]
        command += more
        log = open(tmp_path / f"{pod}.log", "w+")
        # More threads than free cores would wait for each other.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        process.log = log
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.log.close()


@pytest.fixture
def start_script(tmp_path):
    """Starts a script with a custom training loop as a worker of a job; returns its process."""
    processes = []
    token = tmp_path / "token"
    token.write_text("secret")

    def start(job, text, pod="worker-0", **environment):
        path = tmp_path / f"{pod}.py"
        path.write_text(text)
        environment = dict(
            os.environ,
            MASTER_ADDR=job.address,
            ELASTANE_JOB_TOKEN_FILE=str(token),
            POD_NAME=pod,
            PYTHONPATH=os.pathsep.join([*sys.path, contract.compatibility_path()]),
            **environment,
        )
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pipes["start_new_session"] = True
        processes.append(subprocess.Popen([sys.executable, str(path)], env=environment, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        # With the processes of its loader, which may be left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def needs(*packages):
    """Skips the test where one of these packages is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def said(process):
    """All that a worker has printed."""
    process.log.flush()
    with open(process.log.name) as log:
        return log.read()
