"""drapps experiment storage: what counts as matched, arrays of data, and shards beside files, on a small set."""

import json

import numpy as np
import pytest

from benchmarks.experiments.storage import (
    codec_data,
    codec_peers,
    manager_speed,
    plan_choice,
    plan_pipelines,
    shard_speed,
    size_sweep,
    storage_command,
)
from benchmarks.experiments.storage.kept_results import KeptResults
from imagesets import write_folder


def row(library, codec, ratio, decode, kind="text"):
    return {"kind": kind, "library": library, "codec": codec, "ratio": ratio, "encode": 1e6, "decode": decode}


def test_a_front_has_what_no_other_beats():
    rows = [row("zstd", "a", 2.0, 10), row("zstd", "b", 3.0, 5), row("zstd", "c", 1.9, 9)]
    assert [r["codec"] for r in codec_peers.front(rows)] == ["a", "b"]


@pytest.mark.parametrize("ratio, decode, match", [(2.0, 100, "x"), (2.1, 100, "x"), (2.2, 100, None), (2.0, 110, None)])
def test_a_match_is_at_most_a_twentieth_behind(ratio, decode, match):
    found = codec_peers.matches(row("zstd", "a", ratio, decode), [row("drapps", "x", 2.0, 100)])
    assert (found["codec"] if found else None) == match


def test_kinds_that_are_not_there_are_left_out(tmp_path):
    (tmp_path / "book.txt").write_text("call me " * 100)
    (tmp_path / "table.csv").write_text("a,b,name\n1,2.5,x\n3,NA,y\n")
    assert codec_data.write(tmp_path, tmp_path) == ["text", "sensors"]
    np.testing.assert_array_equal(np.load(tmp_path / "sensors.npy"), [1, 3, 2.5, np.nan])


def test_shards_beside_files(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path / "set", 24)
    monkeypatch.setattr(shard_speed, "SMALL_FILES", 40)
    storage_command.main(["shards", "--data", str(tmp_path / "set"), "--rounds", "1", "--epochs", "2"])
    out = capsys.readouterr().out
    assert "small files, 1 ms an open" in out and "bytes on disk" in out


def runs(*rates):
    return {number: {"rates": [rate]} for number, rate in enumerate(rates)}


class Args:
    def __init__(self, results=None, minutes=0):
        self.results, self.minutes = results, minutes


def test_results_are_measured_once(tmp_path):
    args, measured = Args(str(tmp_path / "a.jsonl")), []
    for _ in range(2):
        kept = KeptResults(args, {"rounds": 3})
        for key in ("a", "b"):
            assert kept.get((key, 1), lambda key=key: measured.append(key) or {"of": key}) == {"of": key}
    assert measured == ["a", "b"]
    with pytest.raises(SystemExit, match="rounds 3, not 4"):
        KeptResults(args, {"rounds": 4})


def test_nothing_is_begun_when_the_time_is_over(tmp_path, capsys):
    file = str(tmp_path / "a.jsonl")
    KeptResults(Args(file), {}).get(("a",), lambda: {"x": 1})
    kept = KeptResults(Args(file, 1e-9), {})
    assert kept.get(("a",), pytest.fail) == {"x": 1} and not kept.late
    assert kept.get(("b",), pytest.fail) is None and kept.get(("c",), pytest.fail) is None and kept.late
    assert capsys.readouterr().err.count("minutes are over") == 1


def test_codecs_far_behind_are_left_out():
    ways = {"manager": runs(1, 1, 1), **{codec: runs(50, 50, 50) for codec in ("lz4hc", "snappy", "zstd")},
            "none": runs(100, 99, 101), "lz4": runs(80, 70, 80)}  # fmt: skip
    assert manager_speed.in_race(ways) == ["none", "lz4"]


def test_codecs_that_were_left_out_are_not_the_best():
    ways = {"manager": runs(100, 100, 100, 100, 100), "none": runs(100, 100, 100, 90, 90), "lz4": runs(99, 99, 99)}
    found = manager_speed.judge(ways)
    assert found["best"] == "none" and found["rounds"] == 5 and found["ratio"] > 1


@pytest.mark.parametrize("ours, verdict", [((100, 101, 99, 100), "not worse"), ((80, 81, 79, 80), "worse"),
                                           ((150, 151, 149, 150), "better")])  # fmt: skip
def test_the_manager_is_judged_beside_the_fastest_codec(ours, verdict):
    ways = {"manager": runs(*ours), "lz4": runs(100, 100, 100, 101), "none": runs(50, 50, 50, 50)}
    found = manager_speed.judge(ways)
    assert found["best"] == "lz4" and found["verdict"] == verdict and found["low"] <= found["ratio"] <= found["high"]


def test_moves_are_judged_by_the_terms():
    def phase(v, rho):
        return {"choices": {}, "v": v, "rho": rho}

    rounds = [{"all there": phase(0.3, 0.9), "CPU taken": phase(0.8, 0.5), "bandwidth back": phase(1.0, 0.4),
               "bandwidth taken": phase(0.9, 0.3)}]  # fmt: skip
    assert [(taken, verdict) for taken, *_, verdict in manager_speed.moves(rounds)] == [
        ("CPU taken", "faster to decompress"), ("bandwidth taken", "not denser")]  # fmt: skip
    rounds[0]["CPU taken"]["v"] = 0.31
    assert [verdict for *_, verdict in manager_speed.moves(rounds)] == ["as before", "not denser"]


