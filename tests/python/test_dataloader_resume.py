"""States of DataLoader over more than one pass, one kind of worker or one number of ranks."""

import os
import pickle
import random
import signal
import warnings
from collections import Counter

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from loadersets import Cards, Numbers, Rolls, Slow, Who, lists, workers_of
from torch.utils import data

from drapps import DataLoader

pytestmark = pytest.mark.usefixtures("leaves_nothing")


class Eager:
    """A batch sampler that draws when it is iterated, not at its first batch."""

    def __iter__(self):
        return iter(torch.randperm(24).view(6, 4).tolist())

    def __len__(self):
        return 6


MAKES = {
    "shuffled": lambda: {"shuffle": True, "batch_size": 4},
    "generator": lambda: {"shuffle": True, "batch_size": 4, "generator": torch.Generator().manual_seed(8)},
    "seed": lambda: {"shuffle": True, "batch_size": 4, "seed": 8},
    "weighted": lambda: {"sampler": data.WeightedRandomSampler([1.0, 2.0] * 12, 24), "batch_size": 4},
    "eager": lambda: {"batch_sampler": Eager()},
}


def copied(state):
    return pickle.loads(pickle.dumps(state))


# --- workers that are kept ---


def kept(make, dataset=None, workers=2):
    options = {"num_workers": workers, "persistent_workers": True} if workers else {"num_workers": 0}
    return DataLoader(Numbers(24) if dataset is None else dataset, **options, **make())


@pytest.mark.parametrize("passes", [0, 1, 2])
@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_a_pass_of_kept_workers_goes_on(make, passes):
    torch.manual_seed(1)
    with kept(make) as loader:
        for _ in range(passes):
            lists(loader)
        iterator = iter(loader)
        next(iterator)
        state, rng = copied(loader.state_dict()), torch.get_rng_state()
        rest, following = lists(iterator), lists(loader)
    for workers in (0, 2):
        torch.manual_seed(99)
        with kept(make, workers=workers) as again:
            again.load_state_dict(state)
            torch.set_rng_state(rng)
            assert lists(again) == rest
            if workers:
                assert lists(again) == following


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_between_passes_of_kept_workers(make):
    torch.manual_seed(1)
    with kept(make) as loader:
        lists(loader)
        state, rng = copied(loader.state_dict()), torch.get_rng_state()
        following = [lists(loader), lists(loader)]
    torch.manual_seed(99)
    with kept(make) as again:
        again.load_state_dict(state)
        torch.set_rng_state(rng)
        assert [lists(again), lists(again)] == following


@pytest.mark.parametrize("dataset", [Numbers(24), Rolls(24), data.TensorDataset(torch.arange(24))],
                         ids=["order", "randomness", "native"])  # fmt: skip
def test_with_a_seed_the_epoch_alone_decides(dataset):
    def rows(loader):
        return [(batch[0] if isinstance(batch, list) else batch).tolist() for batch in loader]

    found = []
    for options in ({}, {"persistent_workers": True}):
        torch.manual_seed(len(found))
        with DataLoader(dataset, 4, shuffle=True, seed=7, num_workers=2, **options) as loader:
            found.append([rows(loader) for _ in range(3)])
    assert found[0] == found[1] and found[0][1] != found[0][2]


@pytest.mark.parametrize("before, after", [(0, 2), (2, 0)])
def test_a_sampler_that_draws_at_once_goes_on_with_other_workers(before, after):
    """torch asks it once for an iterator in the caller, and twice with workers."""
    with DataLoader(Numbers(24), batch_sampler=Eager(), num_workers=before) as loader:
        iterator = iter(loader)
        next(iterator)
        state, rest = loader.state_dict(), lists(iterator)
    with DataLoader(Numbers(24), batch_sampler=Eager(), num_workers=after) as again:
        again.load_state_dict(state)
        assert lists(again) == rest


