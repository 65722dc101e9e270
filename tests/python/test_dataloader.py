"""DataLoader against torch's: arguments, order, random draws, data sets, samplers, iteration."""

import copy
import gc
import pickle
import random
import threading
import warnings
import weakref

import numpy
import pytest
import torch
from loadersets import Faulty, Holding, Many, Nested, Numbers, Pairs, Ranges, SizedStream, Stream, lists
from torch.utils import data

import drapps
from drapps import DataLoader

WORKERS = [0, 2]


def both(dataset, make=dict, seed=3, workers=0, passes=2, **options):
    """The batches of torch's loader and of ours, after the same seed, with the generator's state after them."""
    found = []
    for kind in (data.DataLoader, DataLoader):
        torch.manual_seed(seed)
        loader = kind(dataset, num_workers=workers, **options, **make())
        batches = [lists(loader) for _ in range(passes)]
        found.append((batches, torch.get_rng_state().tolist()))
    return found


# --- what it is ---


def test_is_a_torch_loader():
    loader = DataLoader(Numbers(4), num_workers=0)
    assert isinstance(loader, data.DataLoader)
    for name, value in vars(data.DataLoader(Numbers(4))).items():
        if not name.startswith("_DataLoader__"):
            assert hasattr(loader, name), name
            if isinstance(value, (int, str, type(None))):
                assert getattr(loader, name) == value, name


def test_arguments_have_torchs_places():
    loader = DataLoader(Numbers(9), 2, False, None, None, 0, None, False, True, 0, None, None, None)
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_number_of_workers_is_an_int():
    decided = DataLoader(Numbers(4)).num_workers
    assert isinstance(decided, int) and 1 <= decided <= drapps.info()["limits"]["workers"]
    assert DataLoader(Numbers(4), cpu_limit=1).num_workers == 1
    assert DataLoader(Numbers(4), cpu_limit=0.01).num_workers == 1
    assert DataLoader(Numbers(4), num_workers=0).num_workers == 0
    assert DataLoader(Numbers(4), persistent_workers=True, prefetch_factor=3).prefetch_factor == 3


WRONG = {
    "negative workers": {"num_workers": -1},
    "negative timeout": {"timeout": -1},
    "prefetch without workers": {"num_workers": 0, "prefetch_factor": 2},
    "negative prefetch": {"num_workers": 1, "prefetch_factor": -1},
    "persistent without workers": {"num_workers": 0, "persistent_workers": True},
    "context without workers": {"num_workers": 0, "multiprocessing_context": "fork"},
    "unknown context": {"num_workers": 1, "multiprocessing_context": "clone"},
    "no context": {"num_workers": 1, "multiprocessing_context": 3},
    "sampler and shuffle": {"sampler": [0], "shuffle": True},
    "batch sampler and size": {"batch_sampler": [[0]], "batch_size": 2},
    "batch sampler and shuffle": {"batch_sampler": [[0]], "shuffle": True},
    "drop_last without batches": {"batch_size": None, "drop_last": True},
    "batch size 0": {"batch_size": 0},
    "batch size float": {"batch_size": 1.5},
    "drop_last text": {"drop_last": "yes"},
    "unknown argument": {"no_such_argument": 1},
}
WRONG_STREAMS = {"shuffle": {"shuffle": True}, "sampler": {"sampler": [0]}, "batch sampler": {"batch_sampler": [[0]]}}


def same_mistake(dataset, options):
    errors = []
    for kind in (data.DataLoader, DataLoader):
        with pytest.raises(Exception) as caught:
            kind(dataset, **options)
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0]).split("(")[0].removesuffix(".__init__") == str(errors[1]).split("(")[0]


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_same_exceptions(options):
    same_mistake(Numbers(4), options)


@pytest.mark.parametrize("options", WRONG_STREAMS.values(), ids=WRONG_STREAMS)
def test_same_exceptions_for_streams(options):
    same_mistake(Stream(4), options)


