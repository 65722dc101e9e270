"""DataLoader.set_epoch: the epoch of drapps' own order, and of samplers that have one."""

import random

import pytest
import torch
from loadersets import Numbers, Rolls, lists
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


@pytest.mark.parametrize("n, epoch, said", [(1, 2, True), (1, 1, False), (0, 2, False), (4, 2, False)])
def test_a_state_that_is_dropped_is_warned_of(caplog, n, epoch, said):
    """Not where nothing was delivered, or nothing is left."""
    loader = seeded()
    loader.set_epoch(1)
    iterator = iter(loader)
    for _ in range(n):
        next(iterator)
    again = seeded()
    again.load_state_dict(loader.state_dict())
    again.set_epoch(epoch)
    wanted = f"set_epoch({epoch}) dropped the state that was loaded, which is of epoch 1"
    assert [wanted in record.message for record in caplog.records] == [True] * said
    caplog.clear()
    again.set_epoch(0)
    assert len(caplog.records) == (n == 1 and epoch == 1)


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


@pytest.mark.parametrize("workers", WORKERS)
def test_with_a_seed_samples_draw_the_same_wherever_they_are_made(workers):
    """Whatever was drawn before, also where a pass goes on elsewhere; the program's generators stay as they are."""

    def rolling(workers):
        return DataLoader(Rolls(12), 3, shuffle=True, seed=7, num_workers=workers)

    torch.manual_seed(1)
    wanted = lists(rolling(2))
    torch.manual_seed(2)
    random.seed(3)
    before = random.getstate(), torch.get_rng_state()
    loader = rolling(workers)
    iterator = iter(loader)
    begun = [next(iterator).tolist()]
    assert begun == wanted[:1]
    again = rolling(2 - workers)
    again.load_state_dict(loader.state_dict())
    assert begun + lists(again) == wanted == begun + lists(iterator)
    assert random.getstate() == before[0]
    assert workers == 2 or torch.equal(torch.get_rng_state(), before[1])
