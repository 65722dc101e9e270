"""Worker processes: how they start, die, are replaced and end, and that nothing is left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from multiprocessing import popen_fork

import numpy
import pytest

torch = pytest.importorskip("torch")

import procpool_sets as sets
from drapps import _core
from drapps.procpool import launch
from drapps.procpool.dataset_pool import NothingPosted
from procpool_runs import helpers_of_multiprocessing, nothing_is_left  # noqa: F401  (for each test here)
from procpool_runs import batches_of, children, make, prepared, run, same
from torch.utils.data import default_collate

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # a worker died that should not


# --- deaths ---


def test_a_killed_worker_is_replaced_and_its_samples_are_made_again():
    with make(sets.Slow(0.002)) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches, seen = batches_of(400, 8), []
        for number, batch in enumerate(batches):
            assert pool.post(number, batch)
        killed = 0
        for number in range(len(batches)):
            if number % 10 == 5:
                os.kill(next(iter(pool.pids.values())), signal.SIGKILL)
                killed += 1
            seen += pool.next(30).value.tolist()
        assert seen == list(range(400))
        deadline = time.monotonic() + 10
        while pool.stats()["deaths"] < killed and time.monotonic() < deadline:
            time.sleep(0.05)
            pool._check_workers()
        texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
        assert len(texts) == killed and all("was killed by SIGKILL and was replaced" in t for t in texts)
        assert any("made again: " in text for text in texts)


def test_a_sample_that_kills_is_named():
    with make(sets.Killer(), max_attempts=2) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = run(pool, [[1, 2], [12, 13], [14, 15]])
        named = r"DataLoader worker \(pid\(s\) \d+.*exited unexpectedly: sample 13.*; the last: "
        with pytest.raises(RuntimeError, match=named):
            results[1].value.reraise()
        assert results[2].value.tolist() == [14, 15]
        assert any("made again: 13" in str(warning.message) for warning in caught)


def test_a_zygote_that_is_killed_is_replaced():
    with make(sets.Slow(0.002)) as pool, pytest.warns(RuntimeWarning, match=r"the zygote \(pid \d+\) ended"):
        batches, seen = batches_of(200, 8), []
        for number, batch in enumerate(batches):
            assert pool.post(number, batch)
        for number in range(len(batches)):
            if number in (5, 15):
                os.kill(pool.zygote_pid, signal.SIGKILL)
            seen += pool.next(30).value.tolist()
        assert seen == list(range(200))


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def first_of(pool):
    """The process that the main process forked itself."""
    return pool._supervisor._first_worker._process.pid


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("adopted", [True, False])
def test_a_first_worker_that_is_killed_is_replaced(adopted):
    with make(sets.Slow(0.002)) as pool:
        first = first_of(pool)
        assert parent_of(first) == os.getpid()
        if adopted:
            run(pool, batches_of(8, 8))
            wait_for(lambda: len(pool.pids) == 2)
            assert pool.pids[0] == first
        os.kill(first, signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match=rf"worker 0 \(pid {first}\) was killed by SIGKILL and was replaced"):
            seen = [i for result in run(pool, batches_of(80, 8)) for i in result.value.tolist()]
            wait_for(lambda: pool.pids.get(0) not in (None, first))
            pool._check_workers()
        assert seen == list(range(80)) and parent_of(pool.pids[0]) == pool.zygote_pid


def test_a_first_worker_ends_with_the_zygote():
    with make(sets.Slow(0.002)) as pool, pytest.warns(RuntimeWarning, match=r"the zygote \(pid \d+\) ended"):
        first, zygote = first_of(pool), pool.zygote_pid
        wait_for(lambda: len(pool.pids) == 2)
        os.kill(zygote, signal.SIGKILL)
        wait_for(lambda: pool._check_workers() or pool.zygote_pid != zygote)
        assert first not in children()
        assert run(pool, [[1, 2]])[0].value.tolist() == [1, 2]
        wait_for(lambda: len(pool.pids) == 2)
        assert {parent_of(pid) for pid in pool.pids.values()} == {pool.zygote_pid}


def test_a_zygote_that_was_dismissed_is_not_replaced():
    with make(sets.Slow(0.002)) as pool:
        assert run(pool, [[1, 2]])[0].value.tolist() == [1, 2]
        zygote = pool.zygote_pid
        pool.dismiss()
        wait_for(lambda: not children())
        with pytest.raises(NothingPosted):
            pool.next(1)
        assert pool.zygote_pid == zygote


def test_a_pool_outlives_the_thread_that_made_it():
    pools = []
    thread = threading.Thread(target=lambda: pools.append(make(sets.Slow(0.002))))
    thread.start()
    thread.join()
    with pools.pop() as pool:
        assert len(run(pool, batches_of(80, 8))) == 10
        pool._check_workers()
        assert pool.pids[0] == first_of(pool) and pool.deaths == 0


def test_a_pool_that_is_not_used():
    make(sets.Squares()).close()
    prepared(sets.Squares()).close()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_what_was_posted_before_the_start(context):
    with prepared(sets.Squares(), context=context) as pool:
        assert pool.post(0, [1, 2])
        assert not pool.pids and pool.clear(0)  # there is nobody to be waited for
        assert pool.post(0, [3, 4])
        pool.start()
        zygote = pool.zygote_pid
        pool.start()
        assert pool.next(60).value[1].tolist() == [9, 16] and pool.zygote_pid == zygote


def test_next_starts():
    with prepared(sets.Squares()) as pool:
        assert pool.post(0, [3, 4])
        assert pool.next(60).value[1].tolist() == [9, 16]


@pytest.fixture(params=[True, False], ids=["split", "whole"])
def split(request, monkeypatch):
    """Whether Process.start is taken apart; not with all versions of Python."""
    if not request.param:
        monkeypatch.setattr(launch, "_can_be_split", lambda process: False)
    return request.param


def refuse(*_):
    raise OSError("no more processes")


@pytest.mark.skipif(hasattr(popen_fork, "atexit"), reason="processes are started one by one")
def test_a_start_that_fails_leaves_nothing(monkeypatch):
    monkeypatch.setattr(_core, "fork_both", refuse)
    with pytest.raises(OSError, match="no more processes"):
        make(sets.Squares())


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_start_one_by_one_that_fails_leaves_nothing(monkeypatch, allowed):
    started, start = [], launch.Whole.start

    def start_some(self):
        if len(started) == allowed:
            refuse()
        start(self)
        started.append(self.pid)

    monkeypatch.setattr(launch, "_can_be_split", lambda process: False)
    monkeypatch.setattr(launch.Whole, "start", start_some)
    with pytest.raises(OSError, match="no more processes"):
        make(sets.Squares())
    assert len(started) == allowed


REFUSED = """
import os, resource
from drapps import _core

