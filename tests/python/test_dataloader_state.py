"""States of DataLoader: a pass goes on exactly where it was saved, in another loader and another process."""

import pickle
import threading

import numpy
import pytest
import torch
from loadersets import Bookmark, Cards, Numbers, Stream, lists
from torch.utils import data

import drapps
from drapps import DataLoader

WORKERS = [0, 2]
MAKES = {
    "plain": dict,
    "shuffled": lambda: {"shuffle": True},
    "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(8)},
    "seed": lambda: {"shuffle": True, "seed": 8},
    "subset": lambda: {"sampler": data.SubsetRandomSampler(range(3, 22))},
    "random": lambda: {"sampler": data.RandomSampler(range(30), replacement=True, num_samples=70)},
    "distributed": lambda: {"sampler": data.DistributedSampler(range(30), 2, 1)},
    "batches": lambda: {"batch_sampler": data.BatchSampler(data.RandomSampler(range(30)), 4, True)},
    "one by one": lambda: {"batch_size": None, "shuffle": True},
    "own state": lambda: {"sampler": Cards(30)},
}


def loader_of(make, workers, dataset=None):
    options = make()
    if "batch_sampler" not in options:
        options = {"batch_size": 4, **options}
    return DataLoader(Numbers(30) if dataset is None else dataset, num_workers=workers, **options)


def saved_after(loader, n):
    """n batches, the state after them and the global generator's, as a training script saves them."""
    iterator = iter(loader)
    batches = [next(iterator).tolist() for _ in range(n)]
    return batches, pickle.loads(pickle.dumps(loader.state_dict())), torch.get_rng_state()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_goes_on_in_the_middle(make, n, workers):
    torch.manual_seed(1)
    loader = loader_of(make, workers)
    whole = [lists(loader), lists(loader)]
    torch.manual_seed(1)
    begun, state, rng = saved_after(loader_of(make, workers), n)
    torch.manual_seed(99)
    again = loader_of(make, 0)
    again.load_state_dict(state)
    torch.set_rng_state(rng)
    assert begun + lists(again) == whole[0]
    assert lists(again) == whole[1]


@pytest.mark.parametrize("workers", WORKERS)
def test_the_end_of_a_pass_is_the_beginning_of_the_next(workers):
    loader = loader_of(MAKES["generator"], workers)
    lists(loader)
    state = loader.state_dict()
    assert state["_iterator_finished"]
    second = lists(loader)
    again = loader_of(MAKES["generator"], workers)
    again.load_state_dict(state)
    assert lists(again) == second


def test_after_the_last_batch_nothing_is_left(caplog):
    begun, state, _ = saved_after(loader_of(dict, 0), 8)
    assert len(begun) == 8
    again = loader_of(dict, 0)
    again.load_state_dict(state)
    assert lists(again) == []
    assert "nothing was left" in caplog.text
    caplog.clear()
    assert len(lists(again)) == 8 and not caplog.text


def test_after_a_break_and_twice():
    loader = loader_of(MAKES["seed"], 0)
    whole = lists(loader_of(MAKES["seed"], 0))
    for n in (2, 3):
        for i, _ in enumerate(loader):
            if i == n - 1:
                break
        state = loader.state_dict()
        loader = loader_of(MAKES["seed"], 0)
        loader.load_state_dict(state)
        assert loader.state_dict() == state
    assert lists(loader) == whole[5:]


def test_states_are_small():
    for name, most in (("plain", 1000), ("shuffled", 1000), ("seed", 1000), ("generator", 1000), ("subset", 7000)):
        _, state, _ = saved_after(loader_of(MAKES[name], 0), 3)
        assert len(pickle.dumps(state)) < most, name


def test_loading_ends_the_pass_that_runs():
    loader = loader_of(dict, 0)
    iterator = iter(loader)
    next(iterator)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(drapps.StateError, match="iterator invalidated"):
        next(iterator)
    assert lists(loader)[0] == [4, 5, 6, 7]