@pytest.mark.parametrize("kind", [data.DataLoader, DataLoader])
def test_half_a_worker_is_an_error_as_in_torch(kind):
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        list(kind(Numbers(4), num_workers=1.5))


def test_shuffling_nothing_is_an_error_as_in_torch():
    same_mistake(Numbers(0), {"shuffle": True})


@pytest.mark.parametrize("option", [{"on_bad_sample": "ignore"}, {"max_bad": -1}, {"memory_limit": -1},
                                    {"cpu_limit": 0}, {"rank": 2, "world_size": 2}, {"rank": 0},
                                    {"seed": 1, "generator": torch.Generator()}, {"seed": "x"},
                                    {"seed": 1.5}])  # fmt: skip
def test_own_arguments_are_checked(option):
    with pytest.raises(ValueError):
        DataLoader(Numbers(4), **option)


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset",
                                  "persistent_workers"])  # fmt: skip
def test_attributes_that_may_not_change(name):
    with pytest.raises(ValueError, match=name):
        setattr(DataLoader(Numbers(4)), name, None)


def test_timeout_without_workers_is_an_error_as_in_torch():
    with pytest.raises(AssertionError):
        iter(DataLoader(Numbers(4), num_workers=0, timeout=1))


# --- the same order, the same draws ---

ORDERS = {
    "plain": {"batch_size": 4},
    "shuffled": {"batch_size": 4, "shuffle": True},
    "dropped": {"batch_size": 4, "shuffle": True, "drop_last": True},
    "larger than the set": {"batch_size": 100},
    "larger and dropped": {"batch_size": 100, "drop_last": True},
    "one by one": {"batch_size": None, "shuffle": True},
    "list": {"sampler": [3, 1, 1, 2], "batch_size": 3},
    "batches": {"batch_sampler": [[0, 1, 2], [5], [4, 4]]},
}
SAMPLERS = {
    "random": lambda: {"sampler": data.RandomSampler(range(11))},
    "with replacement": lambda: {"sampler": data.RandomSampler(range(11), replacement=True, num_samples=70)},
    "more than there are": lambda: {"sampler": data.RandomSampler(range(11), num_samples=25)},
    "subset": lambda: {"sampler": data.SubsetRandomSampler(range(3, 9))},
    "weighted": lambda: {"sampler": data.WeightedRandomSampler([1.0, 2.0, 0.5], 9)},
    "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(8)},
    "distributed": lambda: {"sampler": data.DistributedSampler(range(11), 2, 1)},
}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("options", ORDERS.values(), ids=ORDERS)
def test_order_is_torchs(options, workers):
    theirs, ours = both(Numbers(11), workers=workers, **options)
    assert ours == theirs


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_samplers_draw_as_torchs(make, workers):
    theirs, ours = both(Numbers(11), make, workers=workers, batch_size=4)
    assert ours == theirs


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("workers", WORKERS)
def test_few_samples(n, workers):
    theirs, ours = both(Numbers(n), workers=workers, batch_size=3)
    assert ours == theirs


class Eager:
    """A batch sampler that draws when it is iterated, not at its first batch."""

    def __iter__(self):
        return iter(torch.randperm(8).view(4, 2).tolist())

    def __len__(self):
        return 4


@pytest.mark.parametrize("workers", WORKERS)
def test_eager_samplers_draw_as_often(workers):
    theirs, ours = both(Numbers(8), workers=workers, batch_sampler=Eager())
    assert ours == theirs


@pytest.mark.parametrize("dataset", [Numbers(8), data.TensorDataset(torch.arange(8))], ids=["Python", "native"])
def test_eager_samplers_are_asked_as_by_torchs_default(dataset):
    def drawn(kind):
        torch.manual_seed(3)
        loader = kind(dataset, batch_sampler=Eager())
        batches = [batch[0] if isinstance(batch, list) else batch for _ in range(2) for batch in loader]
        return torch.stack(batches).tolist(), torch.get_rng_state().tolist()

    assert drawn(DataLoader) == drawn(data.DataLoader)


