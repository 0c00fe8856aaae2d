"""Compares what a step costs a worker in two versions of the Python package.

    versions.py BEFORE AFTER [ROUNDS [FRAMEWORK...]]

BEFORE and AFTER are folders with the package `elastane`, complete with `elastic.binpb`; `elasticdl`
is on the PATH, and this Python has the frameworks. Trains the digits of `sdk/python/examples` by
`elasticdl local train`, with the two versions in turn, and prints the medians: CPU time of a worker
in a step, steps of both workers in a second, CPU time of master and servers in a step. Steps until
the 30th do not count.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, *[os.pardir] * 4, "sdk", "python", "examples")
WAYS = {
    "1 server": ("--num_ps_pods=1", "--grads_to_wait=2"),
    "2 servers": ("--num_ps_pods=2", "--grads_to_wait=2"),
    "all-reduce": ("--distribution_strategy=AllreduceStrategy",),
}
EPOCHS = {"numpy": 20, "torch": 10, "keras": 10}
# Runs as the Python of a worker: notes the steps and its CPU time.
WORKER = """
import json, os, sys, time
from elastane import backends, worker
choose, steps = backends.choose, []

def timed(model):
    backend = choose(model)
    step = backend.step
    def noted(batch):
        steps.append((time.process_time(), time.perf_counter()))
        return step(batch)
    backend.step = noted
    return backend

backends.choose = timed
code = worker.main([])
(cpu, begin), (cpu_last, end) = steps[30], steps[-1]
found = dict(steps=len(steps) - 31, cpu=cpu_last - cpu, seconds=end - begin)
found["all"] = time.process_time()
os.write(2, f"STEPS {json.dumps(found)}\\n".encode())
os._exit(code)
"""


def run(folder, source, framework, way):
    """The costs of one training: CPU milliseconds of a worker in a step, steps in a second, CPU
    milliseconds of the rest in a step."""
    python = os.path.join(folder, "python")
    with open(python, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec {sys.executable} {folder}/worker.py\n")
    os.chmod(python, 0o755)
    path = os.pathsep.join([source, os.path.join(source, "elastane", "compat")])
    command = ["elasticdl", "local", "train", "--job_name=v", f"--image_name={python}",
               f"--model_zoo={EXAMPLES}", f"--model_def=digits_{framework}.custom_model",
               f"--training_data={folder}/digits/train", f"--num_epochs={EPOCHS[framework]}",
               "--minibatch_size=10", "--num_workers=2", *WAYS[way]]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read()
    lines = [line.split("STEPS ")[1] for line in said.splitlines() if "STEPS {" in line]
    workers = [json.loads(line) for line in lines]
    if process.returncode != 0 or len(workers) != 2:
        raise SystemExit(f"{' '.join(command)} failed with {source}:\n{said[-4000:]}")
    steps = sum(one["steps"] for one in workers)
    rest = used.ru_utime + used.ru_stime - sum(one["all"] for one in workers)
    return (
        1000 * sum(one["cpu"] for one in workers) / steps,
        sum(one["steps"] / one["seconds"] for one in workers),
        1000 * rest / steps,
    )


def compare(folder, sources, framework, way, rounds):
    """Prints a line with the medians of both versions."""
    found = {source: [] for source in sources}
    for number in range(rounds):
        # Neither is always the second.
        for source in sources if number % 2 == 0 else sources[::-1]:
            found[source].append(run(folder, source, framework, way))
    before, after = ([statistics.median(of) for of in zip(*found[s])] for s in sources)
    shown = [f"{b:.3g} -> {a:.3g} ({100 * (a / b - 1):+.1f} %)" for b, a in zip(before, after)]
    print(f"| {framework}, {way} | " + " | ".join(shown) + " |", flush=True)


def main():
    before, after, *more = sys.argv[1:]
    rounds, frameworks = int(more[0]) if more else 5, more[1:] or list(EPOCHS)
    sources = [os.path.abspath(before), os.path.abspath(after)]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "worker.py"), "w", encoding="utf-8") as file:
            file.write(WORKER)
        write = [sys.executable, "-m", "elastane.digits", os.path.join(folder, "digits")]
        environment = {**os.environ, "PYTHONPATH": sources[1]}
        subprocess.run(write, check=True, env=environment, stdout=subprocess.DEVNULL)
        print("| | CPU ms of a worker in a step | steps/s of both | CPU ms of the rest in a step |")
        print("|---|--:|--:|--:|")
        for framework in frameworks:
            for way in WAYS:
                compare(folder, sources, framework, way, rounds)


if __name__ == "__main__":
    main()