def test_the_manager_beside_fixed_codecs(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path / "set", 24)
    results = str(tmp_path / "r.jsonl")
    monkeypatch.setattr(manager_speed, "corners", lambda args: {"one": (manager_speed.Cpu(args.cpu_poor), 50e6)})
    options = ["--rounds", "1", "--samples", "32", "--epochs", "1", "--seconds", "0.01", "--phase-samples", "16",
               "--move-rounds", "1"]  # fmt: skip
    storage_command.main(["manager", "--data", str(tmp_path / "set"), "--kinds", "pixels", "--cpu-poor", "burn:1",
                          "--work", str(tmp_path), "--save", str(tmp_path / "a.json"),
                          "--markdown", str(tmp_path / "a.md"), "--results", results, *options])  # fmt: skip
    out, saved = capsys.readouterr().out, json.loads((tmp_path / "a.json").read_text())
    assert "what the manager chose" in out and "| kept | corner |" in (tmp_path / "a.md").read_text()
    ways = saved["corners"]["pixels"]["one"]
    assert set(ways) == {"manager", "none", "lz4", "lz4hc", "zstd", "snappy"}
    assert all(one["0"]["hits"] >= 64 and one["0"]["rates"][0] > 0 for one in ways.values())
    manager = ways["manager"]["0"]
    assert sum(sum(n.values()) for n in manager["choices"].values()) == manager["kept"] == 32
    assert len(saved["moves"]["pixels"][0]) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.md", "r.jsonl", "set"]
    # Everything is there: nothing is run again, and the tables are the same.
    monkeypatch.setattr(manager_speed.Setup, "_open", pytest.fail)
    storage_command.main(["manager", "--data", str(tmp_path / "set"), "--kinds", "pixels", "--cpu-poor", "burn:1",
                          "--results", results, *options])  # fmt: skip
    assert capsys.readouterr().out == out


def test_a_choice_is_compared_over_the_rounds():
    values = {"a": [100.0, 110.0, 90.0], "b": [200.0, 220.0, 180.0]}
    assert plan_choice.beside(values, "a", "b")[0] == pytest.approx(0.5)
    assert plan_choice.beside(values, "a", "a") == (1.0, 1.0, 1.0)


def test_the_planner_beside_every_strategy(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path / "set" / "imagenet", 8)
    (tmp_path / "set" / "text").mkdir()
    (tmp_path / "set" / "text" / "book.txt").write_text("It is a truth universally acknowledged. " * 900)
    storage_command.main(["planner", "--data", str(tmp_path / "set"), "--quick", "--samples", "8", "--work",
                          str(tmp_path), "--pipelines", "arrays,python,volumes", "--save", str(tmp_path / "a.json"),
                          "--batch-size", "4", "--results", str(tmp_path / "r.jsonl")])  # fmt: skip
    out, err = capsys.readouterr()
    found = json.loads((tmp_path / "a.json").read_text())["pipelines"]
    assert list(found) == ["arrays", "python"] and "volumes: left out" in err and "chosen / best" in out
    for one in found.values():
        assert one["samples"] == one["measured"] and not one["refused"]
        names = [strategy["name"] for strategy in one["strategies"]]
        assert one["best"] == names[0] and {one["best"], one["untouched"]} <= set(one["values"])
        assert all(len(strategy["values"]) == 1 for strategy in one["strategies"])
        assert all(plan["chosen"] in one["values"] for plan in one["plans"])
    assert "after map(tokens_of), cache folder, page cache" in {s["name"] for s in found["python"]["strategies"]}
    monkeypatch.setattr(plan_choice.Planner, "run", pytest.fail)
    storage_command.main(["planner", "--data", str(tmp_path / "set"), "--quick", "--samples", "8", "--batch-size", "4",
                          "--pipelines", "arrays,python,volumes", "--results", str(tmp_path / "r.jsonl")])  # fmt: skip
    assert capsys.readouterr().out == out


def test_every_pipeline_of_the_planner_has_data(tmp_path):
    assert all(plan_pipelines.pipeline(name, tmp_path, 8) is None for name in plan_pipelines.PIPELINES)


def test_sizes(tmp_path, monkeypatch, capsys):
    write_folder(tmp_path / "set", 8)
    monkeypatch.setattr(size_sweep, "SIZES", {"3 KB": 32, "75 KB": 160})
    storage_command.main(["sizes", "--data", str(tmp_path / "set"), "--quick", "--rounds", "1", "--seconds", "0.01",
                          "--total", "200000", "--bandwidth", "1e6", "--work", str(tmp_path),
                          "--results", str(tmp_path / "r.jsonl"), "--save", str(tmp_path / "a.json")])  # fmt: skip
    sizes = json.loads((tmp_path / "a.json").read_text())["sizes"]
    assert {name: len(one["rates"]) for name, one in sizes.items()} == {"3 KB": 6, "75 KB": 6}
    assert sizes["75 KB"]["samples"] == 8 and sizes["75 KB"]["bytes"] == 160 * 160 * 3
    assert "application / page cache" in capsys.readouterr().out
    # Slow storage delivers no more than it is told to.
    assert sizes["75 KB"]["rates"]["storage"][0] * sizes["75 KB"]["stored"] < 1.2e6
    # Of results of which a part is there, the rest is measured.
    lines = (tmp_path / "r.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "r.jsonl").write_text("".join(lines[:5]))
    storage_command.main(["sizes", "--data", str(tmp_path / "set"), "--quick", "--rounds", "1", "--seconds", "0.01",
                          "--total", "200000", "--bandwidth", "1e6",
                          "--results", str(tmp_path / "r.jsonl")])  # fmt: skip
    again = (tmp_path / "r.jsonl").read_text().splitlines(keepends=True)
    assert len(again) == len(lines) and again[:5] == lines[:5]
