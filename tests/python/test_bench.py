"""drapps.bench without peers: figures, tables, the protocol between runner and child, the choice of settings."""

import json
import os
import random
import sys

import pytest
from imagesets import run_python

from benchmarks import run_all
from drapps.bench import bench_command, bench_table, child, environments, peers, process, runner, stats, workload

linux = pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="memory is read from Linux's /proc")


def run(rate, cpu=2.0, memory=100.0):
    return {"samples_per_s": rate, "cpu_ms_per_sample": cpu, "pss_above_mb": memory, "version": "1"}


def result_of(runs, pixels=None):
    settings = {name: {"workers": 2} for name in runs}
    return {"schema": 1, "workload": workload.NAME, "date": "2000-01-01", "rounds": 3, "samples": 4096,
            "machine": {"cpu": "a CPU", "cpus": 2, "memory_gb": 8, "system": "Linux", "python": "3"},
            "data": {"name": "some", "files": 5, "megabytes": 1.5},
            "peers": runner.summarise(runs, settings, pixels or {}), "missing": [{"peer": "dali", "reason": "away"}]}


THREE = {"drapps": [run(300), run(400), run(390)], "drapps_first": [run(200), run(250), run(240)],
         "torch_pil": [run(100), run(200), run(100)]}


# --- figures ---


def test_spread_is_median_and_range_of_what_was_measured():
    assert stats.spread([3, 1, None, 2]) == {"median": 2, "min": 1, "max": 3, "n": 3}
    assert stats.spread([None]) is None


def test_ratio_is_taken_round_by_round():
    ratio = stats.paired_ratio([300, 400, 390], [100, 200, 100])
    assert ratio == {"median": 3.0, "min": 2.0, "max": 3.9, "n": 3}


def test_ratio_leaves_out_rounds_that_one_side_failed():
    assert stats.paired_ratio([300, None, 100], [100, 100, None])["n"] == 1
    assert stats.paired_ratio([None], [100]) is None


def test_percentiles_stay_inside_the_values():
    assert child.percentiles([5.0]) == {"p50": 5.0, "p95": 5.0, "p99": 5.0, "max": 5.0}
    values = child.percentiles(list(range(100)))
    assert (values["p50"], values["p95"], values["p99"], values["max"]) == (50, 95, 99, 99)


def test_differences_count_images_and_levels():
    np = pytest.importorskip("numpy")
    want = np.zeros((3, 3, 4, 4), np.float32)
    got = want.copy()
    got[1, 0, 2, 2] += np.float32(7 / (255 * workload.STD[0]))
    found = stats.differences(got, want)
    assert found["differing_images"] == 1 and found["largest"] == 7.0 and found["images"] == 3
    assert stats.differences(want, want)["largest_float"] == 0
    assert stats.differences(want[:2], want)["differing_images"] == 1


# --- workload ---


def test_files_are_listed_as_image_folder_does(tmp_path):
    for name in ("b/2.JPG", "b/1.jpeg", "a/x/9.jpg", "a/note.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    files = workload.find_files(tmp_path)
    assert [os.path.relpath(p, tmp_path) for p in files.paths] == ["a/x/9.jpg", "b/1.jpeg", "b/2.JPG"]
    assert files.labels == (0, 1, 1)
    before = files.fingerprint()
    (tmp_path / "b/2.JPG").write_bytes(b"longer")
    assert files.fingerprint() != before


def test_folder_without_jpegs_is_a_clear_error(tmp_path):
    with pytest.raises(SystemExit, match="files that end in .jpg"):
        workload.find_files(tmp_path)
    with pytest.raises(SystemExit, match="--data must be a folder, got"):
        workload.find_files(tmp_path / "absent")


def test_boxes_lie_inside_the_image_and_cover_what_torchvision_covers():
    rng, share = random.Random(5), 0.0
    for _ in range(4000):
        width, height = rng.randint(1, 900), rng.randint(1, 900)
        x, y, w, h = workload.draw_box(width, height, rng)
        assert 0 <= x <= width - w and 0 <= y <= height - h and w > 0 and h > 0
    for _ in range(4000):
        _, _, w, h = workload.draw_box(500, 375, rng)
        share += w * h / (500 * 375) / 4000
    assert 0.41 < share < 0.44  # the mean of scale is 0.54, but large crops often do not fit and are drawn anew


def test_narrow_image_falls_back_to_the_middle():
    assert workload.draw_box(10, 1000, random.Random(1)) == (0, 493, 10, 13)


def test_consumer_refuses_batches_that_it_would_have_to_copy():
    np = pytest.importorskip("numpy")
    batch = np.ones((4, 3, 8, 8), np.float32)
    assert workload.read_batch(batch) == batch.size / 16
    assert workload.read_batch(batch.transpose(0, 2, 3, 1)) == batch.size / 16
    with pytest.raises(ValueError, match="must be dense"):
        workload.read_batch(batch[:, :, ::2])


def test_levels_undo_the_normalisation():
    np = pytest.importorskip("numpy")
    multiply, add = workload.scale_and_shift()
    levels = np.arange(256).reshape(1, 1, 16, 16).repeat(3, axis=1)
    scale, shift = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in (multiply, add))
    assert abs(workload.to_levels((levels * scale + shift).astype(np.float32)) - levels).max() < 1e-4