@pytest.mark.parametrize("other", [{"dataset": Numbers(31)}, {"dataset": torch.arange(30)}], ids=["length", "type"])
def test_another_data_set_is_an_error(other):
    _, state, _ = saved_after(loader_of(dict, 0), 1)
    with pytest.raises(ValueError, match=r"saved with (length 30|dataset)"):
        loader_of(dict, 0, **other).load_state_dict(state)


def test_another_batch_size_is_an_error():
    _, state, _ = saved_after(loader_of(dict, 0), 1)
    with pytest.raises(ValueError, match="saved with batch_size 4, the loader has 5"):
        DataLoader(Numbers(30), 5, num_workers=0).load_state_dict(state)


def of_twenty(n, **options):
    """A loader of 20 samples in batches of 4, after n batches."""
    return saved_and_rest(n, **options)[0]


def saved_and_rest(n, **options):
    """(such a loader, its state, an iterator of the rest of its pass)."""
    loader = DataLoader(Numbers(20), 4, num_workers=0, **options)
    iterator = iter(loader)
    for _ in range(n):
        next(iterator)
    return loader, pickle.loads(pickle.dumps(loader.state_dict())), iterator


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("other", [{"seed": 8}, {}])
def test_another_seed_is_an_error(other, n):
    loader = of_twenty(0, shuffle=True, **other)
    with pytest.raises(drapps.ArgumentError) as refusal:
        loader.load_state_dict(of_twenty(n, shuffle=True, seed=7).state_dict())
    assert str(refusal.value) == f"the state was saved with seed 7, the loader has {other.get('seed')!r}"


@pytest.mark.parametrize("other", [{"seed": 8}, {"generator": torch.Generator().manual_seed(8)}, {}])
def test_a_state_without_a_seed_goes_on_in_its_own_order(other):
    _, state, rest = saved_and_rest(2, shuffle=True)
    rest = lists(rest)
    loader = of_twenty(0, shuffle=True, **other)
    loader.load_state_dict(state)
    iterator = iter(loader)
    assert next(iterator).tolist() == rest[0]
    again = of_twenty(0, shuffle=True, **other)  # a state of what goes on goes on, too
    again.load_state_dict(pickle.loads(pickle.dumps(loader.state_dict())))
    assert lists(again) == lists(iterator) == rest[1:]
    if "seed" in other:
        wanted = of_twenty(0, shuffle=True, seed=8)
        wanted.set_epoch(1)
        assert lists(loader) == lists(wanted)


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("was, now", [(True, False), (False, True)])
def test_another_sampler_is_an_error(was, now, seed):
    names = {True: "shuffle=True (RandomSampler)", False: "shuffle=False (SequentialSampler)"}
    loader, state = of_twenty(0, shuffle=now, seed=seed), of_twenty(2, shuffle=was, seed=seed).state_dict()
    with pytest.raises(drapps.ArgumentError) as refusal:
        loader.load_state_dict(state)
    assert f"saved with {names[was]}, the loader has {names[now]}" in str(refusal.value)
    assert 'remove state["made_with"]["sampler"]' in str(refusal.value)
    assert lists(loader) == lists(of_twenty(0, shuffle=now, seed=seed)) or seed is None


def test_an_order_that_cannot_be_drawn_again_is_an_error():
    """Also in states that do not name their sampler."""
    drawn = of_twenty(2, shuffle=True).state_dict()
    given = of_twenty(2, shuffle=True, generator=torch.Generator().manual_seed(8)).state_dict()
    for state, options, said in [(drawn, {}, "saved with shuffle=True"),
                                 (given, {"shuffle": True}, "saved with 1 generator, the loader has 0")]:  # fmt: skip
        del state["made_with"]["sampler"], state["made_with"]["seed"]
        with pytest.raises(drapps.ArgumentError, match=said):
            of_twenty(0, **options).load_state_dict(state)


