"""The planted bottlenecks: the same by seed, what their remedies change, and one of them run from end to end."""

import json
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from benchmarks.experiments import pictures, planted, plants, remedies
from benchmarks.experiments.planted_case import Case, Field, Remedy
from benchmarks.experiments.remedies import Trial
from drapps.profile.rules import NAMES


def test_every_finding_is_planted():
    assert {plant.expected for plant in plants.PLANTS} == set(NAMES)
    assert sum(plant.expected == "healthy" for plant in plants.PLANTS) == 2


@pytest.mark.parametrize("plant", [plants.slow_op, plants.slow_samples, plants.slow_source])
def test_strength_and_place_by_seed(tmp_path, plant, monkeypatch):
    monkeypatch.setattr(pictures, "write_pictures", lambda *args, **options: None)
    cases = [plant(Field(str(tmp_path), seed, plant.__name__)) for seed in (1, 1, 2, 3, 4)]
    assert cases[0] == cases[1]
    assert len({case.strength for case in cases}) > 1


def make(plant, tmp_path, monkeypatch):
    """A case of a plant whose pictures are empty files."""
    monkeypatch.setattr(pictures, "picture", lambda *args, **options: b"")
    return plant(Field(str(tmp_path), 1, plant.__name__))


def test_a_slow_op_is_taken_out(tmp_path, monkeypatch):
    case = make(plants.slow_op, tmp_path, monkeypatch)
    after = case.remedied(case.remedies[0], {})
    assert "gaussian_blur" in case.chain or "arranged" in case.chain
    assert "gaussian_blur" not in after.chain and "arranged" not in after.chain
    assert after.settings == case.settings and after.step == case.step


def test_slow_samples_are_removed(tmp_path, monkeypatch):
    case = make(plants.slow_samples, tmp_path, monkeypatch)
    before = len(list((tmp_path / "data").iterdir()))
    case.remedied(case.remedies[0], {})
    assert len(list((tmp_path / "data").iterdir())) == 360 < before


def test_a_delay_is_taken_away(tmp_path, monkeypatch):
    case = make(plants.slow_source, tmp_path, monkeypatch)
    assert case.environment and not case.remedied(case.remedies[0], {}).environment


def test_workers_as_told():
    assert plants._fewer({"workers": 30, "prefetch": 4}, {"fewer_workers": 1}, 2) == {"workers": 1, "prefetch": 4}
    assert plants._fewer({"workers": 30}, {}, 2) == {"workers": 2}


def test_pictures(tmp_path):
    from PIL import Image

    pictures.write_pictures(tmp_path / "a", 30, 64, seed=1)
    sizes = [Image.open(path).size for path in sorted((tmp_path / "a").iterdir())]
    assert len(sizes) == 30 and all(54 <= width <= 74 for width, _ in sizes)
    with pictures.forgotten(tmp_path / "a", every=0.01):
        pass


def found(rate, **gains):
    """What the profile says of a run."""
    findings = [{"name": name, "gain": gain, "without": 2 * gain} for name, gain in gains.items()]
    return {"verdict": next(iter(gains), "healthy"), "facts": {"rate": rate}, "findings": findings}


def test_gains():
    before, after = found(100.0, slow_disk=3.0, small_files=2.0), found(250.0)
    gone, coping = Remedy("no limit"), Remedy("shards", gone=False)
    assert remedies.predicted_gain("small_files", before, gone) == 4.0
    assert remedies.predicted_gain("small_files", before, coping) == 2.0
    assert remedies.predicted_gain("slow_op", before, gone) is None
    assert remedies.measured_gain(before, after) == 2.5
    assert remedies.measured_gain({"verdict": "failed with 1"}, after) is None


def test_conditions_end_before_the_first_remedy_without_them():
    events = []
    at = SimpleNamespace(undo=ExitStack(), profiled=lambda case, seconds: events.append(case.chain) or found(300.0))
    at.undo.callback(events.append, "calm")
    case = Case(strength="much", remedies=[Remedy("a", lambda facts: {"chain": "without"}),
                                           Remedy("b", lambda facts: {"chain": "coping"}, gone=False)])  # fmt: skip
    trials = remedies.tried(at, case, "slow_disk", found(100.0, slow_disk=2.0), 1)
    assert events == ["coping", "calm", "without"]
    assert trials == [Trial("slow_disk", "much", "b", 2.0, 3.0, "healthy"),
                      Trial("slow_disk", "much", "a", 4.0, 3.0, "healthy")]  # fmt: skip


def trial(predicted, measured):
    return Trial("slow_op", "much", "without it", predicted, measured, "healthy")


def test_a_ratio():
    assert trial(2.0, 3.0).ratio == 1.5 and not trial(2.0, 3.0).close
    assert trial(2.0, 1.7).close and trial(2.0, 2.4).close
    assert trial(None, 3.0).ratio is None and not trial(None, 3.0).close


def test_the_table_of_remedies(capsys):
    remedies.table([trial(2.0, 1.0), trial(2.0, 4.0), trial(2.0, 2.0), trial(None, 2.0)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["planted", "strength", "remedy", "predicted", "measured", "ratio", "then"]
    assert lines[1].split()[-4:] == ["2.00x", "1.00x", "0.50", "healthy"]
    assert lines[4].split()[-4:] == ["-", "2.00x", "-", "healthy"]
    assert lines[5].startswith("1 of 4 gains") and "1.00 (geometric mean), 0.50 to 2.00" in lines[5]


def test_the_page_of_remedies():
    lines = remedies.page([trial(2.0, 1.0)]).splitlines()
    assert lines[0].startswith("| planted | strength |") and lines[2].endswith("| 2.00x | 1.00x | 0.50 | healthy |")
    assert lines[-1].startswith("0 of 1 gains")


def test_from_end_to_end(capsys):
    rows = planted.run(seed=1, names=["slow_source"], seconds=3, with_remedies=True)
    planted.table(rows)
    assert "1 of 1 named" in capsys.readouterr().out, rows
    assert rows[0].findings[0]["gain"] > 1
    assert rows[0].trials[0].remedy == "no delay" and rows[0].trials[0].ratio > 0
    assert json.loads(json.dumps(planted.as_dict(rows[0])))["trials"][0]["ratio"] > 0


def test_an_unknown_plant(capsys):
    with pytest.raises(SystemExit):
        planted.main(["slow_moon"])
    assert "slow_moon" in capsys.readouterr().err