def test_workers_that_go_on_have_the_seed_of_those_before():
    def seeds(batches):
        return {seed - worker for batch in lists(batches) for worker, _, seed in batch}

    with kept(MAKES["shuffled"], Who(24)) as loader:
        first = seeds(loader)
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
    with kept(MAKES["shuffled"], Who(24)) as again:
        again.load_state_dict(state)
        assert seeds(again) == seeds(again) == first


# --- iterators that draw at once ---


class Dealt(data.IterableDataset):
    """Shuffles when it is iterated, by each of the global generators."""

    def __iter__(self):
        info = data.get_worker_info()
        mine = list(range(info.id, 40, info.num_workers))
        random.shuffle(mine)
        mine = [mine[i] for i in torch.randperm(len(mine)).tolist()]
        return iter([mine[i] for i in numpy.random.permutation(len(mine))] + [info.seed % 1000 + 1000])


def seeding(worker):
    random.seed(worker + 5)
    torch.rand(3)


@pytest.mark.parametrize("init", [None, seeding])
def test_streams_that_shuffle_at_once(init):
    def loader():
        return DataLoader(Dealt(), 3, num_workers=2, persistent_workers=True, worker_init_fn=init)

    torch.manual_seed(4)
    theirs = lists(data.DataLoader(Dealt(), 3, num_workers=2, worker_init_fn=init))
    torch.manual_seed(4)
    with loader() as saved:
        passes = [lists(saved), lists(saved)]
        iterator = iter(saved)
        next(iterator)
        state, rest = saved.state_dict(), lists(iterator)
    assert passes[0] == theirs and passes[0] != passes[1]
    with loader() as again:
        again.load_state_dict(state)
        assert lists(again) == rest


def test_a_worker_of_a_later_pass_is_replaced_by_one_that_shuffles_alike():
    found = []
    for killed in (False, True):
        torch.manual_seed(4)
        with DataLoader(Dealt(), 3, num_workers=2, persistent_workers=True, prefetch_factor=1) as loader:
            lists(loader)
            iterator = iter(loader)
            batches = [next(iterator).tolist(), next(iterator).tolist()]
            for pid in workers_of(iterator) if killed else ():
                os.kill(pid, signal.SIGKILL)
            with warnings.catch_warnings(action="ignore"):  # the pass may be over before the deaths are heard of
                found.append(batches + lists(iterator))
    assert found[0] == found[1]


# --- ranks that come and go ---


CHAINS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ranks(world, n=40, batch_size=3, **options):
    options = {"num_workers": 0, "shuffle": True, **options}
    dataset = options.pop("dataset", None) or Numbers(n)
    return [DataLoader(dataset, batch_size, rank=rank, world_size=world, **options) for rank in range(world)]


def order_of(n):
    return sum(lists(DataLoader(Numbers(n), n, shuffle=True, num_workers=0, seed=0)), [])


def in_turn(parts):
    """The samples of all ranks' batches, in the order that they were dealt from."""
    return [sample for batch in zip(*parts, strict=True) for row in zip(*batch, strict=True) for sample in row]


def loaded(world, states, **options):
    loaders = ranks(world, **options)
    for loader in loaders:
        loader.load_state_dict(copied(states))
        loader.load_state_dict(copied(loader.state_dict()))  # what was loaded and not begun is a state, too
    return loaders


@CHAINS
@given(st.data())
def test_each_sample_comes_once_whoever_goes_on(draw):
    """In order: a chain of runs, each with its number of ranks, gives the order of one."""
    n, batch_size = draw.draw(st.integers(1, 120)), draw.draw(st.integers(1, 5))
    order, found, states = order_of(n), [], None
    for world in draw.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)):
        options = {"n": n, "batch_size": batch_size, "seed": 0}
        loaders = loaded(world, states, **options) if states else ranks(world, **options)
        iterators = [iter(loader) for loader in loaders]
        taken = draw.draw(st.integers(0, 3))
        found += in_turn([[batch.tolist() for _, batch in zip(range(taken), each)] for each in iterators])
        states = [loader.state_dict() for loader in loaders]
        if states[0]["_iterator_finished"]:
            break
        states = states if draw.draw(st.booleans()) else states[0]
    else:
        found += in_turn([lists(loader) for loader in loaded(world, states, **options)])
    assert found[:n] == order and len(found) < n + 5


