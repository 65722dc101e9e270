"""Events in the traces of loaders with worker processes: passes, knobs, bad samples, workers that died."""

import os
import random
import signal
import subprocess
import sys

import pytest
import torch
from imagesets import write_folder
from loadersets import Faulty, Numbers, Slow, workers_of
from torch.utils import data

import drapps
from drapps import DataLoader, trace
from drapps.report import write_report

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def events(path, kind):
    return [event for event in trace.read(path).events if event["event"] == kind]


def chain(n=24):
    return drapps.from_arrays(x=torch.arange(n).numpy()).map(dict)


class Odd:
    """Samples by name, of which one is bad."""

    def __getitem__(self, name):
        if name == "b":
            raise ValueError("no b")
        return torch.tensor(1)


@pytest.mark.parametrize("persistent", [False, True])
def test_passes_of_a_dataloader(tmp_path, persistent):
    with DataLoader(Numbers(12), 4, num_workers=2, prefetch_factor=3, persistent_workers=persistent,
                    trace=tmp_path / "run") as loader:  # fmt: skip
        for _ in range(2):
            list(loader)
    assert [(e["epoch"], e["workers"], e["prefetch"]) for e in events(tmp_path / "run", "start")] == (
        [(0, 2, 6), (1, 2, 6)]
    )


def test_passes_of_a_chain(tmp_path):
    with chain().loader(batch_size=4, workers=2, prefetch=3, trace=tmp_path / "run") as loader:
        list(loader)
        state = None
        for i, _ in enumerate(loader):
            if i == 2:
                state = loader.state_dict()
                break
        loader.load_state_dict(state)
        list(loader)
    told = events(tmp_path / "run", "start")
    assert [(e["epoch"], e["base"], e["samples"]) for e in told] == [(0, 0, 24), (1, 0, 24), (1, 12, 12)]
    assert {(e["workers"], e["prefetch"]) for e in told} == {(2, 3)}


def test_passes_that_were_left(tmp_path):
    """Natively the next pass goes on with the same file, too."""
    with DataLoader(data.TensorDataset(torch.arange(64)), 4, num_workers=2, trace=tmp_path / "run") as loader:
        assert "natively" in loader.explain()
        next(iter(loader))
        state = loader.state_dict()
        loader.load_state_dict(state)
        for _ in loader:
            break
        assert len(list(loader)) == 16
    assert len(events(tmp_path / "run", "start")) == 3


def test_knobs_that_the_user_turned(tmp_path):
    with DataLoader(Slow(40, range(40), 0.005), 4, num_workers=1, trace=tmp_path / "run") as loader:
        for i, _ in enumerate(loader):
            if i == 1:
                loader.set("workers", 2)
    assert ("workers", 2) in [(e["knob"], e["value"]) for e in events(tmp_path / "run", "set")]
    with chain().loader(batch_size=4, workers=1, trace=tmp_path / "chain") as loader:
        for i, _ in enumerate(loader):
            if i == 1:
                loader.set("prefetch", 5)
    assert ("prefetch", 5) in [(e["knob"], e["value"]) for e in events(tmp_path / "chain", "set")]


@pytest.mark.parametrize("policy, action", [("skip", "skipped"), ("replace", "replaced")])
def test_bad_samples_of_a_dataloader(tmp_path, policy, action):
    with DataLoader(Faulty(12, [5]), 4, num_workers=2, on_bad_sample=policy, trace=tmp_path / "run") as loader:
        list(loader)
    (bad,) = events(tmp_path / "run", "bad")
    assert (bad["epoch"], bad["id"], bad["action"]) == (0, 5, action) and "no sample 5" in bad["error"]


def test_bad_samples_by_name(tmp_path):
    with DataLoader(Odd(), 2, sampler=["a", "b", "c", "d"], num_workers=1, on_bad_sample="skip",
                    trace=tmp_path / "run") as loader:  # fmt: skip
        list(loader)
    (bad,) = events(tmp_path / "run", "bad")
    assert bad["key"] == "b" and "id" not in bad


def test_bad_samples_of_a_chain(tmp_path):
    root = write_folder(tmp_path / "set", n=8)
    path = root / "bee/004.jpg"
    path.write_bytes(path.read_bytes()[:300])
    pipe = drapps.read(root).decode().resize((8, 8)).map(dict)
    with pipe.loader(batch_size=4, workers=1, on_bad_sample="skip", trace=tmp_path / "run") as loader:
        list(loader)
    (bad,) = events(tmp_path / "run", "bad")
    assert bad["key"] == "bee/004.jpg" and bad["action"] == "skipped" and "004.jpg" in bad["error"]


