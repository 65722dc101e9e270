"""drapps experiment monitor: its arithmetic on readings made up, and every test from end to end, for a moment."""

import json
import math
import os

import pytest

from drapps import _core, cli
from benchmarks.experiments import disturb, pictures
from benchmarks.experiments.monitor import (
    cost, disk, disk_child, loader_child, machine, monitor_command, monitor_findings, network, readings,
)  # fmt: skip
from drapps.monitor import Monitor, Snapshot

RESULTS = {monitor_findings.KEPT, monitor_findings.MISSED, monitor_findings.OPEN}


def snapshot(number, cpu=(0.0,), **values):
    """One reading; levels are the values."""
    return Snapshot((number * 100_000_000, number, values, dict(values), [], tuple(cpu)))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return pictures.make_images(tmp_path_factory.mktemp("images"), classes=2, each=16, size=(64, 48))


@pytest.fixture
def options(data, tmp_path, monkeypatch):
    """As short and as small as it can be."""
    monkeypatch.setattr(disk, "FILE_BYTES", 8 * 2**20)
    monkeypatch.setattr(machine, "cache_bytes", lambda: 0)
    monkeypatch.setattr(machine, "SETTLE", 0.3)
    monkeypatch.setattr(machine, "MOVE", 1.0)
    return monitor_command.make_parser().parse_args(
        ["--seconds", "0.3", "--fuzz-seconds", "1", "--pairs", "2", "--segment", "0.1", "--memory-mb", "512",
         "--data", data, "--folder", str(tmp_path)])  # fmt: skip


def found_by(name, options):
    """The findings of one test, which must not fail."""
    rows = monitor_command.run([name], options)
    assert rows and not [found for _, found in rows if found.result.startswith(monitor_findings.FAILED)], rows
    return [found for _, found in rows]


# --- arithmetic ---


@pytest.mark.parametrize(("low", "high", "result"), [
    (0.9951, 1.002, monitor_findings.KEPT),
    (0.994, 1.002, monitor_findings.OPEN),
    (0.98, 0.9949, monitor_findings.MISSED),
])  # fmt: skip
def test_an_interval_is_on_one_side_of_a_bound_or_shows_nothing(low, high, result):
    assert monitor_findings.side(low, high, least=0.995) == result
    assert monitor_findings.side(-high, -low, most=-0.995) == result


def test_percentiles_are_values_that_were_there():
    assert readings.percentile(range(1, 101), 0.99) == 99
    assert readings.percentile([7], 0.99) == 7


def test_a_sensor_that_is_absent_makes_a_test_impossible():
    assert readings.mean([snapshot(1, mem_used=2.0), snapshot(2), snapshot(3, mem_used=4.0)], "mem_used") == 3
    with pytest.raises(monitor_findings.NotPossible, match="net_rtt"):
        readings.mean([snapshot(1)], "net_rtt")


def test_entries_outside_their_range_are_found():
    assert cost.unsound(snapshot(1, cpu=(0.0, 1.0), cpu_total=1.0)) == []
    wrong = cost.unsound(snapshot(1, cpu=(0.5, 1.5), a=math.nan, b=-0.1, c=1.1, d=math.inf, fine=0.5))
    assert [name for name, _, _ in wrong] == ["a", "b", "c", "d", "cpu 1"]


def test_a_loss_is_shown_only_by_an_interval_that_excludes_it():
    none = cost.loss([[1.0, 1.0001], [1.0, 0.9999], [1.0, 1.0]], 100)
    assert (
        none.result == monitor_findings.KEPT and "100 samples/s: the interval excludes a loss of 0.5 %" in none.measured
    )
    unsure = cost.loss([[1.0, 1.05], [1.0, 0.95]], 100)
    assert unsure.result == monitor_findings.OPEN and "does not exclude" in unsure.measured
    slow = cost.loss([[1.0, 0.98], [1.0, 0.981], [1.0, 0.979]], 100)
    assert slow.result == monitor_findings.MISSED and slow.figures["mean"] == pytest.approx(0.98)
    trace = cost.loss([[1.0, 0.993], [1.0, 0.9931], [1.0, 0.9929]], 100, to="a trace", most=0.01)
    assert (
        trace.result == monitor_findings.KEPT
        and trace.aim == "a loader loses less than 1 % of its throughput to a trace"
    )


def test_deciding_is_what_the_thread_uses_more():
    found = cost.deciding([[0.003, 0.0025], [0.0031, 0.0026], [0.0029, 0.0024]], 1.0)
    assert found.result == monitor_findings.KEPT and found.figures["mean"] == pytest.approx(0.0005)
    assert cost.deciding([[0.006, 0.002], [0.0061, 0.0021]], 1.0).result == monitor_findings.MISSED