os.setuid(54321)  # whose processes are counted: for root there is no limit
resource.setrlimit(resource.RLIMIT_NPROC, ({allowed} + 1,) * 2)
fds = os.listdir("/proc/self/fd")
try:
    place = _core.fork_both(0).role
except BlockingIOError:
    left = os.listdir("/proc/self/fd") != fds
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        print([file.read(), left])
else:
    print("forked", flush=True) if place == 0 else os._exit(0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user without other processes")
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_two_are_forked_or_none(allowed):
    done = run_program(REFUSED.format(allowed=allowed))
    assert (done.stdout, done.stderr) == ("forked\n" if allowed == 2 else "['', False]\n", "")


class Inside:
    """What a worker knows of its process, and the pipes that it holds."""

    def __getitem__(self, index):
        pipes = [link for fd in os.listdir("/proc/self/fd") if (link := link_of(fd)).startswith("pipe:")]
        mine, parent = multiprocessing.current_process(), multiprocessing.parent_process()
        return mine.name, mine.daemon, mine.pid == os.getpid(), parent.pid, parent.is_alive(), pipes


def link_of(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def test_a_first_worker_is_a_process_of_multiprocessing(split):
    with make(Inside(), sets.as_list, workers=1) as pool:
        pool.post(0, [0])
        ((*known, pipes),) = pool.next(60).value
        assert known == ["drapps-worker-0", True, True, os.getpid(), True]
        assert link_of(pool._supervisor._process.sentinel) not in pipes  # it would hide the zygote's end
        assert not multiprocessing.active_children()


def exit_at_once(worker):
    os._exit(3)


def test_workers_that_cannot_live_are_an_error():
    with make(sets.Squares(), worker_init_fn=exit_at_once) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool.post(0, [1, 2])
        with pytest.raises(RuntimeError, match="16 worker processes died and no batch .* exited with code 3"):
            while pool.next(20) is not None:
                pass


def test_workers_come_and_go():
    with make(sets.Slow(0.002), workers=1) as pool:
        seen = []
        for number, batch in enumerate(batches_of(240, 8)):
            assert pool.post(number, batch)
        for number in range(30):
            if number in (3, 10, 20):
                pool.resize({3: 4, 10: 1, 20: 3}[number])
            seen += pool.next(30).value.tolist()
        assert seen == list(range(240))
        deadline = time.monotonic() + 10
        while len(pool.pids) != 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert set(pool.pids) == {0, 1, 2}
        for workers in (1, 3, 1, 2):  # some are wanted again before they have left
            pool.resize(workers)
        while set(pool.pids) != {0, 1} and time.monotonic() < deadline:
            time.sleep(0.02)
        pool._check_workers()
        assert set(pool.pids) == {0, 1} and pool.stats()["deaths"] == 0


def test_a_stuck_sample_is_shown_and_given_up():
    with make(sets.Slow(0.0, stuck=5), bad="report") as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, batch in enumerate([[4, 5], [6, 7]]):
            assert pool.post(number, batch)
        deadline = time.monotonic() + 30
        while not (found := pool.stuck(0.2)) and time.monotonic() < deadline:
            assert pool.next(0.1) is None
        (stuck,) = found
        assert (stuck.tag, stuck.slot, stuck.index) == (0, 1, 5) and stuck.seconds > 0.2
        assert "procpool_sets.py" in stuck.stack and "__getitem__" in stuck.stack
        pool.kill_stuck(stuck.worker)
        result = pool.next(30)
        assert result.value.tolist() == [4]
        with pytest.raises(TimeoutError, match="sample 5 was given up"):
            result.samples[1].error.reraise()
        assert pool.next(30).value.tolist() == [6, 7]


# --- start methods, several pools, ends ---


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_other_start_methods(context):
    dataset = sets.Squares()
    dataset.large = numpy.arange(1 << 18)
    with make(dataset, context=context) as pool:
        for result, batch in zip(run(pool, batches_of(40, 8)), batches_of(40, 8), strict=True):
            assert same(result.value, default_collate([dataset[i] for i in batch]))


REAPED = """
import os, signal
import procpool_sets as sets
from drapps.procpool.dataset_pool import DatasetPool
from torch.utils.data import default_collate

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

def use():
    pool = DatasetPool(sets.Squares(), default_collate, workers=2, context={context!r})
    pool.post(0, [1, 2])
    print(pool.next(30).value[1].tolist(), flush=True)
    pids = [pool.zygote_pid, *pool.pids.values()]
    pool.close()
    print([pid for pid in pids if os.path.exists(f"/proc/{{pid}}")])

signal.signal(signal.SIGCHLD, {handler})
use()
before = len(os.listdir("/proc/self/fd"))
use()
print(len(os.listdir("/proc/self/fd")) - before)
"""


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "reap"])
def test_somebody_else_reaps_children(handler, context):
    """SIGCHLD may be ignored by whoever started the program, too."""
    done = run_program(REAPED.format(handler=handler, context=context))
    assert done.stdout == "[1, 4]\n[]\n" * 2 + "0\n" and done.stderr == ""


