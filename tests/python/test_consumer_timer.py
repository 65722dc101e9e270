"""ConsumerTimer: waits and steps of a pass, by a clock that the test turns; and what loaders of
every kind say of theirs."""

import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from loadersets import Numbers, Slow
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.passes import cursor


@pytest.fixture
def clock(monkeypatch):
    """Turned by clock.now."""
    found = SimpleNamespace(now=0)
    monkeypatch.setattr(cursor, "time", SimpleNamespace(monotonic_ns=lambda: found.now))
    return found


@pytest.fixture
def sums():
    return Counter(wait_ns=0, step_ns=0)


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def test_waits_and_steps_alternate(clock, sums):
    one = cursor.ConsumerTimer(sums)
    clock.now = 5  # before the first call nothing counts
    for waited, stepped in ((10, 100), (20, 200)):
        one.begin_wait()
        clock.now += waited
        one.end_wait()
        clock.now += stepped
    one.begin_wait()
    clock.now += 3
    one.end_wait(over=True)
    clock.now += 1000  # nor after the end
    one.count()
    assert sums == {"wait_ns": 33, "step_ns": 300}


def test_what_goes_on_is_counted_in(clock, sums):
    one = cursor.ConsumerTimer(sums)
    one.begin_wait()
    clock.now = 7
    one.count()
    assert sums["wait_ns"] == 7
    one.end_wait()
    clock.now = 9
    one.count()
    assert sums == {"wait_ns": 7, "step_ns": 2}
    clock.now = 10
    one.stop()
    clock.now = 20
    one.count()
    assert sums == {"wait_ns": 7, "step_ns": 3}


def test_it_is_a_wait_while_any_thread_waits(clock, sums):
    one = cursor.ConsumerTimer(sums)
    one.begin_wait()
    clock.now = 1
    in_thread(one.begin_wait)  # a thread that goes on waiting
    clock.now = 3
    one.end_wait()
    clock.now = 6
    one.count()
    assert sums == {"wait_ns": 6, "step_ns": 0}


def test_passes_add_up(clock, sums):
    for _ in range(2):
        one = cursor.ConsumerTimer(sums)
        one.begin_wait()
        clock.now += 4
        one.end_wait(over=True)
    assert sums["wait_ns"] == 8


# --- loaders ---


def loaders(n):
    """Loaders of n samples, three a batch, by what makes them."""
    return {
        "native": DataLoader(data.TensorDataset(torch.arange(n)), 3, num_workers=1),
        "processes": DataLoader(Numbers(n), 3, num_workers=1),
        "caller": DataLoader(Numbers(n), 3, num_workers=0),
        "chain": drapps.from_arrays(x=torch.arange(n).numpy()).map(dict).loader(batch_size=3, workers=1),
        "chain in the caller": drapps.from_arrays(x=torch.arange(n).numpy()).map(dict).loader(batch_size=3, workers=0),
        "engine": drapps.from_arrays(x=torch.arange(n).numpy()).loader(batch_size=3, workers=1),
    }


@pytest.mark.usefixtures("leaves_nothing")
@pytest.mark.parametrize("kind", list(loaders(1)))
def test_together_they_are_the_time_of_the_passes(kind):
    with loaders(12)[kind] as loader:
        assert (loader.stats()["wait_ns"], loader.stats()["step_ns"]) == (0, 0)
        before, begun = loader.stats(), time.monotonic_ns()
        for _ in range(2):
            for _ in loader:
                time.sleep(0.01)
        stats, passed = loader.stats(), time.monotonic_ns() - begun
        assert stats["step_ns"] >= 2 * 4 * 10_000_000 and stats["wait_ns"] > 0
        assert stats["wait_ns"] + stats["step_ns"] <= passed
        time.sleep(0.02)
        after = loader.stats()
        assert (after["wait_ns"], after["step_ns"]) == (stats["wait_ns"], stats["step_ns"])
        assert before["samples"] == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_that_takes_long_is_waited_for(workers):
    with DataLoader(Slow(2, {0, 1}, 0.05), 1, num_workers=workers) as loader:
        for _ in loader:
            pass
        assert loader.stats()["wait_ns"] >= 50_000_000  # of the first one at least


@pytest.mark.parametrize("kind", ["native", "processes", "caller"])
def test_a_pass_that_is_left_counts_as_far_as_it_came(kind):
    loader = loaders(12)[kind]
    for _ in loader:
        time.sleep(0.01)
        seen = loader.stats()["step_ns"]  # the step that goes on is counted in
        assert seen >= 10_000_000
        break
    left = loader.stats()["step_ns"]
    time.sleep(0.02)
    assert seen <= left == loader.stats()["step_ns"]
    loader.close()


def test_samples_that_cannot_be_sent_are_waited_for_too():
    """The pass goes on in the caller."""

    class Here:
        pass

    loader = DataLoader([Here() for _ in range(4)], None)
    with pytest.warns(RuntimeWarning, match="num_workers=0"):
        assert len(list(loader)) == 4
    assert loader.stats()["wait_ns"] > 0