# --- measuring ---


@linux
def test_window_starts_after_the_warm_samples(monkeypatch):
    monkeypatch.setitem(sys.modules, "drapps_bench.process", process)
    seen = []
    batches = iter([[0] * 64] * 10)
    line = child.measure(batches, samples=200, warm=100, read=seen.append)
    assert line["samples"] == 256 and len(seen) == 6  # 2 batches warm, 4 measured
    assert line["samples_per_s"] > 0 and line["cpu_ms_per_sample"] >= 0
    assert set(line["wait_ms"]) == {"p50", "p95", "p99", "max"}


PEAK = """
import os
from drapps.bench import child, process

before = process.pss_bytes(os.getpid())
monitor = child.Monitor()
block = b"x" * (64 << 20)
print((monitor.stop() - before) / len(block))
"""


@linux
def test_monitor_sees_memory_of_the_tree():
    """In a process of its own: here, memory of earlier tests may be freed meanwhile."""
    assert float(run_python(PEAK).stdout) > 0.9


@linux
def test_memory_is_sampled_unless_that_is_unwanted(monkeypatch):
    np = pytest.importorskip("numpy")
    monkeypatch.setitem(sys.modules, "drapps_bench.process", process)
    monkeypatch.setitem(sys.modules, "drapps_bench.workload", workload)

    class Peer:
        files = range(3)

        def batches(self, settings):
            while True:
                yield np.zeros((4, 2), np.float32)

    args = ["x", "--data", "y", "--samples", "8"]
    line = child.run_measure(child.parse(args), Peer(), base=0)
    assert line["pss_above_mb"] > 0 and line["samples"] == 8
    monkeypatch.setattr(child, "Monitor", None)
    line = child.run_measure(child.parse([*args, "--no-memory"]), Peer(), base=0)
    assert "pss_above_mb" not in line and line["samples"] == 8


@linux
def test_cpu_time_counts_children_that_have_ended():
    import subprocess

    before = process.cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(6_000_000))"], check=True)
    assert process.cpu_seconds(os.getpid()) > before


def test_last_json_line_of_a_process_counts():
    code = "print('noise'); print('{\"a\": 1}'); print('{\"a\": 2}')"
    assert runner.run_process([sys.executable, "-c", code]) == {"a": 2}


def test_failed_process_is_told_by_its_last_words():
    with pytest.raises(runner.PeerError, match="no such luck"):
        runner.run_process([sys.executable, "-c", "raise SystemExit('no such luck')"])
    with pytest.raises(runner.PeerError, match="exit code 0"):
        runner.run_process([sys.executable, "-c", "pass"])


# --- the runner, with peers that are functions ---


class FakeRunner(runner.Runner):
    """Answers for the children: rates by peer and settings."""

    def __init__(self, folder, rates):
        (folder / "a.jpg").write_bytes(b"x")
        super().__init__(folder, str(folder / "envs"))
        self.rates, self.calls = rates, []

    def child(self, name, *arguments):
        settings = json.loads(arguments[1])
        self.calls.append((name, settings))
        self.last = arguments
        rate = self.rates(name, settings)
        if rate is None:
            raise runner.PeerError("broken")
        return run(rate)


