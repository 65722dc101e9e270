"""DataLoader's worker processes: how they begin: seeds, worker_init_fn, contexts."""

import multiprocessing
import random
import subprocess
import sys
import threading
import time

import numpy
import pytest
import torch
from imagesets import run_python
from loadersets import Many, Numbers, Rolls, Shared, Slow, Who, lists
from torch.utils import data

from drapps import DataLoader
from drapps.procpool import launch

pytestmark = pytest.mark.usefixtures("leaves_nothing")


# --- seeds ---


def rolls(workers, **options):
    torch.manual_seed(11)
    return torch.cat(list(DataLoader(Rolls(12), 3, num_workers=workers, **options)))


def test_randomness_does_not_hang_on_the_workers():
    one = rolls(1)
    assert torch.equal(one, rolls(3))
    assert len({tuple(row.tolist()) for row in one}) == 12


def test_persistent_workers_draw_anew_each_epoch():
    loader = DataLoader(Rolls(6), 3, num_workers=2, persistent_workers=True)
    first, second = torch.cat(list(loader)), torch.cat(list(loader))
    assert not torch.equal(first, second)
    loader.close()


@pytest.mark.parametrize("seconds", [0, 0.003], ids=["batches by one worker", "samples spread over workers"])
def test_what_collate_fn_draws_hangs_on_the_batch(seconds):
    def draws(n_workers):
        return lists(DataLoader(Slow(32, range(32), seconds), 4, num_workers=n_workers, seed=3, collate_fn=drawn))

    assert draws(1) == draws(2) == draws(3)


def drawn(samples):
    return torch.tensor([*samples, torch.rand(()).item(), random.random(), numpy.random.rand()])


def test_workers_are_seeded_as_torchs():
    found = []
    for kind in (data.DataLoader, DataLoader):
        torch.manual_seed(5)
        found.append({tuple(row.tolist()) for row in kind(Who(60), None, num_workers=2)})
    assert found[1] <= found[0]


def shout(worker):
    """Marks the worker's copy of the data set."""
    data.get_worker_info().dataset.n += 100 * (worker + 1)


class Marked(Numbers):
    def __getitem__(self, i):
        return torch.tensor(self.n)


def test_worker_init_fn():
    loader = DataLoader(Marked(8), num_workers=2, worker_init_fn=shout)
    assert {batch.item() for batch in loader} <= {108, 208}
    assert loader.dataset.n == 8


class Prepared(Many):
    """Needs something that a worker gets when it begins."""

    def __getitems__(self, indices):
        return [torch.tensor(i * self.factor) for i in indices]


def prepare(worker):
    dataset = data.get_worker_info().dataset
    assert isinstance(dataset, Prepared) and len(dataset) == 4
    dataset.factor = 3


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_worker_init_fn_has_the_users_data_set(policy):
    loader = DataLoader(Prepared(4), 2, num_workers=1, worker_init_fn=prepare, on_bad_sample=policy)
    assert lists(loader) == [[0, 3], [6, 9]]


def fail(worker):
    raise OSError(f"worker {worker} cannot begin")


def test_worker_init_fn_that_fails():
    with pytest.raises(OSError, match="cannot begin"):
        lists(DataLoader(Numbers(4), num_workers=2, worker_init_fn=fail))


def test_no_worker_info_in_the_trainer():
    iterator = iter(DataLoader(Numbers(4), num_workers=1))
    next(iterator)
    assert data.get_worker_info() is None


# --- contexts ---


@pytest.mark.parametrize("context", ["fork", "forkserver", multiprocessing.get_context("spawn")])
def test_contexts(context):
    loader = DataLoader(Numbers(6), 2, num_workers=2, multiprocessing_context=context)
    assert lists(loader) == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_memory_that_is_shared_stays_so(context):
    dataset = Shared(6)
    loader = DataLoader(dataset, 2, num_workers=1, multiprocessing_context=context, persistent_workers=True)
    assert sum(lists(loader), []) == [[0]] * 6 and dataset.asked.tolist() == [1] * 6
    dataset.step.fill_(5)
    assert sum(lists(loader), []) == [[5]] * 6 and dataset.asked.tolist() == [2] * 6
    loader.close()


def test_what_cannot_be_pickled_is_said_at_iter():
    with pytest.raises((TypeError, AttributeError, multiprocessing.ProcessError)):
        iter(DataLoader(Numbers(2), num_workers=1, collate_fn=lambda x: x, multiprocessing_context="spawn"))


