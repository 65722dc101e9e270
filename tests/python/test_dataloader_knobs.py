"""DataLoader.set() and get(): knobs of passes that run, which stay so in later ones, and what there is to be turned."""

import math
import pickle
import time

import psutil
import pytest
import torch
from loadersets import Numbers, Slow, Stream, lists
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.procpool.tuning import CONTROLLER_KNOBS, POSTING_KNOBS, most_workers

pytestmark = pytest.mark.usefixtures("leaves_nothing")

VALUES = {"workers": 2, "readers": 1, "prefetch": 5, "prefetch_bytes": 1 << 20, "lane_share": 0.5,
          "lane_threshold": 7.5, "cpu_ceiling": 1.5, "priority": -1, "codec": 0, "offload": 0.5}  # fmt: skip
OF_PROCESSES = {knob: VALUES[knob] for knob in (*POSTING_KNOBS, *CONTROLLER_KNOBS)}


def table(n=40):
    return data.TensorDataset(torch.arange(n))


def numbers_of(loader):
    return torch.cat([batch[0] if isinstance(batch, list) else batch for batch in loader]).tolist()


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def niceness():
    found = psutil.Process().children(recursive=True)
    return {p.nice() for p in found if psutil.pid_exists(p.pid) and p.name() == "drapps-worker"}


def test_every_knob_is_tried():
    assert set(VALUES) == {knob.name for knob in drapps.knobs()}
    whole = {knob.name for knob in drapps.knobs() if knob.whole}
    assert whole == {name for name, value in VALUES.items() if isinstance(value, int)}


# --- native ---


def test_all_knobs_of_a_native_pass():
    loader = DataLoader(table(), 2, num_workers=1)
    iterator = iter(loader)
    next(iterator)
    for knob, value in VALUES.items():
        loader.set(knob, value)
        assert iterator._native.get(knob) == loader.get(knob) == loader.stats()["knobs"][knob] == value
    assert iterator._ahead() == 5 and numbers_of(iterator) == list(range(2, 40))
    loader.close()


@pytest.mark.parametrize("closed", [True, False])
def test_later_native_passes_have_them(closed):
    loader = DataLoader(table(), 2, num_workers=1)
    lists(loader)
    for knob, value in VALUES.items():
        loader.set(knob, value)
    if closed:
        loader.close()
    iterator = iter(loader)
    assert {knob: iterator._native.get(knob) for knob in VALUES} == VALUES and iterator._ahead() == 5
    assert numbers_of(iterator) == list(range(40)) and loader.num_workers == 2
    assert {knob: loader.stats()["knobs"][knob] for knob in VALUES} == VALUES
    loader.close()


def test_out_of_order_the_window_is_counted_in_samples():
    loader = DataLoader(table(), 2, num_workers=1, in_order=False)
    loader.set("prefetch", 6)
    iterator = iter(loader)
    assert iterator._ahead() == 12 and sorted(numbers_of(iterator)) == list(range(40))
    loader.close()


def test_a_prefetch_that_was_given_can_be_set():
    for dataset in (table(), Numbers(40)):
        with DataLoader(dataset, 2, num_workers=2, prefetch_factor=4) as loader:
            assert loader.get("prefetch") == 8
            loader.set("prefetch", 3)
            iterator = iter(loader)
            ahead = iterator._ahead() if hasattr(iterator, "_ahead") else iterator._pool.window.batches
            assert ahead == loader.get("prefetch") == 3 and numbers_of(iterator) == list(range(40))


# --- worker processes ---


def test_knobs_of_worker_processes():
    loader = DataLoader(Slow(60, range(60), 0.002), 2, num_workers=1)
    iterator = iter(loader)
    next(iterator)
    for knob, value in OF_PROCESSES.items():
        loader.set(knob, value)
        assert iterator._pool.controller is None and knob == "workers" or iterator._pool.controller.get(knob) == value
        assert loader.get(knob) == value
    assert iterator._pool.window.batches == 5 and wait_for(lambda: niceness() == {10})
    assert numbers_of(iterator) == list(range(2, 60))
    assert {knob: loader.stats()["knobs"][knob] for knob in OF_PROCESSES} == OF_PROCESSES


def test_later_passes_in_worker_processes_have_them():
    loader = DataLoader(Slow(60, range(60), 0.002), 2, num_workers=1)
    for knob, value in OF_PROCESSES.items():
        loader.set(knob, value)
    for _ in range(2):
        iterator = iter(loader)
        assert {knob: iterator._pool.controller.get(knob) for knob in OF_PROCESSES} == OF_PROCESSES
        assert iterator._pool.window.batches == 5 and wait_for(lambda: niceness() == {10})
        assert numbers_of(iterator) == list(range(60))


