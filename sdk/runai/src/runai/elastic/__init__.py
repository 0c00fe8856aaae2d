"""One training script for any number of GPUs: how large a batch is, and how many are accumulated.

Owns: the numbers. Does not know about: frameworks; `runai.elastic.keras` and `.torch` set them.

After `init(global_batch_size, max_gpu_batch_size, gpus)` of one of these the module has:

    gpus                  how many GPUs the script has
    global_batch_size     as given, in samples
    steps                 so many batches are accumulated to one update
    batch_size            of one GPU and one step, in samples; at most max_gpu_batch_size
    effective_batch_size  steps x batch_size x gpus: what an update really sees, in samples
    master                whether this process writes checkpoints

The published library divides rounding down, so that a batch may be larger than the GPU can hold
(256 in all, at most 64, 3 GPUs: 85) and samples are lost. `RUNAI_ELASTIC_PUBLISHED=1` brings that
back, for comparisons.
"""

import os
import subprocess
from importlib import metadata

from ._conflict import check

check(metadata)

gpus = steps = batch_size = global_batch_size = effective_batch_size = None
master = True


def numbers(global_batch_size, max_gpu_batch_size, gpus, published=False):
    """`steps`, `batch_size` and the effective batch, all whole numbers of at least 1."""
    given = dict(
        global_batch_size=global_batch_size, max_gpu_batch_size=max_gpu_batch_size, gpus=gpus
    )
    for name, value in given.items():
        if int(value) != value or value < 1:
            raise ValueError(f"{name} is {value}; it is a whole number of at least 1")
    if published:
        steps = max(1, global_batch_size // (max_gpu_batch_size * gpus))
        batch_size = global_batch_size // (steps * gpus)
    else:
        steps = -(-global_batch_size // (max_gpu_batch_size * gpus))
        # The nearest whole number: at most max_gpu_batch_size, because the exact one is.
        batch_size = max(1, (2 * global_batch_size + steps * gpus) // (2 * steps * gpus))
    return steps, batch_size, steps * batch_size * gpus


def _init(global_batch, max_gpu_batch, number_of_gpus):
    """Sets the attributes of the module."""
    global gpus, steps, batch_size, global_batch_size, effective_batch_size
    published = os.environ.get("RUNAI_ELASTIC_PUBLISHED") == "1"
    found = numbers(global_batch, max_gpu_batch, number_of_gpus, published)
    steps, batch_size, effective_batch_size = found
    gpus, global_batch_size = number_of_gpus, global_batch
    if effective_batch_size != global_batch_size:
        print(
            f"runai.elastic: an update sees {effective_batch_size} samples, not "
            f"{global_batch_size}: {steps} steps x {batch_size} samples x {gpus} GPUs",
            flush=True,
        )


def gpus_of_the_machine():
    """How many GPUs `nvidia-smi --list-gpus` shows; 0 where there is no such program."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return len(listed.stdout.splitlines())
