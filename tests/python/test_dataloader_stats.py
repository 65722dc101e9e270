"""DataLoader.stats() and explain(): who died, what was slow, what the cache has found and keeps."""

import gc
import importlib
import os
import pickle
import signal
import time

import pytest
import torch
from loadersets import Numbers, Slow, lists, workers_of
from op_runner import import_torchvision

import drapps
from drapps import DataLoader, cached
from drapps.torch.workers import OPTIONS
from drapps.passes.counters import Counters

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

LIMIT = 64_000_000


def images(folder, *more):
    steps = [v2.Resize((24, 24)), *more, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    return torchvision.datasets.ImageFolder(folder, transform=v2.Compose(steps))


# --- those that come and go ---


class Maker:
    """Something that makes samples."""

    at_end = None

    def __init__(self, **stats):
        self.facts = stats

    def stats(self):
        return self.facts


def test_what_has_ended_stays_counted():
    tally, one, other = Counters(), Maker(deaths=2, slow_samples=5, batches=9), Maker(slow_samples=1, cache_hits=7)
    tally.watch(one)
    tally.watch(other)
    assert tally.stats() == {"deaths": 2, "slow_samples": 6, "cache_hits": 7}
    one.at_end(one, {"deaths": 3, "slow_samples": 5})
    del one
    gc.collect()
    assert tally.stats() == {"deaths": 3, "slow_samples": 6, "cache_hits": 7}
    assert pickle.loads(pickle.dumps(tally)).stats() == {"deaths": 3, "slow_samples": 6, "cache_hits": 7}


def test_who_works_does_not_keep_the_tally():
    tally, maker = Counters(), Maker()
    tally.watch(maker)
    del tally
    maker.at_end(maker, {"deaths": 1})


def killed_one(loader):
    iterator = iter(loader)
    next(iterator)
    os.kill(workers_of(iterator)[0], signal.SIGKILL)
    return iterator


@pytest.mark.usefixtures("leaves_nothing")
@pytest.mark.filterwarnings("ignore:worker .* was killed")
def test_deaths_of_all_passes():
    loader = DataLoader(Slow(40, range(40), 0.01), 4, num_workers=2)
    assert loader.stats()["deaths"] == 0
    for n in (1, 2):
        lists(killed_one(loader))
        assert loader.stats()["deaths"] == n


class Uneven(Numbers):
    """Each tenth sample sleeps."""

    def __getitem__(self, i):
        time.sleep(0.02 if i % 10 == 0 else 0)
        return torch.tensor(i)


@pytest.mark.usefixtures("leaves_nothing")
def test_slow_samples_of_worker_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with DataLoader(Uneven(60), 4, num_workers=2, persistent_workers=True) as loader:
        for _ in range(2):
            lists(loader)
        slow = loader.stats()["slow_samples"]
        assert slow == loader._iterator._pool.stats()["slow_samples"] > 0
    assert loader.stats()["slow_samples"] == slow


def test_counters_of_the_engine_stay_when_it_is_closed(folder):
    loader = DataLoader(images(folder), 4, num_workers=1)
    lists(loader)
    before = loader.stats()
    assert before["slow_samples"] == loader._engines._native.stats()["slow_samples"]
    loader.close()
    assert loader.stats()["slow_samples"] == before["slow_samples"] and loader.stats()["samples"] == 23


# --- the cache ---


def of_cache(stats):
    return {key: value for key, value in stats.items() if key.startswith("cache_")}


def test_a_native_cache_is_counted_and_explained(folder, tmp_path):
    want = [[field.tolist() for field in batch] for batch in DataLoader(images(folder), 4, num_workers=1)]
    loader = DataLoader(images(folder), 4, num_workers=1, cache=tmp_path / "kept", cache_limit=LIMIT)
    assert f"cache: keeps in {tmp_path / 'kept'} the results of the ops before the first random one" in loader.explain()
    for _ in range(2):
        assert [[field.tolist() for field in batch] for batch in loader] == want
    stats = loader.stats()
    assert (stats["cache_misses"], stats["cache_hits"], stats["cache_written"]) == (23, 23, 23)
    assert stats["cache_limit_bytes"] == LIMIT and stats["cache_records"] == 23 and stats["cache_why"] == "asked for"
    assert "cache: keeps decode, " in loader.explain() and str(tmp_path / "kept") in loader.explain()
    loader.close()
    closed = loader.stats()
    assert {key: closed[key] for key in stats if key.startswith("cache_h")} == {"cache_hits": 23}
    lists(loader)
    assert (loader.stats()["cache_hits"], loader.stats()["cache_misses"]) == (46, 23)  # of both native loaders
    loader.close()


def test_a_native_pass_that_keeps_nothing_says_why(folder, tmp_path):
    steps = v2.Compose([v2.RandomResizedCrop(16), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    loader = DataLoader(torchvision.datasets.ImageFolder(folder, steps), 4, num_workers=1, cache="auto")
    lists(loader)
    (line,) = [line for line in loader.explain().splitlines() if line.startswith("cache: ")]
    assert line.startswith("cache: keeps ")
    loader.close()


def test_without_a_cache_nothing_is_said_of_one(folder):
    loader = DataLoader(images(folder), 4, num_workers=1)
    lists(loader)
    assert not any(of_cache(loader.stats()).values()) and "cache" not in loader.explain()
    loader.close()


def test_a_native_beginning_is_not_kept_and_that_is_said(folder, tmp_path):
    def negative(image):
        return image

    loader = DataLoader(images(folder, negative), 4, num_workers=1, cache=tmp_path / "kept", cache_limit=LIMIT)
    text = loader.explain()
    assert "in 1 worker process" in text and "ImageFolder has none" in text
    assert "results of the native ops before Python code are not kept" in text
    lists(loader)
    assert not any((tmp_path / "kept").rglob("*.drst"))
    assert set(of_cache(loader.stats()).values()) == {None}


class Prepared(Numbers):
    """The slow part is marked."""

    @drapps.deterministic(key=lambda self, i: i)
    def prepare(self, i):
        return i * 10

    def __getitem__(self, i):
        return torch.tensor(self.prepare(i))


@pytest.mark.parametrize("workers", [0, 1])
def test_marked_functions_are_named(tmp_path, workers):
    loader = DataLoader(Prepared(12), 3, num_workers=workers, cache=tmp_path)
    assert f"cache: keeps in {tmp_path} the results of functions" in loader.explain()
    assert "Prepared has prepare" in loader.explain()
    assert "Numbers has none" in DataLoader(Numbers(3), num_workers=workers, cache="auto").explain()


def test_in_the_caller_hits_are_known(tmp_path):
    loader = DataLoader(Prepared(12), 3, num_workers=0, cache=tmp_path)
    for _ in range(2):
        assert torch.cat(list(loader)).tolist() == [i * 10 for i in range(12)]
    stats = loader.stats()
    known = {key: value for key, value in of_cache(stats).items() if value is not None}
    assert known == {"cache_misses": 12, "cache_hits": 12}


class Limit(Numbers):
    """What the cache may take."""

    def __getitem__(self, i):
        return getattr(cached._here, "cache", cached._active).limit


@pytest.mark.parametrize("workers", [0, 1])
def test_the_limit_holds_for_functions_too(tmp_path, workers):
    assert list(DataLoader(Limit(2), None, num_workers=workers, cache=tmp_path, cache_limit=LIMIT)) == [LIMIT] * 2


def test_a_limit_is_handed_on():
    assert "cache_limit" in OPTIONS  # a trainer that builds the loader anew hands it on


@pytest.mark.parametrize("marked", [True, False])
def test_a_chain_says_what_it_keeps(tmp_path, marked):
    def darker(image):
        return image // 2

    pipe = drapps.from_arrays(image=torch.zeros(4, 8, 8, 3, dtype=torch.uint8).numpy())
    with pipe.map(darker, field="image", deterministic=marked).loader(workers=0, cache=tmp_path) as loader:
        (line,) = [line for line in loader.explain().splitlines() if line.startswith("cache: ")]
    assert str(tmp_path) in line and ("darker" in line) == marked and "ops up to" not in line  # there are none before
    assert "cache" not in pipe.map(darker, field="image").loader(workers=0).explain()