@pytest.mark.parametrize("make", [*SAMPLERS.values(), lambda: {"batch_sampler": Eager()}], ids=[*SAMPLERS, "eager"])
def test_samplers_draw_as_torchs_with_workers_that_are_kept(make):
    options = {} if "batch_sampler" in make() else {"batch_size": 4}
    theirs, ours = both(Numbers(11), make, workers=2, passes=3, persistent_workers=True, **options)
    assert ours == theirs


def test_randomness_in_the_caller_is_torchs():
    class Noisy(Numbers):
        def __getitem__(self, i):
            return torch.rand(()) + random.random() + numpy.random.rand()

    found = []
    for kind in (data.DataLoader, DataLoader):
        torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
        found.append(lists(kind(Noisy(6), 2, shuffle=True, num_workers=0)))
    assert found[0] == found[1]


def test_seed_argument_is_all_that_counts():
    def passes(seed):
        torch.manual_seed(random.randrange(1000))
        loader = DataLoader(Numbers(20), 5, shuffle=True, num_workers=0, seed=seed)
        return [lists(loader) for _ in range(3)]

    assert passes(4) == passes(4) != passes(5)
    assert len({str(order) for order in passes(4)}) == 3


# --- data sets ---


@pytest.mark.parametrize("workers", WORKERS)
def test_structures_are_collated_as_torchs(workers):
    theirs, ours = (list(kind(Pairs(5), 2, num_workers=workers)) for kind in (data.DataLoader, DataLoader))
    for (a, b, c), (x, y, z) in zip(theirs, ours, strict=True):
        assert torch.equal(a, x) and torch.equal(b, y) and c == z
    assert [type(part) for part in ours[0]] == [type(part) for part in theirs[0]] and type(ours[0]) is type(theirs[0])


@pytest.mark.parametrize("workers", WORKERS)
def test_getitems(workers):
    theirs, ours = both(Many(7), workers=workers, batch_size=3)
    assert ours == theirs and ours[0][0][0] == [0, 10, 20]


@pytest.mark.parametrize("workers", WORKERS)
def test_own_collate(workers):
    theirs, ours = both(Numbers(7), workers=workers, batch_size=3, collate_fn=str)
    assert ours == theirs


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": None}, {"batch_size": 3, "drop_last": True}],
                         ids=str)  # fmt: skip
def test_streams(options, workers):
    theirs, ours = both(Stream(11), workers=workers, **options)
    assert ours == theirs


@pytest.mark.parametrize("workers", WORKERS)
def test_streams_that_are_longer_than_they_say(workers):
    loader = DataLoader(SizedStream(8), batch_size=None, num_workers=workers)
    assert len(loader) == 4
    with pytest.warns(UserWarning, match="Length of IterableDataset"):
        assert len(list(loader)) == 8


def test_lengths():
    for options in ORDERS.values():
        assert len(DataLoader(Numbers(11), **options)) == len(data.DataLoader(Numbers(11), **options))


@pytest.mark.parametrize("workers", WORKERS)
def test_pin_memory_without_an_accelerator_warns(workers):
    if torch.accelerator.is_available():
        pytest.skip("there is an accelerator")
    with pytest.warns(UserWarning, match="no accelerator"):
        assert lists(DataLoader(Numbers(2), 2, num_workers=workers, pin_memory=True)) == [[0, 1]]


# --- iteration ---


@pytest.mark.parametrize("workers", WORKERS)
def test_two_iterators_at_once(workers):
    loader = DataLoader(Numbers(6), 2, num_workers=workers)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)] == [
        ([i, i + 1], [i, i + 1]) for i in (0, 2, 4)
    ]


