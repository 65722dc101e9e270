"""drapps experiment serve: its parts run, on little data and for a moment; their figures mean nothing here."""

import json
import os
import shutil

import pytest
from imagesets import write_folder

from benchmarks.experiments.sophon import server


@pytest.fixture
def images(tmp_path):
    return write_folder(tmp_path / "images", 6)


def test_tenants(images, tmp_path, capsys):
    result = tmp_path / "result.json"
    server.main(["tenants", "--data", str(images), "--seconds", "0.3", "--rounds", "1", "--json", str(result)])
    row = json.loads(result.read_text())["rounds"][0]
    assert row["alone"] > 0 and row["good"] >= 0 and row["bad"] >= 0
    assert "of its share" in capsys.readouterr().out


@pytest.mark.skipif(not (shutil.which("wrk") and shutil.which("nginx")) and not os.environ.get("CI"),
                    reason="needs wrk and nginx")
def test_files_and_soak(images, tmp_path, capsys):
    result = tmp_path / "result.json"
    server.main(["files", "--data", str(images), "--seconds", "1", "--rounds", "1", "--json", str(result)])
    figures = json.loads(result.read_text())
    assert figures["drapps"]["requests_per_s"] > 0 and len(figures["ratios"]) == 1
    server.main(["soak", "--data", str(images), "--minutes", "0.01", "--json", str(result)])
    figures = json.loads(result.read_text())
    assert len(figures["memory_bytes"]) == 10 and figures["samples"] > 0


def test_programs_that_are_missing_are_named(images, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(SystemExit):
        server.main(["files", "--data", str(images)])
    assert "files needs nginx, which is not installed" in capsys.readouterr().err
