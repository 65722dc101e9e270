"""drapps experiment sophon: each part runs, small; its verdicts follow from its figures; sets of given sizes."""

import json
import random
import shutil
import statistics

import pytest
from imagesets import write_folder
from PIL import Image

from benchmarks.experiments.sophon import (
    overhead,
    policy_epochs,
    remote,
    sophon_command,
    stage_bounds,
    traffic,
    twins,
    vary,
)
from benchmarks.experiments.testbed import testbed

REASON = testbed.missing()
needs_hosts = pytest.mark.skipif(REASON is not None, reason=str(REASON))
needs_nginx = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")


@pytest.fixture
def images(tmp_path):
    """24 images of about 10 KB in class folders."""
    return write_folder(tmp_path / "set", 24, size=(120, 160))


def run(tmp_path, part, *arguments):
    """The saved result of a part."""
    sophon_command.main([part, *map(str, arguments), "--save", str(tmp_path / "result.json")])
    return json.loads((tmp_path / "result.json").read_text())


def out_rows(capfd):
    return [line.split() for line in capfd.readouterr().out.splitlines()]


def stored_bytes(folder):
    return sum(path.stat().st_size for path in twins.jpegs(folder))


@needs_hosts
def test_epochs_of_policies(images, tmp_path, capfd):
    result = run(tmp_path, "epochs", "--data", images, "--bytes", stored_bytes(images), "--quotas", 0, 1,
                 "--policies", "off", "all", "sophon+", "--epochs", 2, "--rate", 50)  # fmt: skip
    assert result["images"] == 24 and len(result["rows"]) == 5
    sent = {row["way"]: row["epochs"][1]["bytes"] for row in result["rows"] if row["quota"]}
    assert sent["all"] > 24 * 4 * twins.CROP_BYTES > sent["off"] > stored_bytes(images)
    rows = out_rows(capfd)
    assert {(row[0], row[1]) for row in rows if len(row) == 8 and row[0] in "01"} == {
        ("0", "off"), ("0", "sophon+"), ("1", "off"), ("1", "all"), ("1", "sophon+")}  # fmt: skip


def case_of(quota, way, seconds):
    return {"round": 0, "quota": quota, "way": way, "store_cpu_s": 0, "epochs": [
        {"seconds": 99.0, "bytes": 1, "prepared": 0, "segments": 0},
        {"seconds": seconds, "bytes": 1, "prepared": 0, "segments": 0}]}  # fmt: skip


@pytest.mark.parametrize("plus,best,convex", [((9.0, 4.0, 3.0), "yes", "yes"), ((10.0, 9.8, 3.0), "yes", "no"),
                                              ((10.0, 11.0, 3.0), "no", "no")])  # fmt: skip
def test_verdicts_on_epochs(plus, best, convex):
    rows = [case_of(quota, way, seconds)
            for way, times in (("off", (10.0, 10.0, 10.0)), ("resize", (None, 12.0, 6.0)), ("sophon+", plus))
            for quota, seconds in zip((0, 0.1, 0.2), times) if seconds]  # fmt: skip
    found = {claim: holds for claim, holds, _ in policy_epochs.verdicts(policy_epochs.by_case({"rows": rows}))}
    assert found == {"sophon+ is best or equal to the best of the others": best,
                     "resize is worse than off with the least CPU": "yes",
                     "more CPU brings sophon+ less and less (convex)": convex}  # fmt: skip


def test_traffic_counts_bytes(images, tmp_path, capfd):
    result = run(tmp_path, "traffic", "--data", images, "--epochs", 2)["sets"][0]
    stored, sent = 2 * stored_bytes(images), result["policies"]
    assert result["after"]["decode"] == 3 * 120 * 160 and result["after"]["random_resized_crop"] == twins.CROP_BYTES
    assert sent["off"] == stored and sent["all"] == 4 * sent["resize"] == 2 * 24 * 4 * twins.CROP_BYTES
    assert sent["sophon+"] <= sent["segments"] <= sent["one range of rows"] + 24 * 2 * 100
    assert sent["one range of rows"] < stored == sent["sophon"] == sent["fastflow"]
    assert result["smallest"][traffic.STORED] == 24 and result["saved_per_cpu_s"] == [0.0] * 24
    assert ["nothing", "saved", "100.0%"] in out_rows(capfd)


