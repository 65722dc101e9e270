"""Knobs of a native loader: every row of the table can be set and read, and changes no byte."""

import math

import pytest
from imagesets import gather, same, train

import drapps


def options(**changes):
    return {"batch_size": 2, "shuffle": True, "seed": 3, "output": "numpy", "workers": 2, "policy": "fixed", **changes}


def some_values(knob):
    """The ends of the range, and a little within."""
    near = 8 if knob.name in ("workers", "readers") else knob.most  # threads by the hundred take their time
    near = 0 if knob.name == "codec" else near  # the only one that each build has
    return [knob.least, min(knob.least + 1, knob.most), min(near, knob.most), knob.least]


@pytest.fixture
def loader(pipe):
    with pipe.loader(**options()) as loader:
        yield loader


@pytest.mark.parametrize("knob", drapps.knobs(), ids=lambda knob: knob.name)
def test_set_and_get(loader, knob):
    for value in some_values(knob):
        loader.set(knob.name, value)
        assert loader.get(knob.name) == value


@pytest.mark.parametrize("knob", drapps.knobs(), ids=lambda knob: knob.name)
def test_out_of_range(loader, knob):
    before = loader.get(knob.name)
    for value in (knob.least - 1, knob.most * 2 + 1, math.nan, math.inf):
        with pytest.raises(ValueError, match=knob.name):
            loader.set(knob.name, value)
    assert loader.get(knob.name) == before


@pytest.mark.parametrize("value", ["2", None])
def test_no_number(loader, value):
    with pytest.raises(ValueError, match=f"workers must be an int from 0 to 256, got {value!r}"):
        loader.set("workers", value)


def test_all_of_them_while_it_runs(pipe):
    want = gather(pipe.loader(**options(workers=0)))
    with pipe.loader(**options()) as loader:
        got = []
        turns = [(knob.name, value) for knob in drapps.knobs() for value in some_values(knob)]
        for epoch in range(4):
            loader.set_epoch(0)
            got = []
            for i, batch in enumerate(loader.batches()):
                got.append((batch["image"].copy(), batch["label"].copy(), list(batch.ids)))
                for name, value in turns[(epoch * 11 + i) % len(turns) :: 7]:
                    loader.set(name, value if name != "cpu_ceiling" else value / 2)
            assert same(want, got)


def test_slow_reads_on_purpose(folder, monkeypatch):
    """The delay is that of the time when the data set was opened; with readers the batches are the same."""
    monkeypatch.setenv("DRAPPS_READ_DELAY_US", "5000")
    pipe = train(folder)
    pipe.loader(**options()).close()
    monkeypatch.delenv("DRAPPS_READ_DELAY_US")
    got = {}
    for readers in (0, 8):
        with pipe.loader(**options(workers=1, prefetch=16, seek_index="off")) as loader:
            loader.set("readers", readers)
            got[readers] = gather(loader)
            stats = loader.stats()
        assert stats["read_ns"] >= 5_000_000 * stats["samples"]
    assert same(got[0], got[8])
