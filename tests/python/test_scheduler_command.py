"""drapps scheduler: tables, policies in the simulator, profiles, and the simulator against the engine."""

import json

import pytest

import drapps
from drapps import sim
from drapps.cli import main
from drapps.sim import validate
from drapps.sim.engine_run import Setting
from drapps.sim.machine_profile import MachineProfile


def run(capsys, *args):
    """(status, stdout, stderr) of a command line."""
    status = main(["scheduler", *map(str, args)])
    return status, *capsys.readouterr()


# --- show and eval ---


def test_show_lists_every_row(capsys):
    status, text, _ = run(capsys, "show")
    assert status == 0
    rows = [*sim.machines(), *sim.workloads(), *sim.models(), *sim.scenarios(), *sim.fields(), *sim.signals()]
    assert all(f"{row.name} " in text for row in rows)
    status, text, _ = run(capsys, "show", "--json")
    assert [row["name"] for row in json.loads(text)["scenarios"]] == [row.name for row in sim.scenarios()]


def test_eval_compares_policies_on_the_same_instances(capsys):
    args = ("eval", "--scenario", "stationary,tariff", "--policy", "fixed,analytic:margin=1.3,gain=0.02", "--seeds", 3,
            "--seconds", 20, "--machine", "rtx3090x4", "--json")  # fmt: skip
    status, text, _ = run(capsys, *args)
    rows = json.loads(text)
    assert status == 0
    assert [(row["scenario"], row["policy"]) for row in rows] == [
        (scenario, policy)
        for scenario in ("stationary", "tariff")
        for policy in ("fixed", "analytic:margin=1.3,gain=0.02")
    ]
    assert [row["of_first"] for row in rows][::2] == [1, 1]
    assert [one["seed"] for one in rows[0]["seeds"]] == [0, 1, 2]
    one = sim.Simulation(machine="rtx3090x4", scenario="stationary", seed=1).run("fixed", seconds=20)
    assert rows[0]["seeds"][1]["samples"] == one.samples
    assert run(capsys, *args)[1] == text


def test_eval_as_a_table(capsys):
    status, text, _ = run(capsys, "eval", "--scenario", "periodic", "--seeds", 2, "--seconds", 10)
    lines = text.splitlines()
    assert status == 0 and lines[0].split()[:2] == ["scenario", "policy"]
    assert [line.split()[1] for line in lines[1:]] == [policy.name for policy in drapps.policies()]


@pytest.mark.parametrize(
    "args, part",
    [
        (["--scenario", "war"], 'scenario must be one of stationary, steps'),
        (["--machine", "vax"], "machine must be one of laptop"),
        (["--policy", "genius"], "genius"),
        (["--set", "cpus=0"], "cpus must be a number from 1 to 512"),
        (["--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--seconds", "0"], "seconds must be a number above 0"),
    ],
)
def test_wrong_arguments(capsys, args, part):
    status, _, error = run(capsys, "eval", *args)
    assert status == 2 and part in error


# --- Simulation ---


def test_a_simulation_is_a_pipeline():
    one = sim.Simulation(machine="laptop", set={"workers": 1, "noise": 0}, scenario="plain")
    one.advance(2)
    few = one.result()
    assert few.seconds == pytest.approx(2) and one.get("workers") == 1 and one.field("cpus") == 2
    one.set("workers", 2)
    one.advance(2)
    assert one.get("workers") == 2 and one.result().samples >= few.samples
    assert one.snapshot()["cpu_total"] <= 2 and one.flow()["samples"] == one.result().samples
    one.reset()
    assert one.result().samples == 0 and one.get("workers") == 1


def test_decisions_have_reasons():
    found = sim.Simulation(machine="rtx3090x4", scenario="periodic").decisions("analytic", seconds=30)
    assert 20 < len(found) < 60 and [one.number for one in found] == list(range(1, len(found) + 1))
    assert all(one.reason for one in found) and any(one.changes for one in found)


def test_wrong_simulations():
    for options, text in (({"set": {"moons": 1}}, "no field"), ({"set": {"cpus": "x"}}, "cpus must be a number")):
        with pytest.raises(drapps.ArgumentError, match=text):
            sim.Simulation(**options)
    one = sim.Simulation()
    with pytest.raises(drapps.ArgumentError, match="seconds"):
        one.advance(-1)
    with pytest.raises(drapps.ArgumentError):
        one.set("workers", 10_000)


# --- profiles ---


def test_a_profile_is_kept(tmp_path):
    path = str(tmp_path / "profile.json")
    MachineProfile({"cpus": 4, "cpu": 0.001}, {"data": "x"}).save(path)
    again = MachineProfile.load(path)
    assert again == ({"cpus": 4, "cpu": 0.001}, {"data": "x"})
    assert sim.Simulation(set=again.set_text()).field("cpus") == 4


