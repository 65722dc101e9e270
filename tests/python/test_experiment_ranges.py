"""drapps experiment ranges: shares of bytes that lie in the order they must."""

import json

import pytest

from benchmarks.experiments import ranges_command
from imagesets import write_folder


def test_shares_of_bytes(tmp_path, capsys):
    folder = write_folder(tmp_path / "set", 12, size=(300, 260))
    ranges_command.main([str(folder), "--epochs", "2", "--size", "32", "--save", str(tmp_path / "out.json")])
    shown = capsys.readouterr().out
    result = json.loads((tmp_path / "out.json").read_text())
    forms = result["forms"]
    shares = {name: form["bytes_read"] / form["bytes_stored"] for name, form in forms.items()}
    assert all(name in shown for name in forms)
    assert result["images"] == 12 and result["smaller_of_file_and_crop"] == 12 * 3 * 32**2
    assert result["file_bytes"] == sum(path.stat().st_size for path in folder.rglob("*.jpg"))
    for form in forms.values():
        assert form["samples"] == 2 * 12 and form["bytes_stored"] == 2 * result["file_bytes"]
    assert 0 < shares["all ranges"] < shares["ranges 4 KB apart"] <= shares["one range"] < 0.95
    assert shares["one range"] <= shares["one range, points from crops alone"] <= 1
    assert forms["one range"]["reads"] == 24 < forms["all ranges"]["reads"]


def test_arguments(tmp_path):
    with pytest.raises(SystemExit):
        ranges_command.main([str(tmp_path), "--epochs", "0"])
