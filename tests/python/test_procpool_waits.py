"""Where code of workers waits: named by function, apart from CPU time and from other programs."""

import sys
import threading
import time

import pytest
import torch
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.procpool.worker_loop import Delay, Waits, profile_waits, place_of

HERE = "test_procpool_waits.py"


@pytest.fixture
def delay():
    found = Delay()
    yield found
    found.close()


class Slow:
    """A transform that sleeps."""

    def __call__(self, x):
        time.sleep(0.004)
        return x


def compute(n=200_000):
    return sum(i * i for i in range(n))


def held(lock):
    with lock:
        return compute(1000)


def test_a_sleep_is_ascribed_to_the_function_around_it(delay):
    places = profile_waits(lambda: (compute(), Slow()(1)), delay=delay)
    # A busy machine adds waits to compute(), so the sleep need not be the longest wait.
    waits = {place.split(":")[0]: ns for place, ns in places.items()}
    assert waits.get(f"Slow.__call__ ({HERE}", 0) >= 3_000_000


def test_a_lock_is_ascribed_to_who_waits_for_it(delay):
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0.05, lock.release).start()
    assert profile_waits(held, lock, delay=delay).most_common(1)[0][0].startswith("held (")


def test_code_that_computes_waits_nowhere(delay):
    """Whoever else has the CPUs."""
    begun = time.monotonic_ns()
    places = profile_waits(compute, delay=delay)
    assert sum(places.values()) < (time.monotonic_ns() - begun) / 2


def test_a_profile_function_of_the_program_stays(delay):
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(event))
    try:
        assert not profile_waits(Slow(), 1, delay=delay)
    finally:
        sys.setprofile(None)
    assert "call" in seen


def test_libraries_are_named_where_there_is_nothing_else():
    code = compile("def f(g):\n    return g()\n", f"{sys.prefix}/lib/python3/site-packages/torch/x.py", "exec")
    space = {}
    exec(code, space)  # a function of torch, by its file
    assert space["f"](lambda: place_of(sys._getframe(1))).startswith("test_libraries_are_named")
    assert space["f"](lambda: place_of(sys._getframe())).startswith("test_libraries_are_named")


def test_workers_look_only_while_they_wait():
    told = []
    waits = Waits(lambda place, ns: told.append(place))
    for _ in range(3):
        waits.run(lambda _: compute(1_500_000), None)
    assert not told
    for _ in range(30):
        waits.run(lambda _: Slow()(1), None)
    assert told and all(place.startswith("Slow.__call__") for place in told)


class Transformed(data.Dataset):
    """Numbers through a transform."""

    def __init__(self, transform=None):
        self.transform = transform or (lambda x: x)

    def __len__(self):
        return 1200

    def __getitem__(self, i):
        return self.transform(torch.tensor(i))


def slow_collate(samples):
    time.sleep(0.03)
    return torch.stack(samples)


@pytest.mark.parametrize("name, dataset, options", [
    ("Slow.__call__", Transformed(Slow()), {}),
    ("slow_collate", Transformed(), {"collate_fn": slow_collate}),
])  # fmt: skip
def test_a_policy_says_where_it_is(name, dataset, options, tmp_path):
    """On a busy machine as on a quiet one."""
    path = tmp_path / "run.drtrace"
    with DataLoader(dataset, 8, num_workers=2, trace=path, **options) as loader:
        assert sum(len(batch) for batch in loader) == 1200
    found = drapps.trace.read(path)
    assert found.decisions[-1].bound == "blocked"
    assert "its code waits for" in found.decisions[-1].reason and f" in {name} ({HERE}:" in found.decisions[-1].reason
    assert any(event["event"] == "waits" and event["where"].startswith(name) for event in found.events)