def test_large_images_shrink_by_a_crop(tmp_path):
    folder = write_folder(tmp_path / "set", 3)
    for path in twins.jpegs(folder):
        Image.effect_noise((1200, 900), 90).convert("RGB").save(path, quality=95)
    result = run(tmp_path, "traffic", "--data", folder, "--epochs", 1)["sets"][0]
    assert result["smallest"]["random_resized_crop"] == 3 and min(result["saved_per_cpu_s"]) > 0
    assert result["policies"]["sophon"] == result["policies"]["resize"] == 3 * twins.CROP_BYTES


@needs_hosts
@needs_nginx
def test_remote_shards(images, tmp_path):
    result = run(tmp_path, "remote", "--data", images, "--bytes", stored_bytes(images), "--seconds", 0.5, "--rounds", 1,
                 "--workers", 1, "--delay", 1, "--peers")  # fmt: skip
    assert {(row["way"], row["ops"]) for row in result["rows"]} == {
        ("drapps", False), ("drapps, whole files", True), ("drapps, ranges", True), ("drapps, drapps serve", True)}
    assert all(row["samples"] > 0 and row["bytes"] > 0 for row in result["rows"])


def test_the_table_of_remote_shards_compares_with_the_better_peer():
    rows = [{"way": way, "ops": False, "peer": peer, "samples": samples, "seconds": 2.0, "bytes": 1e6}
            for way, peer, samples in (("drapps", None, 400), ("A", "webdataset", 100), ("B", "streaming", 200))]
    result = {"images": 9, "rate": 8.0, "delay": 1, "rows": rows, "missing": {"dali": "no environment"}}
    compared, missing, aims = remote.tables(result)
    assert [row[2:] for row in compared[2]] == [("50", "0.500", "0.50"), ("100", "0.500", "1.00"),
                                                ("200", "0.500", "2.00")]  # fmt: skip
    assert missing[2] == [("dali", "no environment")]
    assert [row[1:] for row in aims[2]] == [("no", "0.500"), ("yes", "2.000")]


@needs_hosts
def test_stages_of_workloads(images, tmp_path, capfd):
    result = run(tmp_path, "stages", "--data", images, "--bytes", stored_bytes(images), "--batches", 6, "--batch", 4,
                 "--rate", 4)  # fmt: skip
    found = {row["name"]: row for row in result["rows"]}
    assert [found[name]["bound"] for name in ("slow accelerator", "slow link", "costly ops")] == [
        "accelerator-bound", "I/O-bound", "CPU-bound"]  # fmt: skip
    used = [row["utilisation"] for row in result["rows"] if row["expected"] is None]
    assert used == sorted(used, reverse=True)
    assert all(sum(row["batches"].values()) <= 3 * 6 for row in result["rows"])
    assert found["slow accelerator"]["prepared"] == found["costly ops"]["prepared"] == 0


@needs_hosts
def test_overhead_of_learning(images, tmp_path):
    result = run(tmp_path, "overhead", "--data", images, "--bytes", stored_bytes(images), "--rounds", 2)
    assert [set(one) for one in result["rounds"]] == [{"off", "auto"}] * 2
    assert all(line["samples"] == 24 for one in result["rounds"] for line in one.values())


