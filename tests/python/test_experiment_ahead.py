"""drapps experiment ahead: its arithmetic on traces made up, its verdicts, and a short run from end to end."""

import json
import math

import pytest
from tracesets import Flow, trace

from drapps import _core, cli
from benchmarks.experiments import pictures
from benchmarks.experiments.ahead import ahead_command, ahead_figures, ahead_judge
from benchmarks.experiments.monitor import monitor_findings

CHANGED = 20.0


def run_of(rate=25.0, wait=0.0, latency=0.16, ready=1.0, buffered=5.0, knobs=((0.5, 5.0, 18.0), (20.4, 10.0, 37.0))):
    """A trace of 40 s, ten readings a second.  wait: share of the time after the change."""
    flow = []
    for k in range(401):
        time, before = k / 10, min(k / 10, CHANGED)
        after, batches = time - before, rate * before + 2 * rate * max(time - CHANGED, 0) * (1 - wait)
        flow.append(Flow(time, {"wait": wait * after, "step": before + (1 - wait) * after, "batches": batches,
                                "latency": latency * batches, "ready": ready,
                                "open": buffered if time <= CHANGED else 2 * buffered}))  # fmt: skip
    return trace(flow=flow, knobs=[(t, {"prefetch": p, "readers": f}) for t, p, f in knobs])


def round_of(doubled=0.4, **changes):
    parts, _ = ahead_figures.of_run(run_of(**changes), {"begun": 0.0, "changed": CHANGED, "ended": 40.0})
    return ahead_judge.Round(parts, doubled)


# --- figures ---


def test_a_part_has_the_rates_and_means_of_its_time():
    found = ahead_figures.part(run_of(wait=0.25), 25, 35)
    assert found.stall == pytest.approx(0.25) and found.rate == pytest.approx(50 * 0.75)
    assert found.latency == pytest.approx(0.16) and found.need == pytest.approx(6.0)
    assert found.buffered == 10 and found.ready == 1 and found.hoard == pytest.approx(10 / 6)
    assert (found.prefetch, found.readers) == (10, 37)
    assert ahead_figures.part(run_of(wait=0.25), 0, CHANGED).stall == 0


def test_a_part_without_readings_is_refused():
    with pytest.raises(RuntimeError, match="2 readings"):
        ahead_figures.part(run_of(), 3.05, 3.25)


def test_a_consumer_that_got_nothing_needs_nothing():
    silent = trace(flow=[Flow(t, dict.fromkeys(("wait", "step", "batches", "latency", "open", "ready"), 0.0))
                         for t in range(4)], knobs=[(0.0, {"prefetch": 2.0, "readers": 0.0})])  # fmt: skip
    found = ahead_figures.part(silent, 0, 3)
    assert (found.stall, found.rate, found.need, found.hoard) == (0, 0, 0, 0)


def test_parts_of_a_run():
    parts, doubled = ahead_figures.of_run(run_of(wait=0.1), {"begun": 0.0, "changed": CHANGED, "ended": 40.0})
    assert parts["slow"].rate == pytest.approx(25) and parts["slow"].stall == 0 and parts["slow"].prefetch == 5
    assert all(parts[name].stall == pytest.approx(0.1) for name in ("change", "fast", "since"))
    assert doubled == pytest.approx(0.4)


@pytest.mark.parametrize(("later", "seconds"), [
    ([(22.0, 10.0)], 2.0), ([(22.0, 9.0)], 2.0), ([(22.0, 8.0)], None), ([(21.0, 7.0), (24.5, 12.0)], 4.5), ([], None),
])  # fmt: skip
def test_a_depth_that_doubles(later, seconds):
    knobs = [(1.0, {"prefetch": 30.0}), (19.0, {"prefetch": 5.0}), *((t, {"prefetch": p}) for t, p in later)]
    assert ahead_figures.doubled_after(knobs, "prefetch", CHANGED) == seconds


def test_nothing_was_decided_in_time():
    with pytest.raises(RuntimeError, match="nothing was decided"):
        ahead_figures.knob_at([(5.0, {"prefetch": 2.0})], "prefetch", 4.0)


# --- verdicts ---


def verdicts(adaptive, held):
    return [found.result for found in ahead_judge.findings(adaptive, held)]


HELD = [round_of(None, wait=0.35 + k / 1000, knobs=((0.5, 5.0, 37.0),)) for k in range(3)]
GOOD = [round_of(wait=0.004 + k / 10000) for k in range(3)]