def test_a_data_set_that_cannot_be_pickled():
    dataset = sets.Squares()
    dataset.function = lambda: 0
    with pytest.raises(Exception, match="pickle"):
        make(dataset, context="spawn")


def test_several_pools():
    pools = [make(sets.Squares(), base_seed=i) for i in range(3)]
    for step in range(5):
        for pool in pools:
            pool.post(step, [step, step + 1])
        assert all(pool.next(30).value[1].tolist() == [step**2, (step + 1) ** 2] for pool in pools)
    pools.pop(0).close()
    pools[0].post(9, [1])
    assert pools[0].next(30).value[1].tolist() == [1]
    while pools:
        pools.pop()


class Alarm(Exception):
    pass


def ring(*_):
    raise Alarm


def test_an_end_that_is_interrupted_leaves_nothing():
    """By another signal than SIGINT, which waits."""
    before = signal.signal(signal.SIGALRM, ring)
    pool = make(sets.Slow(3.0))
    pool.post(0, [1, 2])
    wait_for(lambda: len(pool.pids) == 2)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Alarm):
            pool.close()
    finally:
        signal.signal(signal.SIGALRM, before)
    wait_for(lambda: not children())


def test_procpools_come_and_go_in_several_threads():
    """One forks while another closes its descriptors."""
    errors = []

    def use():
        try:
            for _ in range(15):
                with make(sets.Squares()) as pool:
                    assert run(pool, [[1, 2]])[0].value[1].tolist() == [1, 4]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@pytest.mark.parametrize("kind", ["map", "iterable"])
