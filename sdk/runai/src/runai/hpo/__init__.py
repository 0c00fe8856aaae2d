"""Hyperparameter search over pods that share a folder.

Owns: the file `runai.yaml` of the folder, and its lock. Does not know about: how pods are started.
Each pod picks a configuration that no other has; one that was preempted is picked again first.
SIGTERM marks the experiment of this pod as preempted and ends the process with 1, so that the pod
is started again.
"""

import contextlib
import datetime
import enum
import fcntl
import itertools
import os
import random
import signal
import sys

import yaml

_FILE, _LOCK = "runai.yaml", "runai.yaml.lock"
_directory = None
_experiment = None


class Strategy(enum.Enum):
    """In which order configurations are tried."""

    GridSearch = 0
    RandomSearch = 1


class Status:
    """Of an experiment, as the file has it."""

    UNASSIGNED = "unassigned"
    ASSIGNED = "assigned"
    PREEMPTED = "preempted"


def init(root, subdir=None):
    """The folder that all pods of the search share; it is created if it is not there."""
    global _directory
    directory = os.path.join(root, subdir) if subdir else root
    os.makedirs(directory, exist_ok=True)
    _directory = directory


@contextlib.contextmanager
def _experiments():
    """The experiments of the file, which is written again at the end; locked meanwhile."""
    if _directory is None:
        raise RuntimeError("call runai.hpo.init(folder) first")
    path = os.path.join(_directory, _FILE)
    with open(os.path.join(_directory, _LOCK), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(path, encoding="utf-8") as file:
                document = yaml.safe_load(file) or {}
        except FileNotFoundError:
            document = {}
        experiments = document.setdefault("experiments", [])
        yield experiments
        part = f"{path}.part"
        with open(part, "w", encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)


def _touch(experiment, status=None):
    if status is not None:
        experiment["status"] = status
    experiment["modificationTime"] = datetime.datetime.now(datetime.timezone.utc).isoformat()


def _combinations(grid):
    for name, values in grid.items():
        if not isinstance(values, (list, tuple)) or not values:
            raise ValueError(f"grid[{name!r}] is {values!r}; it is a list of at least one value")
    names = list(grid)
    return [dict(zip(names, values)) for values in itertools.product(*grid.values())]


def pick(grid, strategy=Strategy.GridSearch):
    """A configuration for this pod: a value for each name of the grid.

    Raises StopIteration when all were tried; a random search goes on after that.
    """
    global _experiment
    combinations = _combinations(grid)
    with _experiments() as experiments:
        waiting = [one for one in experiments if one["status"] == Status.PREEMPTED]
        if not waiting:
            tried = [one["config"] for one in experiments]
            left = [one for one in combinations if one not in tried]
            if strategy is Strategy.RandomSearch:
                chosen = random.choice(left or combinations)
            elif left:
                chosen = left[0]
            else:
                raise StopIteration(f"all {len(combinations)} configurations were tried")
            waiting = [{"id": len(experiments) + 1, "config": chosen, "reports": []}]
            experiments.append(waiting[0])
        _touch(waiting[0], Status.ASSIGNED)
        _experiment = waiting[0]["id"]
        config = dict(waiting[0]["config"])
    signal.signal(signal.SIGTERM, _on_term)
    return config


def report(epoch, metrics):
    """Adds what this pod has reached: an epoch, and values by name."""
    with _experiments() as experiments:
        mine = _mine(experiments)
        mine.setdefault("reports", []).append({"epoch": epoch, "metrics": dict(metrics)})
        _touch(mine)


def _mine(experiments):
    if _experiment is None:
        raise RuntimeError("call runai.hpo.pick(...) first")
    return next(one for one in experiments if one["id"] == _experiment)


def _on_term(*_):
    with _experiments() as experiments:
        _touch(_mine(experiments), Status.PREEMPTED)
    sys.exit(1)
