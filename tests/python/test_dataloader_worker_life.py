"""DataLoader's worker processes: how many there are, how long they live, what they leave behind."""

import gc
import multiprocessing
import os
import platform
import resource
import threading
import time
import warnings
from itertools import islice

import numpy
import psutil
import pytest
import torch
from imagesets import run_python
from loadersets import Numbers, Slow, Stream, Who, children, lists, none_left, workers_of

import drapps
from drapps import DataLoader
from drapps.procpool.worker_loop import MALLOC_SETTINGS
from drapps.procpool.supervisor import Supervisor, is_gone

pytestmark = pytest.mark.usefixtures("leaves_nothing")


# --- the number of workers ---


def test_workers_change_while_a_pass_runs():
    loader = DataLoader(Slow(60, range(60), 0.01), 4, num_workers=1)
    iterator = iter(loader)
    found = next(iterator).tolist()
    loader.set("workers", 3)
    found += next(iterator).tolist()
    assert loader.get("workers") == loader.num_workers == 3
    deadline = time.monotonic() + 10
    while len(workers_of(iterator)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(workers_of(iterator)) == 3
    assert found + sum(lists(iterator), []) == list(range(60))


def test_exactly_as_many_processes_as_given():
    iterator = iter(DataLoader(Slow(40, range(40), 0.01), num_workers=3))
    next(iterator)
    deadline = time.monotonic() + 10
    while len(workers_of(iterator)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(workers_of(iterator)) == 3


def test_loaders_share_the_cpus():
    most = drapps.info()["limits"]["workers"]
    first, second = iter(DataLoader(Numbers(100))), iter(DataLoader(Numbers(100)))
    assert first._n_workers == most and second._n_workers == 1
    del first, second
    assert iter(DataLoader(Numbers(10)))._n_workers == most


@pytest.mark.parametrize("data", [Who(8), Stream(8)], ids=["samples", "stream"])
@pytest.mark.parametrize("taken", [1, 8])
def test_persistent_workers_end_with_the_last_reference(data, taken):
    """And not when the garbage collector comes."""
    loader = DataLoader(data, None, num_workers=2, persistent_workers=True)
    gc.collect()
    gc.disable()
    try:
        for _ in islice(loader, taken):
            pass
        assert children()
        del loader
        assert not children()
    finally:
        gc.enable()


def test_persistent_workers_stay():
    loader = DataLoader(Who(8), None, num_workers=2, persistent_workers=True)
    list(loader)
    iterator = loader._iterator
    pids = workers_of(iterator)
    for _ in loader:  # left early
        break
    assert len(list(loader)) == 8 and loader._iterator is iterator
    assert set(pids) <= set(workers_of(iterator))  # the first pass may end before the second worker has begun
    loader._iterator._shutdown_workers()  # as trainers do
    loader._iterator = None
    assert none_left() and len(list(loader)) == 8
    loader.close()


def test_workers_leave_while_the_last_batch_is_used():
    iterator = iter(DataLoader(Numbers(6), 2, num_workers=2))
    assert sum((next(iterator).tolist() for _ in range(3)), []) == list(range(6))
    deadline = time.monotonic() + 10
    while not is_gone(iterator._pool.zygote_pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_gone(iterator._pool.zygote_pid)
    with pytest.raises(StopIteration):
        next(iterator)


def test_threads_find_the_end_when_the_workers_have_left():
    """Nobody takes the zygote that left for one that was lost."""
    iterator, found, failed = iter(DataLoader(Numbers(200), 2, num_workers=2, in_order=False)), [], []

    def take():
        try:
            found.extend(i for batch in iterator for i in batch.tolist())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(200)) and not failed


def test_what_was_told_to_leave_is_not_lost(monkeypatch):
    """A thread looks whether the zygote has said something, and it leaves just then."""
    iterator = iter(DataLoader(Numbers(2), 2, num_workers=1))
    next(iterator)
    supervisor = iterator._pool._supervisor
    while not is_gone(iterator._pool.zygote_pid):
        time.sleep(0.01)
    supervisor._ended = False
    poll = supervisor._conn.poll
    monkeypatch.setattr(
        supervisor._conn, "poll", lambda: (setattr(supervisor, "_ended", True), poll())[1], raising=False
    )
    assert all(message[0] != "ready" for message in supervisor.messages())


def test_new_workers_see_the_data_set_as_it_is():
    dataset = Numbers(4)
    loader = DataLoader(dataset, 4, num_workers=1)
    assert lists(loader) == [[0, 1, 2, 3]]
    dataset.n = 2
    assert lists(loader) == [[0, 1]]


class Faults(Numbers):
    """The page faults of 96 MB of arrays, which are freed again."""

    def __getitem__(self, i):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for part in [numpy.ones(1 << 18) for _ in range(48)]:
            part += 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides by itself")
@pytest.mark.skipif(drapps.info()["limits"]["memory_bytes"] < 1 << 30, reason="too little to keep some")
def test_samples_are_made_of_memory_that_was_freed(monkeypatch):
    for name in MALLOC_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    kept = torch.cat(list(DataLoader(Faults(8), num_workers=1)))
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")  # the user's word
    anew = torch.cat(list(DataLoader(Faults(8), num_workers=1)))
    assert 4 * kept[2:].max() < anew[2:].min()


# --- the end ---
def test_close_ends_passes():
    loader = DataLoader(Numbers(100), num_workers=2)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    assert none_left()
    with pytest.raises(drapps.StateError, match="closed"):
        next(iterator)


def test_several_threads_may_end_the_workers(monkeypatch):
    iterator = iter(DataLoader(Numbers(100), num_workers=2))
    next(iterator)
    pool, ended, errors = iterator._pool, Supervisor.end, []
    monkeypatch.setattr(Supervisor, "end", lambda supervisor: (time.sleep(0.1), ended(supervisor)))

    def close():
        try:
            pool.close()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and none_left()


PROGRAM = """
import os, torch
from drapps import DataLoader

loader = DataLoader(torch.arange(100), num_workers=2, persistent_workers={persistent})
iterator = iter(loader)
next(iterator)
print(os.getpid(), *iterator._pool.pids.values(), iterator._pool.zygote_pid, flush=True)
{end}
"""


@pytest.mark.parametrize(
    ("end", "persistent"), [("", True), ("raise SystemExit(0)", False), ("os.kill(os.getpid(), 9)", True)]
)
def test_the_end_of_the_program_is_the_end_of_the_workers(end, persistent):
    done = run_python(PROGRAM.format(end=end, persistent=persistent))
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) >= 3 and "Traceback" not in done.stderr
    wait_until_gone(pids)


def wait_until_gone(pids):
    deadline = time.monotonic() + 10
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, pids))


