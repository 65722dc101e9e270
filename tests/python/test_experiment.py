"""Experiments: their statistics, their cells, and a small one from beginning to end."""

import json
import math
import os
import random
from types import SimpleNamespace

import pytest

from drapps import _core, cli
from drapps.bench import paced
from benchmarks.experiments import adapt, adapt_command, adapt_phases, adapt_tables, adapt_training, pictures
from benchmarks.experiments import statistics
from benchmarks.experiments.cells import Cells
from benchmarks.experiments.adapt_phases import Condition, Contender, Place


@pytest.mark.parametrize(("q", "freedom", "t"), [(0.975, 1, 12.7062), (0.95, 11, 1.7959), (0.995, 30, 2.75)])
def test_quantiles_are_those_of_the_printed_tables(q, freedom, t):
    assert statistics.t_quantile(q, freedom) == pytest.approx(t, abs=1e-4)
    assert statistics.t_cdf(t, freedom) == pytest.approx(q, abs=1e-5)


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = random.Random(1)
    inside = 0
    for _ in range(400):
        found = statistics.summary([rng.gauss(5, 2) for _ in range(8)])
        inside += found.low <= 5 <= found.high
    assert 365 <= inside <= 395


@pytest.mark.parametrize(("ratios", "equivalent", "at_least"), [
    ([1.0, 1.01, 0.99, 1.02], True, True),
    ([1.5, 1.4, 1.6, 1.5], False, True),
    ([0.8, 0.82, 0.79, 0.8], False, False),
    ([0.5, 1.5, 1.0, 0.7], False, False),
])  # fmt: skip
def test_equivalence_is_shown_only_where_the_ratios_are_near_and_sure(ratios, equivalent, at_least):
    found = statistics.equivalence(ratios)
    assert (found.equivalent, found.at_least) == (equivalent, at_least)
    assert found.ratio == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))


def test_cells_are_measured_once_and_survive_a_cut(tmp_path):
    path, calls = tmp_path / "cells.jsonl", []

    def measure():
        calls.append(1)
        return {"x": len(calls)}

    assert Cells(path).get(("a", 1), measure) == {"x": 1}
    assert Cells(path).get(("a", 1), measure) == {"x": 1} and len(calls) == 1
    with open(path, "a") as file:
        file.write('{"cell": ["b", 2], "x"')  # killed while it was written
    again = Cells(path)
    assert again.get(("b", 2), measure) == {"x": 2}
    assert [tuple(json.loads(line)["cell"]) for line in path.read_text().splitlines()] == [("a", 1), ("b", 2)]


def test_a_file_that_holds_something_else_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(SystemExit, match="notes.txt:1: not a result"):
        Cells(path)


def test_loss_is_an_area():
    assert adapt_phases.lost([0.0] * 4 + [100.0] * 36) == pytest.approx(1.0)  # a second without anything
    assert adapt_phases.lost([50.0] * 4 + [100.0] * 36) == pytest.approx(0.5)
    assert adapt_phases.lost([200.0] + [100.0] * 39) == pytest.approx(-0.25)
    assert adapt_phases.lost([100.0] * 8) == 0 == adapt_phases.lost([0.0] * 8)


@pytest.mark.parametrize(("series", "seconds"), [
    ([100] * 40, 0.0),
    ([10] * 8 + [100] * 32, 2.0),  # an average over a second reaches into the time before
])  # fmt: skip
def test_settling_is_when_the_rate_stays(series, seconds):
    assert adapt_phases.settling(series) == pytest.approx(seconds, abs=0.3)