def deliver(loader, some):
    """Samples as workers deliver them out of order: some of each batch that is in flight; [(key, index)]."""
    order, got = iter(loader)._order, []
    for slots in some:
        work = next(order, None)
        if work is None:
            break
        places = work.places or [(work.number, slot) for slot in range(len(work.indices))]
        chosen = [i for i in range(len(places)) if i in slots]
        loader._progress.delivered_places([places[i] for i in chosen])
        got += [((places[i][0] * loader.world_size + loader.rank, places[i][1]), work.indices[i]) for i in chosen]
    return got


@CHAINS
@given(st.data())
def test_each_sample_comes_once_out_of_order(draw):
    n, batch_size = draw.draw(st.integers(1, 120)), draw.draw(st.integers(1, 5))
    slots = st.lists(st.sets(st.integers(0, batch_size - 1)) | st.just(set(range(batch_size))), max_size=6)
    options = {"n": n, "batch_size": batch_size, "seed": 0, "in_order": False}
    states, found = None, []
    for world in draw.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)):
        loaders = loaded(world, states, **options) if states else ranks(world, **options)
        for loader in loaders:
            found += deliver(loader, draw.draw(slots))
        states = [loader.state_dict() for loader in loaders]
    for loader in loaded(world, states, **options):
        found += deliver(loader, [set(range(batch_size))] * (n + 1))
    times, fillers = Counter(index for _, index in found), set(order_of(n)[:5])
    assert sorted(times) == list(range(n)) and {index for index in times if times[index] > 1} <= fillers
    keys = [key for key, index in found if index not in fillers]
    assert len(set(keys)) == len(keys)  # which random numbers follow from


@pytest.mark.parametrize("dataset", [Slow(96, range(0, 96, 7), 0.02), data.TensorDataset(torch.arange(96))],
                         ids=["processes", "native"])  # fmt: skip
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("in_order", [True, False])
def test_each_sample_comes_once_with_workers(dataset, persistent, in_order):
    options = {"dataset": dataset, "batch_size": 2, "seed": 3, "num_workers": 2, "in_order": in_order,
               "persistent_workers": persistent}  # fmt: skip
    states, found = None, Counter()
    for world, taken in ((2, 3), (3, 2), (3, 1), (1, 4), (2, 2), (4, None)):
        loaders = loaded(world, states, **options) if states else ranks(world, **options)
        states = []
        for loader in loaders:
            iterator = iter(loader)
            for _, batch in zip(range(taken or 96), iterator):
                found.update((batch[0] if isinstance(batch, list) else batch).tolist())
            states.append(loader.state_dict())
            loader.close()
    assert sorted(found) == list(range(96)) and found.total() <= 96 + 4


def test_a_sampler_with_a_state_goes_on_with_other_ranks_in_a_later_pass():
    def loaders(world):
        return [DataLoader(Numbers(40), 2, sampler=Cards(40), num_workers=0, rank=rank, world_size=world)
                for rank in range(world)]  # fmt: skip

    before = loaders(2)
    for loader in before:
        lists(loader)
    iterators = [iter(loader) for loader in before]
    begun = in_turn([[next(iterator).tolist() for _ in range(2)] for iterator in iterators])
    after = loaders(4)
    for loader in after:
        loader.load_state_dict(copied(before[0].state_dict()))
    rest = in_turn([lists(loader) for loader in after])
    assert begun + rest == [(at * 7 + 1) % 40 for at in range(1, 41)]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_ranks_with_such_a_sampler_are_filled_up_with_its_first_samples(rank):
    def loader():
        return DataLoader(Numbers(25), 4, sampler=Cards(25), num_workers=0, rank=rank, world_size=3)

    latest, found = loader(), []
    for _ in range(2):  # also of a pass that was gone on with
        saved, latest = latest, loader()
        found.append(next(iter(saved)).tolist())
        latest.load_state_dict(copied(saved.state_dict()))
    assert found + lists(latest) == lists(loader())