def test_what_is_set_is_not_lost_with_persistent_workers():
    with DataLoader(Numbers(20), 2, num_workers=1, persistent_workers=True) as loader:
        lists(loader)
        loader.set("lane_threshold", 9)
        assert numbers_of(loader) == list(range(20)) and loader._iterator._pool.controller.get("lane_threshold") == 9


def test_where_a_worker_makes_whole_batches_each_has_one():
    with DataLoader(Stream(40), 2, num_workers=2) as loader:
        loader.set("prefetch", 1)
        iterator = iter(loader)
        assert iterator._pool.window.batches == 2 and len(lists(iterator)) == 20


def test_the_user_may_have_more_workers_than_the_policy_would():
    with drapps.Monitor() as monitor:
        loader = DataLoader(Slow(200, range(200), 0.001), 2, num_workers=1, resource_monitor=monitor)
        iterator, many = iter(loader), most_workers() + 2
        next(iterator)
        loader.set("workers", many)
        assert iterator._pool.workers == iterator._pool.controller.get("workers") == loader.get("workers") == many
        assert len(numbers_of(iterator)) == 198


@pytest.mark.parametrize("knob", ["readers", "lane_share", "priority", "codec", "offload"])
def test_worker_processes_do_not_have_all(knob):
    loader = DataLoader(Numbers(8), 2, num_workers=1)
    with pytest.raises(drapps.ArgumentError, match=f"{knob} = 1.*: not with worker processes, whose knobs are "):
        loader.set(knob, 1)
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("runs", [False, True])
def test_workers_of_streams_stay(runs):
    """States hang on their number."""
    with DataLoader(Stream(8), 2, num_workers=1) as loader:
        iterator = iter(loader) if runs else None
        with pytest.raises(drapps.ArgumentError, match="workers = 2: each worker of an iterable data set"):
            loader.set("workers", 2)
        assert loader.num_workers == loader.get("workers") == 1
        assert lists(loader if iterator is None else iterator) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_what_a_pass_does_not_have_is_passed_over():
    """The transforms, and with them what a pass runs on, may change."""
    loader = DataLoader(table(8), 2, num_workers=1)
    loader.set("readers", 2)
    loader.worker_init_fn = print
    assert numbers_of(loader) == list(range(8)) and loader.get("readers") == 2


# --- without workers ---


@pytest.mark.parametrize("knob", ["workers", "prefetch", "readers"])
def test_without_workers_there_is_nothing_to_change(knob):
    loader = DataLoader(Numbers(4), num_workers=0)
    with pytest.raises(drapps.ArgumentError, match="this loader has no workers to change; make it with num_workers=1"):
        loader.set(knob, 4)
    assert loader.get("workers") == 0
    with pytest.raises(drapps.StateError, match="prefetch is not known .* with num_workers=0"):
        loader.get("prefetch")


# --- what is said ---


@pytest.mark.parametrize("knob, value, text", [
    ("speed", 1, "knob must be one of 'workers', 'readers', .*, got 'speed'"),
    ("workers", 0, "workers must be a positive int, got 0"),
    ("workers", 1.5, "workers must be an int from 0 to 256, got 1.5"),
    ("workers", "2", "workers must be an int from 0 to 256, got '2'"),
    ("prefetch", 65, "prefetch must be an int from 1 to 64, got 65"),
    ("lane_threshold", math.nan, "lane_threshold must be a number from 1 to 1000, got nan"),
])  # fmt: skip
@pytest.mark.parametrize("dataset", [table(4), Numbers(4)], ids=["native", "python"])
def test_mistakes_are_named(dataset, knob, value, text):
    loader = DataLoader(dataset, num_workers=1)
    with pytest.raises(drapps.ArgumentError, match=text):
        loader.set(knob, value)
    assert loader._tuning.overrides == {}


def test_what_is_known_before_the_first_pass():
    loader = DataLoader(Numbers(4), num_workers=3)
    assert (loader.get("workers"), loader.get("prefetch")) == (3, 6)
    with pytest.raises(drapps.StateError, match="priority is not known before a pass"):
        loader.get("priority")
    with pytest.raises(drapps.ArgumentError, match="knob must be one of 'workers'"):
        loader.get("speed")


def test_a_copy_has_what_was_set():
    loader = DataLoader(Numbers(4), num_workers=1)
    loader.set("prefetch", 7)
    assert pickle.loads(pickle.dumps(loader)).get("prefetch") == 7 and "7 batches in flight" in loader.explain()