def test_readers_and_readings_are_compared():
    reader = {"begin": 10.0, "end": 20.0, "bytes": 1e9, "requests": 1000, "waited": 1.0}
    calm = [snapshot(1, pressure_io=0.0)]
    busy = [snapshot(2, disk_bandwidth=1.04e8, disk_latency=0.0013, pressure_io=0.6)]
    assert [found.result for found in disk._compare(reader, calm, busy)] == ["kept", "missed", "kept"]


def test_senders_and_readings_are_compared():
    calm = {"bandwidth": 12.4e6, "sent": 12.2e6, "rtt": 0.040, "own_rtt": 0.042, "retransmits": 0.0}
    results = [found.result for found in network._compare(calm, {**calm, "retransmits": 0.02})]
    assert results == ["kept", "kept", "kept"]
    other = {**calm, "bandwidth": 13e6, "own_rtt": 0.08}
    assert [found.result for found in network._compare(other, other)] == ["missed", "missed", "missed"]


def test_the_largest_cache_counts(tmp_path):
    for k, text in enumerate(("48K", "2048K", "260M", "")):
        (tmp_path / f"index{k}").mkdir()
        (tmp_path / f"index{k}" / "size").write_text(text + "\n")
    assert machine.cache_bytes(tmp_path) == 260 * 2**20
    assert machine.cache_bytes(tmp_path / "none") == 0


def test_turns_are_by_chance_and_stay_in_their_place():
    calls = []
    pairs = loader_child.by_turns(20, 3, lambda: calls.append("a") or "a", lambda: calls.append("b") or "b")
    assert pairs == [["a", "b"]] * 20
    firsts = calls[::2]
    assert len(calls) == 40 and 0 < firsts.count("a") < 20


def test_a_reader_counts_what_it_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * disk_child.BLOCK))
    try:
        found = disk_child.read(path, 0.05)
    except OSError as error:
        pytest.skip(f"no O_DIRECT here: {error}")
    assert found["bytes"] == found["requests"] * disk_child.BLOCK > 0
    assert 0 < found["waited"] <= found["end"] - found["begin"]


def test_the_thread_of_a_monitor_is_found_and_timed():
    before = set(readings.monitor_threads())
    with Monitor(interval=0.01) as monitor:
        (task,) = set(readings.monitor_threads()) - before
        used = readings.thread_seconds(task)
        monitor.wait(after=monitor.latest().number + 5)
        assert readings.thread_seconds(task) > used


def test_the_thread_of_a_trace_is_found(data, tmp_path):
    with loader_child.open_loader(data, trace=tmp_path / "run.drtrace") as loader:
        list(loader.batches())
        assert 0 <= readings.ThreadShare(readings.TRACER).get() < 1


# --- from end to end ---


def check_cpu(use):
    """The CPU that is burnt is seen to be busy, whatever the others do."""
    assert set(use.figures["use"]) == os.sched_getaffinity(0) and use.figures["burnt"] in use.figures["use"]
    assert use.figures["use"][use.figures["burnt"]] > 0.25 and all(0 <= u <= 1 for u in use.figures["use"].values())


def check_memory_bandwidth(falls, probe):
    assert falls.figures["calm"] > 0 and falls.figures["loaded"] > 0 and falls.figures["alone"] > 0
    assert probe.figures["pass_seconds"] == machine.PASS / min(falls.figures["calm"], falls.figures["loaded"])


def check_disk(rate, latency, pressure):
    assert rate.figures["seen"] >= 0.3 * rate.figures["own"] > 0  # others may read, too, and nobody reads less
    assert latency.figures["own"] > 0 and latency.figures["seen"] > 0 and 0 <= pressure.figures["during"] <= 1


def check_pairs(lost):
    ratios = [without / with_it for with_it, without in lost.figures["pairs"]]
    assert len(ratios) == 2 and lost.figures["mean"] == pytest.approx(sum(ratios) / 2)
    most = 0.01 if "to a trace" in lost.aim else 0.005
    assert lost.result == monitor_findings.side(lost.figures["low"], lost.figures["high"], least=1 - most)


def check_decisions(more):
    assert more.figures["n"] == 2 and more.figures["decisions_per_s"] >= 0
    assert more.figures["low"] <= more.figures["mean"] <= more.figures["high"] < 1
    assert more.result == monitor_findings.side(more.figures["low"], more.figures["high"], most=0.002)


