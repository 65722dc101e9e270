"""DataLoader in worker processes: seeds, contexts, failures, deaths, timeouts, order, ends."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy
import psutil
import pytest
import torch
from imagesets import run_python
from loadersets import Bookmark, Faulty, Many, Numbers, Rolls, Slow, Stream, Who, lists, none_left
from torch.utils import data

import drapps
from drapps import DataLoader


@pytest.fixture(autouse=True)
def leaves_nothing():
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    yield
    assert none_left()
    assert len(os.listdir("/proc/self/fd")) <= before[0] + 2 and threading.active_count() <= before[1]


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


@pytest.mark.parametrize("context", ["fork", "forkserver", multiprocessing.get_context("spawn")], ids=str)
def test_contexts(context):
    loader = DataLoader(Numbers(6), 2, num_workers=2, multiprocessing_context=context)
    assert lists(loader) == [[0, 1], [2, 3], [4, 5]]


def test_what_cannot_be_pickled_is_said_at_iter():
    with pytest.raises((TypeError, AttributeError, multiprocessing.ProcessError)):
        iter(DataLoader(Numbers(2), num_workers=1, collate_fn=lambda x: x, multiprocessing_context="spawn"))


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
    assert done.stderr.count("This DataLoader will create 2 worker processes in total") == 2
    assert done.stderr.count("  self.check_worker_number_rationality()\n") == 2


def test_processes_are_forked_before_a_pilot_begins(monkeypatch, tmp_path):
    beside, fork = [], os.fork

    def noting():
        beside.append([thread.name for thread in threading.enumerate() if thread.name.startswith("drapps")])
        return fork()

    monkeypatch.setattr(os, "fork", noting)
    with DataLoader(Numbers(20), num_workers=2, trace=tmp_path / "trace") as loader:
        assert len(list(loader)) == 20
    assert beside == [[], []]  # the first worker and the zygote


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
            1 / 0
    assert none_left()


# --- deaths ---


def workers_of(iterator):
    return list(iterator._fleet.pids.values())


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
    with pytest.raises(RuntimeError, match="sample 5"):
        lists(DataLoader(Deadly(8), 2, num_workers=2))
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


# --- order ---


def test_out_of_order_a_slow_sample_holds_up_nothing():
    loader = DataLoader(Slow(16, [0], 1.0), 4, num_workers=2, in_order=False)
    found = lists(loader)
    assert 0 not in found[0] and sorted(sum(found, [])) == list(range(16))


def test_in_order_nothing_overtakes():
    assert lists(DataLoader(Slow(12, [0], 0.2), 2, num_workers=3)) == [[i, i + 1] for i in range(0, 12, 2)]


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


# --- streams ---


def test_streams_with_states_go_on_in_their_workers():
    def loader():
        return DataLoader(Bookmark(40), 3, num_workers=2)

    whole, saved, again = lists(loader()), loader(), loader()
    iterator = iter(saved)
    begun = [next(iterator).tolist() for _ in range(5)]
    state = saved.state_dict()
    assert [worker[1] for worker in state["dataset"]["workers"]] == [{"at": 9}, {"at": 6}]
    again.load_state_dict(state)
    assert begun + lists(again) == whole


def test_streams_need_the_same_number_of_workers():
    saved = DataLoader(Stream(40), 3, num_workers=2)
    next(iter(saved))
    with pytest.raises(ValueError, match="iterable_workers 2"):
        DataLoader(Stream(40), 3, num_workers=1).load_state_dict(saved.state_dict())


def test_a_killed_worker_of_a_stream_goes_on():
    iterator = iter(DataLoader(Stream(20000), 10, num_workers=2, prefetch_factor=1))
    found = next(iterator).tolist()
    os.kill(random.choice(workers_of(iterator)), signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="was replaced"):
        found += sum(lists(iterator), [])
    assert sorted(found) == list(range(20000))


class OneBad(data.IterableDataset):
    """An iterator that goes on after an error; not a generator, which would not."""

    def __iter__(self):
        self.at = -1
        return self

    def __next__(self):
        self.at += 1
        if self.at == 5:
            raise ValueError("item 5")
        if self.at == 40:
            raise StopIteration
        return self.at


def drained(iterator):
    """Batches as lists, and the names of errors."""
    found = []
    while True:
        try:
            found.append(next(iterator).tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)


def test_a_stream_goes_on_after_an_error():
    expected = [[0, 1, 2, 3], "ValueError", *(list(range(i, min(i + 4, 40))) for i in range(6, 40, 4))]
    assert drained(iter(data.DataLoader(OneBad(), 4, num_workers=1))) == expected
    assert drained(iter(DataLoader(OneBad(), 4, num_workers=1))) == expected


def test_a_killed_worker_of_a_stream_with_an_error_goes_on():
    iterator = iter(DataLoader(OneBad(), 4, num_workers=1, prefetch_factor=1))
    found = [next(iterator).tolist()]
    with pytest.raises(ValueError, match="item 5"):
        next(iterator)
    found.append(next(iterator).tolist())
    os.kill(workers_of(iterator)[0], signal.SIGKILL)
    with warnings.catch_warnings(action="ignore"):  # the pass may be over before the death is heard of
        found += drained(iterator)
    assert sum(found, []) == [i for i in range(40) if i not in (4, 5)]


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


def test_batches_that_are_kept_keep_no_descriptors():
    loader = DataLoader(Numbers(8), 4, num_workers=1)
    before = len(os.listdir("/proc/self/fd"))
    kept = [next(iter(loader)) for _ in range(4)]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert all(batch.tolist() == [0, 1, 2, 3] for batch in kept)


UNGUARDED = """
from drapps import DataLoader

