"""DataLoader's worker processes: which batch comes when, how much is in flight, what is known of slow samples."""

import multiprocessing
import os
import sys
import time

import numpy
import pytest
import torch
from loadersets import Faulty, Numbers, Slow, lists

import drapps
from drapps import DataLoader, cached
from drapps.torch import pool_iter

pytestmark = pytest.mark.usefixtures("leaves_nothing")


# --- order ---


def test_out_of_order_a_slow_sample_holds_up_nothing():
    loader = DataLoader(Slow(16, [0], 1.0), 4, num_workers=2, in_order=False)
    found = lists(loader)
    assert 0 not in found[0] and sorted(sum(found, [])) == list(range(16))


def test_in_order_nothing_overtakes():
    assert lists(DataLoader(Slow(12, [0], 0.2), 2, num_workers=3)) == [[i, i + 1] for i in range(0, 12, 2)]


def test_out_of_order_one_claim_may_complete_several_batches():
    """Bad samples are reported one by one; each batch that one of them completes is delivered."""
    loader = DataLoader(Faulty(200, range(0, 200, 2)), 4, num_workers=3, in_order=False, on_bad_sample="skip",
                        persistent_workers=True, timeout=20)  # fmt: skip
    for _ in range(20):
        assert sorted(sum(lists(loader), [])) == [*range(1, 200, 2)]
    loader.close()


class Together(Numbers):
    """A sample is there when as many workers as said are at one."""

    def __init__(self, n, workers):
        super().__init__(n)
        self.workers, self.at_work = workers, multiprocessing.get_context("fork").Value("i", 0)

    def __getitem__(self, i):
        with self.at_work.get_lock():
            self.at_work.value += 1
        end = time.monotonic() + 30
        while self.at_work.value < self.workers:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.at_work.value} of {self.workers} workers have a sample")
            time.sleep(0.01)
        return super().__getitem__(i)


def test_out_of_order_every_one_of_many_workers_has_a_sample():
    loader = DataLoader(Together(40, 40), 1, num_workers=40, in_order=False)
    assert sorted(lists(loader)) == [[i] for i in range(40)]


def test_own_batches_stay_whole_out_of_order():
    batches = [[0, 1], [2], [3, 4, 5], [6, 7]]
    found = lists(DataLoader(Slow(8, [0], 0.3), batch_sampler=batches, num_workers=2, in_order=False))
    assert sorted(found) == batches and found[-1] != batches[-1] or found != batches


@pytest.mark.parametrize("n", [1, 2, 3])
def test_out_of_order_states_are_exact(n):
    def loader():
        torch.manual_seed(4)
        return DataLoader(Rolled(24), 4, num_workers=2, in_order=False, shuffle=True)

    whole = {int(row[0]): row.tolist() for batch in loader() for row in batch}
    saved, again = loader(), loader()
    iterator = iter(saved)
    rows = [row.tolist() for _ in range(n) for row in next(iterator)]
    again.load_state_dict(saved.state_dict())
    rows += [row.tolist() for batch in again for row in batch]
    assert len(rows) == 24 and {int(row[0]): row for row in rows} == whole


class Rolled(Slow):
    """A number, and a random one; some are slow."""

    def __init__(self, n):
        super().__init__(n, range(0, n, 5), 0.05)

    def __getitem__(self, i):
        return torch.stack([super().__getitem__(i).double(), torch.rand((), dtype=torch.float64)])


def test_ranks_out_of_order_need_all_states():
    def loaders(world):
        return [DataLoader(Slow(48, [2, 9], 0.2), 2, num_workers=2, in_order=False, rank=rank, world_size=world)
                for rank in range(world)]  # fmt: skip

    before = loaders(2)
    found, states = [], []
    for loader in before:
        iterator = iter(loader)
        found += [sample for _ in range(2) for sample in next(iterator).tolist()]
        states.append(loader.state_dict())
    after = loaders(4)
    with pytest.raises(ValueError, match="list of all 2 states"):
        after[0].load_state_dict(states[0])
    for loader in after:
        loader.load_state_dict(states)
        found += sum(lists(loader), [])
    assert sorted(set(found)) == list(range(48)) and len(found) <= 48 + 4


# --- how much is in flight ---


class Wide(Numbers):
    """Samples of 2 MB."""

    def __getitem__(self, i):
        return numpy.full(2 << 20, i % 256, numpy.uint8)