@pytest.fixture
def killed(tmp_path):
    """The trace of a run in which a worker was killed, and its pid."""
    with DataLoader(Slow(40, range(40), 0.01), 4, num_workers=2, trace=tmp_path / "run") as loader:
        iterator = iter(loader)
        next(iterator)
        pid = random.choice(workers_of(iterator))
        os.kill(pid, signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="killed by SIGKILL and was replaced"):
            list(iterator)
    return tmp_path / "run", pid


def test_a_worker_that_died(killed):
    path, pid = killed
    (died,) = events(path, "died")
    assert died["pid"] == pid and died["worker"] in (1, 2) and died["replaced"] is True
    assert died["exitcode"] == -signal.SIGKILL and 0 <= died["redone"] <= 4
    assert died["worker"] in {span.thread for span in trace.read(path).spans if span.kind == "work"}


def test_a_worker_that_died_is_shown(killed, tmp_path):
    path, pid = killed
    line = [sys.executable, "-m", "drapps.cli", "trace", "show", str(path)]
    text = subprocess.run(line, capture_output=True, text=True, timeout=60).stdout
    assert "1 died" in text and f"pid {pid}, " in text and "last events:" in text
    write_report([("run", trace.read(path))], tmp_path / "page.html")
    assert f"died, worker {events(path, 'died')[0]['worker']}, pid {pid}" in (tmp_path / "page.html").read_text()
    marks = [event for event in trace.read(path).chrome()["traceEvents"] if event["name"] == "died"]
    assert len(marks) == 1 and marks[0]["tid"] == events(path, "died")[0]["worker"]


def test_a_worker_of_a_chain_that_died(tmp_path):
    note = tmp_path / "note"

    def deadly(sample):
        if sample["x"] == 13 and not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return dict(sample)

    pipe = drapps.from_arrays(x=torch.arange(24).numpy()).map(deadly)
    loader = pipe.loader(batch_size=4, workers=1, trace=tmp_path / "run")
    with loader, pytest.warns(RuntimeWarning, match="SIGKILL and was replaced"):
        assert len(list(loader)) == 6
    (died,) = events(tmp_path / "run", "died")
    assert died["worker"] == 1 and died["redone"] >= 1


def test_workers_that_ended_with_their_zygote(tmp_path):
    with DataLoader(Slow(60, range(60), 0.01), 4, num_workers=2, trace=tmp_path / "run") as loader:
        iterator = iter(loader)
        next(iterator)
        zygote = iterator._pool.zygote_pid
        os.kill(zygote, signal.SIGKILL)
        with pytest.warns(RuntimeWarning, match="the zygote"):
            list(iterator)
    died = events(tmp_path / "run", "died")
    assert died and {e["zygote"] for e in died} == {zygote} and not any("exitcode" in e for e in died)


def test_long_texts_are_cut_and_a_closed_trace_is_told_nothing(tmp_path):
    writer = drapps._core.open_trace(str(tmp_path / "run"), "{}")
    trace.tell(writer, "bad", error="x" * 100_000, id=7, key=None)
    writer.close()
    trace.tell(writer, "bad", error="y")
    trace.tell(None, "bad", error="z")
    (bad,) = events(tmp_path / "run", "bad")
    assert len(bad["error"]) == trace.LONGEST and bad["id"] == 7 and "key" not in bad


def test_samples_are_in_the_batch_that_they_were_given_in(tmp_path):
    """Out of order, that is not the one that they were posted with."""
    with DataLoader(Slow(40, range(0, 40, 7), 0.03), 4, num_workers=2, in_order=False,
                    trace=tmp_path / "run") as loader:  # fmt: skip
        batches = [batch.tolist() for batch in loader]
    spans = [span for span in trace.read(tmp_path / "run").spans if span.kind == "work"]
    waits = [span for span in trace.read(tmp_path / "run").spans if span.kind == "wait"]
    told = sorted((span.batch, span.slot, span.id) for span in spans)
    want = sorted((wait.batch, slot, id) for wait, batch in zip(waits, batches, strict=True)
                  for slot, id in enumerate(batch))  # fmt: skip
    assert told == want