KILLED_EARLY = """
import os
from drapps.procpool import supervisor

supervisor.FIRST_S = 1.0  # the zygote begins after the trainer's death
""" + PROGRAM.format(end="os.kill(os.getpid(), 9)", persistent=True)


def test_a_zygote_that_begins_after_the_death_of_the_program_ends():
    pids = [int(pid) for pid in run_python(KILLED_EARLY).stdout.split()]
    assert len(pids) >= 2
    wait_until_gone(pids)


def begin_and_leave(kept):
    """A rank of a training: it ends while a pass runs."""
    kept.append(iter(DataLoader(Numbers(100), num_workers=1)))
    next(kept[0])


KEPT = []


def test_the_end_of_a_process_of_multiprocessing():
    process = multiprocessing.get_context("fork").Process(target=begin_and_leave, args=(KEPT,))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_batches_that_are_kept_keep_no_descriptors():
    loader = DataLoader(Numbers(8), 4, num_workers=1)
    before = len(os.listdir("/proc/self/fd"))
    kept = [next(iter(loader)) for _ in range(4)]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert all(batch.tolist() == [0, 1, 2, 3] for batch in kept)


AT_THE_END = """
import torch
from drapps import DataLoader
iterator = iter(DataLoader(torch.arange(64), 4, num_workers=2, collate_fn=list))
print(len(next(iterator)))
"""


def test_a_pass_that_is_open_when_the_program_ends_is_no_error():
    """Modules are taken apart before what a program has in its own names is."""
    done = run_python(AT_THE_END)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")
