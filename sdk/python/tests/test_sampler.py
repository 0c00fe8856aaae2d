"""Samples of ranks, over changes of their number. Owns: that each is trained on once."""

import json
import random

import pytest
from elastane import ElasticSampler


def world(size, length, state=None, **options):
    """All ranks of a world, which have loaded a state."""
    ranks = [ElasticSampler(length, rank, size, **options) for rank in range(size)]
    for sampler in ranks:
        if state is not None:
            sampler.load_state_dict(json.loads(json.dumps(state)))
    return ranks


def train(ranks, batch, steps=None):
    """Trains `steps` steps of all ranks, or to the end of the epoch; returns the samples trained on
    and the state of rank 0."""
    seen, iterators = [], [sampler.batches(batch) for sampler in ranks]
    while steps is None or steps > 0:
        minibatches = [next(iterator, None) for iterator in iterators]
        counts = {minibatch is None for minibatch in minibatches}
        assert len(counts) == 1, "all ranks have equally many minibatches"
        if counts == {True}:
            break
        for sampler, minibatch in zip(ranks, minibatches):
            sampler.record(len(minibatch))
            seen += minibatch
        steps = steps and steps - 1
    return seen, ranks[0].state_dict()


@pytest.mark.parametrize("seed", range(200))
def test_each_sample_is_trained_on_once_in_an_epoch_whatever_the_worlds(seed):
    chance = random.Random(seed)
    length, epochs, state = chance.randrange(0, 120), 3, None
    options = {"seed": seed, "shuffle": chance.random() < 0.8}
    seen = {epoch: [] for epoch in range(epochs)}
    epoch = 0
    while epoch < epochs:
        ranks = world(chance.randrange(1, 9), length, state, **options)
        for sampler in ranks:
            sampler.set_epoch(epoch)
        samples, state = train(ranks, chance.randrange(1, 9), chance.choice([1, 1, 2, 3, None]))
        seen[epoch] += samples
        assert sorted(set(seen[epoch])) == sorted(seen[epoch]), "none twice"
        assert state["done"] == len(seen[epoch]), "rank 0 knows of all"
        epoch += state["done"] == length
    assert all(sorted(samples) == list(range(length)) for samples in seen.values())


def test_what_was_trained_on_after_the_checkpoint_comes_again():
    ranks = world(3, 30)
    kept, state = train(ranks, 2, 2)
    lost, _ = train(ranks, 2, 1)
    again, _ = train(world(2, 30, state), 5)
    assert set(lost) <= set(again) and sorted(kept + again) == list(range(30))


def test_the_order_is_of_seed_and_epoch():
    def order(**options):
        epoch = options.pop("epoch", 0)
        sampler = ElasticSampler(50, 0, 1, **options)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order() == order() != list(range(50))
    assert order(shuffle=False) == list(range(50))
    assert len({tuple(order(seed=seed, epoch=epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    # Ranks of different versions of numpy divide the same order.
    assert list(ElasticSampler(6, 0, 1, seed=3)) == [1, 4, 2, 0, 3, 5]


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9])
def test_padding_gives_all_ranks_equally_many_and_leaves_none_out(length):
    ranks = world(4, length, padding="repeat")
    parts = [list(sampler) for sampler in ranks]
    assert {len(part) for part in parts} == {len(ranks[0])} == {-(-length // 4)}
    assert set(sum(parts, [])) == set(range(length))
    for sampler, part in zip(ranks, parts):
        sampler.record(len(part))
        assert sampler.remaining == 0 and list(sampler) == []


def test_without_padding_the_first_ranks_have_one_more():
    ranks = world(4, 6)
    assert [len(sampler) for sampler in ranks] == [2, 2, 1, 1]
    assert [len(list(sampler)) for sampler in ranks] == [2, 2, 1, 1]


def test_it_is_the_same_epoch_until_another_begins():
    sampler = ElasticSampler(10, 0, 2)
    sampler.record(2)
    sampler.set_epoch(0)
    assert (sampler.done, len(sampler)) == (4, 3)
    sampler.set_epoch(1)
    assert (sampler.done, len(sampler)) == (0, 5)


def test_rank_and_world_are_those_of_torchrun(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert len(ElasticSampler([0] * 7)) == 2
    assert len(ElasticSampler([0] * 7, rank=0, world_size=1)) == 7
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(ValueError, match="RANK is 'one'"):
        ElasticSampler(7)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"length": 11}, "length 11"),
        ({"length": None}, "length None"),
        ({"seed": 1}, "seed 1, and the sampler 0"),
        ({"shuffle": False}, "shuffle False"),
        ({"done": 11}, "11 samples of 10"),
        ({"done": -1}, "done -1"),
        ({"epoch": "2"}, "epoch '2'"),
        ({"epoch": True}, "epoch True"),
    ],
)
def test_a_state_of_other_data_is_refused(change, message):
    sampler = ElasticSampler(10, 0, 1)
    with pytest.raises(ValueError, match=message):
        sampler.load_state_dict({**sampler.state_dict(), **change})
    with pytest.raises(ValueError, match="length None"):
        sampler.load_state_dict({})


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"rank": 2, "world_size": 2}, "rank 2 is not one of a world of 2"),
        ({"rank": -1, "world_size": 2}, "rank -1"),
        ({"seed": -1}, "seed -1"),
        ({"padding": "zeros"}, "'zeros' is not one of none, repeat"),
        ({"data": -1}, "-1 samples"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ElasticSampler(**{"data": 10, "rank": 0, "world_size": 1, **arguments})


def test_more_than_there_is_cannot_be_recorded():
    sampler = ElasticSampler(10, 1, 4)
    sampler.record(3)
    with pytest.raises(ValueError, match="1 samples are recorded of 0"):
        sampler.record(1)
    with pytest.raises(ValueError, match="-1 samples"):
        sampler.record(-1)
    with pytest.raises(ValueError, match="minibatches of 0"):
        sampler.batches(0)
    with pytest.raises(ValueError, match="epoch -1"):
        sampler.set_epoch(-1)


def test_a_loader_of_pytorch_takes_it():
    data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")
    ranks = world(3, 20)
    loaders = [data.DataLoader(range(20), batch_size=4, sampler=sampler) for sampler in ranks]
    assert [len(loader) for loader in loaders] == [2, 2, 2]
    seen = [int(sample) for loader in loaders for batch in loader for sample in batch]
    assert sorted(seen) == list(range(20))