list(DataLoader([1, 2, 3, 4], 2, num_workers=1, multiprocessing_context="spawn", worker_init_fn=print))
"""


def test_spawn_without_a_guard_fails_once(tmp_path):
    (tmp_path / "program.py").write_text(UNGUARDED)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "exited with code 1 before it began" in done.stderr
    assert done.stderr.count("An attempt has been made to start a new process") == 1


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


def test_new_workers_see_the_data_set_as_it_is():
    dataset = Numbers(4)
    loader = DataLoader(dataset, 4, num_workers=1)
    assert lists(loader) == [[0, 1, 2, 3]]
    dataset.n = 2
    assert lists(loader) == [[0, 1]]


# --- how much is under way ---


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
    (Wide(60), {"in_order": False, "num_workers": 4}, 8),  # 24 batches would take 96 MB
], ids=str)  # fmt: skip
def test_small_samples_out_of_order_are_many(dataset, options, ahead):
    loader = DataLoader(dataset, **{"batch_size": 2, "num_workers": 2, "policy": "fixed", **options})
    iterator = iter(loader)
    count = len(next(iterator))
    assert iterator._ahead() == ahead and iterator._under_way <= ahead
    assert count + sum(map(len, iterator)) == len(dataset)


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
        thresholds.append(iterator._fleet.stats()["threshold_ns"])
        assert sorted(torch.cat(list(iterator)).tolist()) == list(range(60))
    assert thresholds[0] == 0 < thresholds[1] < 20e6


class Prepared(Numbers):
    """The slow part is marked."""

    @drapps.deterministic(key=lambda self, i: i)
    def prepare(self, i):
        return {"value": i, "pid": os.getpid()}

    def __getitem__(self, i):
        return torch.tensor([self.prepare(i)["value"], self.prepare(i)["pid"]])


@pytest.mark.parametrize("workers", [0, 2])
def test_marked_functions_are_kept(tmp_path, workers):
    def makers():
        rows = torch.cat(list(DataLoader(Prepared(12), 3, num_workers=workers, cache=tmp_path)))
        assert rows[:, 0].tolist() == list(range(12))
        return rows[:, 1].tolist()

    first = makers()
    assert makers() == first


# --- the end ---


def test_close_ends_passes():
    loader = DataLoader(Numbers(100), num_workers=2)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    assert none_left()
    with pytest.raises(drapps.StateError, match="closed"):
        next(iterator)


PROGRAM = """
import os, torch
from drapps import DataLoader