def test_states_that_name_no_sampler_and_no_seed_are_loaded():
    _, state, rest = saved_and_rest(2, shuffle=True, seed=7)
    del state["made_with"]["sampler"], state["made_with"]["seed"]
    loader = of_twenty(0, shuffle=True, seed=7)
    loader.load_state_dict(state)
    assert lists(loader) == lists(rest)


def test_torchs_own_random_sampler_is_that_of_shuffle():
    torch.manual_seed(3)
    _, state, rest = saved_and_rest(2, sampler=data.RandomSampler(range(20)))
    loader = of_twenty(0, shuffle=True)
    loader.load_state_dict(state)
    assert lists(loader) == lists(rest)


def test_indices_are_a_sampler_of_one_kind():
    order = [*range(10, 20), *range(10)]
    _, state, rest = saved_and_rest(2, sampler=order)
    loader = of_twenty(0, sampler=numpy.array(order))
    loader.load_state_dict(state)
    assert lists(loader) == lists(rest)


def test_a_fingerprint_is_compared():
    def marked(mark):
        dataset = Numbers(30)
        dataset.fingerprint = mark
        return loader_of(dict, 0, dataset)

    _, state, _ = saved_after(marked("a"), 1)
    with pytest.raises(ValueError, match="fingerprint 'a'"):
        marked("b").load_state_dict(state)


@pytest.mark.parametrize("state", [{}, [], None, {"drapps": 99}], ids=str)
def test_something_else_is_an_error(state):
    with pytest.raises((ValueError, IndexError)):
        loader_of(dict, 0).load_state_dict(state)


# --- streams ---


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", [Stream, Bookmark])
@pytest.mark.parametrize("batch_size", [3, None])
def test_streams_go_on(kind, batch_size, workers):
    def loader():
        return DataLoader(kind(17), batch_size, num_workers=workers)

    whole, saved, again = lists(loader()), loader(), loader()
    iterator = iter(saved)
    begun = [batch.tolist() if batch_size else batch for batch in (next(iterator) for _ in range(3))]
    again.load_state_dict(saved.state_dict())
    assert begun + lists(again) == whole
    if kind is Bookmark and workers == 0:
        assert again.dataset.restored == 1
    assert lists(again) == whole


class OwnIterator(data.IterableDataset):
    """A stream that is its own iterator, begins anew when it is iterated, and has no place before."""

    def __iter__(self):
        self.place = {"at": 0}
        return self

    def __next__(self):
        if self.place["at"] == 12:
            raise StopIteration
        self.place["at"] += 1
        return self.place["at"], torch.randint(1000, ()).item()

    def state_dict(self):
        return dict(self.place, rng=torch.get_rng_state())

    def load_state_dict(self, state):
        self.place["at"] = state["at"]
        torch.set_rng_state(state["rng"])


@pytest.mark.parametrize("context", [None, "spawn"])
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("workers", [1, 2])
def test_streams_that_are_their_own_iterators_go_on(workers, n, context):
    loader, again = (DataLoader(OwnIterator(), None, num_workers=workers, multiprocessing_context=context)
                     for _ in range(2))  # fmt: skip
    iterator = iter(loader)
    begun = [next(iterator) for _ in range(n)]
    again.load_state_dict(loader.state_dict())
    rest = list(iterator)
    assert list(again) == rest and len(begun) + len(rest) == 12 * workers


def test_a_stream_in_the_caller_that_is_its_own_iterator_goes_on():
    loader, again = (DataLoader(OwnIterator(), None, num_workers=0) for _ in range(2))
    iterator = iter(loader)
    begun = [next(iterator)[0] for _ in range(5)]
    again.load_state_dict(loader.state_dict())
    rest = list(iterator)
    assert list(again) == rest and begun + [number for number, _ in rest] == list(range(1, 13))


# --- ranks ---