@pytest.mark.parametrize("dataset, options, ahead", [
    (Numbers(200), {"in_order": False}, 12),  # 12 samples for each worker
    (Numbers(200), {"in_order": False, "batch_size": 1}, 24),
    (Numbers(200), {"in_order": False, "batch_size": 16}, 4),  # torch's number is more
    (Numbers(200), {"in_order": False, "prefetch_factor": 2}, 4),  # the user's number
    (Numbers(200), {"in_order": True}, 4),
    (Wide(60), {"in_order": False}, 12),
    (Wide(60), {"in_order": False, "num_workers": 4}, 16),  # of 24 batches, 16 take 64 MB
    (Wide(60), {"in_order": False, "num_workers": 2, "batch_size": 10}, 4),  # 60 MB, as torch's anyway
])  # fmt: skip
def test_small_samples_out_of_order_are_many(tmp_path, monkeypatch, dataset, options, ahead):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # with no costs of an earlier test
    loader = DataLoader(dataset, **{"batch_size": 2, "num_workers": 2, "policy": "fixed", **options})
    iterator = iter(loader)
    count = len(next(iterator))
    assert iterator._pool.window.batches == ahead and iterator._pool.window.in_flight <= ahead
    assert count + sum(map(len, iterator)) == len(dataset)


@pytest.mark.parametrize("options, in_flight", [
    ({"in_order": False}, [12, 11, 10]),  # three are posted when three are missing
    ({"in_order": False, "prefetch_factor": 2}, [4]),
    ({"in_order": True}, [4]),
], ids=str)  # fmt: skip
def test_batches_beyond_what_was_asked_for_are_posted_together(options, in_flight):
    iterator = iter(DataLoader(Numbers(120), 2, num_workers=2, policy="fixed", **options))
    for i in range(40):
        next(iterator)
        assert iterator._pool.window.in_flight == in_flight[i % len(in_flight)]
    assert sum(map(len, iterator)) == 40


# --- costs and caches ---


class Uneven(Slow):
    """One sample in ten is slow, and says so beforehand."""

    def __init__(self, n):
        super().__init__(n, range(0, n, 10), 0.02)

    def cost_hint(self, i):
        return float(i % 10 == 0)


def test_costs_are_remembered_and_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loader = DataLoader(Uneven(60), 4, num_workers=2)
    assert lists(loader) == lists(loader) == lists(DataLoader(Numbers(60), 4, num_workers=0))
    assert len(list(tmp_path.rglob("*.ledger"))) == 1
    costs = DataLoader(Uneven(60), 4, num_workers=2)._sample_costs().predict(list(range(60)))
    assert min(costs[::10]) >= 20e6 * 0.5  # they slept; a busy machine makes others slow too, but not all of them
    assert sorted(costs)[30] < min(costs[::10])