def check_range(kept):
    """That is no matter of time or load."""
    assert kept.result == monitor_findings.KEPT and kept.figures["wrong"] == []
    assert kept.figures["entries"] > kept.figures["snapshots"] > 0
    assert {"cpu_total", "mem_used", "consumer_wait"} <= set(kept.figures["sensors"])


CHECKS = {"cpu": check_cpu, "memory_bandwidth": check_memory_bandwidth, "disk": check_disk, "throughput": check_pairs,
          "trace": check_pairs, "decisions": check_decisions, "range": check_range}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_test_finds_what_it_measured(name, options):
    """Whether an aim is kept in a moment on any machine says nothing; what was measured, and how it is judged, does."""
    found = found_by(name, options)
    if found[-1].result.startswith(monitor_findings.IMPOSSIBLE):
        assert name in ("cpu", "memory_bandwidth", "disk")  # one CPU; a sensor that is not there; no O_DIRECT
        pytest.skip(found[-1].result)
    CHECKS[name](*found)
    assert all(row.result in RESULTS and row.aim and row.measured for row in found)


def test_what_a_trace_takes_is_told(options):
    (found,) = found_by("trace", options)
    assert found.figures["bytes_per_s"] > 0 and 0 <= found.figures["writer_share"] < 1 and "kB/s" in found.measured
    assert len(found.figures["pairs"]) == 2 and "to a trace" in found.aim


def test_ticks_that_were_asked_for(options):
    found = found_by("interval", options)
    assert [f.figures["wanted"] for f in found] == [0.1, 0.25, 1.0] and all(f.figures["n"] >= 2 for f in found)


def test_cost_of_a_thread(options):
    if readings.monitor_threads():
        pytest.skip("another monitor runs in this process")
    found = found_by("cost", options)
    assert 0 < found[0].figures["share"] < 1


@pytest.fixture
def nothing_left():
    """Neither groups nor network devices."""
    def there():
        return os.listdir("/proc/sys/net/ipv4/conf"), sorted(
            disturb.GROUPS.glob(f"**/drapps-experiment-*{os.getpid()}*")
        )

    before = there()
    yield
    assert there() == before


def test_memory(options, nothing_left):
    found = found_by("memory", options)
    assert found[0].figures["after"] > found[0].figures["before"]
    if len(found) > 2:  # a group could be made: it is what the child saw
        assert found[1].figures["all"] == found[1].figures["limit"] == 256 * 2**20


def test_network(options, nothing_left):
    options.seconds = 1.5
    found = found_by("network", options)
    if found[0].result.startswith(monitor_findings.IMPOSSIBLE):
        pytest.skip(found[0].result)
    assert found[0].figures["mbit"] < 200 and found[1].figures["seen"] > 0
    assert found[2].figures["overload"] > found[2].figures["calm"]


def test_what_is_impossible_and_what_fails_are_rows(options, monkeypatch):
    def impossible(options):
        """An aim."""
        yield monitor_findings.judged("the first", "2", True)
        raise monitor_findings.NotPossible("there is no moon")

    def failing(options):
        """Another."""
        raise RuntimeError("broken")

    monkeypatch.setattr(monitor_command, "TESTS", {"impossible": impossible, "failing": failing})
    rows = monitor_command.run(["impossible", "failing"], options)
    assert [found.result for _, found in rows] == ["kept", "not possible here: there is no moon", "failed: broken"]
    assert "| `impossible` | An aim. | - | not possible here: there is no moon |" in monitor_findings.table(rows)


def test_the_program(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        monitor_command, "TESTS", {"one": lambda options: [monitor_findings.judged("aim", "3", False, x=3)]}
    )
    monitor_command.TESTS["one"].__doc__ = "One."
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results-monitor -->\nold\n<!-- /results-monitor -->\nafter\n")
    assert cli.main(["experiment", "monitor", "--only", "one", "--seconds", "1", "--into", str(page)]) == 0
    out = capsys.readouterr().out
    assert "| `one` | aim | 3 | missed |" in out and "`drapps experiment monitor --only one --seconds 1`" in out
    assert "| `one` | aim | 3 | missed |" in page.read_text() and "old" not in page.read_text()
    assert cli.main(["experiment", "monitor", "--only", "one", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"test": "one", "aim": "aim", "measured": "3", "result": "missed", "figures": {"x": 3}}]


@pytest.mark.parametrize("words", [["--only", "moon"], ["--pairs", "1"], ["--seconds", "0"]])
def test_wrong_arguments(words):
    with pytest.raises(_core.ArgumentError, match=words[0]):
        monitor_command.main(words)
