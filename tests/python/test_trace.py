"""Traces: written by loaders and by hand, read back, replayed, shown by Perfetto and beside torch's profile."""

import json
import math
import os
import subprocess
import sys
import time

import pytest
from imagesets import N_IMAGES

import drapps
from drapps import _core, perfetto, trace
from drapps.monitor import Monitor, sensors
from drapps.sched import flows


def options(**changes):
    return {"batch_size": 5, "shuffle": True, "seed": 3, "output": "numpy", "workers": 2, **changes}


@pytest.fixture
def run(pipe, tmp_path):
    """The trace of an epoch."""
    loader = pipe.loader(**options(trace=tmp_path / "run.drtrace"))
    list(loader)
    loader.close()
    return trace.read(tmp_path / "run.drtrace")


TERMS = {"throughput": 0.75, "latency": 0.125, "idle": 0.3}
WEIGHTS = {"throughput": 1.0, "latency": 0.1, "idle": 2.0}


def written(path, rewards=(), **settings):
    """A trace with some of everything."""
    writer = _core.open_trace(str(path), json.dumps({"data": "made up"}), **settings)
    start = time.monotonic_ns()
    with Monitor(interval=0.01) as monitor:
        writer.snapshot(monitor._core.latest())
    for i in range(2):
        values = {row.name: float(i) for row in flows()} | {"samples": 100.0 * i, "wait": 0.1 + i}
        writer.flow(start + i * 100_000_000, values)
    for i, reward in enumerate(rewards):
        changes = {"workers": (2.0, 3.0)} if i % 2 else {}
        writer.decision((i + 1, start + i, "cpu", changes, reward, TERMS, WEIGHTS, False, f"because of {i}"))
    writer.span("read", start, start + 1000, thread=-1, position=3, id=7, key="a/b.jpg")
    writer.span("work", start + 1000, start + 9000, thread=2, epoch=1, batch=4, position=3, id=7, bytes=88, cost=1.5,
                slow=True, key="x" * 80, slot=2)  # fmt: skip
    writer.text(start, json.dumps({"event": "mark", "name": "höhe"}))
    assert writer.path == str(path)
    assert writer.status() == {"path": str(path), "state": "writing", "error": None}
    writer.close()
    return path


# --- what loaders write ---


@pytest.mark.parametrize("in_order", [True, False])
def test_every_sample_and_batch_of_an_epoch(pipe, tmp_path, in_order):
    """Which sample stood where can be read from the trace, also out of order."""
    loader = pipe.loader(**options(trace=tmp_path / "t", trace_spans=float("inf"), in_order=in_order))
    batches = sorted(loader.batches(), key=lambda batch: batch.number)
    loader.close()
    run = trace.read(tmp_path / "t")
    work = [span for span in run.spans if span.kind == "work"]
    assert sorted(span.position for span in work) == list(range(N_IMAGES))
    for span in work:
        batch = batches[span.batch]
        assert batch.ids[span.slot] == span.id and batch.positions[span.slot] == span.position
        assert 0 < span.cpu < 60 and trace.busy_time(span) == span.cpu
        assert span.thread in (1, 2) and span.bytes > 0 and span.cost > 0 and span.key.endswith((".jpg", ".png"))
    for kind in ("finish", "batch", "wait", "step"):
        assert sorted(span.batch for span in run.spans if span.kind == kind) == list(range(len(batches)))
    assert all(span.thread in (1, 2) for span in run.spans if span.kind in ("finish", "batch"))
    assert run.events[0]["event"] == "start" and run.ended == "closed"
    assert run.missing == {"lost": 0, "left_out": 0}