def test_all_is_kept():
    assert verdicts(GOOD, HELD) == [monitor_findings.KEPT] * 7


@pytest.mark.parametrize(("rounds", "missed"), [
    ([GOOD[0], GOOD[1], round_of(3.1, wait=0.004)], {0}),
    ([GOOD[0], GOOD[1], round_of(None, wait=0.004)], {0}),
    ([round_of(wait=0.03 + k / 1000) for k in range(3)], {1, 4}),
    ([round_of(wait=0.015 + k / 10000) for k in range(3)], {4}),
    ([round_of(wait=0.004, buffered=7.0 + k / 10) for k in range(3)], {3, 5}),
    ([round_of(wait=0.6 + k / 1000) for k in range(3)], {1, 4, 5, 6}),
])  # fmt: skip
def test_what_is_missed(rounds, missed):
    assert {k for k, result in enumerate(verdicts(rounds, HELD)) if result == monitor_findings.MISSED} == missed


def test_one_round_shows_nothing_but_the_depth():
    assert verdicts(GOOD[:1], HELD[:1]) == [monitor_findings.KEPT] + [monitor_findings.OPEN] * 6


def test_figures_are_in_the_words():
    words = [found.measured for found in ahead_judge.findings(GOOD, HELD)]
    assert words[0] == "from 5.0 batches after 0.4 s, 0.4 s, 0.4 s; 10.0 at the end"
    assert words[1].startswith("0.41 ± 0.01 [") and words[1].endswith("] %")
    assert "5.0 for 4.0" in words[3] and words[6].startswith("by 34.69 ± ")


def test_the_table_has_each_part_of_each_loader():
    lines = ahead_judge.table({"one": GOOD, "two": HELD}).splitlines()
    assert len(lines) == 2 + 2 * len(ahead_judge.PARTS)
    assert "| one | slow consumer | 0.00% | 25.0 | 160 ms | 4.0 | 5.0 | 1.0 | 5.0 | 18.0 |" in lines


# --- the program ---


def test_the_depth_that_is_held_is_the_slow_consumers():
    options = ahead_command.make_parser().parse_args(["--step-ms", "40", "--delay-ms", "150", "--batch", "4"])
    assert ahead_command.held_knobs(options) == {"workers": 2, "prefetch": 5, "readers": 35}
    options.batch = 64
    assert ahead_command.held_knobs(options)["readers"] == ahead_command.MOST_READERS


def test_what_is_held_takes_less_time():
    options = ahead_command.make_parser().parse_args([])
    adaptive, held = (ahead_command.script_of(name, options) for name in (ahead_command.ADAPTIVE, ahead_command.HELD))
    assert (adaptive["before"], adaptive["policy"], adaptive["knobs"]) == (20, "analytic", {})
    assert (held["before"], held["policy"], held["knobs"]["prefetch"]) == (ahead_command.HELD_SECONDS, "fixed", 5)


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--batch", "0"], ["--after", "1"], ["--before", "nan"],
                                   ["--step-ms", "0"], ["--delay-ms", "-1"]])  # fmt: skip
def test_wrong_arguments(words):
    with pytest.raises(_core.ArgumentError, match=words[0]):
        ahead_command.main(words)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return pictures.make_images(tmp_path_factory.mktemp("images"), classes=2, each=8, size=(64, 48))


def test_a_short_run(data, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results-ahead -->\nstale\n<!-- /results-ahead -->\nafter\n")
    words = ["--rounds", "1", "--before", "2.5", "--after", "2", "--step-ms", "10", "--delay-ms", "20", "--data", data]
    assert cli.main(["experiment", "ahead", *words, "--json", "--into", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: len(rounds) for name, rounds in found["rounds"].items()} == {"policy": 1, "held": 1}
    assert len(found["findings"]) == 7
    for rounds in found["rounds"].values():
        assert set(rounds[0]["parts"]) == set(ahead_judge.PARTS)
        for part in rounds[0]["parts"].values():
            assert part["rate"] > 0 and part["latency"] >= 0.02 and part["buffered"] > 0 and 0 <= part["stall"] <= 1
            assert math.isclose(part["need"], part["rate"] * part["latency"])
    held = found["rounds"]["held"][0]["parts"]["fast"]
    assert (held["prefetch"], held["readers"]) == (3, 19)
    text = page.read_text()
    assert "`drapps experiment ahead --rounds 1 --before 2.5" in text and "stale" not in text and "| `ahead` |" in text
