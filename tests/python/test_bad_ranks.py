"""Bad samples on several ranks: whatever is bad, all ranks get equally many batches, and each good sample comes."""

import importlib
from collections import Counter
from unittest import mock

import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st
from loadersets import Faulty, Many, Numbers, lists
from op_runner import import_torchvision
from PIL import Image
from torch.utils.data import DistributedSampler, TensorDataset

import drapps
from drapps import DataLoader

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

N = 24


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder with N pictures, of which picture i has the value i, and one file that is none."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "a").mkdir()
    for i in range(N):
        Image.fromarray(numpy.full((6, 6, 3), i, numpy.uint8)).save(folder / "a" / f"{i:03}.png")
    (folder / "broken.png").write_bytes(b"\x89PNG broken")
    return folder


class OfImages:
    """A native data set: a pass gives lists of the numbers of its samples."""

    def __init__(self, folder):
        self.folder = folder

    def dataset(self, n, bad):
        images = torchvision.datasets.ImageFolder(self.folder, v2.Compose([v2.Resize((4, 4)), v2.PILToTensor()]))
        samples = [(str(self.folder / "broken.png") if i in bad else path, label)
                   for i, (path, label) in enumerate(images.samples[:n])]  # fmt: skip
        images.samples = images.imgs = samples
        images.targets = [label for _, label in samples]
        return images

    def read(self, batches):
        return [images[:, 0, 0, 0].tolist() for images, _ in batches]


class OfNumbers:
    """A data set in Python."""

    def __init__(self, kind=Faulty):
        self.kind = kind

    def dataset(self, n, bad):
        return self.kind(n, bad)

    def read(self, batches):
        return lists(batches)


def ranked(dataset, rank, world, way, batch, **options):
    """A loader of one rank; way: "own", or by a "sampler" of torch's."""
    if way == "own":
        return DataLoader(dataset, batch, shuffle=True, seed=5, rank=rank, world_size=world, **options)
    sampler = DistributedSampler(range(len(dataset)), world, rank, seed=5)
    return DataLoader(dataset, batch, sampler=sampler, **options)


def check(source, n, bad, world, way, batch, **options):
    """Runs an epoch of all ranks, and holds it against one in which nothing is bad."""
    came, wanted, alone = Counter(), Counter(), 0
    for rank in range(world):
        plain = lists(ranked(Numbers(n), rank, world, way, batch, num_workers=0))
        loader = ranked(source.dataset(n, bad), rank, world, way, batch, on_bad_sample="skip", **options)
        found = source.read(loader)
        loader.close()
        if world > 1:
            assert len(found) == len(plain) == len(loader)
        assert all(1 <= len(part) <= batch for part in found)
        came.update(sum(found, []))
        wanted.update(index for part in plain for index in part if index not in bad)
        alone += sum(len(part) == 1 for part in found)
        assert loader.stats()["bad_samples"] >= sum(index in bad for part in plain for index in part)
    assert not wanted - came, "a good sample did not come"
    stand_ins = came - wanted
    assert stand_ins.total() <= alone and not stand_ins.keys() & bad
    if world == 1:
        assert not stand_ins