def test_an_epoch_out_of_order_is_repeated_from_its_trace(pipe, tmp_path):
    loader = pipe.loader(**options(trace=tmp_path / "t", trace_spans=float("inf"), in_order=False))
    loader.set_epoch(3)
    batches = [(batch.ids, batch["image"].copy()) for batch in loader.batches()]
    loader.close()
    order = trace.read(tmp_path / "t").order(3)
    assert order == [ids for ids, _ in batches]
    with pipe.loader(**options(pushed_order=True, shuffle=False)) as again:
        again.set_epoch(3)
        given = again.batches()
        for ids in order:
            again.push(ids)
        again.push_end()
        assert all((batch["image"] == image).all() for batch, (_, image) in zip(given, batches, strict=True))


def test_a_trace_without_all_spans_gives_no_order(pipe, tmp_path):
    loader = pipe.loader(**options(trace=tmp_path / "t", trace_spans=1))
    list(loader)
    loader.close()
    with pytest.raises(drapps.StateError, match="lacks the spans of some samples"):
        trace.read(tmp_path / "t").order()


def test_what_the_ops_cost_is_in_it(run):
    (profile,) = [event["profile"] for event in run.events if event["event"] == "ops"]
    costs = {op["op"]: op["us"] for op in profile["ops"]}
    assert costs["decode"] > 0 and 0 < profile["samples"] <= 32


def test_a_loader_that_did_nothing_measures_nothing(pipe, tmp_path):
    pipe.loader(**options(trace=tmp_path / "t")).close()
    assert [event["event"] for event in trace.read(tmp_path / "t").events] == ["end"]


def test_meta(run):
    assert run.meta["samples"] == N_IMAGES and run.meta["settings"]["batch_size"] == 5
    assert run.meta["graph"] and run.meta["drapps"] == drapps.__version__ and run.meta["pid"] > 0
    clock = run.meta["clock"]
    now = time.time_ns() - time.monotonic_ns()
    assert abs(clock["unix_ns"] - clock["start_ns"] - now) < 5e9  # the same clocks, give or take a step of NTP


def test_times_are_of_the_monotonic_clock(pipe, tmp_path):
    before = time.monotonic()
    loader = pipe.loader(**options(trace=tmp_path / "t"))
    list(loader)
    loader.close()
    run = trace.read(tmp_path / "t")
    assert all(before <= span.begin <= span.end <= time.monotonic() for span in run.spans)
    assert all(before <= event["t"] <= time.monotonic() for event in run.events)


def test_a_full_disk_is_warned_of(pipe):
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    loader = pipe.loader(**options(trace="/dev/full"))
    assert len(list(loader)) == len(loader)
    stats = loader.stats()["trace"]
    assert stats["path"] == "/dev/full" and stats["state"] == "failed"
    with pytest.warns(RuntimeWarning, match="writing /dev/full failed: No space left on device"):
        loader.close()


def test_the_state_of_a_trace(pipe, tmp_path):
    with pipe.loader(**options(trace=tmp_path / "t")) as loader:
        assert loader.stats()["trace"] == {"path": str(tmp_path / "t"), "state": "writing", "error": None}
    with pipe.loader(**options()) as loader:
        assert loader.stats()["trace"] is None


def test_a_policy_writes_into_it(pipe, tmp_path):
    """Snapshots, flow and decisions of a loader that adapts; rewards come out as they were logged."""
    loader = pipe.loader(**options(trace=tmp_path / "t", workers=None))
    deadline = time.monotonic() + 60
    while not loader.decisions() and time.monotonic() < deadline:
        list(loader)
    decided = loader.decisions()
    loader.close()
    run = trace.read(tmp_path / "t")
    assert decided and run.decisions[: len(decided)] == decided
    assert run.snapshots and run.flow and run.flow[-1].values["samples"] > 0
    assert all(row.difference <= 1e-6 for row in run.replay())


