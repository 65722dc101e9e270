"""States of DataLoader over more than one pass, one kind of worker or one number of ranks."""

import pickle
from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from loadersets import Numbers, Slow, lists
from torch.utils import data

from drapps import DataLoader

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def copied(state):
    return pickle.loads(pickle.dumps(state))


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
    """Samples as workers deliver them out of order: some of each batch that is under way; [(key, index)]."""
    order, got = iter(loader)._order, []
    for slots in some:
        work = next(order, None)
        if work is None:
            break
        places = work.places or [(work.number, slot) for slot in range(len(work.indices))]
        chosen = [i for i in range(len(places)) if i in slots]
        loader._progress.all_delivered([places[i] for i in chosen])
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


class Cards:
    """A sampler with a state of its own, on which alone its order hangs; another one in each pass."""

    def __init__(self, n):
        self.n, self.at, self.turn = n, 0, 0

    def __iter__(self):
        while self.at < self.n:
            self.at += 1
            yield (self.at * 7 + self.turn) % self.n
        self.at, self.turn = 0, self.turn + 1

    def __len__(self):
        return self.n

    def state_dict(self):
        return {"at": self.at, "turn": self.turn}

    def load_state_dict(self, state):
        self.at, self.turn = state["at"], state["turn"]


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