def ranks(world, **options):
    return [DataLoader(Numbers(40), 3, shuffle=True, num_workers=0, rank=rank, world_size=world, **options)
            for rank in range(world)]  # fmt: skip


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_each_global_batch(world):
    alone = DataLoader(Numbers(40), 3 * world, shuffle=True, num_workers=0, seed=0)
    parts = [lists(loader) for loader in ranks(world, seed=0)]
    order = sum(lists(alone), [])
    for number, batch in enumerate(zip(*parts, strict=True)):
        chunk = order[number * 3 * world : (number + 1) * 3 * world]
        chunk += order[: -len(chunk) % world]
        assert list(batch) == [chunk[rank::world] for rank in range(world)]


def test_ranks_have_equally_many():
    for options in ({}, {"drop_last": True}):
        loaders = ranks(7, **options)
        sizes = {tuple(len(batch) for batch in lists(loader)) for loader in loaders}
        assert len(sizes) == 1 and len(next(iter(sizes))) == len(loaders[0])


def test_another_number_of_ranks_goes_on():
    order = sum(lists(DataLoader(Numbers(40), 40, shuffle=True, num_workers=0, seed=0)), [])
    before = ranks(2)
    iterators = [iter(loader) for loader in before]
    for iterator in iterators * 2:
        next(iterator)
    after = ranks(4)
    for loader in after:
        loader.load_state_dict(before[0].state_dict())
    rest = [lists(loader) for loader in after]
    found = [sample for batch in zip(*rest, strict=True) for row in zip(*batch, strict=True) for sample in row]
    assert found == order[12:]


def test_no_sharding_unless_asked():
    loader = DataLoader(Numbers(4), num_workers=0)
    assert (loader.rank, loader.world_size) == (0, 1)


def test_rank_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = DataLoader(Numbers(4), 2, num_workers=0, rank="auto")
    assert lists(loader) == [[1, 3]]


@pytest.mark.parametrize("options", [{"dataset": Stream(4)}, {"dataset": Numbers(4), "batch_size": None},
                                     {"dataset": Numbers(4), "sampler": data.DistributedSampler(range(4), 2, 0)}],
                         ids=["stream", "no batches", "distributed"])  # fmt: skip
def test_ranks_need_plain_batches(options):
    with pytest.raises(ValueError, match="rank"):
        DataLoader(**options, num_workers=0, rank=0, world_size=2)


def test_inline_batches_put_together_from_several_count_by_sample():
    """Out of order, what is left of several batches makes one; its state says which samples were delivered."""
    loader = DataLoader(Numbers(10), batch_size=2, num_workers=0, in_order=False)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    state["done"] = {1: [0], 2: [1]}  # as worker processes leave it
    left = [3, 4, 6, 7, 8, 9]
    for n in range(4):
        resumed = DataLoader(Numbers(10), batch_size=2, num_workers=0, in_order=False)
        resumed.load_state_dict(pickle.loads(pickle.dumps(state)))
        iterator = iter(resumed)
        first = [x for _ in range(n) for x in next(iterator).tolist()]
        again = DataLoader(Numbers(10), batch_size=2, num_workers=0, in_order=False)
        again.load_state_dict(resumed.state_dict() if n else state)
        rest = [x for batch in again for x in batch.tolist()] if n < 3 else []
        assert sorted(first + rest) == left


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Numbers(14), data.TensorDataset(torch.arange(14))], ids=["python", "native"])
def test_a_batch_that_another_thread_has_in_its_hands_comes_again(dataset, workers):
    """In order, too: the state has a gap there."""
    loader, again = (DataLoader(dataset, 4, num_workers=workers) for _ in range(2))
    iterator = iter(loader)
    next(iterator)
    thread = threading.Thread(target=iterator._next_data)
    thread.start(), thread.join()
    next(iterator)
    again.load_state_dict(loader.state_dict())
    found = [batch[0] if isinstance(batch, list) else batch for batch in again]
    assert [batch.tolist() for batch in found] == [[4, 5, 6, 7], [12, 13]]