@pytest.mark.parametrize("n", [10**9, 10**12, sys.maxsize])
@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 1, "in_order": False}], ids=str)
def test_of_very_many_samples_nothing_is_remembered(n, options):
    loader = DataLoader(Numbers(n), 2, sampler=[0, n - 1, 7, n // 2], **options)
    assert sorted(lists(loader)) == [[0, n - 1], [7, n // 2]] and loader._sample_costs() is None


def test_a_hint_tells_in_the_first_pass_already(tmp_path, monkeypatch):
    """Samples that take long are noted as they come, not in hundreds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs = DataLoader(Uneven(100), 4, num_workers=2)._sample_costs()
    assert costs.predict([50, 51]) is None
    for i in range(40):
        costs.note([i], [20e6 if i % 10 == 0 else 1e6])
    slow, fast = costs.predict([50, 51])
    assert slow == pytest.approx(20e6, rel=0.01) and fast == pytest.approx(1e6, rel=0.01)


def test_later_passes_know_from_the_start_what_is_slow(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loader = DataLoader(Uneven(60), 4, num_workers=2, in_order=False)
    thresholds = []
    for _ in range(2):
        iterator = iter(loader)
        thresholds.append(iterator._pool.stats()["threshold_ns"])
        assert sorted(torch.cat(list(iterator)).tolist()) == list(range(60))
    assert thresholds[0] == 0 < thresholds[1] < 20e6


def known(costs_ns, dataset=None, **options):
    """A loader that knows what its samples take, as after an earlier pass."""
    loader = DataLoader(dataset or Numbers(len(costs_ns)), **{"batch_size": 2, "num_workers": 2, "in_order": False,
                                                              "policy": "fixed", **options})  # fmt: skip
    costs = loader._sample_costs()
    costs.note(list(range(len(costs_ns))), costs_ns)
    costs.save()
    return loader


def one_in_ten(longest, unit_ns=1e6):
    """Of 200 samples, one in ten takes 10 units and one of them as many as said; the mean is about 2."""
    return [(longest if i == 10 else 10 if i % 10 == 0 else 1) * unit_ns for i in range(200)]


@pytest.mark.parametrize("dataset, costs, options, ahead", [
    (None, one_in_ten(10), {}, 12),  # 5 times the mean: as where nothing is known
    (None, one_in_ten(20), {}, 21),  # twice as many samples for each worker as are made meanwhile: 10.3
    (None, one_in_ten(500), {}, 32),  # more could not be begun
    (None, one_in_ten(500, unit_ns=1e3), {}, 12),  # what short samples take may be chance
    (None, one_in_ten(500), {"prefetch_factor": 2}, 4),  # the user's number
    (None, one_in_ten(500), {"in_order": True}, 32),
    (None, one_in_ten(10), {"in_order": True}, 11),
    (None, one_in_ten(500, unit_ns=1e3), {"in_order": True}, 4),
    (None, one_in_ten(500), {"batch_size": 1, "batch_sampler": [[i] * 50 for i in range(20)]}, 10),  # of 50
    (Wide(200), one_in_ten(500), {}, 16),  # as many as fit into 64 MB
    (Wide(200), one_in_ten(500), {"in_order": True}, 16),
    (Wide(200), one_in_ten(500), {"batch_size": 8}, 4),
])  # fmt: skip
def test_the_longest_known_sample_is_evened_out(tmp_path, monkeypatch, dataset, costs, options, ahead):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    iterator = iter(known(costs, dataset, **options))
    next(iterator)
    assert iterator._pool.window.batches == ahead


def test_a_pass_begins_with_the_shortest_known_samples(tmp_path, monkeypatch):
    """Of all that even out the longest one, though nobody knows how large a batch is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(pool_iter, "START_S", 60)
    costs = one_in_ten(500, unit_ns=2e6)[:80]
    costs[36] = costs[39] = 1e6
    found = lists(known(costs, num_workers=1))
    assert sorted(found[0]) == [36, 39] and sorted(sum(found, [])) == list(range(80))


def settled(count):
    """What count() gives once it does not grow any more."""
    last, since = count(), time.monotonic()
    while time.monotonic() - since < 0.5:
        time.sleep(0.02)
        if count() != last:
            last, since = count(), time.monotonic()
    return last


def test_what_is_begun_early_takes_no_more_memory(tmp_path, monkeypatch):
    """Large batches: many are posted, and as few are begun as where nothing is known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(pool_iter, "START_S", 60)
    loader = known(one_in_ten(500)[:64], Wide(64), num_workers=4, batch_size=4, persistent_workers=True)
    for _ in range(2):
        iterator = iter(loader)
        assert iterator._pool.window.in_flight == 16
        pool = iterator._pool
        assert 32 <= settled(lambda: pool.stats()["samples"] % 64) <= 32 + 4  # 8 batches of 8 MB, and what was claimed
        assert pool.stats()["peak_bytes"] < 11 * (8 << 20)
        assert sum(map(len, iterator)) == 64 and iterator._pool.window.started == 0
    loader.close()


def test_a_limit_of_one_pass_is_not_that_of_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loader = known(one_in_ten(500)[:64], Wide(64), num_workers=2, batch_size=8, persistent_workers=True)
    iterator = iter(loader)
    assert iterator._pool.window.started == 4
    loader._sample_costs()._telling = False  # as if they had turned out to be alike
    iterator = iter(loader)
    assert iterator._pool.window.started == 0 and sum(map(len, iterator)) == 64
    loader.close()


def test_an_error_says_nothing_of_the_size_of_batches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    costs = one_in_ten(500, unit_ns=2e6)[:80]
    costs[:2] = [1e6, 1e6]
    iterator = iter(known(costs, Faulty(80, [0, 1]), num_workers=1))
    with pytest.raises(ValueError, match="no sample"):
        next(iterator)
    assert iterator._pool.window.largest_bytes == 0


class Prepared(Numbers):
    """The slow part is marked."""

    @drapps.deterministic(key=lambda self, i: i)
    def prepare(self, i):
        return {"value": i, "pid": os.getpid()}

    def __getitem__(self, i):
        return torch.tensor([self.prepare(i)["value"], self.prepare(i)["pid"]])


class Adaptive(Numbers):
    """Whether the cache may leave samples uncompressed."""

    def __getitem__(self, i):
        return getattr(cached._here, "cache", cached._active).adaptive


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("adaptive", [True, False])
def test_the_cache_compresses_as_it_is_told(tmp_path, workers, adaptive):
    loader = DataLoader(Adaptive(4), None, num_workers=workers, cache=tmp_path, adaptive_compression=adaptive)
    assert list(loader) == [adaptive] * 4


@pytest.mark.parametrize("workers", [0, 2])
def test_marked_functions_are_kept(tmp_path, workers):
    def makers():
        rows = torch.cat(list(DataLoader(Prepared(12), 3, num_workers=workers, cache=tmp_path)))
        assert rows[:, 0].tolist() == list(range(12))
        return rows[:, 1].tolist()

    first = makers()
    assert makers() == first