def test_tuner_keeps_the_fastest_and_remembers_it(tmp_path):
    cpus = len(os.sched_getaffinity(0))
    bench = FakeRunner(tmp_path, lambda name, s: 100 if s["workers"] == cpus + 1 else 50)
    assert bench.tuned(["torch_pil"]) == {"torch_pil": {"workers": cpus + 1}}
    tried = len(bench.calls)
    assert tried == runner.TUNE_PASSES * len(peers.row("torch_pil").tune(cpus))
    bench.tuned(["torch_pil"])
    assert len(bench.calls) == tried
    bench.tuned(["torch_pil"], anew=True)
    assert len(bench.calls) == 2 * tried


def test_settings_that_are_no_longer_tried_are_searched_again(tmp_path):
    bench = FakeRunner(tmp_path, lambda name, s: 10)
    assert bench.tuned(["drapps"]) == {"drapps": {"seek_index": "memory"}}
    kept = tmp_path / "envs" / "tuned.json"
    kept.write_text(kept.read_text().replace("memory", "auto"))
    assert bench.tuned(["drapps"]) == {"drapps": {"seek_index": "memory"}}


class PixelRunner(FakeRunner):
    """Answers for the children that make pixels: a sample is full of the left edge of its box."""

    def __init__(self, folder, lefts, broken=()):
        super().__init__(folder, lambda name, s: 10)
        self.lefts, self.broken = lefts, broken

    def child(self, name, *arguments):
        import numpy as np

        options = dict(zip(arguments[::2], arguments[1::2]))
        self.calls.append((name, json.loads(options["--settings"]), "--draw" in options))
        if name in self.broken:
            raise runner.PeerError("broken")
        if name == "spdl":
            return {"pixels": None}
        if "--draw" in options:
            boxes = [{"index": i, "box": [x, 0, 1, 1], "flip": False} for i, x in enumerate(self.lefts[name])]
            with open(options["--draw"], "w") as f:
                json.dump(boxes, f)
        with open(options.get("--draw") or options["--pixels"]) as f:
            samples = [np.full((3, 2, 2), b["box"][0], np.float32) for b in json.load(f)]
        np.save(options["--out"], np.stack(samples))
        return {"pixels": options["--out"]}


PIXEL_SETTINGS = {"drapps": {"seek_index": "memory"}, "drapps_first": {"seek_index": "off"}, "torch_pil": {},
                  "spdl": {}}


def test_both_ways_of_drapps_are_compared_as_they_are_measured(tmp_path):
    pytest.importorskip("numpy")
    bench = PixelRunner(tmp_path, {"drapps": [1, 2], "drapps_first": [1, 2]})
    found = bench.pixels(PIXEL_SETTINGS)
    assert bench.calls == [("drapps", {"seek_index": "memory"}, True), ("drapps_first", {"seek_index": "off"}, True),
                           ("torch_pil", {}, False), ("spdl", {}, False)]
    assert found["spdl"] is None and bench.missing == []
    assert [found[name]["differing_images"] for name in ("drapps", "drapps_first", "torch_pil")] == [0, 0, 0]


def test_a_way_that_draws_other_crops_is_said_and_differs(tmp_path):
    pytest.importorskip("numpy")
    bench = PixelRunner(tmp_path, {"drapps": [1, 2], "drapps_first": [1, 3]})
    found = bench.pixels(PIXEL_SETTINGS)
    assert found["drapps"]["differing_images"] == 0 and found["drapps_first"]["differing_images"] == 1
    assert bench.missing == [{"peer": "drapps_first", "reason": "pixels: its crops are not those of drapps"}]


def test_both_ways_of_drapps_draw_the_same_second_epoch(folder, tmp_path):
    np = pytest.importorskip("numpy")
    files = workload.find_files(folder)
    (boxes, samples), (first_boxes, first_samples) = (
        peers.load(name)(files, tmp_path).draw(settings) for name in peers.OURS for settings in peers.row(name).tune(2))
    assert len(boxes) == len(files) and boxes == first_boxes
    assert np.array_equal(samples, first_samples) and samples[0].shape == (3, workload.SIZE, workload.SIZE)


def test_pixels_without_drapps_or_after_a_failure(tmp_path):
    pytest.importorskip("numpy")
    bench = PixelRunner(tmp_path, {"torch_pil": [4]})
    assert bench.pixels({"torch_pil": {}})["torch_pil"]["images"] == 1
    bench = PixelRunner(tmp_path, {"drapps": [1], "drapps_first": [1]}, broken=("drapps_first",))
    found = bench.pixels(PIXEL_SETTINGS)
    assert found["drapps_first"] is None and found["drapps"]["differing_images"] == 0
    assert bench.missing == [{"peer": "drapps_first", "reason": "pixels: broken"}]
    assert PixelRunner(tmp_path, {}, broken=("drapps",)).pixels(PIXEL_SETTINGS) == {}