loader = DataLoader(torch.arange(100), num_workers=2, persistent_workers={persistent})
iterator = iter(loader)
next(iterator)
print(os.getpid(), *iterator._fleet.pids.values(), iterator._fleet.zygote_pid, flush=True)
{end}
"""


@pytest.mark.parametrize(
    ("end", "persistent"), [("", True), ("raise SystemExit(0)", False), ("os.kill(os.getpid(), 9)", True)]
)
def test_the_end_of_the_program_is_the_end_of_the_workers(end, persistent):
    done = run_python(PROGRAM.format(end=end, persistent=persistent))
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) >= 3 and "Traceback" not in done.stderr
    deadline = time.monotonic() + 10
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(psutil.pid_exists, pids))


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


def test_numpy_and_python_objects_travel():
    class Things(Numbers):
        def __getitem__(self, i):
            return {"array": numpy.arange(i), "text": str(i), "tensor": torch.ones(i)}

    samples = list(DataLoader(Things(4), None, num_workers=2, collate_fn=dict))
    assert [sample["text"] for sample in samples] == ["0", "1", "2", "3"]
    assert all(sample["array"].tolist() == list(range(i)) for i, sample in enumerate(samples))


# --- samples that cannot be sent ---


class Closures(Numbers):
    """Samples that no pickle holds; from some index on."""

    def __init__(self, n, first=0):
        super().__init__(n)
        self.first = first

    def __getitem__(self, i):
        return (lambda: i) if i >= self.first else i


def called(batches):
    return [[sample() if callable(sample) else sample for sample in batch] for batch in batches]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("first", [0, 10])
def test_samples_that_cannot_be_sent_are_made_inline_where_nobody_said_workers(first, in_order):
    options = {"batch_size": 4, "shuffle": True, "collate_fn": list, "in_order": in_order}
    torch.manual_seed(3)
    expected = called(data.DataLoader(Closures(24, first), **options))
    torch.manual_seed(3)
    loader = DataLoader(Closures(24, first), **options)
    with pytest.warns(RuntimeWarning, match="num_workers=0.*cannot be sent") as warned:
        found = called(loader)
    assert sorted(found) == sorted(expected) and (found == expected or not in_order) and len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 6 and loader.num_workers == 0 and loader.stats()["batches"] == 12


def test_a_pass_that_went_inline_has_a_state():
    loader = DataLoader(Closures(24), 4, collate_fn=list)
    with pytest.warns(RuntimeWarning, match="cannot be sent"):
        iterator = iter(loader)
        first = [next(iterator), next(iterator)]
    state = loader.state_dict()
    again = DataLoader(Closures(24), 4, collate_fn=list, num_workers=0)
    again.load_state_dict(state)
    assert called([*first, *again]) == called([*first, *iterator]) == [[*range(i, i + 4)] for i in range(0, 24, 4)]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("first", [0, 10, 50, 59])
def test_threads_that_share_an_iterator_go_inline_together(first, in_order):
    iterator = iter(DataLoader(Closures(60, first), 1, collate_fn=list, in_order=in_order))
    found, errors = [], []

    def consume():
        try:
            for batch in iterator:
                found.extend(called([batch])[0])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == [] and sorted(found) == list(range(60))


@pytest.mark.parametrize("options", [{"num_workers": 1}, {"persistent_workers": True}], ids=str)
def test_samples_that_cannot_be_sent_are_an_error_of_workers_that_were_asked_for(options):
    with pytest.raises(TypeError, match="cannot be sent from a worker process"):
        list(DataLoader(Closures(8), 4, collate_fn=list, **options))