@pytest.mark.parametrize("workers", WORKERS)
def test_an_ended_iterator_stays_ended(workers):
    iterator = iter(DataLoader(Numbers(2), num_workers=workers))
    assert len(list(iterator)) == 2
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("dataset", [Numbers(50), Stream(50), torch.utils.data.TensorDataset(torch.arange(50))],
                         ids=["map", "stream", "native"])  # fmt: skip
def test_early_break_frees_the_iterator_at_once(dataset, workers):
    loader = DataLoader(dataset, num_workers=workers)
    iterator = iter(loader)
    next(iterator)
    gone = weakref.ref(iterator)
    gc.disable()
    try:
        del iterator
        assert gone() is None
    finally:
        gc.enable()
    assert len(list(loader)) == 50


@pytest.mark.parametrize("workers", WORKERS)
def test_threads_share_an_iterator(workers):
    iterator, found = iter(DataLoader(Numbers(64), 4, num_workers=workers)), []

    def consume():
        for batch in iterator:
            found.append(batch.tolist())

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(found, [])) == list(range(64))


def test_errors_come_as_they_are():
    with pytest.raises(ValueError, match="no sample 3"):
        lists(DataLoader(Faulty(5, [3]), num_workers=0))


def test_iterators_are_not_pickled():
    with pytest.raises(NotImplementedError):
        iter(DataLoader(Numbers(3), num_workers=0)).__getstate__()


@pytest.mark.parametrize("dataset, workers, name", [
    (Numbers(3), 0, "_SingleProcessDataLoaderIter"), (Numbers(3), 1, "_MultiProcessingDataLoaderIter"),
    (data.TensorDataset(torch.arange(3)), 1, "_MultiProcessingDataLoaderIter"),
], ids=["caller", "processes", "native"])  # fmt: skip
def test_profiler_range(dataset, workers, name):
    """Profilers find the range that torch's loader has, whoever makes the batches."""
    with DataLoader(dataset, num_workers=workers) as loader:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            lists(loader)
    assert f"enumerate(DataLoader)#{name}.__next__" in {event.name for event in profile.events()}


@pytest.mark.parametrize("workers", WORKERS)
def test_counters(workers):
    loader = DataLoader(Numbers(10), 4, num_workers=workers)
    lists(loader), lists(loader)
    stats = loader.stats()
    assert (stats["samples"], stats["batches"], stats["bad_samples"]) == (20, 6, 0)


# --- bad samples ---


@pytest.mark.parametrize("workers", WORKERS)
def test_bad_samples_are_left_out(workers, caplog):
    loader = DataLoader(Faulty(12, [1, 4, 5, 6, 7]), 4, num_workers=workers, on_bad_sample="skip")
    assert lists(loader) == [[0, 2, 3], [8, 9, 10, 11]]
    assert loader.stats()["bad_samples"] == 5
    assert "no sample 1" in caplog.text


@pytest.mark.parametrize("workers", WORKERS)
def test_bad_samples_are_replaced(workers):
    def batches():
        return lists(DataLoader(Faulty(12, [1, 4]), 4, num_workers=workers, on_bad_sample="replace", seed=2))

    found = batches()
    assert [len(batch) for batch in found] == [4, 4, 4] and found == batches()
    assert found[0][0] == 0 and not {1, 4} & set(sum(found, []))


