"""How long a training waits for a checkpoint: `saving.py BYTES ROUNDS FOLDER`.

Prints seconds to a GB as JSON: `direct`, until it is on the disk of the folder; `new`, until it is in memory that was
not used for one before; `again`, in memory that was; `load`, from memory. Medians, but for `new`: of two copies.
"""

import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np

import elastane
from elastane import memory


def main():
    size, rounds, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    weights = np.random.default_rng(0).standard_normal(size // 8)
    path = os.path.join(folder, "model")

    def stall():
        begin = time.perf_counter()
        elastane.save(path, weights)
        seconds = time.perf_counter() - begin
        assert elastane.saved()
        return seconds * 1e9 / weights.nbytes

    os.environ.pop(memory.VARIABLE, None)
    spent = {"direct": statistics.median(stall() for _ in range(rounds))}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as pod:
        os.environ[memory.VARIABLE] = pod
        spent["new"] = statistics.median(stall() for _ in range(2))
        spent["again"] = statistics.median(stall() for _ in range(rounds))
        begin = time.perf_counter()
        with elastane.load(path) as file:
            np.frombuffer(file.read())
        spent["load"] = (time.perf_counter() - begin) * 1e9 / weights.nbytes
    print(json.dumps(spent))


main()