def test_a_batch_counts_over_the_time_since_the_one_before():
    series = adapt_phases._series([(10.5, 0.1, 8), (11.0, 0.1, 8)], 10.0, 11.0)
    assert series == [16.0, 16.0, 16.0, 16.0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(
        pictures.make_images(tmp_path_factory.mktemp("images"), classes=2, each=8, size=(64, 48)), "no-environments"
    )


def test_a_run_delivers_in_every_phase_and_holds_the_step(place):
    phases = (Condition("fast"), Condition("slow", step=0.2))
    found = adapt_phases.run(Contender("x", "drapps", {"workers": 1, "seek_index": "off"}), phases, 2, place)["phases"]
    assert [phase["condition"] for phase in found] == ["fast", "slow"]
    assert found[0]["samples_per_s"] > found[1]["samples_per_s"] > 0
    assert found[1]["samples_per_s"] <= 64 / 0.2 * 1.6  # one batch more than fits may fall into the phase


def test_a_loader_that_fails_says_why(place):
    with pytest.raises(RuntimeError, match="workers"):
        adapt_phases.run(Contender("x", "drapps", {"workers": -5}), (Condition("calm"),), 2, place)


def phases(*rates):
    return [{"condition": condition, "cpu": 1.0, "series": [rate] * 20,
             "settled": {"samples_per_s": rate, "wait_share": 0.1}} for condition, rate in rates]  # fmt: skip


def test_each_phase_is_compared_with_the_setting_that_is_best_in_it():
    good, bad = adapt.static(4, 2), adapt.static(1, 2)
    runs = {"analytic": [phases(("calm", 100), ("burned", 60))] * 3,
            good.name: [phases(("calm", 100), ("burned", 30))] * 3,
            bad.name: [phases(("calm", 50), ("burned", 60))] * 3}  # fmt: skip
    rows = adapt.compare(runs, "analytic", {"calm": good, "burned": bad})
    assert [row["beside"] for row in rows] == [good.name, bad.name]
    assert all(row["equivalence"].equivalent for row in rows)
    assert "equivalent" in adapt_tables.adapt(rows) and "| 1: calm |" in adapt_tables.adapt(rows)


def test_the_best_of_the_grid_is_found_for_each_condition(tmp_path, monkeypatch):
    scenario = adapt.scenarios(2, 0.08)["steps"]
    wanted = {"calm": adapt.GRID[4].name, "one CPU taken": adapt.GRID[-1].name}

    def run(contender, conditions, seconds, place):
        return {"phases": phases(*((c.name, 10 + (wanted[c.name] == contender.name)) for c in conditions))}

    monkeypatch.setattr(adapt_phases, "run", run)
    options = SimpleNamespace(seed=0, search_rounds=2, search_seconds=1, policies=["analytic"], peers=False)
    experiment = adapt.Experiment(Cells(tmp_path / "cells"), options, None, lambda text: None)
    rates = experiment.search("steps", scenario)
    best = adapt.best_static(rates, scenario)
    assert {name: contender.name for name, contender in best.items()} == wanted
    assert [c.name for c in experiment.contenders("steps", scenario, best)] == ["analytic", *wanted.values()]
    assert adapt_tables.grid(rates).count("**11**") == 2 and len(adapt_tables.grid(rates).splitlines()) == 2 + len(
        adapt.GRID
    )


def test_the_pace_is_read_without_a_lock_that_a_fork_would_keep():
    into, out = os.pipe()
    os.write(out, b"step 0.5\nen")
    os.write(out, b"d\n")
    os.close(out)
    assert list(paced._lines(into)) == ["step 0.5", "end"]
    os.close(into)


def test_the_adaptive_training_is_compared_round_by_round():
    rows = adapt_training.compare({adapt_training.DRAPPS_AUTO: [10.0, 11.0], "torch": [20.0, 22.0]})
    assert rows[1]["equivalence"].ratio == pytest.approx(2.0) and "2.000" in adapt_tables.training(rows)


def test_an_unknown_scenario_is_named():
    with pytest.raises(_core.ArgumentError, match="--only must be one of .*, got 'nothing'"):
        adapt_command.main(["--only", "nothing"])


def test_the_help_lists_every_experiment(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["experiment", "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0 and all(name in text for name in ("adapt", "planted"))


@pytest.mark.parametrize("argv", [["experiment"], ["experiment", "nothing"]])
def test_an_experiment_is_named(argv, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 2 and "experiment" in capsys.readouterr().err
