"""Recorded passes of DataLoader: what came out of order comes again, bit for bit, by however many it is made."""

import importlib
import io
import json
import random
import time

import numpy
import pytest
import torch
from loadersets import Numbers, Ranges, Stream, drained, lists
from op_runner import import_torchvision
from PIL import Image
from torch.utils import data

import drapps
from drapps import DataLoader

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

pytestmark = pytest.mark.usefixtures("leaves_nothing")


class Rolled(Numbers):
    """A number and what the three global generators give; the first samples are slow, some cannot be made."""

    def __init__(self, n=26, slow=(0, 1), bad=()):
        super().__init__(n)
        self.slow, self.bad = slow, bad

    def __getitem__(self, i):
        if i in self.slow:
            time.sleep(0.1)
        if i in self.bad:
            raise ValueError(f"no sample {i}")
        return torch.tensor([i, random.random(), numpy.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class Many(Rolled):
    """Asked for whole batches."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


def loader_of(dataset=None, batch_size=4, workers=2, in_order=False, **options):
    dataset = Rolled() if dataset is None else dataset
    return DataLoader(dataset, batch_size, num_workers=workers, in_order=in_order, **options)


def recorded(dataset=None, **options):
    """The batches of a pass, and its order as it comes from a file."""
    loader = loader_of(dataset, record=True, **options)
    found = lists(loader)
    return found, saved(loader.order())


def saved(order):
    file = io.BytesIO()
    torch.save(order, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def repeated(order, dataset=None, **options):
    loader = loader_of(dataset, **options)
    loader.replay(order)
    return lists(loader)


def is_mixed(order):
    return any(not isinstance(batch["places"], int) for batch in order["batches"])


# --- worker processes, and the caller ---


def stirred(samples):
    """A collate_fn that draws, as mixup does."""
    return torch.stack(samples) + torch.rand(()).item() + random.random() + numpy.random.rand()


@pytest.mark.parametrize(("bad", "policy"), [((), "skip"), ((0, 7), "skip"), (range(2, 26, 3), "replace")])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_collate_fn_draws_comes_again(workers, bad, policy):
    options = {"collate_fn": stirred, "on_bad_sample": policy}
    found, order = recorded(Rolled(bad=bad), **options)
    assert repeated(order, Rolled(bad=bad), workers=workers, **options) == found


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_came_out_of_order_comes_again(workers, in_order):
    found, order = recorded()
    assert is_mixed(order) and sorted(row[0] for batch in found for row in batch) == list(range(26))
    assert repeated(order, workers=workers, in_order=in_order) == found


SETTINGS = {
    "shuffled": {"shuffle": True},
    "seed": {"shuffle": True, "seed": 7},
    "generator": {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
    "replacement": {"sampler": data.RandomSampler(range(26), replacement=True, num_samples=40)},
    "own batches": {"batch_sampler": [[0, 3, 4], [5], [1, 2, 25, 7], [8, 9]], "batch_size": 1},
    "one by one": {"batch_size": None},
    "asked at once": {"dataset": Many()},
    "collated": {"collate_fn": torch.stack},
    "in order": {"in_order": True, "shuffle": True},
    "drop_last": {"drop_last": True},
    "skip": {"on_bad_sample": "skip"},
    "replace": {"on_bad_sample": "replace"},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_whatever_the_batches_were_drawn_from(settings, workers):
    found, order = recorded(**settings)
    assert repeated(order, **{**settings, "workers": workers}) == found


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_are_slices(workers):
    loader = DataLoader(Ranges(6), batch_sampler=[slice(0, 2), slice(2, 6)], num_workers=workers, record=True)
    found = lists(loader)
    loader.replay(loader.order())
    assert lists(loader) == found == [[0, 1], [2, 3, 4, 5]]


def test_no_seed_is_needed_again():
    found, order = recorded(shuffle=True, seed=7)
    assert repeated(order) == found


def test_an_order_of_plain_numbers_is_json():
    found, order = recorded(shuffle=True, seed=7)
    assert repeated(json.loads(json.dumps(order))) == found


def test_what_the_caller_has_made_comes_again_in_workers():
    before = random.getstate()
    found, order = recorded(workers=0)
    assert random.getstate() == before  # as in workers, the program's generators have no part in it
    assert repeated(order, workers=0) == repeated(order, workers=2) == found


def test_repeating_draws_nothing():
    _, order = recorded(shuffle=True)
    loader = loader_of(shuffle=True, generator=torch.Generator().manual_seed(5))
    states = loader.generator.get_state(), torch.get_rng_state()
    loader.replay(order)
    lists(loader)
    assert torch.equal(loader.generator.get_state(), states[0]) and torch.equal(torch.get_rng_state(), states[1])


def test_the_next_pass_is_the_one_that_followed():
    first = loader_of(shuffle=True, seed=7, record=True)
    _, order, followed = lists(first), first.order(), lists(first)
    again = loader_of(shuffle=True, seed=7)
    again.replay(order)
    lists(again)
    assert sorted(sum(lists(again), [])) == sorted(sum(followed, []))


def test_a_pass_that_was_left_ends_there():
    loader = loader_of(record=True)
    found = []
    for batch in loader:
        found.append(batch.tolist())
        if len(found) == 3:
            break
    assert repeated(saved(loader.order())) == found


def test_a_pass_that_was_gone_on_with_has_what_came_then():
    before, after = loader_of(shuffle=True), loader_of(shuffle=True, record=True)
    iterator = iter(before)
    first = [next(iterator).tolist() for _ in range(2)]
    after.load_state_dict(before.state_dict())
    rest = lists(after)
    assert sorted(row[0] for batch in first + rest for row in batch) == list(range(26))
    assert repeated(saved(after.order()), shuffle=True) == rest


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_repeating_goes_on_from_a_state(workers, n):
    found, order = recorded()
    loader = loader_of(workers=workers)
    loader.replay(order)
    iterator = iter(loader)
    begun = [next(iterator).tolist() for _ in range(n)]
    again = loader_of(workers=2 - workers)
    again.load_state_dict(saved(loader.state_dict()))
    assert begun == found[:n] and lists(again) == found[n:]


def test_a_repeated_pass_can_be_recorded():
    found, order = recorded()
    loader = loader_of(record=True)
    loader.replay(order)
    lists(loader)
    assert loader.order()["batches"] == order["batches"] and repeated(loader.order()) == found


def test_persistent_workers():
    loader = loader_of(record=True, persistent_workers=True)
    lists(loader)
    second, order = lists(loader), loader.order()
    for _ in range(2):
        loader.replay(order)
        assert lists(loader) == second
    assert sorted(row[0] for batch in loader for row in batch) == list(range(26))
    loader.close()


def test_the_pass_of_a_rank_is_repeated_by_any_process():
    found, order = recorded(rank=1, world_size=2)
    assert repeated(order, workers=0) == repeated(order, rank=0, world_size=2) == found


class Mapped(Rolled):
    """Samples that cannot be sent, from some number on."""

    def __getitem__(self, i):
        return super().__getitem__(i) if i < 12 else {"row": super().__getitem__(i), "call": lambda: i}


def rows(samples):
    return [(s["row"] if isinstance(s, dict) else s).tolist() for s in samples]


def test_a_pass_that_went_to_the_caller_is_recorded_on():
    loader = DataLoader(Mapped(24, ()), 4, collate_fn=list, record=True, in_order=False)
    with pytest.warns(RuntimeWarning, match="made in this process"):
        found = list(map(rows, loader))
    assert loader.num_workers == 0 and sorted(row[0] for batch in found for row in batch) == list(range(24))
    again = DataLoader(Mapped(24, ()), 4, collate_fn=list, num_workers=0)
    again.replay(loader.order())
    assert list(map(rows, again)) == found


# --- bad samples ---


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_what_was_bad_stays_so_also_where_it_could_be_made_now(policy, workers):
    found, order = recorded(Rolled(bad=(5, 11, 12)), on_bad_sample=policy)
    assert is_mixed(order) and sum(map(len, found)) == (26 if policy == "replace" else 23)
    assert repeated(order, workers=workers, on_bad_sample=policy) == found


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_of_the_caller(policy, workers):
    bad = Rolled(bad=(5, 11, 12))
    found, order = recorded(bad, workers=0, on_bad_sample=policy)
    assert repeated(order, bad, workers=workers, on_bad_sample=policy) == found


def test_a_sample_that_is_bad_since_then_is_replaced_in_its_turn():
    found, order = recorded()
    again = repeated(order, Rolled(bad=(20,)), on_bad_sample="replace")
    at = [(i, k) for i, batch in enumerate(found) for k, row in enumerate(batch) if row[0] == 20]
    for i, k in at:
        assert again[i][k][0] != 20
        again[i][k] = found[i][k]
    assert len(at) == 1 and again == found


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_was_lost_is_lost_again(workers):
    bad = Rolled(bad=(9,))
    loader = loader_of(bad, record=True)
    found = drained(iter(loader))
    assert "ValueError" in found
    again = loader_of(bad, workers=workers)
    again.replay(loader.order())
    assert drained(iter(again)) == found


# --- natively ---


def images(folder, *more):
    steps = [v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToImage(), *more]
    return torchvision.datasets.ImageFolder(folder, v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True)]))


def pixels(loader):
    return [[image.tolist() for image in batch[0]] for batch in loader]


def native(folder, workers=2, in_order=False, **options):
    loader = DataLoader(images(folder), 4, num_workers=workers, in_order=in_order, **options)
    assert loader._is_native()
    return loader


@pytest.mark.parametrize("workers", [1, 3])
def test_natively(folder, workers):
    loader = native(folder, shuffle=True, record=True)
    found, order = pixels(loader), saved(loader.order())
    assert order["native"]
    for in_order in (True, False):
        again = native(folder, workers, in_order)
        again.replay(order)
        assert pixels(again) == found


def mixed_up(order, size):
    """The same samples in batches of another composition, as another machine would have delivered them."""
    samples = [
        (place, index, time)
        for batch in order["batches"]
        for place, index, time in zip(
            [(batch["places"], slot) for slot in range(len(batch["indices"]))],
            batch["indices"],
            batch.get("times", [0] * len(batch["indices"])),
            strict=True,
        )
    ]
    turn = list(range(len(samples)))
    random.Random(4).shuffle(turn)
    batches = []
    for start in range(0, len(turn), size):
        places, indices, times = zip(*(samples[i] for i in turn[start : start + size]), strict=True)
        batches.append({"indices": list(indices), "places": list(places), "times": list(times)})
    return turn, {**order, "batches": batches}


def test_natively_each_time_of_a_sample_draws_what_it_drew(folder):
    """Whatever was mixed how: the record says it, and samples that come twice are not taken for each other."""
    sampler = [0, 1, 2, 3, 4, 5] * 4
    loader = native(folder, in_order=True, sampler=sampler, record=True)
    found = sum(pixels(loader), [])
    assert found[0] != found[6] != found[12]
    turn, order = mixed_up(loader.order(), 4)
    again = native(folder, sampler=sampler)
    again.replay(order)
    assert sum(pixels(again), []) == [found[i] for i in turn]


@pytest.mark.parametrize("record", [False, True])
def test_natively_samples_that_come_twice_go_on_out_of_order(folder, record):
    """What was delivered ahead counts for those of the same sample that were not."""
    sampler = [0, 1, 2, 3, 4, 5] * 4
    whole = native(folder, in_order=True, sampler=sampler, seed=5)
    rows = sum(pixels(whole), [])
    begun = native(folder, sampler=sampler, seed=5)
    next(iter(begun))
    state = {**begun.state_dict(), "_num_yielded": 1, "ahead": 0, "done": {2: [0, 1], 3: None}}
    again = native(folder, sampler=sampler, seed=5, record=record)
    again.load_state_dict(state)
    found = sum(pixels(again), [])
    assert sorted(found) == sorted([*rows[4:8], *rows[10:12], *rows[16:]])
    if record:
        again.replay(again.order())
        assert sum(pixels(again), []) == found


def test_natively_left_and_gone_on_with(folder):
    loader = native(folder, shuffle=True, record=True)
    iterator = iter(loader)
    begun = pixels(next(iterator) for _ in range(2))
    state, order = loader.state_dict(), loader.order()
    del iterator
    again = native(folder, 1, shuffle=True, record=True)
    again.load_state_dict(state)
    rest, after = pixels(again), again.order()
    for record, found in ((order, begun), (after, rest)):
        again.replay(record)
        assert pixels(again) == found


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("policy", ["skip", "replace", "raise"])
def test_natively_bad_samples(tmp_path, policy, in_order):
    (tmp_path / "a").mkdir()
    for i in range(24):
        path = tmp_path / "a" / f"{i:03}.png"
        Image.fromarray(numpy.random.default_rng(i).integers(0, 256, (30, 40, 3), numpy.uint8)).save(path)
    for i in (3, 9, 10):
        (tmp_path / "a" / f"{i:03}.png").write_bytes(b"\x89PNG broken")

    def found(loader):
        batches, iterator = [], iter(loader)
        while True:
            try:
                batches += pixels([next(iterator)])
            except StopIteration:
                return batches
            except drapps.FormatError:
                batches.append("lost")

    loader = native(tmp_path, in_order=in_order, on_bad_sample=policy, record=True)
    first, order = found(loader), saved(loader.order())
    assert "lost" in first or policy != "raise"
    if policy == "skip":  # what is sound now was left out
        assert sum(map(len, first)) == 21
        for i in (3, 9, 10):
            Image.new("RGB", (30, 40)).save(tmp_path / "a" / f"{i:03}.png")
        order["made_with"].pop("data", None)  # by which the files are known to have changed
    again = native(tmp_path, 1, on_bad_sample=policy)
    again.replay(order)
    assert found(again) == first


def test_natively_what_stands_for_a_missing_index_hangs_on_its_place():
    dataset, batches = data.TensorDataset(torch.arange(50)), [[0, 77, 2, 3], [4, 5, 6, 78], [79, 9]]

    def loader():
        return DataLoader(dataset, batch_sampler=batches, num_workers=1, on_bad_sample="replace", record=True)

    recording = loader()
    rows = {(n, slot): value for n, (batch,) in enumerate(recording) for slot, value in enumerate(batch.tolist())}
    order, mixed = recording.order(), [[(2, 0), (0, 0), (1, 3)], [(0, 1), (2, 1)]]
    order["batches"] = [{"indices": [batches[n][slot] for n, slot in places], "places": places} for places in mixed]
    again = loader()
    again.replay(order)
    assert [batch.tolist() for (batch,) in again] == [[rows[place] for place in places] for places in mixed]


def negative(image):
    return -image


def test_a_native_beginning_before_python(folder):
    loader = DataLoader(images(folder, negative), 4, num_workers=2, in_order=False, shuffle=True, record=True)
    found, order = pixels(loader), loader.order()
    assert "native in worker processes" in loader.explain()
    for workers in (0, 1):
        again = DataLoader(images(folder, negative), 4, num_workers=workers)
        again.replay(order)
        assert pixels(again) == found


@pytest.mark.parametrize("in_order", [True, False])
def test_what_was_made_natively_is_repeated_without_workers(folder, in_order):
    loader = native(folder, in_order=in_order, shuffle=True, record=True)
    found = pixels(loader)
    again = DataLoader(images(folder), 4, num_workers=0)
    again.replay(saved(loader.order()))
    assert pixels(again) == found and again.stats()["workers"] == 0
    assert len(pixels(again)) == len(found)  # the next pass, by Python code


def test_a_native_repeat_is_gone_on_with_without_workers(folder):
    loader = native(folder, record=True)
    found = pixels(loader)
    loader.replay(loader.order())
    next(iter(loader))
    again = DataLoader(images(folder), 4, num_workers=0)
    again.load_state_dict(loader.state_dict())
    assert pixels(again) == found[1:]


def test_a_state_of_a_native_pass_is_gone_on_with_without_workers(folder):
    loader = native(folder, in_order=True, shuffle=True, seed=3)
    found = pixels(loader)
    loader = native(folder, in_order=True, shuffle=True, seed=3)
    next(iter(loader))
    again = DataLoader(images(folder), 4, num_workers=0, shuffle=True, seed=3)
    again.load_state_dict(loader.state_dict())
    assert pixels(again) == found[1:]


def test_what_was_made_natively_is_not_made_in_python(folder):
    loader = native(folder, record=True)
    pixels(loader)
    order, other = loader.order(), DataLoader(images(folder, negative), 4, num_workers=0)
    order["made_with"].pop("transforms")
    with pytest.raises(ValueError, match="made natively, this loader would make it in Python"):
        other.replay(order)


# --- mistakes ---


@pytest.mark.parametrize("other, said", [
    ({"dataset": Rolled(27)}, "length 26, the loader has 27"),
    ({"dataset": Many()}, "dataset"),
    ({"batch_size": 5}, "batch_size 4, the loader has 5"),
], ids=["length", "type", "batch_size"])  # fmt: skip
def test_another_loader_is_an_error(other, said):
    _, order = recorded(workers=0)
    with pytest.raises(ValueError, match=said):
        loader_of(**{"workers": 0, **other}).replay(order)


@pytest.mark.parametrize("order", [{}, [], None, "order.json", {"batches": []}], ids=str)
def test_something_else_is_an_error(order):
    with pytest.raises(ValueError, match="not a recorded pass"):
        loader_of(workers=0).replay(order)


def test_nothing_is_recorded_unless_asked():
    loader = loader_of(workers=0, record=True)
    with pytest.raises(drapps.StateError, match="record=True"):
        loader.order()
    loader = loader_of(workers=0)
    lists(loader)
    with pytest.raises(drapps.StateError, match="record=True"):
        loader.order()


def test_streams_are_not_recorded():
    with pytest.raises(ValueError, match="map-style"):
        DataLoader(Stream(8), 4, record=True)
