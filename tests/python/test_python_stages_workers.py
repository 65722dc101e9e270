"""The worker processes of chains with Python functions: deaths, order, memory, and their number."""

import gc
import os
import signal
import time

import numpy
import pytest
from imagesets import run_python, write_folder

import drapps
from drapps.procpool import launch

N = 48


def numbers(n=N):
    return drapps.from_arrays(x=numpy.arange(n))


def dying(folder, who, times):
    """A function that kills its process at some numbers, so many times for each."""

    def function(sample):
        x = sample["x"]
        if x in who:
            marks = [folder / f"{x}-{i}" for i in range(times)]
            for mark in marks:
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return sample

    return function


def values(batches, name="x"):
    return numpy.concatenate([batch[name] for batch in batches]).tolist()


def open_loader(pipe, **options):
    return pipe.loader(**{"batch_size": 4, "workers": 2, "output": "numpy", **options})


@pytest.mark.parametrize("in_order", [True, False])
def test_a_dead_worker_is_replaced(tmp_path, in_order):
    with open_loader(numbers().map(dying(tmp_path, {3, 20, 40}, 1)), in_order=in_order) as loader:
        with pytest.warns(RuntimeWarning, match="SIGKILL and was replaced; made again") as seen:
            got = values(loader.batches())
        assert (got if in_order else sorted(got)) == [*range(N)]
        assert sum("made again" in str(warning.message) for warning in seen) == loader.stats()["deaths"] == 3


