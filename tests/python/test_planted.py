"""The planted bottlenecks: the same by seed, and one of them run from end to end."""

import pytest

from drapps.experiment import pictures, planted, plants
from drapps.experiment.field import Field
from drapps.profile.rules import NAMES


def test_every_finding_is_planted():
    assert {plant.expected for plant in plants.PLANTS} == set(NAMES)
    assert sum(plant.expected == "healthy" for plant in plants.PLANTS) == 2


@pytest.mark.parametrize("make", [plants.slow_op, plants.slow_samples, plants.slow_source])
def test_strength_and_place_by_seed(tmp_path, make, monkeypatch):
    monkeypatch.setattr(pictures, "write_pictures", lambda *args, **options: None)
    cases = [make(Field(str(tmp_path), seed, make.__name__)) for seed in (1, 1, 2, 3, 4)]
    assert cases[0] == cases[1]
    assert len({case.strength for case in cases}) > 1


def test_pictures(tmp_path):
    from PIL import Image

    pictures.write_pictures(tmp_path / "a", 30, 64, seed=1)
    sizes = [Image.open(path).size for path in sorted((tmp_path / "a").iterdir())]
    assert len(sizes) == 30 and all(54 <= width <= 74 for width, _ in sizes)
    with pictures.forgotten(tmp_path / "a", every=0.01):
        pass


def test_from_end_to_end(capsys):
    rows = planted.run(seed=1, names=["slow_source"], seconds=3)
    planted.table(rows)
    assert "1 of 1 named" in capsys.readouterr().out, rows
    assert rows[0].findings[0]["gain"] > 1


def test_an_unknown_plant(capsys):
    with pytest.raises(SystemExit):
        planted.main(["slow_moon"])
    assert "slow_moon" in capsys.readouterr().err