def test_what_takes_the_place_of_bad_samples_may_be_bad_and_is_the_same_everywhere():
    found = []
    for workers in (*WORKERS, 1):
        loader = DataLoader(Faulty(40, range(25)), 4, num_workers=workers, on_bad_sample="replace", seed=4)
        found.append(lists(loader))
        assert loader.stats()["bad_samples"] == 25 and [bad.index for bad in loader.bad_samples()] == [*range(25)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("options", [
    {"on_bad_sample": "replace"}, {"on_bad_sample": "skip", "rank": 0, "world_size": 2}
], ids=["replaced", "ranks"])  # fmt: skip
def test_where_nothing_takes_the_place_the_batch_is_lost_and_the_next_comes(options):
    bad, found = set(range(80)) - {0, 7, 9, 70, 71, 72, 73, 74}, []
    for workers in (*WORKERS, 1):
        found.append([])
        iterator = iter(DataLoader(Faulty(80, bad), 4, num_workers=workers, seed=3, **options))
        for _ in range(len(iterator)):
            try:
                found[-1].append(next(iterator).tolist())
            except drapps.BadSampleError as error:
                found[-1].append(str(error))
        assert next(iterator, None) is None
    assert found[0] == found[1] == found[2]
    assert any("found no sample to replace it" in batch for batch in found[0])
    assert any(70 in batch for batch in found[0] if isinstance(batch, list))


@pytest.mark.parametrize("workers", WORKERS)
def test_too_many_bad_samples(workers):
    loader = DataLoader(Faulty(12, [1, 4, 7]), 4, num_workers=workers, on_bad_sample="skip", max_bad=2)
    with pytest.raises(drapps.BadSampleError, match="more than max_bad = 2"):
        lists(loader)


def test_no_warning_in_plain_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lists(DataLoader(Numbers(4), 2, num_workers=0)) == [[0, 1], [2, 3]]


# --- indices of other kinds, copies, loaders within loaders ---


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("indices", [numpy.array([3, 1, 2]), torch.tensor([3, 1, 2]), (3, 1, 2)])
def test_arrays_and_tensors_are_samplers_and_batches(indices, workers):
    theirs, ours = both(Numbers(9), workers=workers, batch_size=2, sampler=indices)
    assert theirs == ours
    theirs, ours = both(Numbers(9), workers=workers, batch_sampler=[indices, indices])
    assert theirs == ours


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("options", [{}, {"in_order": False}], ids=str)
def test_slices_are_batches(options, workers):
    theirs, ours = both(Ranges(6), workers=workers, batch_sampler=[slice(0, 2), slice(2, 6)], **options)
    assert sorted(theirs[0][0]) == sorted(ours[0][0]) == [[0, 1], [2, 3, 4, 5]]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_of_slices_cannot_be_told(policy, workers):
    loader = DataLoader(Ranges(6), batch_sampler=[slice(0, 2)], num_workers=workers, on_bad_sample=policy)
    with pytest.raises(drapps.ArgumentError, match=rf"'{policy}' needs batches that list their .* slice\(0, 2, None\)"):
        list(loader)


@pytest.mark.parametrize("workers", WORKERS)
def test_empty_batches(workers):
    """collate_fn decides what becomes of one."""
    batches = [[0, 1], [], *([i] for i in range(30))]
    theirs, ours = both(Numbers(40), workers=workers, batch_sampler=batches, collate_fn=len)
    assert theirs == ours


@pytest.mark.parametrize("passes", [0, 1])
def test_pickled_and_copied_loaders_work(passes):
    loader = DataLoader(Numbers(5), 2, num_workers=1, lanes=False)
    for _ in range(passes):
        lists(loader)
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader), copy.copy(loader)):
        assert lists(other) == lists(loader) == [[0, 1], [2, 3], [4]]
        assert other.num_workers == 1 and other.lanes is False


def test_loaders_in_workers_of_loaders():
    assert lists(DataLoader(Nested(4), 2, num_workers=2)) == [[0, 2], [4, 6]]


INNER = {
    "map": lambda: Numbers(4),
    "stream": lambda: Stream(4, split=False),
    "native": lambda: data.TensorDataset(torch.arange(4)),
}


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("kind", INNER)
@pytest.mark.parametrize("outer", [data.DataLoader, DataLoader])
def test_loaders_that_are_handed_to_workers(kind, passes, outer):
    """They were made where processes could be started, and used there perhaps."""
    inner = DataLoader(INNER[kind](), 2)
    for _ in range(passes):
        list(inner)
    loader = outer(Holding(4, inner), 2, num_workers=2)
    assert lists(loader) == lists(loader) == [[6, 6], [6, 6]]
    assert inner.num_workers > 0