def test_a_closed_pool_lets_go_of_the_data_set_at_once(kind):
    dataset = sets.Squares() if kind == "map" else sets.Stream([4, 4])
    alive = weakref.ref(dataset)
    pool = make(dataset, kind=kind)
    gc.disable()
    try:
        pool.close()
        del pool, dataset
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_pool_in_a_cycle_ends_whatever_the_garbage_collector_finalizes_first():
    cycle = [make(sets.Squares())]
    cycle.append(cycle)
    conn, popen = cycle[0]._supervisor._conn, cycle[0]._supervisor._process._popen
    gc.collect()  # puts what is held from here before the rest in its list
    del conn, popen, cycle
    gc.collect()
    assert not children()


def test_clear():
    with make(sets.Slow(0.01)) as pool:
        for number, batch in enumerate(batches_of(100, 4)):
            assert pool.post(number, batch)
        pool.next(30)
        assert pool.clear(30)
        with pytest.raises(NothingPosted):
            pool.next(1)
        pool.begin_epoch(9)
        assert run(pool, [[1, 2]])[0].value.tolist() == [1, 2]


# A program that forks itself for each way to end, after a pool has begun to work in it.
ENDS = """
import gc, os, signal, sys, time
import procpool_sets as sets
from drapps.procpool.dataset_pool import DatasetPool
from torch.utils.data import default_collate

def leave(end):
    pool = DatasetPool(sets.Slow(5 if end == "busy" else 0.0), default_collate, workers=2)
    for tag in range(3):
        pool.post(tag, [tag, 1])
    pool.start()
    if end != "busy":
        pool.next(30)
    while len(pool.pids) < 2:
        time.sleep(0.01)
    print(end, pool.zygote_pid, *pool.pids.values(), flush=True)
    if end == "exception":
        raise SystemExit(3)
    if end in ("SIGINT", "SIGTERM", "SIGKILL"):
        os.kill(os.getpid(), getattr(signal, end))
        time.sleep(30)
    if end == "deleted":
        del pool
        gc.collect()
    globals()["still"] = locals().get("pool")

for end in ("exit", "exception", "SIGINT", "SIGTERM", "SIGKILL", "deleted", "busy"):
    pid = os.fork()
    if pid == 0:
        leave(end)
        break
    os.waitpid(pid, 0)
"""


def run_program(text):
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip


def test_nothing_is_left_of_a_program():
    done = run_program(ENDS)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 7 and all(len(line) == 4 for line in lines), done.stderr
    ends = {int(pid): end for end, *pids in lines for pid in pids}
    deadline = time.monotonic() + 10
    while set(ends) & set(children()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not {ends[pid] for pid in set(ends) & set(children())}
    assert "leaked" not in done.stderr
    assert done.stderr.count("KeyboardInterrupt") == done.stderr.count("Traceback") == 1


BEGIN = """
import os, signal, sys, time
import procpool_sets as sets
from drapps.procpool.dataset_pool import DatasetPool
from torch.utils.data import default_collate

pool = DatasetPool(sets.Squares(), default_collate, workers=2)
"""

KILLED = """
from drapps.procpool import launch

forks, fork = [], os.fork

def fork_once():
    if forks:
        print(forks[0], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    forks.append(fork())
    return forks[0]

os.fork = fork_once
launch._can_be_split = lambda process: False  # one by one
pool.start()
"""

FORKS = """
pool.post(0, [1, 2])
pool.next(30)
while len(pool.pids) < 2:
    time.sleep(0.01)
before = pool.pids
pid = os.fork()
if pid == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
time.sleep(0.3)
pool.post(1, [3, 4])
print(pool.next(30).value[1].tolist(), pool.pids == before, pool.deaths)
"""


DAEMON = """
pool.post(0, [1, 2])
pool.next(30)
pid = os.fork()
if pid == 0:
    del pool
    os.closerange(3, 100)  # as programs do that go to the background
    with DatasetPool(sets.Squares(), default_collate, workers=2) as own:
        own.post(0, [3, 4])
        print(own.next(30).value[1].tolist(), own.deaths, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
pool.post(1, [5, 6])
print(pool.next(30).value[1].tolist(), pool.deaths)
"""


def test_a_fork_of_the_program_may_close_everything_and_have_a_pool_of_its_own():
    done = run_program(BEGIN + DAEMON)
    assert (done.stdout, done.stderr) == ("[9, 16] 0\n[25, 36] 0\n", "")


def test_a_first_worker_ends_with_a_main_process_that_had_no_zygote_yet():
    pid = int(run_program(BEGIN + KILLED).stdout)
    wait_for(lambda: pid not in children())


def test_a_fork_of_the_program_ends_and_leaves_the_workers_alone():
    done = run_program(BEGIN + FORKS)
    assert (done.stdout, done.stderr) == ("7\n[9, 16] True 0\n", "")