some_bad = st.one_of(
    st.sets(st.integers(0, N - 1), max_size=N // 3),
    st.integers(0, 2).map(lambda rank: set(range(rank, N, 3))),
    st.integers(0, N - N // 3).map(lambda first: set(range(first, first + N // 3))),
)
cases = st.fixed_dictionaries({
    "n": st.integers(N - 5, N), "bad": some_bad, "world": st.integers(1, 3), "way": st.sampled_from(["own", "sampler"]),
    "batch": st.integers(1, 4), "in_order": st.booleans(),
})  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(case=cases)
def test_native(pictures, case):
    check(OfImages(pictures), num_workers=1, **case)


@settings(max_examples=100, deadline=None)
@given(case=cases)
def test_in_the_caller(case):
    check(OfNumbers(), num_workers=0, **case)


@settings(max_examples=25, deadline=None)
@given(case=cases)
def test_in_processes(case):
    check(OfNumbers(), num_workers=1, **case)


class FaultyMany(Faulty, Many):
    """Gets whole batches, and fails as a whole."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Faulty, FaultyMany])
def test_without_batches_and_with_getitems(kind, workers):
    bad = set(range(0, 12, 2))
    check(OfNumbers(kind), 12, bad, 2, "own", 2, num_workers=workers)
    sampler = DistributedSampler(range(12), 2, 0, shuffle=False)  # all of which are bad
    loader = DataLoader(kind(12, bad), None, sampler=sampler, num_workers=workers, on_bad_sample="skip")
    assert len(lists(loader)) == 6
    loader = DataLoader(kind(12, bad), None, num_workers=workers, on_bad_sample="skip")
    assert lists(loader) == [*range(1, 12, 2)]


def process_group(size):
    """As if torch.distributed had been initialised."""
    return mock.patch.multiple("torch.distributed", is_initialized=lambda: True, get_world_size=lambda: size,
                               get_rank=lambda: 0)  # fmt: skip


@pytest.mark.parametrize("workers", [0, 2])
def test_a_process_group_counts_as_ranks(workers):
    loader = DataLoader(Faulty(12, range(4, 8)), 4, num_workers=workers, on_bad_sample="skip")
    assert len(lists(loader)) == 2
    with process_group(2):
        assert [len(batch) for batch in lists(loader)] == [4, 1, 4]
    with process_group(1):
        assert len(lists(loader)) == 2


@pytest.mark.parametrize("where", ["native", "caller", "processes"])
def test_in_order_stand_ins_are_in_their_place_and_the_same_in_every_run(pictures, where):
    source = OfImages(pictures) if where == "native" else OfNumbers()
    bad = {*range(4, 8), *range(16, 20)}

    def batches():
        with mock.patch("drapps.torch.dataloader.has_ranks", lambda loader: True), \
             mock.patch("drapps.torch.native_iter.has_ranks", lambda loader: True):  # fmt: skip
            torch.manual_seed(3)
            return source.read(DataLoader(source.dataset(N, bad), 4, on_bad_sample="skip",
                                          num_workers=0 if where == "caller" else 2))  # fmt: skip

    found = batches()
    assert [batch for batch in found if len(batch) == 4] == [[0, 1, 2, 3], [8, 9, 10, 11], [12, 13, 14, 15],
                                                             [20, 21, 22, 23]]  # fmt: skip
    assert [len(batch) for batch in found] == [4, 1, 4, 4, 1, 4]
    assert found == batches()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("where", ["native", "caller", "processes"])
def test_states_keep_the_number_of_batches(pictures, where, in_order):
    source = OfImages(pictures) if where == "native" else OfNumbers()
    bad = {*range(0, N, 3), 4}  # with three ranks in turn, all of one

    def loader(rank):
        return DataLoader(source.dataset(N, bad), 2, rank=rank, world_size=3, on_bad_sample="skip", in_order=in_order,
                          num_workers=0 if where == "caller" else 2)  # fmt: skip

    for n in range(5):
        came = Counter()
        for rank in range(3):
            saved, again = loader(rank), loader(rank)
            iterator = iter(saved)
            begun = source.read(next(iterator) for _ in range(n))
            again.load_state_dict(saved.state_dict())
            rest = source.read(again) if n < 4 else []
            assert len(begun) == n and len(begun) + len(rest) == N // 6
            came.update(sum(begun + rest, []))
            saved.close(), again.close()
        assert came.keys() == {*range(N)} - bad and came.total() <= N - len(bad) + N // 6


@pytest.mark.parametrize("max_bad, text", [(None, "."), (3, "3")])
@pytest.mark.parametrize("where", ["native", "caller", "processes"])
def test_a_set_that_is_all_bad_is_an_error(pictures, where, max_bad, text):
    source = OfImages(pictures) if where == "native" else OfNumbers()
    loader = ranked(source.dataset(N, set(range(N))), 0, 2, "own", 4, on_bad_sample="skip", max_bad=max_bad,
                    num_workers=0 if where == "caller" else 1, timeout=0 if where == "caller" else 60)  # fmt: skip
    with pytest.raises(drapps.BadSampleError, match=text):
        source.read(loader)
    loader.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_after_too_many_bad_samples_a_pass_does_not_go_on(workers):
    iterator = iter(DataLoader(Faulty(12, range(4)), 4, num_workers=workers, on_bad_sample="replace", max_bad=2))
    with pytest.raises(drapps.BadSampleError):
        next(iterator)
    with pytest.raises(drapps.StateError, match="more than max_bad = 2"):
        next(iterator)


@pytest.mark.parametrize("dataset", [TensorDataset(torch.arange(9)), Numbers(9)], ids=["native", "python"])
@pytest.mark.parametrize("workers", [0, 1])
def test_too_many_indices_that_are_not_there_are_an_error_when_it_is_due(dataset, workers):
    batches = [[0, 1], [2, 99], [3, 4], [98, 5], [6, 7]]
    loader = DataLoader(dataset, batch_sampler=batches, num_workers=workers, on_bad_sample="skip", max_bad=1)
    iterator, found = iter(loader), []
    with pytest.raises(drapps.BadSampleError, match="more than max_bad = 1"):
        while True:
            batch = next(iterator)
            found.append((batch[0] if isinstance(batch, list) else batch).tolist())
    assert found == [[0, 1], [2], [3, 4]]
    with pytest.raises(drapps.StateError, match="more than max_bad = 1"):
        next(iterator)


# --- Pipeline.loader ---


def chain(folder, bad, functions):
    paths = [str(folder / "broken.png") if i in bad else str(folder / "a" / f"{i:03}.png") for i in range(N)]
    pipe = drapps.read(paths).decode().resize((4, 4))
    return pipe.map(lambda sample: sample) if functions else pipe


@pytest.mark.parametrize("last", ["drop", "partial"])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("functions, workers", [(False, 0), (False, 2), (True, 0), (True, 2)])
def test_pipelines(pictures, functions, workers, in_order, last):
    for bad in ({*range(0, N, 3)}, {*range(6, 12)}, set()):
        came, stand_ins = Counter(), 0
        for rank in range(3):
            with chain(pictures, bad, functions).loader(2, rank=rank, world_size=3, workers=workers, in_order=in_order,
                                                        last=last, on_bad_sample="skip", output="numpy",
                                                        outputs=["image"]) as loader:  # fmt: skip
                batches = list(loader.batches())
            assert len(batches) == N // 6
            for batch in batches:
                ids = batch["image"][:, 0, 0, 0].tolist()
                assert ids == batch.ids and len(ids) >= 1
                stand_ins += batch.positions != ids
                came.update(ids)
        assert came.keys() == {*range(N)} - bad and came.total() == N - len(bad) + stand_ins


@pytest.mark.parametrize("functions", [False, True])
def test_one_rank_asks_for_it(pictures, functions):
    pipe = chain(pictures, {2, 3}, functions)
    for equal, n in ((False, N // 2 - 1), (True, N // 2)):
        with pipe.loader(2, on_bad_sample="skip", workers=1, equal_batches=equal, output="numpy",
                         outputs=["image"]) as loader:  # fmt: skip
            assert len(list(loader)) == n
