"""Samples of a rank while the number of ranks changes. Owns: the order of an epoch, its parts, and
the progress. Does not know about: PyTorch, and how ranks meet."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sized, Union

import numpy as np

#: What a sampler does where the ranks cannot have equally many samples.
PADDINGS = ("none", "repeat")


class ElasticSampler:
    """Gives each rank its part of the rest of an epoch.

    It is a sampler of `torch.utils.data.DataLoader`, and needs no PyTorch itself. The order of an
    epoch depends on `seed` and its number alone. Rank `r` of `w` takes the places `r`, `r + w`,
    `r + 2w`, … of the rest, so ranks that train in step have always trained on the first samples of
    the order, and one number is their progress. A checkpoint has this number; ranks of another
    count that load it divide the rest among them, and each sample is trained on once in an epoch.

    ::

        sampler = ElasticSampler(len(dataset))          # rank and world size as torchrun sets them
        if checkpoint: sampler.load_state_dict(checkpoint["sampler"])
        for epoch in range(sampler.epoch, epochs):
            sampler.set_epoch(epoch)
            for batch in sampler.batches(32):
                train(dataset, batch)
                sampler.record(len(batch))              # rank 0 saves sampler.state_dict()

    Conditions: all ranks use minibatches of one size, the sampler's `seed`, `shuffle` and `padding`
    are the same everywhere, and rank 0 saves: where the ranks have unequal parts it has the larger one.

    Args:
        data: the data set, or its number of samples.
        rank: of this process, from 0; without it the variable `RANK`, else 0.
        world_size: number of ranks; without it the variable `WORLD_SIZE`, else 1.
        shuffle: a random order for each epoch, else that of the data set.
        seed: of the random order, from 0 to 2**32 - 1.
        padding: `"none"`: the first ranks may have one sample more; `"repeat"`: the last ranks get
            samples of this epoch a second time, so that all ranks have equally many.

    Raises:
        ValueError: for a rank outside of the world, a negative number of samples, and the like.
    """

    def __init__(
        self,
        data: Union[int, Sized],
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        shuffle: bool = True,
        seed: int = 0,
        padding: str = "none",
    ) -> None:
        self._length = data if isinstance(data, int) else len(data)
        self._rank = _from_environment("RANK", 0) if rank is None else rank
        self._world_size = _from_environment("WORLD_SIZE", 1) if world_size is None else world_size
        if self._length < 0:
            raise ValueError(f"{self._length} samples: the number cannot be negative")
        if not 0 <= self._rank < self._world_size:
            raise ValueError(f"rank {self._rank} is not one of a world of {self._world_size}")
        if not 0 <= seed < 2**32:
            raise ValueError(f"seed {seed} is not from 0 to {2**32 - 1}")
        if padding not in PADDINGS:
            raise ValueError(f"padding {padding!r} is not one of {', '.join(PADDINGS)}")
        self._shuffle, self._seed, self._padding = bool(shuffle), int(seed), padding
        self._epoch = 0
        self._begin(0)

    def _begin(self, done: int) -> None:
        """Divides what is left after the first `done` samples of the order."""
        self._start = done
        self._recorded = 0

    @property
    def epoch(self) -> int:
        """The epoch that the samples are of, from 0."""
        return self._epoch

    @property
    def done(self) -> int:
        """Samples of this epoch that all ranks together have trained on."""
        return min(self._start + self._recorded * self._world_size, self._length)

    @property
    def remaining(self) -> int:
        """Samples of this epoch that are left for all ranks together."""
        return self._length - self.done

    def __len__(self) -> int:
        """Samples that this rank gets from the next iteration."""
        return self._share(self.remaining)

    def __iter__(self) -> Iterator[int]:
        """Indices of this rank, of the rest now. Samples that were not recorded come again."""
        self._begin(self.done)
        return iter(self._indices())

    def batches(self, size: int) -> Iterator[List[int]]:
        """Minibatches of this rank, equally many on all ranks.

        The last one may have fewer than `size` indices, and on some ranks none; a rank takes part in the
        communication of that step nevertheless.
        """
        if size < 1:
            raise ValueError(f"minibatches of {size} samples: the number must be at least 1")
        self._begin(self.done)
        own, longest = self._indices(), -(-self.remaining // self._world_size)
        return (own[at : at + size] for at in range(0, longest, size))

    def record(self, samples: int) -> None:
        """Counts samples of this rank that are trained on: the size of its minibatch.

        A loader may read ahead, so the samples it was given are no progress. Call this once for
        each step, before the state is saved.
        """
        left = self._share(self._length - self._start) - self._recorded
        if not 0 <= samples <= left:
            raise ValueError(f"{samples} samples are recorded of {left} that this rank has left")
        self._recorded += samples

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch. The current one, such as that of a checkpoint, continues."""
        if epoch < 0:
            raise ValueError(f"epoch {epoch}: the number cannot be negative")
        if epoch != self._epoch:
            self._epoch = epoch
            self._begin(0)

    def state_dict(self) -> Dict[str, Any]:
        """How far the ranks are, as numbers that JSON can hold."""
        return {
            "length": self._length,
            "shuffle": self._shuffle,
            "seed": self._seed,
            "epoch": self._epoch,
            "done": self.done,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there, with the ranks that there are now.

        Raises:
            ValueError: for the state of another data set or another order, and one that is damaged.
        """
        for name, own in (
            ("length", self._length),
            ("shuffle", self._shuffle),
            ("seed", self._seed),
        ):
            if name not in state or state[name] != own:
                raise ValueError(f"the state has {name} {state.get(name)!r}, and the sampler {own!r}")
        epoch, done = (_count(state, name) for name in ("epoch", "done"))
        if done > self._length:
            raise ValueError(f"the state has {done} samples of {self._length} done")
        self._epoch = epoch
        self._begin(done)

    def _share(self, remaining: int) -> int:
        """How many of so many samples this rank gets."""
        if self._padding == "repeat":
            return -(-remaining // self._world_size)
        return -(-max(remaining - self._rank, 0) // self._world_size)

    def _indices(self) -> List[int]:
        order = np.arange(self._length)
        if self._shuffle:
            # The one generator of numpy whose numbers are the same in every version.
            np.random.RandomState([self._seed, self._epoch % 2**32]).shuffle(order)
        rest = order[self._start :]
        if self._padding == "repeat" and len(rest) > 0:
            rest = np.resize(rest, self._share(len(rest)) * self._world_size)
        return [int(index) for index in rest[self._rank :: self._world_size]]


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, which is not a number") from None


def _count(state: Mapping[str, Any], name: str) -> int:
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"the state has {name} {value!r}, which is not a number from 0")
    return value
