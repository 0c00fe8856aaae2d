"""How fast workers add up vectors over loopback: `allreduce.py WORKERS FLOATS ROUNDS`.

Prints seconds of a sum, the median of all, as JSON: by the ring of the package, and by Gloo where this
Python has PyTorch.
"""

import json
import multiprocessing
import os
import statistics
import sys
import time

import numpy as np


def measured(add, wait, rounds):
    """Seconds of one call, over all workers: each begins when all are there."""
    seconds = []
    for number in range(rounds + 2):
        wait()
        begin = time.perf_counter()
        add()
        # The first ones make connections and buffers.
        if number >= 2:
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def by_ring(rank, workers, floats, rounds, barrier, addresses, ready, results):
    from elastane.links import Listener
    from elastane.ring import form

    listener = Listener("127.0.0.1", "token")
    addresses[rank] = listener.address
    ready.wait()
    every = [addresses[one] for one in range(workers)]
    ring = form(listener, "token", 1, rank, every, 30, lambda: False)
    values = np.zeros(floats, np.float32)
    results[rank] = measured(lambda: ring.reduce(values), barrier.wait, rounds)
    barrier.wait()
    ring.close()


def by_gloo(rank, workers, floats, rounds, barrier, addresses, ready, results):
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    path = addresses["file"]
    distributed.init_process_group("gloo", f"file://{path}", rank=rank, world_size=workers)
    values = torch.zeros(floats)
    results[rank] = measured(lambda: distributed.all_reduce(values), barrier.wait, rounds)
    barrier.wait()
    distributed.destroy_process_group()


def run(work, workers, floats, rounds):
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier, ready = (context.Barrier(workers, timeout=120) for _ in range(2))
        addresses, results = manager.dict(), manager.dict()
        addresses["file"] = f"/tmp/elastane-gloo-{os.getpid()}"
        given = (workers, floats, rounds, barrier, addresses, ready, results)
        processes = [context.Process(target=work, args=(n, *given)) for n in range(workers)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if os.path.exists(addresses["file"]):
            os.remove(addresses["file"])
        return max(results.values())


def main():
    workers, floats, rounds = map(int, sys.argv[1:4])
    out = {"ring": run(by_ring, workers, floats, rounds)}
    try:
        import torch.distributed

        has_gloo = torch.distributed.is_gloo_available()
    except ImportError:
        has_gloo = False
    if has_gloo:
        out["gloo"] = run(by_gloo, workers, floats, rounds)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