def test_rounds_are_interleaved_and_a_failure_is_said(tmp_path):
    bench = FakeRunner(tmp_path, lambda name, s: None if name == "hand" else 10)
    runs = bench.rounds({"drapps": {}, "hand": {}}, 2)
    assert [name for name, _ in bench.calls] == ["drapps", "hand", "drapps", "hand"]
    assert runs["hand"] == [None, None] and bench.missing[0] == {"peer": "hand", "reason": "round 1: broken"}


def test_missing_environment_is_said_not_an_error(tmp_path):
    bench = FakeRunner(tmp_path, lambda name, s: 10)
    assert bench.available(["dali"]) == []
    assert bench.missing[0]["peer"] == "dali" and "drapps bench setup dali" in bench.missing[0]["reason"]


# --- output ---


def test_result_has_the_fields_of_the_schema():
    result = json.loads(json.dumps(result_of(THREE, {"drapps": None})))
    ours, first, torch = result["peers"]
    assert set(ours) == {"peer", "title", "differs", "version", "settings", "samples_per_s", "cpu_ms_per_sample",
                         "pss_above_mb", "over_torch", "drapps_over", "first_over", "pixels", "runs"}
    assert ours["over_torch"]["median"] == 3.0 and ours["drapps_over"] is None
    assert torch["over_torch"]["median"] == 1.0 and torch["drapps_over"]["min"] == 2.0
    assert torch["first_over"] == {"median": 2.0, "min": 1.25, "max": 2.4, "n": 3}
    assert first["drapps_over"]["median"] == 1.6 and first["first_over"] is None and ours["first_over"] is None
    assert len(ours["runs"]) == 3


def test_table_is_sorted_by_rate_and_marks_what_cannot_be_compared():
    pixels = {"largest": 12.0, "differing_images": 1, "images": 5, "mean": 0.1, "largest_float": 0.2}
    rows = bench_table.table_rows(result_of(THREE, {"torch_pil": pixels}))
    assert [row[0] for row in rows] == [peers.row(name).title for name in THREE]
    assert rows[0][1:4] == ("390 [300, 400]", "3.00 x", "-") and rows[0][6] == "n/a"
    assert rows[1][1:4] == ("240 [200, 250]", "2.00 x", "1.60 x")
    assert rows[2][3] == "3.00 x / 2.00 x" and rows[2][6] == "12" and rows[2][7] == "workers 2"


def test_a_result_without_the_first_epoch_is_still_shown():
    result = result_of(THREE)
    for entry in result["peers"]:
        del entry["first_over"]
    assert bench_table.table_rows(result)[2][3] == "3.00 x"


def test_markdown_names_missing_peers():
    text = bench_table.markdown(result_of(THREE))
    assert "| drapps, later epochs (seek points kept) | 390 [300, 400] |" in text
    assert "- dali: not measured: away" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {len(bench_table.COLUMNS) + 1}


def test_the_report_says_why_pixels_were_not_compared():
    result = {**result_of(THREE), "not_compared": "--no-pixels was given"}
    assert "- largest diff. n/a: --no-pixels was given" in bench_table.markdown(result)
    pixels = {"largest": 0.0}
    text = bench_table.markdown(result_of(THREE, {"torch_pil": pixels, "drapps": pixels}))
    assert "- largest diff. n/a: drapps_first cannot crop a given part of an image" in text
    assert "n/a" not in bench_table.markdown(result_of(THREE, dict.fromkeys(THREE, pixels)))


def test_terminal_table_prints(capsys):
    pytest.importorskip("rich")
    bench_table.print_table(result_of(THREE))
    assert "390 [300, 400]" in capsys.readouterr().out


def test_section_of_a_file_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("head\n<!-- x -->\nold\n<!-- /x -->\ntail\n")
    bench_table.write_section(page, "x", "new\n")
    bench_table.write_section(page, "x", "new\n")
    assert page.read_text() == "head\n<!-- x -->\n\nnew\n\n<!-- /x -->\ntail\n"
    with pytest.raises(SystemExit, match="exactly once"):
        bench_table.write_section(page, "y", "new\n")