def test_a_killed_zygote_is_replaced():
    pipe = numbers().map(lambda sample: (time.sleep(0.005), sample)[1])
    with open_loader(pipe) as loader:
        batches = loader.batches()
        got = [next(batches)]
        os.kill(loader._pool.zygote_pid, signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="zygote"):
            got += batches
        assert values(got) == [*range(N)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("policy, samples", [("raise", 0), ("skip", N - 1), ("replace", N)])
def test_a_sample_that_kills_its_workers(tmp_path, policy, samples):
    pipe = numbers().map(dying(tmp_path, {9}, 3))
    with open_loader(pipe, on_bad_sample=policy) as loader:
        if policy == "raise":
            with pytest.raises(drapps.BadSampleError, match="each of 3 worker processes.*SIGKILL"):
                list(loader)
            return
        batches = list(loader.batches())
        assert sum(batch.samples for batch in batches) == samples
        (bad,) = sum((batch.bad for batch in batches), [])
        assert bad["position"] == bad["id"] == 9 and "SIGKILL" in bad["error"]
        assert set(values(batches)) == {*range(N)} - {9}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_workers_that_always_die():
    with open_loader(numbers().map(lambda sample: os.kill(os.getpid(), signal.SIGKILL))) as loader:
        with pytest.raises(drapps.Error, match="SIGKILL"):
            list(loader)


def slow_first(folder):
    """A function that is at number 0 until another worker is at number 30."""

    def function(sample):
        if sample["x"] == 30:
            (folder / "go").touch()
        if sample["x"] == 0:
            wait_for((folder / "go").exists, True)
        time.sleep(0.002)
        return sample

    return function


def test_what_is_ready_first_comes_first(tmp_path):
    with open_loader(numbers().map(slow_first(tmp_path)), in_order=False) as loader:
        got = list(loader.batches())
        assert sorted(values(got)) == [*range(N)]
        assert 0 not in got[0]["x"] and [batch.samples for batch in got] == [4] * (N // 4)
        assert all(batch.ids == batch["x"].tolist() for batch in got)
        assert [batch.number for batch in got] == [*range(N // 4)]


@pytest.mark.parametrize("filtered", [False, True])
def test_state_out_of_order(tmp_path, filtered):
    """What a state says to be delivered and what follows it are everything, each once."""
    pipe = numbers().map(slow_first(tmp_path))
    want = [*range(N)]
    if filtered:
        pipe, want = pipe.filter(lambda x: x % 3 != 1, field="x"), [x for x in want if x % 3 != 1]
    with open_loader(pipe, in_order=False) as loader:
        batches = loader.batches()
        got = [next(batches) for _ in range(3)]
        state = loader.state_dict()
        rest = values(batches)
    assert 0 not in values(got) and sorted([*values(got), *rest]) == want
    for other_order in (False, True):
        with open_loader(pipe, in_order=other_order, workers=1) as other:
            other.load_state_dict(state)
            assert sorted([*values(got), *values(other.batches())]) == want


@pytest.mark.parametrize("filtered", [False, True])
def test_batches_are_made_ahead(tmp_path, filtered):
    """While nobody asks for a batch, so many are made, and no more."""

    def note(sample):
        (tmp_path / str(sample["x"])).touch()
        return sample

    pipe = numbers().map(note)
    pipe = pipe.filter(lambda sample: True) if filtered else pipe
    with open_loader(pipe, prefetch=3) as loader:
        batches = loader.batches()
        first = next(batches)
        made = wait_for(lambda: len(list(tmp_path.iterdir())), 16)
        time.sleep(0.1)
        assert first.samples == 4 and made == len(list(tmp_path.iterdir())) == 16
        loader.set("prefetch", 5)
        assert loader.get("prefetch") == 5
        next(batches)
        assert wait_for(lambda: len(list(tmp_path.iterdir())), 28) == 28


def wait_for(look, value, seconds=20):
    end = time.monotonic() + seconds
    while (seen := look()) < value and time.monotonic() < end:
        time.sleep(0.01)
    return seen


def test_memory_limit():
    """Large batches wait for each other; all come."""
    pipe = numbers(16).map(lambda sample: {"x": sample["x"], "big": numpy.zeros(1 << 18, "uint8")})
    with open_loader(pipe, memory_limit=1 << 20, outputs="x,big", prefetch=8) as loader:
        batches = loader.batches()
        got = [int(next(batches)["x"][0])]
        time.sleep(0.2)
        assert loader._pool.stats()["peak_bytes"] < 16 << 18
        got += [int(batch["x"][0]) for batch in batches]
        assert got == [0, 4, 8, 12]


def test_the_number_of_workers_changes_while_it_runs():
    def who(sample):
        time.sleep(0.005)
        return {**sample, "pid": os.getpid()}

    with open_loader(numbers(240).map(who), workers=1, outputs="x,pid", prefetch=2) as loader:
        batches = loader.batches()
        got = [next(batches) for _ in range(4)]
        assert len(set(values(got, "pid"))) == 1
        loader.set("workers", 3)
        assert wait_for(lambda: len(loader._pool.pids), 3) == 3
        later = [next(batches) for _ in range(20)]
        assert len(set(values(later, "pid"))) > 1
        loader.set("workers", 1)
        assert loader.get("workers") == 1
        assert values([*got, *later, *batches]) == [*range(240)]
        loader.set("workers", 0)
        assert set(values(loader.batches(), "pid")) == {os.getpid()} and loader._pool is None


def test_no_more_workers_counts_from_the_next_epoch_on():
    with drapps.Monitor() as monitor, open_loader(numbers().map(dict), workers=2, resource_monitor=monitor) as loader:

        def told():
            stats = loader.stats()
            assert stats["workers"] == stats["knobs"]["workers"] and stats["prefetch"] == stats["knobs"]["prefetch"]
            return stats["workers"], loader.get("workers")

        batches = loader.batches()
        next(batches)
        loader.set("workers", 0)
        assert told() == (2, 2)
        assert len(list(batches)) == N // 4 - 1 and told() == (2, 2)
        batches = loader.batches()
        next(batches)
        assert told() == (0, 0)
        loader.set("workers", 1)
        assert told() == (1, 1) and loader._pool is None
        assert len(list(batches)) == N // 4 - 1
        assert values(loader.batches()) == [*range(N)] and len(loader._pool.pids) == 1


def test_what_is_to_be_no_workers_is_left_alone_by_the_policy():
    options = {"workers": None, "policy": "rules"}
    with drapps.Monitor() as monitor, open_loader(numbers().map(dict), **options, resource_monitor=monitor) as loader:
        next(loader.batches())
        n, told = loader.get("workers"), []
        loader._pool.controller.set = lambda *setting: told.append(setting)
        loader.set("workers", 0)
        assert loader.get("workers") == n and told == [("workers", n)]


def test_a_loader_that_nobody_holds_ends_its_processes():
    loader = open_loader(numbers().map(lambda sample: sample))
    batches = iter(loader)
    next(batches)
    wait_for(lambda: len(loader._pool.pids), 2)  # noqa: F821
    pids = [loader._pool.zygote_pid, *loader._pool.pids.values()]
    gc.disable()
    try:
        del loader, batches
    finally:
        gc.enable()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_batches_outlive_the_loader():
    with open_loader(numbers().map(lambda sample: {"x": numpy.full(1000, sample["x"])})) as loader:
        first, *_ = loader.batches()
    gc.collect()
    first["x"][0] += 1  # it is the user's
    assert first["x"][:, 0].tolist() == [1, 1, 2, 3]


def test_a_batch_of_bad_samples_alone_does_not_end_the_epoch(tmp_path):
    root = write_folder(tmp_path / "set", n=6)
    (root / "bee" / "004.jpg").write_bytes(b"no picture")
    pipe = drapps.read(root).decode().resize((8, 8)).map(lambda sample: sample)
    for workers in (0, 2):
        with open_loader(pipe, batch_size=1, workers=workers, on_bad_sample="skip") as loader:
            batches = list(loader.batches())
            assert len(batches) == 5 and sum(len(batch.bad) for batch in batches) == 1


def test_results_that_cannot_be_sent():
    def odd(sample):
        time.sleep(0.005)  # dear enough to be sent one by one
        return {"x": sample["x"], "f": lambda: 0}

    with open_loader(numbers().map(odd), outputs="x") as loader:
        with pytest.raises(TypeError, match="cannot be sent"):
            list(loader)


def test_torch_is_not_needed():
    code = """
import sys, numpy, drapps
pipe = drapps.from_arrays(x=numpy.arange(8)).map(lambda s: {"x": s["x"] + 1, "torch": "torch" in sys.modules})
got = [(batch["x"].tolist(), batch["torch"].any()) for batch in pipe.loader(batch_size=4, workers=2)]
assert got == [([1, 2, 3, 4], False), ([5, 6, 7, 8], False)], got
assert "torch" not in sys.modules
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_a_start_that_fails_is_no_end_of_the_loader(monkeypatch):
    """The next epoch has processes of its own."""
    starts, start = [], launch.start_both

    def all_but_the_first(*both):
        starts.append(both)
        if len(starts) == 1:
            raise OSError("no process left")
        start(*both)

    monkeypatch.setattr(launch, "start_both", all_but_the_first)
    loader = numbers().map(lambda sample: sample).loader(batch_size=8, workers=1, output="numpy")
    with pytest.raises(OSError, match="no process left"):
        list(loader)
    assert sorted(values(loader)) == list(range(N))
    loader.close()
