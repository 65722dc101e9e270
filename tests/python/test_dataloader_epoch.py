"""DataLoader.set_epoch: the epoch of drapps' own order, and of samplers that have one."""

import pytest
from loadersets import Numbers, lists
from torch.utils import data

import drapps
from drapps import DataLoader

WORKERS = [0, 2]


def seeded(**options):
    return DataLoader(Numbers(20), 5, **{"shuffle": True, "seed": 7, "num_workers": 0} | options)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_that_is_set_has_the_order_that_it_has_in_sequence(workers, persistent):
    loader = seeded()
    epochs = [lists(loader) for _ in range(4)]
    assert epochs[0] != epochs[2]
    with seeded(num_workers=workers, persistent_workers=persistent and workers > 0) as jumps:
        for epoch in (2, 0, 0, 3):
            jumps.set_epoch(epoch)
            assert lists(jumps) == epochs[epoch]
            assert jumps.stats()["epoch"] == epoch
        jumps.set_epoch(1)
        assert [lists(jumps), lists(jumps)] == epochs[1:3]


def test_the_epoch_set_is_that_of_the_state():
    loader = seeded()
    loader.set_epoch(3)
    state, wanted = loader.state_dict(), lists(loader)
    again = seeded()
    again.load_state_dict(state)
    assert lists(again) == wanted


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_state_is_kept_for_its_own_epoch_alone(epoch):
    loader = seeded()
    epochs = [lists(loader) for _ in range(3)]
    loader.set_epoch(1)
    iterator = iter(loader)
    next(iterator)
    again = seeded()
    again.load_state_dict(loader.state_dict())
    again.set_epoch(epoch)
    assert lists(again) == (epochs[1][1:] if epoch == 1 else epochs[2])


@pytest.mark.parametrize("given", ["sampler", "batch_sampler"])
def test_samplers_get_it(given):
    def loader_of(kind, **options):
        sampler = data.DistributedSampler(range(20), 2, 1, seed=4)
        options |= {"sampler": sampler, "batch_size": 4} if given == "sampler" else {
            "batch_sampler": data.BatchSampler(sampler, 4, False)}  # fmt: skip
        return kind(Numbers(20), num_workers=0, **options), sampler

    ours, _ = loader_of(DataLoader)
    theirs, sampler = loader_of(data.DataLoader)
    for epoch in (0, 5, 1):
        ours.set_epoch(epoch)
        sampler.set_epoch(epoch)
        assert lists(ours) == lists(theirs)


@pytest.mark.parametrize("epoch", [-1, "1", 1.5, None])
def test_what_is_no_epoch_is_refused(epoch):
    loader = seeded()
    with pytest.raises(drapps.ArgumentError, match="^epoch must be a non-negative int"):
        loader.set_epoch(epoch)
    assert lists(loader) == lists(seeded())