@pytest.mark.parametrize(
    "text, part",
    [
        ("", "not a profile"),
        ("[]", "not a profile"),
        ('{"drapps_profile": 2, "set": {}, "facts": {}}', "not a profile"),
        ('{"drapps_profile": 1, "set": [], "facts": {}}', "must be objects"),
        ('{"drapps_profile": 1, "set": {"moons": 1}, "facts": {}}', "no field 'moons'"),
        ('{"drapps_profile": 1, "set": {"cpus": 0}, "facts": {}}', "cpus must be a number from 1 to 512, got 0"),
        ('{"drapps_profile": 1, "set": {"cpus": NaN}, "facts": {}}', "cpus must be a number"),
        ('{"drapps_profile": 1, "set": {"cpus": "2"}, "facts": {}}', "cpus must be a number"),
    ],
)
def test_a_damaged_profile(tmp_path, capsys, text, part):
    path = tmp_path / "profile.json"
    path.write_text(text)
    status, _, error = run(capsys, "eval", "--profile", path, "--seeds", 1, "--seconds", 1)
    assert status == 1 and part in error and "profile.json" in error


def test_calibrate_and_validate(folder, tmp_path, capsys):
    """Both run on the real engine; how good the predictions are depends on what else the machine does."""
    path = tmp_path / "profile.json"
    status, text, _ = run(capsys, "calibrate", folder, "-o", path, "--seconds", 3, "--batch-size", 4, "--size", 32)
    profile = MachineProfile.load(str(path))
    assert status == 0 and "cpu_cv" in text
    assert profile.set["batch"] == 4 and profile.set["cpu"] > 0 and profile.set["sample_bytes"] > 0
    assert profile.facts["ops"]["decode"] > 0
    args = (folder, "--profile", path, "--settings", 3, "--responses", 1, "--seconds", 0.3, "--size", 32)
    status, text, _ = run(capsys, "validate", *args, "--json")
    found = json.loads(text)
    assert status == (0 if found["good"] else 1)
    assert len(found["cases"]) == 3 and len(found["responses"]) == 1
    assert all(case["measured"] > 0 and case["predicted"] > 0 for case in found["cases"])
    status, text, _ = run(capsys, "validate", *args)
    assert "mean absolute error" in text and "rank correlation" in text


# --- what validate computes ---


def test_measures_of_predictions():
    cases = [validate.Case(Setting(1), p, m) for p, m in ((110, 100), (180, 200), (330, 300))]
    found = validate.Validation(cases, [], 0.0)
    assert found.mape == pytest.approx(0.1) and found.spearman == pytest.approx(1) and found.good
    swapped = [case._replace(predicted=1000 - case.predicted) for case in cases]
    assert validate.Validation(swapped, [], 0.0).spearman == pytest.approx(-1)
    tied = [case._replace(predicted=5) for case in cases]
    assert validate.Validation(tied, [], 0.0).spearman == 0


def test_settling_time():
    step = [(0.0, 0.0)]
    for k in range(1, 501):  # 100 a second until 2 s, then 200
        step.append((0.01 * k, step[-1][1] + (1 if k <= 200 else 2)))
    assert validate.settle_time(step) == pytest.approx(2.0, abs=0.25)
    even = [(0.01 * k, 1.0 * k) for k in range(501)]
    assert validate.settle_time(even) == pytest.approx(0, abs=0.11)


def test_settings_are_drawn_by_the_seed():
    profile = MachineProfile({"cpus": 2, "cpu": 0.001, "batch": 32, "cached_read": 1e-6}, {})
    drawn = validate.draw_settings(40, profile, 1)
    assert drawn == validate.draw_settings(40, profile, 1) != validate.draw_settings(40, profile, 2)
    for name in ("workers", "readers", "prefetch", "step", "step_cpu", "tenants", "read_delay", "cpu_limit"):
        assert len({getattr(one, name) for one in drawn}) > 1


def test_predictions_follow_the_settings():
    ideal = {"cpu_speed": 1, "crowd": 0, "lag": 1e-5, "memory_bw": 1e13}
    profile = MachineProfile({"cpus": 4, "cpu": 0.001, "batch": 32, "cached_read": 1e-6, **ideal}, {})
    rate = lambda **how: validate.predict(profile, Setting(**how), 10, 1e-4)  # noqa: E731
    assert rate(workers=2, prefetch=4) == pytest.approx(2000, rel=0.05)
    assert rate(workers=4, prefetch=8, tenants=4) == pytest.approx(2000, rel=0.1)
    assert rate(workers=4, prefetch=8, step=0.064) == pytest.approx(500, rel=0.05)
    assert rate(workers=4, prefetch=8, cpu_limit=1) == pytest.approx(1000, rel=0.05)
    assert rate(workers=1, prefetch=8, read_delay=0.003) == pytest.approx(250, rel=0.05)