SPAWNING = """
import multiprocessing
from drapps import DataLoader

multiprocessing.set_start_method("spawn")
print([*DataLoader([1, 2, 3, 4], 2, collate_fn=lambda samples: samples)])
print("spawn" in DataLoader([1]).explain())
"""


def test_who_asked_for_no_workers_needs_no_guard(tmp_path):
    (tmp_path / "program.py").write_text(SPAWNING)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[[1, 2], [3, 4]]\nTrue\n" and done.stderr == "" and done.returncode == 0


LATER = """
import multiprocessing
from drapps import DataLoader

print(len([*DataLoader([1, 2, 3, 4], 2)]))
multiprocessing.set_start_method("spawn")
"""


def test_a_loader_that_nobody_gave_workers_does_not_settle_how_processes_start():
    done = run_python(LATER)
    assert done.stdout == "2\n" and done.stderr == "" and done.returncode == 0


UNGUARDED = """
from drapps import DataLoader

list(DataLoader([1, 2, 3, 4], 2, num_workers=1, multiprocessing_context="spawn", worker_init_fn=print))
"""


def test_spawn_without_a_guard_fails_once(tmp_path):
    (tmp_path / "program.py").write_text(UNGUARDED)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "exited with code 1 before it began" in done.stderr
    assert done.stderr.count("An attempt has been made to start a new process") == 1


# --- the start ---


class Telling(data.Dataset):
    """Makes a file when its first sample is made."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 8

    def __getitem__(self, i):
        self.path.touch()
        return i


def test_workers_do_not_wait_for_a_slow_sampler(tmp_path):
    path, seen = tmp_path / "made", []

    def batches():
        time.sleep(0.01)
        yield [0, 1]
        end = time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.01)
        seen.append(path.exists())
        yield [2, 3]

    class Sampler(list):
        def __iter__(self):
            return batches()

    assert lists(DataLoader(Telling(path), batch_sampler=Sampler(), num_workers=2)) == [[0, 1], [2, 3]]
    assert seen == [True]


MANY = """
import linecache, os
import torch
from drapps import DataLoader

def refuse(path):
    raise AssertionError(path)

linecache.tokenize.open = refuse
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(next(iter(DataLoader([1, 2], 2, num_workers=2))).tolist())
"""


def test_no_file_is_read_to_warn_of_too_many_workers():
    done = run_python(MANY)
    assert done.stdout == "[1, 2]\n", done.stderr
    assert done.stderr.count("This DataLoader will create 2 worker processes in total") == 1
    assert done.stderr.count("  super().check_worker_number_rationality()\n") == 1


def test_processes_are_forked_before_a_controller_begins(monkeypatch, tmp_path):
    beside, start = [], launch.start_both

    def noting(*both):
        beside.append([thread.name for thread in threading.enumerate() if thread.name.startswith("drapps")])
        start(*both)

    monkeypatch.setattr(launch, "start_both", noting)
    with DataLoader(Numbers(20), num_workers=2, trace=tmp_path / "trace") as loader:
        assert len(list(loader)) == 20
    assert beside == [[]]  # the first worker and the zygote, at once


class Meeting(Numbers):
    """Samples that are made when so many workers are at one each."""

    def __init__(self, n, workers):
        super().__init__(n)
        self.barrier = multiprocessing.Barrier(workers)

    def __getitem__(self, i):
        self.barrier.wait(20)
        return super().__getitem__(i)


class MeetingRolls(Meeting, Rolls):
    """So that each worker draws."""


def test_workers_do_not_draw_the_same_from_another_generator_of_numpy():
    """Which is not set for each sample, as torch does not either."""
    before = numpy.random.get_bit_generator()
    numpy.random.set_bit_generator(numpy.random.PCG64(1))
    try:
        loader = DataLoader(MeetingRolls(8, workers=2), None, num_workers=2)
        drawn = [roll[1].item() for _ in range(2) for roll in loader]
    finally:
        numpy.random.set_bit_generator(before)
    assert len(set(drawn)) == 16


@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_first_batch_leaves_no_worker_without_a_sample(batch_size):
    """Though nobody knows yet how large batches are."""
    assert len(lists(DataLoader(Meeting(4, workers=4), batch_size, num_workers=4))) == 4 // batch_size