def test_saved_result_is_shown_again(tmp_path, capsys):
    saved = tmp_path / "r.json"
    saved.write_text(json.dumps(result_of(THREE)))
    assert bench_command.main(["show", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
    page = tmp_path / "p.md"
    page.write_text("<!-- r -->\n<!-- /r -->\n")
    bench_command.main(["show", str(saved), "--into", str(page), "r"])
    assert "390 [300, 400]" in page.read_text()


# --- arguments and tables ---


def test_peer_names_put_drapps_first_and_refuse_others():
    assert bench_command.peer_names("") == ["drapps", "drapps_first"]
    assert bench_command.peer_names("all") == list(peers.NAMES)
    assert bench_command.peer_names("dali,drapps") == ["drapps", "drapps_first", "dali"]
    assert "drapps_first" not in bench_command.others() and len(bench_command.others()) == len(peers.NAMES) - 2
    with pytest.raises(SystemExit, match="peer must be one of .*, got 'dally'"):
        bench_command.peer_names("dally")


def test_every_peer_has_a_file_an_environment_and_settings():
    folder = os.path.dirname(peers.__file__)
    for row in peers.TABLE:
        assert os.path.exists(os.path.join(folder, row.module + ".py"))
        assert row.environment in ("", *environments.TABLE)
        assert all(isinstance(s, dict) for s in row.tune(2)) and row.tune(2)


# --- promises ---


def test_checks_know_their_side_and_what_was_not_measured():
    assert run_all.passed(run_all.Check("a", 3.3, 3.2, True)) is True
    assert run_all.passed(run_all.Check("a", 3.1, 3.2, True)) is False
    assert run_all.passed(run_all.Check("a", 140, 150, False)) is True
    assert run_all.passed(run_all.Check("a", None, 1, True)) is None
    assert run_all.passed(run_all.Check("a", 1.4, None, True)) is None


def test_speed_and_memory_are_judged_from_a_result():
    runs = {"drapps": [run(600, memory=30)], "drapps_first": [run(460, memory=90)],
            "torch_pil": [run(100, memory=100)], "hand": [run(500)]}
    result = result_of(runs)
    checks = {c.what: (c.value, c.bound, run_all.passed(c)) for c in run_all.speed_checks(result)}
    assert checks["first epoch over torch_pil"] == (4.6, 4.5, True)
    assert checks["later epochs over torch_pil"] == (6.0, 6.5, False)
    assert checks["first epoch over hand"] == (0.92, 1.0, False)
    assert checks["first epoch over dali"] == (None, 1.7, None) and checks["later epochs over dali"][1] == 3.0
    assert len(checks) == len(bench_command.others()) + 2
    assert run_all.passed(run_all.memory_check(result)) is True


def test_a_photo_peer_must_be_beaten_in_every_round():
    runs = {"drapps": [run(300), run(120)], "drapps_first": [run(300), run(90)], "hand": [run(100), run(100)]}
    later, first = [c for c in run_all.noise_checks(result_of(runs)) if c.what.endswith("hand")]
    assert "later epochs" in later.what and later.value == 1.2 and run_all.passed(later) is True
    assert "first epoch" in first.what and first.value == 0.9 and run_all.passed(first) is False


def test_gain_of_a_second_worker_is_compared_with_the_loop():
    rates = {("loader", "drapps", 2): [180.0], ("loader", "drapps", 1): [100.0], ("loop", "drapps", 2): [200.0],
             ("loop", "drapps", 1): [100.0], ("fed", "drapps", 2): [187.5], ("fed", "drapps", 1): [100.0],
             ("loader", "libjpeg", 2): [114.0], ("loader", "libjpeg", 1): [60.0], ("loop", "libjpeg", 2): [120.0],
             ("loop", "libjpeg", 1): [60.0], ("fed", "libjpeg", 2): [120.0], ("fed", "libjpeg", 1): [60.0]}  # fmt: skip
    share, gain, turbo_share, turbo_gain, fed_share, fed_gain, _, _, turbo = run_all.limit_checks(rates)
    assert share.value == 0.9 and run_all.passed(share) and gain.value == 0.9 and run_all.passed(gain) is False
    assert "libjpeg" in turbo_share.what and turbo_share.value == 0.95 and turbo_gain.value == 0.95
    assert "consumer" in fed_share.what and "consumer" in fed_gain.what and "consumer" not in share.what + gain.what
    assert [fed_share.value, fed_gain.value] == pytest.approx([0.96, 0.96]) and fed_gain.note == "1.80 to 1.88"
    assert fed_share.note == "180 of 188 samples/s"
    assert fed_share.bound is fed_gain.bound is turbo.bound is None  # the loop as it was asked for is what judges
    assert turbo.value == 1.5


LOOP = """#!{python}
import argparse, json, sys
parser = argparse.ArgumentParser()
for name in ("--decoder", "--threads", "--samples"):
    parser.add_argument(name, required=True)
parser.add_argument("--consumer", action="store_true")
args = parser.parse_args()
rates = {{("drapps", "1"): 10, ("drapps", "2"): 20, ("libjpeg", "1"): 8, ("libjpeg", "2"): 15}}
rate = rates[args.decoder, args.threads] - args.consumer
print(json.dumps({{"samples_per_s": rate, "samples": int(args.samples), "files": len(sys.stdin.readlines())}}))
"""


def test_bare_loops_and_the_loader_run_in_turn(tmp_path):
    program = tmp_path / "limit"
    program.write_text(LOOP.format(python=sys.executable))
    program.chmod(0o755)
    bench = FakeRunner(tmp_path, lambda name, s: 9 * s["workers"] if name == "drapps_first" else None)
    rates = run_all.limit_rounds(bench, str(program), 2)
    assert rates == {("loader", "drapps", 2): [18, 18], ("loop", "drapps", 2): [20, 20], ("fed", "drapps", 2): [19, 19],
                     ("loader", "libjpeg", 2): [18, 18], ("loop", "libjpeg", 2): [15, 15],
                     ("fed", "libjpeg", 2): [14, 14],
                     ("loader", "drapps", 1): [9, 9], ("loop", "drapps", 1): [10, 10], ("fed", "drapps", 1): [9, 9],
                     ("loader", "libjpeg", 1): [9, 9], ("loop", "libjpeg", 1): [8, 8],
                     ("fed", "libjpeg", 1): [7, 7]}  # fmt: skip
    assert bench.calls[0] == ("drapps_first", {"seek_index": "off", "workers": 2, "decoder": "auto"})
    assert bench.last[-1] == "--no-memory"  # the loop has no sampler beside it either
    assert run_all.limit_rounds(bench, str(tmp_path / "absent"), 1)["loop", "drapps", 2] == [None]


def test_without_the_bare_loop_it_is_said_what_was_not_measured():
    checks = run_all.bare_loop(run_all.parse(["--data", "x"]))
    assert [(c.value, c.note) for c in checks] == [(None, "give --limit")] * len(
        run_all.limit_checks({run: [] for run in run_all.RUNS})
    )


def test_the_loop_may_be_judged_alone(monkeypatch):
    monkeypatch.setattr(run_all, "bare_loop", lambda args: [run_all.Check("loop", 0.8, 0.9, True)])
    monkeypatch.setattr(run_all, "run_folder", None)
    assert run_all.main(["--data", "x", "--loop-alone", "--json"]) == 1


def test_photos_may_have_a_smaller_window(monkeypatch):
    asked = []
    monkeypatch.setattr(run_all, "run_folder", lambda args, data, samples: asked.append((data, samples)) or
                        result_of(THREE))
    monkeypatch.setattr(run_all, "startup_checks", lambda data, say: [])
    run_all.collect(run_all.parse(["--data", "a", "--photos", "b", "--photos-samples", "320"]))
    run_all.collect(run_all.parse(["--data", "a", "--photos", "b", "--samples", "77"]))
    assert asked == [("a", 4096), ("b", 320), ("a", 77), ("b", 77)]


def test_pixels_must_not_differ():
    pixels = {"differing_images": 1, "largest_float": 0.5, "largest": 9, "images": 2, "mean": 1}
    same = {**pixels, "differing_images": 0, "largest_float": 1e-7}
    checks = run_all.pixel_checks(result_of(THREE, {"drapps": same, "drapps_first": pixels}))
    assert [run_all.passed(c) for c in checks] == [True, True, False, False]


def test_checks_print_as_a_table(capsys):
    pytest.importorskip("rich")
    run_all.print_checks([run_all.Check("a promise", 3.25, 3.2, True), run_all.Check("another", None, 1, False),
                          run_all.Check("only told", 1.75, None, True)])
    out = capsys.readouterr().out
    assert "kept" in out and "at least 3.2" in out and "not measured" in out and "1.75" in out
