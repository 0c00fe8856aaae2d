"""A training that `torchrun` starts, on any number of workers that come and go.

    torchrun sdk/python/examples/torchrun_points.py --folder /shared/points

It learns whether points are inside of a circle. After each step rank 0 writes a checkpoint into
`--folder`, which all workers can read; when the workers change, all restart from it. The global
minibatch keeps its size if the workers divide it, so the result does not depend on their number;
else it is a little larger, and the learning rate follows it.
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from elastane import ElasticSampler, scaled_rate
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAMPLES = 960
RATE = 0.01


def points():
    """Points of a square, and whether each is inside of the circle of half the area."""
    x = torch.rand(SAMPLES, 2, generator=torch.Generator().manual_seed(7)) * 2 - 1
    return x, (x.square().sum(1) < 2 / torch.pi).long()


def save(path, state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def train(folder, epochs=3, global_batch=48, after_step=lambda: None):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    path = os.path.join(folder, "checkpoint.pt")

    torch.manual_seed(0)
    x, labels = points()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    sampler = ElasticSampler(SAMPLES)
    # How often the model was trained on each sample.
    visits = torch.zeros(SAMPLES, dtype=torch.long)
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])
        visits = state["visits"]
    # A checkpoint has the rate of other ranks.
    of_rank = -(-global_batch // size)
    for group in optimizer.param_groups:
        group["lr"] = scaled_rate(RATE, of_rank * size / global_batch, "sqrt")
    # Rank 0 writes the next one when all have read this one.
    dist.barrier()

    for epoch in range(sampler.epoch, epochs):
        sampler.set_epoch(epoch)
        print(f"rank {rank} of {size}: epoch {epoch}, {sampler.remaining} samples left", flush=True)
        for batch in sampler.batches(of_rank):
            together = min(of_rank * size, sampler.remaining)
            optimizer.zero_grad()
            # Gradients are averaged over ranks, some of which have fewer samples in the last step.
            loss = nn.functional.cross_entropy(model(x[batch]), labels[batch], reduction="sum")
            (loss * size / together).backward()
            optimizer.step()
            sampler.record(len(batch))
            here = torch.bincount(torch.tensor(batch, dtype=torch.long), minlength=SAMPLES)
            dist.all_reduce(here)
            visits += here
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                save(path, {**state, "sampler": sampler.state_dict(), "visits": visits})
            after_step()
    with torch.no_grad():
        right = (model.module(x).argmax(1) == labels).float().mean().item()
    times = f"{visits.min()} to {visits.max()}"
    print(f"rank {rank} of {size}: each sample {times} times, {right:.0%} right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="of the checkpoint; all workers share it")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--global-batch", type=int, default=48)
    arguments = parser.parse_args()
    train(arguments.folder, arguments.epochs, arguments.global_batch)