def test_environment(pipe, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAPPS_TRACE", str(tmp_path / "env-%p.drtrace"))
    for _ in range(2):
        loader = pipe.loader(**options())
        list(loader)
        loader.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2 and all(trace.read(file).ended == "closed" for file in files)


def test_a_file_that_is_being_written_is_left_alone(pipe, tmp_path):
    asked, other = tmp_path / "t.drtrace", tmp_path / f"t-{os.getpid()}.drtrace"
    first = pipe.loader(**options(trace=asked))
    with pytest.warns(RuntimeWarning, match=f"another loader writes {asked} now; this one writes {other}"):
        second = pipe.loader(**options(trace=asked))
    assert second.stats()["trace"]["path"] == str(other)
    for loader in (first, second):
        list(loader)
        loader.close()
    assert [len(trace.read(path).spans) > 0 for path in (asked, other)] == [True, True]
    with pipe.loader(**options(trace=asked)) as third:  # no longer
        assert third.stats()["trace"]["path"] == str(asked)


def test_a_file_is_free_again_while_a_forked_process_lives(tmp_path):
    writer = _core.open_trace(str(tmp_path / "t"))
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    writer.close()
    again = _core.open_trace(str(tmp_path / "t"))
    path = again.path
    again.close()
    os.close(write_end)
    os.close(read_end)
    os.waitpid(child, 0)
    assert path == str(tmp_path / "t")


# --- reading ---


def test_what_is_written_by_hand(tmp_path):
    run = trace.read(written(tmp_path / "t", rewards=[0.5]))
    assert run.meta["data"] == "made up"
    assert run.snapshots[0]["mem_used"] > 0 and run.snapshots[0].cpu is not None
    assert [flow.values["samples"] for flow in run.flow] == [0.0, 100.0]
    assert run.flow[1].values["wait"] == 1.1 and run.flow[1].time - run.flow[0].time == pytest.approx(0.1)
    decision = run.decisions[0]
    assert decision.bound == "cpu" and decision.reason == "because of 0" and decision.reward == 0.5
    assert decision.terms["idle"] == 0.3 and decision.weights["latency"] == 0.1
    read, work = run.spans
    assert read[:1] == ("read",) and read.thread == -1 and read.key == "a/b.jpg" and not read.slow
    assert work.key == "x" * 63 and work.slow and work.cost == 1.5 and (work.epoch, work.batch, work.slot) == (1, 4, 2)
    assert work.end - work.begin == pytest.approx(8e-6, abs=1e-9)  # of seconds since the machine was started
    mark = run.events[0]
    assert mark["event"] == "mark" and mark["name"] == "höhe" and run.ended == "closed"


def test_cut_files_and_damaged_ones(tmp_path):
    path = written(tmp_path / "t")
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    run = trace.read(path)
    assert run.ended is None and run.events[-1]["event"] == "mark"
    path.write_bytes(data[:-20] + b"?" + data[-19:])
    with pytest.raises(drapps.FormatError, match=r"t: damaged: byte \d+"):
        trace.read(path)
    path.write_bytes(data[:200])
    with pytest.raises(drapps.FormatError, match="t: the trace ends within its first record"):
        trace.read(path)
    path.write_text("no trace, but long enough to be one")
    with pytest.raises(drapps.FormatError, match="not a trace"):
        trace.read(path)
    with pytest.raises(FileNotFoundError):
        trace.read(tmp_path / "none")


META = {"pid": 1, "machine": {"host": "h"}, "clock": {"start_ns": 1, "unix_ns": 2}}


@pytest.mark.parametrize("kind, text", [
    ("text", "{"), ("text", "[]"), ("text", "{}"), ("text", '{"event": 3}'), ("text", '{"event": "missing"}'),
    ("text", '{"event": "missing", "lost": "x", "left_out": 0}'), ("text", "[" * 100_000),
    ("meta", "3"), ("meta", "{}"), ("meta", json.dumps({**META, "clock": 3})),
    ("meta", json.dumps({**META, "pid": "x"})),
    ("meta", json.dumps({**META, "machine": []})), ("meta", json.dumps({**META, "clock": {"start_ns": 1}})),
    ("meta", json.dumps({**META, "clock": {"start_ns": 10**30, "unix_ns": 1}})),
])  # fmt: skip
def test_records_of_others_are_named(tmp_path, monkeypatch, kind, text):
    """Whole records, by their sums, that hold what drapps never writes."""
    records = [("meta", 0, text if kind == "meta" else json.dumps(META))] + [("text", 0, text)] * (kind == "text")
    monkeypatch.setattr(_core, "open_trace_reader", lambda path: iter(records))
    with pytest.raises(drapps.FormatError, match="t: a record is damaged: "):
        trace.read(tmp_path / "t")
    with pytest.raises(drapps.FormatError, match="t: a record is damaged: "):
        list(trace.records(tmp_path / "t"))


def test_an_event_has_the_time_of_its_record(tmp_path, monkeypatch):
    records = [("meta", 0, json.dumps(META)), ("text", 5 * 10**9, '{"event": "x", "t": "now"}')]
    monkeypatch.setattr(_core, "open_trace_reader", lambda path: iter(records))
    assert trace.read("t").events[0]["t"] == 5.0


def test_the_size_is_limited(tmp_path):
    writer = _core.open_trace(str(tmp_path / "t"), "{}", max_bytes=20_000)
    deadline = time.monotonic() + 20
    while writer.status()["state"] == "writing" and time.monotonic() < deadline:
        for _ in range(100):
            writer.text(1, json.dumps({"event": "fill", "with": "x" * 200}))
    assert writer.status()["state"] == "limit"
    writer.close()
    assert trace.read(tmp_path / "t").ended == "limit" and (tmp_path / "t").stat().st_size <= 20_000


def test_a_closed_writer(tmp_path):
    writer = _core.open_trace(str(tmp_path / "t"))
    with pytest.raises(ValueError, match="kind must be read, work, .*, got 'nap'"):
        writer.span("nap", 1, 2)
    writer.close()
    writer.close()
    with pytest.raises(drapps.StateError, match="the trace is closed"):
        writer.text(1, "{}")


def test_no_path(monkeypatch):
    monkeypatch.delenv("DRAPPS_TRACE", raising=False)
    assert _core.open_trace(None) is None
    with pytest.raises(drapps.IOError, match="/nowhere/at/all"):
        _core.open_trace("/nowhere/at/all")
    with pytest.raises(drapps.ArgumentError, match="must be a JSON object"):
        _core.open_trace("/nowhere/at/all", "[]")


# --- replay ---


def true_reward(tmp_path):
    """What the library makes of TERMS and WEIGHTS."""
    return trace.read(written(tmp_path / "first", rewards=[0.0])).replay()[0].recomputed


def test_rewards_are_recomputed(tmp_path):
    reward = true_reward(tmp_path)
    assert reward == pytest.approx(0.75 * 1.0 - 0.125 * 0.1 - 0.3 * 2.0, abs=1e-12)  # docs/scheduler.md's signs
    rows = trace.read(written(tmp_path / "t", rewards=[reward, reward + 1e-3])).replay()
    assert [row.number for row in rows] == [1, 2]
    assert rows[0].difference <= 1e-6 and rows[1].difference == pytest.approx(1e-3)


# --- Perfetto ---


def events_of(chrome, phase):
    return [event for event in chrome["traceEvents"] if event["ph"] == phase]


def test_chrome(run):
    chrome = json.loads(json.dumps(run.chrome(), allow_nan=False))
    names = {event["args"].get("name") for event in events_of(chrome, "M")}
    assert {"consumer", "worker 1"} <= names or {"consumer", "worker 2"} <= names
    spans = events_of(chrome, "X")
    assert sum(event["name"] == "work" for event in spans) == N_IMAGES
    assert all(event["dur"] >= 0 and abs(event["ts"] * 1e-6 - time.time()) < 600 for event in spans)
    assert sum(event["cat"] == "batch" for event in spans) == sum(span.kind == "batch" for span in run.spans) > 0
    assert {event["name"] for event in events_of(chrome, "i")} >= {"start", "end"}
    assert {event["args"]["sample"] for event in spans if event["name"] == "read"} >= {run.spans[0].key}


def test_chrome_counts_the_passes_of_a_data_loader(tmp_path):
    """Its engine names them by a seed."""
    seed, now = 1855711331329808180, time.monotonic_ns()
    writer = _core.open_trace(str(tmp_path / "t"))
    writer.text(now, json.dumps({"event": "pass", "pass": 2, "epoch": seed}))
    writer.text(now + 1, json.dumps({"event": "start", "epoch": seed}))
    writer.span("work", now + 10, now + 20, epoch=seed, cpu_ns=7)
    writer.close()
    chrome = trace.read(tmp_path / "t").chrome()
    work = next(event for event in events_of(chrome, "X") if event["name"] == "work")
    assert work["args"]["epoch"] == 2 and work["args"]["cpu_ms"] == pytest.approx(7e-6)
    marks = {event["name"]: event["args"] for event in events_of(chrome, "i")}
    assert marks["start"] == {"epoch": 2, "seed": seed} and marks["pass"]["epoch"] == 2


def test_chrome_of_decisions_and_numbers(tmp_path):
    chrome = trace.read(written(tmp_path / "t", rewards=[0.5, 0.25])).chrome()
    decisions = [event for event in events_of(chrome, "i") if event["cat"] == "decision"]
    assert [event["args"]["reason"] for event in decisions] == ["because of 0", "because of 1"]
    assert decisions[1]["name"] == "workers 2 → 3"
    assert decisions[1]["args"]["workers"] == "2 -> 3"
    curves = {event["name"] for event in events_of(chrome, "C")}
    assert {"memory: mem_used", "pipeline: ready", "pipeline: samples/s", "knob: workers"} <= curves
    rate = next(event for event in events_of(chrome, "C") if event["name"] == "pipeline: samples/s")
    assert rate["args"]["value"] == pytest.approx(1000)
    assert "reader 1" in {event["args"].get("name") for event in events_of(chrome, "M")}


def check_structure(chrome):
    """What ui.perfetto.dev needs: bars of a track lie apart or inside each other, arrows begin and end in bars."""
    tracks, flows = {}, {}
    for event in chrome["traceEvents"]:
        assert isinstance(event["ph"], str) and isinstance(event["pid"], int) and event["name"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"], event))
        elif event["ph"] in "stf":
            flows.setdefault((event["cat"], event["name"], event["id"]), []).append(event)
        elif event["ph"] == "C":
            assert math.isfinite(event["args"]["value"]) and "tid" not in event
    for bars in tracks.values():
        open_ends = []
        for begin, end, _ in sorted(bars, key=lambda bar: (bar[0], -bar[1])):
            while open_ends and open_ends[-1] <= begin + SLACK_US:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + SLACK_US
            open_ends.append(end)
    for steps in flows.values():
        assert [steps[0]["ph"], steps[-1]["ph"]] == ["s", "f"] and {s["ph"] for s in steps[1:-1]} <= {"t"}
        assert [s["ts"] for s in steps] == sorted(s["ts"] for s in steps) and steps[-1]["bp"] == "e"
        assert all(bars_at(tracks, step) for step in steps)
    return {key: [bars_at(tracks, step) for step in steps] for key, steps in flows.items()}


SLACK_US = 1.0  # Unix time in microseconds has a quarter of one in a double


def bars_at(tracks, event):
    bars = tracks.get((event["pid"], event["tid"]), ())
    return [bar for begin, end, bar in bars if begin - SLACK_US <= event["ts"] <= end + SLACK_US]


def test_chrome_leads_from_samples_to_batches_to_the_consumer(run):
    flows = check_structure(json.loads(json.dumps(run.chrome(), allow_nan=False)))
    samples = [places for (_, name, _), places in flows.items() if name == "sample"]
    batches = [places for (_, name, _), places in flows.items() if name == "batch"]
    n_batches = sum(span.kind == "batch" for span in run.spans)
    assert len(samples) == N_IMAGES and len(batches) == n_batches
    for places in samples:
        assert len(places) == 3
        for kind, bars in zip(("read", "work", "batch"), places):
            assert kind in {bar["cat"] for bar in bars}
    for places in batches:
        assert [kind in {bar["cat"] for bar in bars} for kind, bars in zip(("batch", "wait", "step"), places)] == (
            [True] * len(places)
        )
    assert sum(len(places) == 3 for places in batches) == sum(span.kind == "step" for span in run.spans)


def test_chrome_leads_to_the_batch_that_ended_next(tmp_path):
    """Out of order, worker processes may give one number to two batches; a sample without a batch leads nowhere."""
    writer, start = _core.open_trace(str(tmp_path / "t")), time.monotonic_ns()
    rows = [("batch", 10, 20, 3), ("batch", 15, 40, 3)]
    rows += [("work", 30, 39, 3), ("work", 11, 19, 3), ("work", 41, 42, 3), ("work", 43, 44, 4)]
    for kind, begin, end, batch in rows:
        writer.span(kind, start + begin * 1_000_000, start + end * 1_000_000, thread=1, batch=batch, slot=1)
    writer.close()
    found = trace.read(tmp_path / "t")
    flows = check_structure(found.chrome())
    began = [[bar["ts"] for bar in bars[-1]] for bars in flows.values()]
    batches = [event["ts"] for event in events_of(found.chrome(), "X") if event["cat"] == "batch"]
    assert began == [[batches[1]], [batches[0]]]


def test_chrome_shows_every_sensor_once_it_changes(tmp_path):
    names = [row.name for row in sensors()]
    writer = _core.open_trace(str(tmp_path / "t"))
    with Monitor(interval=0.01) as monitor:
        monitor.wait(after=2)
        facts = monitor._core.latest()
    writer.snapshot(facts)
    writer.snapshot(facts)
    writer.close()
    found = trace.read(tmp_path / "t")
    curves = [event["name"] for event in events_of(found.chrome(), "C")]
    assert len(curves) == len(set(curves)) == len(found.snapshots[0]) > 10  # the second time, all is as it was
    assert {curve.rpartition(": ")[2] for curve in curves} == set(found.snapshots[0])
    groups = {name: perfetto.group_of(name) for name in names}
    assert set(groups.values()) == {"CPU", "pressure", "memory", "storage", "network", "GPU", "pipeline"}
    assert groups["gpu_power"] == "GPU" and groups["throttled"] == "CPU" and groups["cache_hits"] == "pipeline"
    assert perfetto.group_of("of_a_later_version") == "machine"
    machine = {e["pid"] for e in events_of(found.chrome(), "C") if not e["name"].startswith("pipeline")}
    assert len(machine) == 1 and found.meta["pid"] not in machine


def test_profiles_that_are_none(run, tmp_path):
    for text in ("{", "[]", '{"traceEvents": []}'):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(drapps.FormatError, match="p.json: not a"):
            run.chrome(profile=tmp_path / "p.json")


def waits(chrome, name):
    """(begin, end) in s of Unix time."""
    base = chrome.get("baseTimeNanoseconds", 0) * 1e-9
    rows = [event for event in chrome["traceEvents"] if event.get("name") == name and event["ph"] == "X"]
    return sorted((base + event["ts"] * 1e-6, base + (event["ts"] + event["dur"]) * 1e-6) for event in rows)


def profiled(batches):
    """Iterates under torch's profiler; its trace's path is the result's."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        list(batches)
    return profiler


def test_torch_profiles_are_on_the_same_clock(pipe, tmp_path):
    pytest.importorskip("torch")
    loader = pipe.loader(**options(trace=tmp_path / "t", workers=1))
    before = time.time()
    profiler = profiled(loader)
    after = time.time()
    loader.close()
    profiler.export_chrome_trace(str(tmp_path / "torch.json"))
    run = trace.read(tmp_path / "t")
    both = run.chrome(profile=tmp_path / "torch.json")
    torch_waits, own = waits(both, "drapps: wait for batch"), waits(both, "wait")
    n_batches = len(own)
    assert len(torch_waits) == n_batches + 1  # and one that hears that the epoch is over
    for (begin, end), (own_begin, own_end) in zip(torch_waits, own):
        assert before - 0.1 < begin and end < after + 0.1
        assert begin - 0.02 < own_begin and own_end < end + 0.02  # the range is around the wait
    assert len(both["traceEvents"]) > len(run.chrome()["traceEvents"])
    assert both["baseTimeNanoseconds"] == json.loads((tmp_path / "torch.json").read_text())["baseTimeNanoseconds"]


@pytest.mark.parametrize("kind, runs", [
    ("native", "runs: by 1 thread, natively"), ("processes", "runs: in 1 worker process"), ("caller", "in the caller"),
])  # fmt: skip
def test_dataloader_waits_are_ranges(kind, runs):
    """With the engine's threads, with worker processes, and with everything in the caller."""
    torch = pytest.importorskip("torch")
    numbers = torch.arange(8)
    data = torch.utils.data.TensorDataset(numbers) if kind == "native" else [*numbers]
    with drapps.DataLoader(data, batch_size=2, num_workers=0 if kind == "caller" else 1) as loader:
        assert runs in loader.explain()
        profiler = profiled(loader)
    names = [event.name for event in profiler.events()]
    assert names.count("drapps: wait for batch") == 5  # four batches, and one that hears that the pass is over


def test_no_range_without_a_profiler():
    from drapps.passes.cursor import wait_range

    assert wait_range() is wait_range()


# --- the program ---


def command(*args):
    line = [sys.executable, "-m", "drapps.cli", "trace", *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


def test_show(tmp_path):
    path = written(tmp_path / "t", rewards=[0.5])
    text = command("show", path).stdout
    assert "made up" in text and "ended: closed" in text and "1 decision," in text and "because of 0" in text
    lines = [json.loads(line) for line in command("show", path, "--json").stdout.splitlines()]
    assert [line["kind"] for line in lines] == (
        ["meta", "snapshot", "flow", "flow", "decision", "span", "span", "text", "text"]
    )
    assert lines[0]["meta"]["data"] == "made up" and lines[1]["values"]["mem_used"] > 0 and lines[6]["span"] == "work"
    assert all("t" in line for line in lines)


def test_export(run, tmp_path):
    done = command("export", tmp_path / "run.drtrace", "-o", tmp_path / "out.json")
    assert done.returncode == 0 and "ui.perfetto.dev" in done.stdout
    assert len(json.loads((tmp_path / "out.json").read_text())["traceEvents"]) == len(run.chrome()["traceEvents"])


def test_replay(tmp_path):
    reward = true_reward(tmp_path)
    done = command("replay", written(tmp_path / "t", rewards=[reward] * 3))
    assert done.returncode == 0 and done.stdout.startswith("3 decisions, 0 rewards differ")
    done = command("replay", written(tmp_path / "t", rewards=[reward, reward + 0.1]))
    assert done.returncode == 1 and "decision 2: logged" in done.stderr


def test_errors_in_one_line(tmp_path):
    (tmp_path / "no").write_text("no trace at all, nothing of the kind")
    done = command("show", tmp_path / "no")
    assert done.returncode == 1 and done.stderr.startswith("drapps: ") and "not a trace" in done.stderr
    assert command("show", tmp_path / "none").returncode == 1
    assert command("frobnicate").returncode == 2 and command().returncode == 2


def test_tracks_are_apart():
    assert len({perfetto._track(thread) for thread in range(-300, 300)}) == 600
