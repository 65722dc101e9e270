"""DataLoader's worker processes: errors, deaths, samples that get stuck, interrupts."""

import os
import random
import signal
import threading

import pytest
import torch
from loadersets import Faulty, Many, Numbers, Slow, drained, lists, none_left, workers_of

import drapps
from drapps import DataLoader

pytestmark = pytest.mark.usefixtures("leaves_nothing")


# --- errors ---


def test_an_error_names_worker_and_traceback_and_the_rest_comes():
    iterator = iter(DataLoader(Faulty(6, [2]), 2, num_workers=2))
    assert next(iterator).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"(?s)in DataLoader worker process \d.*no sample 2"):
        next(iterator)
    assert next(iterator).tolist() == [4, 5]


def crossly(samples):
    raise KeyError("cross")


def test_collate_that_fails():
    with pytest.raises(KeyError, match="cross"):
        lists(DataLoader(Numbers(3), num_workers=1, collate_fn=crossly))


def test_bad_samples_of_getitems():
    class Some(Many):
        def __getitems__(self, indices):
            if 3 in indices:
                raise ValueError("no 3")
            return super().__getitems__(indices)

    loader = DataLoader(Some(6), 3, num_workers=2, on_bad_sample="skip")
    assert lists(loader) == [[0, 10, 20], [40, 50]]


def test_an_error_in_the_loop_ends_the_workers():
    with pytest.raises(ZeroDivisionError):
        for _ in DataLoader(Slow(100, range(100), 0.01), num_workers=2):
            raise ZeroDivisionError
    assert none_left()


# --- deaths ---


def test_a_killed_worker_is_replaced_and_nothing_is_lost():
    iterator = iter(DataLoader(Slow(40, range(40), 0.01), 4, num_workers=2))
    found = next(iterator).tolist()
    os.kill(random.choice(workers_of(iterator)), signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match=r"killed by SIGKILL and was replaced"):
        found += sum(lists(iterator), [])
    assert found == list(range(40))


class Deadly(Numbers):
    """One sample kills whoever makes it."""

    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor(i)


@pytest.mark.filterwarnings("ignore:worker .* was killed")
def test_a_sample_that_kills_is_given_up():
    with pytest.warns(RuntimeWarning, match="worker .* was killed") as seen:
        with pytest.raises(RuntimeError, match="sample 5") as death:
            lists(DataLoader(Deadly(8), 2, num_workers=2))
    assert type(death.value) is drapps.BadSampleError
    assert len(seen) == 3 and not any("no sample was lost" in str(warning.message) for warning in seen)
    loader = DataLoader(Deadly(8), 2, num_workers=2, on_bad_sample="skip")
    assert lists(loader) == [[0, 1], [2, 3], [4], [6, 7]]


# --- timeouts ---


def test_timeout_names_sample_and_stack():
    loader = DataLoader(Slow(6, [3], 60), 2, num_workers=2, timeout=1)
    with pytest.raises(RuntimeError, match=r"(?s)DataLoader timed out after 1 seconds.*sample 3.*__getitem__"):
        lists(loader)


@pytest.mark.filterwarnings("ignore:worker .* was killed")
def test_stuck_samples_are_left_out():
    loader = DataLoader(Slow(6, [3], 60), 2, num_workers=2, timeout=1, on_bad_sample="skip")
    assert lists(loader) == [[0, 1], [2], [4, 5]]
    assert loader.stats()["bad_samples"] == 1


# --- exceptions in the trainer ---


class Fussy:
    """Cannot be unpickled."""

    def __init__(self, i):
        self.i = i

    def __setstate__(self, state):
        raise ValueError(f"no {state['i']}")


class SomeFussy(Numbers):
    def __getitem__(self, i):
        return Fussy(i) if i == 3 else torch.tensor(i)


def test_what_cannot_be_unpickled_is_the_error_of_its_batch():
    found = drained(iter(DataLoader(SomeFussy(6), None, num_workers=2)))
    assert found == [0, 1, 2, "ValueError", 4, 5]


@pytest.mark.parametrize("delay", [0.10, 0.113, 0.126])
def test_an_interrupt_that_is_caught_loses_nothing(delay):
    iterator = iter(DataLoader(Slow(60, range(60), 0.01), 2, num_workers=1))
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    found, interrupts = [], 0
    timer.start()
    while True:
        try:
            found += next(iterator).tolist()
        except KeyboardInterrupt:
            interrupts += 1
        except StopIteration:
            break
    timer.join()
    assert found == list(range(60)) and interrupts == 1


def test_a_forked_child_takes_nothing():
    iterator = iter(DataLoader(Numbers(40), 4, num_workers=2))
    found = next(iterator).tolist()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            next(iterator)
        except drapps.ForkedError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert found + sum(lists(iterator), []) == list(range(40))