def test_epochs_that_prepared_samples_say_nothing_of_the_overhead():
    line = {"samples": 9, "seconds": 1.0, "cpu_s": 1.0, "prepared": 0, "phase": ""}
    learnt = {"off": line, "auto": {**line, "cpu_s": 1.01, "phase": "measuring"}}
    prepared = {"off": line, "auto": {**line, "cpu_s": 5.0, "phase": "planned", "prepared": 3}}
    title, _, rows = next(overhead.tables({"rounds": [learnt, prepared, learnt]}))
    assert "2 of 3 pairs" in title and rows[1][1] == "+1.00%"
    assert "too few" in next(overhead.tables({"rounds": [learnt, prepared]}))[0]


@needs_hosts
def test_a_link_that_varies(images, tmp_path):
    result = run(tmp_path, "vary", "--data", images, "--bytes", stored_bytes(images), "--trace", "0.3:20,0.3:5",
                 "--ways", "off", "sophon+", "--epochs", 2, "--step", 0)  # fmt: skip
    assert [len(row["epochs"]) for row in result["rows"]] == [2, 2] and not result["rows"][0]["plans"]


@pytest.mark.parametrize("text", ["", "10", "10:x", "0:5", "3:-1"])
def test_a_wrong_trace_is_named(text):
    with pytest.raises(SystemExit, match=f"trace must be SECONDS:MBIT.*got '{text}'"):
        vary.parse_trace(text)


def test_plans_that_differ_are_shown():
    plans = [{"at": at, "samples": n, "of": 100, "bytes": 1} for at, n in ((3, 20), (5, 25), (9, 90), (15, 0))]
    assert vary.shares(plans) == "3 s: 20%, 9 s: 90%, 15 s: 0%"


@needs_hosts
@needs_nginx
def test_a_cache_over_a_slow_link(images, tmp_path):
    result = run(tmp_path, "cache", "--data", images, "--quick", "--sizes", "10 KB", "--total", 100_000)
    assert [(one["form"], one["size"]) for one in result["sizes"]] == [("JPEG", "10 KB"), ("PPM", "10 KB")]
    assert all(one["samples"] >= 8 and len(one["remote"]) == len(one["memory"]) == 1 for one in result["sizes"])
    assert result["sizes"][1]["stored"] > result["sizes"][1]["bytes"]  # with its head


def test_verdicts_on_stages():
    row = {"accelerator": 1, "fetch": 1, "preprocess": 1, "batches": {"fetch": 9}, "measured_utilisation": 0.5,
           "utilisation": 0.5, "prepared": 0}  # fmt: skip
    rows = [{**row, "name": "a", "expected": None, "bound": "x"}, {**row, "name": "b", "expected": "x", "bound": "y"},
            {**row, "name": "c", "expected": "I/O-bound", "bound": "I/O-bound", "prepared": 5}]  # fmt: skip
    *_, (_, _, claims) = stage_bounds.tables({"rows": rows, "images": 1, "rate": 1})
    assert [holds for _, holds, _ in claims] == ["no", "yes", "yes", "yes"]


def test_a_twin_has_the_sizes_that_were_drawn(tmp_path):
    write_folder(tmp_path / "set", 4, size=(300, 400))
    folder = twins.open_images_twin(tmp_path / "set", tmp_path / "twin", 6)
    sizes = [(folder / f"class-{i}" / f"{i:05d}.jpg").stat().st_size for i in range(6)]
    draw = random.Random(0)
    drawn = [draw.lognormvariate(twins.np.log(twins.MEDIAN_BYTES), twins.SIGMA) for _ in range(6)]
    assert statistics.median(abs(size / target - 1) for size, target in zip(sizes, drawn)) < 0.1


def test_a_set_is_repeated(tmp_path):
    write_folder(tmp_path / "set", 5)
    size = sum(path.stat().st_size for path in twins.jpegs(tmp_path / "set"))
    folder = twins.repeated(tmp_path / "set", tmp_path / "more", 3 * size + 1)
    assert len(twins.jpegs(folder)) == 16


def test_a_folder_without_images_is_named(tmp_path):
    with pytest.raises(SystemExit, match="no JPEG files"):
        twins.jpegs(tmp_path)
