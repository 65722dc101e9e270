"""A bad sample is replaced by the same one natively, in worker processes, in the caller and in a
chain with functions."""

import importlib

import numpy
import pytest
import torch
from op_runner import import_torchvision
from PIL import Image
from torch.utils.data import RandomSampler, Subset, default_collate

import drapps
from drapps import DataLoader, _core
from drapps.passes.bad_samples import Occurrences, Replacements
from drapps.passes.order import Work

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

N, BAD = 40, (3, 4, 11, 17, 18, 19, 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """N pictures, of which picture i has the value i; those of BAD cannot be read."""
    found = tmp_path_factory.mktemp("pictures")
    (found / "a").mkdir()
    for i in range(N):
        path = found / "a" / f"{i:03}.png"
        Image.fromarray(numpy.full((6, 6, 3), i, numpy.uint8)).save(path)
        if i in BAD:
            path.write_bytes(path.read_bytes()[:40])
    return found


def in_python(samples):
    return default_collate(samples)


def values(loader):
    return [images[:, 0, 0, 0].tolist() for images, *_ in loader]


def images_of(folder):
    return torchvision.datasets.ImageFolder(folder, v2.Compose([v2.Resize((4, 4)), v2.PILToTensor()]))


WAYS = {
    "native": {},
    "workers": {"collate_fn": in_python, "num_workers": 2},
    "caller": {"collate_fn": in_python, "num_workers": 0},
}
SETS = {"whole": lambda d: d, "part": lambda d: Subset(d, range(1, N, 2)),
        "turned": lambda d: Subset(d, range(N - 1, -1, -1)),
        "nested": lambda d: Subset(Subset(d, range(30)), range(5, 25))}  # fmt: skip


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_one_rule_in_every_way(folder, kind, policy):
    found = {}
    for way, options in WAYS.items():
        dataset = SETS[kind](images_of(folder))
        loader = DataLoader(dataset, 4, shuffle=True, seed=5, on_bad_sample=policy, **options)
        assert (", natively" in loader.explain()) == (way == "native")
        found[way] = values(loader)
    assert found["native"] == found["workers"] == found["caller"]
    assert not {value for batch in found["native"] for value in batch} & set(BAD)


@pytest.mark.parametrize("state_after", [None, 3])
def test_samples_that_come_several_times(folder, state_after):
    found = {}
    for way, options in WAYS.items():
        dataset = images_of(folder)

        def make(dataset=dataset, options=options):
            generator = torch.Generator().manual_seed(3)
            sampler = RandomSampler(dataset, replacement=True, num_samples=60, generator=generator)
            return DataLoader(dataset, 4, sampler=sampler, generator=generator, on_bad_sample="replace", **options)

        loader, begun = make(), []
        if state_after is not None:
            iterator = iter(loader)
            begun = [next(iterator)[0][:, 0, 0, 0].tolist() for _ in range(state_after)]
            state = loader.state_dict()
            loader.close()
            loader = make()
            loader.load_state_dict(state)
        found[way] = begun + values(loader)
    assert found["native"] == found["workers"] == found["caller"]


def test_missing_indices(folder):
    found = {}
    for way, options in WAYS.items():
        good = Subset(images_of(folder), [i for i in range(N) if i not in BAD])
        batches = [[0, 99, 1], [-1, 2, -99], [5, 1000, 6]]
        loader = DataLoader(good, batch_sampler=batches, generator=torch.Generator().manual_seed(14),
                            on_bad_sample="replace", **options)  # fmt: skip
        found[way] = values(loader)
    assert found["native"] == found["workers"] == found["caller"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("equal", [False, True])
def test_chains_replace_as_native_loaders(folder, workers, equal):
    pipe = drapps.read(folder).decode().random_resized_crop(4)
    options = dict(batch_size=2 if equal else 4, shuffle=True, seed=9, on_bad_sample="skip" if equal else "replace",
                   equal_batches=equal)  # fmt: skip
    native, chain = pipe.loader(**options), pipe.map(lambda sample: sample).loader(workers=workers, **options)
    for _ in range(2):  # epochs
        for one, other in zip(native.batches(), chain.batches(), strict=True):
            assert list(one.ids) == list(other.ids) and torch.equal(one["image"], other["image"])


def test_the_key_of_a_torch_pass():
    chosen = Replacements(77, 10, native_id=lambda index: index + 100)
    wanted = [_core.replacement(0, 77, 103, 2, attempt, 10) for attempt in range(16)]
    assert list(chosen.of(3, (0, 0), [], occurrence=2)) == list(chosen.of(-7, (5, 1), [], occurrence=2)) == wanted
    named = list(chosen.of("x", (2, 1), ["x", "y", "z"]))
    assert named == ["xyz"[_core.replacement(0, 77, (2 << 32) + 1, 0, attempt, 3)] for attempt in range(16)]
    with pytest.raises(ValueError, match="n must be a positive int"):
        _core.replacement(0, 0, 0, 0, 0, 0)


def test_occurrences_count_what_the_data_set_has():
    counted = Occurrences(5, batched=True)
    assert counted.of_work(Work(0, [1, 1, -4, 9, "x"])) == [0, 1, 2, 0, 0]
    assert counted.of_work(Work(1, [9, 1])) == [0, 3]
