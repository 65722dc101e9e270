"""drapps plan from end to end: images, volumes, arrays, a Python stage; what is refused; what is left behind; the
page.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest
from browser import Browser
from imagesets import write_flat_images, write_folder

import drapps
from drapps import cli
from drapps.plan import planner, trials
from drapps.plan.measured_epochs import hash_epoch
from drapps.plan.plan_page import make_page
from drapps.plan.strategies import FILES, MEMORY, PAGE, SHARDS, STORE
from drapps.plan.workspace import PREFIX, Workspace, remove_leftovers

CHAIN = "decode().resize((40, 40)).random_crop(32).random_horizontal_flip()"


@pytest.fixture
def work(tmp_path):
    """A folder for what is tried, in which nothing may be left."""
    path = tmp_path / "work"
    path.mkdir()
    yield path
    assert os.listdir(path) == []


def script(tmp_path, text):
    path = tmp_path / "pipeline.py"
    path.write_text("import drapps, numpy\n" + textwrap.dedent(text))
    return str(path)


def run(capsys, *args):
    """(status, output, errors) of a command line."""
    status = cli.main(["plan", *map(str, args)])
    return status, *capsys.readouterr()


def planned(capsys, *args):
    status, out, err = run(capsys, *args, "--json")
    assert status == 0, err
    return json.loads(out)


def names(found):
    return {(row["cut"], row["layout"]) for row in found["strategies"]}


# --- kinds of data ---


def test_images(capsys, folder, tmp_path, work):
    """Every strategy gives the same batches, and the table has what the issue of the three metrics asks for."""
    path = script(tmp_path, f"pipe = drapps.read({str(folder)!r}).{CHAIN}")
    found = planned(capsys, path, "--budget", "20s", "--work", work, "--batch-size", "4")
    assert found["samples"] == found["measured_samples"] == 23
    assert names(found) >= {
        ("raw", "files"),
        ("raw", "shards"),
        ("after decode", "shards"),
        ("after resize", "shards"),
        ("after resize", "cache folder"),
    }
    assert found["chosen"] in {row["strategy"] for row in found["strategies"]} and not found["refused"]
    assert [edge["legal"] for edge in found["edges"]] == [True, True, True, False, False]
    for row in found["strategies"]:
        assert 0 < row["throughput"]["low"] <= row["throughput"]["mid"] <= row["throughput"]["high"]
        assert row["rounds"] >= 1 and (row["throughput_sd"] is None) == (row["rounds"] == 1)
    raw = next(row for row in found["strategies"] if row["layout"] == "files")
    files = [file.stat().st_size for file in folder.rglob("*.jpg")]
    assert raw["storage_bytes"]["mid"] == sum(files) and raw["preparation_s"]["mid"] == 0
    assert {"cpu_user", "switches"} <= set(found["rounds_measured"][0]["resources"])


def test_volumes(capsys, tmp_path, work):
    rng = numpy.random.default_rng(0)
    for i in range(12):
        numpy.save(tmp_path / f"{i}.npy", rng.normal(size=(9 + i % 3, 12, 10)).astype("float32"))
    path = script(
        tmp_path,
        f"""
        pipe = (drapps.read([f"{tmp_path}/{{i}}.npy" for i in range(12)]).decode_volume()
                .resample_volume(size=(8, 8, 8)).random_flip_volume().normalize_intensity(mean=1, std=2))
    """,
    )
    found = planned(capsys, path, "--budget", "20s", "--work", work, "--batch-size", "2")
    assert names(found) >= {("after resample_volume", layout) for layout in ("cache folder", "shards")}
    assert not found["refused"]
    assert ("after normalize_intensity", "cache folder") in names(found)  # moved before the flip
    moved = [row for row in found["strategies"] if row["cut"] == "after normalize_intensity"]
    assert {row["layout"] for row in moved} == {"cache folder", "shards"}
    assert all(row["order"] == [0, 1, 3, 2] for row in moved)


def test_arrays(capsys, tmp_path, work):
    path = script(
        tmp_path,
        """
        image = numpy.random.default_rng(0).integers(0, 256, (30, 24, 24, 3), "uint8")
        pipe = drapps.from_arrays(image=image, label=numpy.arange(30)).resize((16, 16)).random_horizontal_flip()
    """,
    )
    found = planned(capsys, path, "--budget", "20s", "--work", work)
    assert names(found) >= {
        ("raw", "files"),
        ("raw", "shards"),
        ("after resize", "shards"),
        ("after resize", "cache folder"),
    }
    assert not found["refused"]


def test_a_python_stage(capsys, folder, tmp_path, work):
    path = script(
        tmp_path,
        f"""
        def prepare(image):
            return numpy.ascontiguousarray(image[:30, :30] // 2)

        decoded = drapps.read({str(folder)!r}).decode()
        pipe = decoded.map(prepare, field="image", deterministic=True).random_horizontal_flip()
        other = decoded.map(prepare, field="image").random_horizontal_flip()
    """,
    )
    found = planned(capsys, path, "--budget", "30s", "--work", work, "--name", "pipe", "--batch-size", "4")
    assert ("after map(prepare)", "cache folder") in names(found) and not found["refused"]
    found = planned(capsys, path, "--budget", "20s", "--work", work, "--name", "other", "--batch-size", "4")
    assert names(found) & {("after map(prepare)", "cache folder")} == set()
    assert found["edges"][2]["why"] == "map(prepare) is not marked as deterministic"


def test_data_without_a_script(capsys, folder, work):
    found = planned(capsys, "--data", folder, "--size", "32", "--budget", "10s", "--work", work)
    assert names(found) >= {("raw", "files")} and "random_resized_crop" in found["pipeline"]


def test_code_that_begins_with_the_data(capsys, folder, tmp_path, work):
    """Of a pipeline that no program has: with the line that makes it.  Where nothing is stored, nothing replaces it."""
    status, out, err = run(capsys, "--data", folder, "--size", "32", "--budget", "8s", "--work", work, "--samples", "8",
                           "--weights", "0,1,0", "--memory", "0", "--apply", tmp_path / "made")  # fmt: skip
    assert status == 0, err
    lines = out.splitlines()[-2:]
    assert lines[0].startswith("pipe = drapps.read(") and lines[1].startswith("loader = pipe.loader(")
    scope = {"drapps": drapps}
    exec("\n".join(lines), scope)
    assert len(scope["loader"]) == 1
    scope["loader"].close()


# --- the choice ---


def test_prices_and_weights(capsys, folder, tmp_path, work):
    path = script(tmp_path, f"pipe = drapps.read({str(folder)!r}).{CHAIN}")
    found = planned(
        capsys,
        path,
        "--budget",
        "15s",
        "--work",
        work,
        "--cpu-hour",
        "0.04",
        "--gb-month",
        "0.02",
        "--gpu-hour",
        "2",
        "--epochs",
        "90",
    )
    for row in found["strategies"]:
        assert row["score"] == pytest.approx(-sum(row["money"].values()))
    best = max(found["strategies"], key=lambda row: row["score"])
    assert found["chosen"] == best["strategy"] and "90 epochs" in found["objective"]
    found = planned(capsys, path, "--budget", "15s", "--work", work, "--weights", "1,0,0")
    assert found["chosen"].startswith("raw, files")


@pytest.mark.parametrize(
    "more, said",
    [
        (["--weights", "1,2"], "--weights must be three numbers"),
        (["--weights", "0,0,0"], "one must be above 0"),
        (["--weights", "0,0,1", "--cpu-hour", "1"], "not both"),
        (["--budget", "soon"], "--budget must be a number with a unit"),
        (["--budget", "0"], "--budget is 0"),
        (["--memory", "4XB"], "--memory must be a number"),
        (["--rounds", "0"], "--rounds is 0"),
        (["--samples", "-3"], "--samples is -3"),
        (["--batch-size", "0"], "--batch-size is 0"),
        (["--gpu-hour", "-1"], "gpu_hour must be"),
        (["--data", "x"], "give a Python file that makes a pipeline, or --data"),
    ],
)
def test_wrong_options(capsys, folder, tmp_path, more, said):
    path = script(tmp_path, f"pipe = drapps.read({str(folder)!r}).decode()")
    status, out, err = run(capsys, path, *more)
    assert (status, out) == (2, "") and said in err


def test_a_folder_that_cannot_be_made(capsys, folder, tmp_path):
    path = script(tmp_path, f"pipe = drapps.read({str(folder)!r}).decode()")
    status, _, err = run(capsys, path, "--work", f"{path}/below")
    assert status == 1 and err.startswith("drapps: plan: cannot work in ") and "(" not in err


def test_csv_and_log(capsys, folder, tmp_path, work):
    path = script(tmp_path, f"pipe = drapps.read({str(folder)!r}).{CHAIN}")
    status, out, _ = run(
        capsys,
        path,
        "--budget",
        "15s",
        "--work",
        work,
        "--csv",
        tmp_path / "a.csv",
        "--log",
        tmp_path / "l.csv",
        "-o",
        tmp_path / "a.html",
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    log = list(csv.DictReader(io.StringIO((tmp_path / "l.csv").read_text())))
    assert status == 0 and [row["chosen"] for row in rows].count("1") == 1
    assert all(float(row["throughput"]) > 0 and row["preparation_s"] and row["storage_bytes"] for row in rows)
    assert {"cold", "warm", "memory"} == {row["mode"] for row in log} and all(
        float(row["samples_per_s"]) > 0 for row in log
    )
    assert {"cpu_user", "cpu_system", "switches"} <= set(log[0])
    assert "chosen: " in out and "random_crop draws at random" in out and (tmp_path / "a.html").stat().st_size > 5000


def test_samples_in_memory(folder, work):
    """They are made once, and the code says how much memory they need."""
    pipe = drapps.read(folder).decode().resize((40, 40)).random_crop(32)
    found = pipe.plan(20.0, batch_size=4, work=work)
    row = next(row for row in found.rows if row.strategy.cache == MEMORY and row.strategy.material.layout == FILES)
    assert row.memory.mid > 0 and row.preparation.mid == 0 and row.memory_bytes > 23 * 40 * 40 * 3
    lines = found._replace(chosen=row.strategy).apply(work / "unused")
    assert lines == [f"loader = pipe.loader(batch_size=4, cache_memory={row.memory_bytes}, shuffle=True)"]
    assert not (work / "unused").exists()
    none = pipe.plan(10.0, batch_size=4, work=work, memory=0)
    assert all(row.strategy.cache == PAGE for row in none.rows)


def applied(found, folder, layout):
    """(plan with another choice, lines of code): the first strategy of that layout whose stages were reordered."""
    row = next(row for row in found.rows if row.strategy.material.layout == layout and row.strategy.material.order)
    chosen = found._replace(chosen=row.strategy)
    return chosen, chosen.apply(folder)


@pytest.mark.parametrize("layout", [SHARDS, STORE])
def test_apply(folder, tmp_path, work, layout):
    """The two lines of code give the pipeline's batches, from what was made."""
    pipe = drapps.read(folder).decode().resize((40, 40)).random_crop(32).grayscale(num_output_channels=3)
    found = pipe.plan(20.0, batch_size=4, work=work)
    chosen, lines = applied(found, tmp_path / "made", layout)
    assert len(lines) == 2 and lines[0].startswith("pipe = pipe.reordered([0, 1, 3, 2])")
    scope = {"pipe": pipe}
    exec("\n".join(lines), scope)
    with pipe.loader(4, shuffle=True, output="raw") as plain, scope["loader"] as made:
        made.output = "raw"
        assert hash_epoch(plain).digest == hash_epoch(made).digest
        if layout == STORE:
            assert made.stats()["cache_hits"] >= 23
        else:
            assert scope["pipe"].dataset.manifest and len(scope["pipe"].stages) == 4 - chosen.chosen.material.stages
    assert chosen.apply(tmp_path / "made") == lines  # there is nothing left to do
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(drapps.ArgumentError, match="exists"):
        chosen.apply(tmp_path / "other")


# --- what is refused ---


def test_a_strategy_with_other_batches_is_not_offered(folder, work, monkeypatch):
    def wrong(material, pipe, source, folder, *more):
        made = make(material, pipe, source, folder, *more)
        return made if material.layout == FILES else made._replace(pipe=pipe.grayscale(num_output_channels=3))

    make = trials.make
    monkeypatch.setattr(trials, "make", wrong)
    found = drapps.read(folder).decode().resize((24, 24)).random_horizontal_flip().plan(10.0, batch_size=4, work=work)
    assert {row.strategy.material.layout for row in found.rows} == {FILES}
    assert set(found.refused.values()) == {"gives other samples than the pipeline: batch 0 differs"}
    assert {strategy.material.layout for strategy in found.refused} == {SHARDS, STORE}
    assert found.chosen.material.layout == FILES


def test_a_function_that_draws_by_the_clock_is_found(folder, work):
    pipe = drapps.read(folder).decode().map(lambda image: image + time.monotonic_ns() % 251, field="image")
    with pytest.raises(drapps.ArgumentError, match="gives other batches each time"):
        pipe.plan(10.0, work=work, workers=0)


def test_a_function_that_is_wrongly_marked_is_refused(folder, work):
    """It draws: what is kept of one epoch is wrong in the next one."""

    def noisy(image):
        return image[:24, :24] // 2 + numpy.uint8(numpy.random.randint(100))

    pipe = drapps.read(folder).decode().map(noisy, field="image", deterministic=True)
    found = pipe.plan(10.0, batch_size=4, work=work)
    assert all("gives other samples" in why for why in found.refused.values())
    assert {(s.material.layout, s.cache) for s in found.refused} == {(STORE, PAGE), (FILES, MEMORY)}
    offered = {(row.strategy.material.layout, row.strategy.cache) for row in found.rows}
    assert offered == {(FILES, PAGE), (SHARDS, PAGE)}  # cut before the function


# --- ugly cases ---


def test_no_deterministic_prefix(work):
    pipe = drapps.from_arrays(image=numpy.zeros((20, 9, 9, 3), "uint8")).random_invert()
    found = pipe.plan(5.0, work=work)
    assert {row.strategy.material.stages for row in found.rows} == {0} and found.chosen


def test_no_stages(folder, work):
    found = drapps.read(folder).plan(5.0, work=work)
    assert found.chosen.material.stages == 0 and not found.refused


def test_one_sample(folder, work):
    found = drapps.read(folder).decode().resize((8, 8)).take(1).plan(5.0, work=work)
    assert found.facts["measured_samples"] == 1 and found.chosen


def test_selections_and_mixtures(folder, work):
    """What cannot be packed is not offered as shards, so that --apply can do what was chosen."""
    pipe = drapps.read(folder).decode().resize((16, 16))
    found = pipe.take(12).plan(8.0, batch_size=4, work=work)
    assert found.facts["samples"] == 12 and SHARDS not in {row.strategy.material.layout for row in found.rows}
    assert any("selections cannot be packed" in note for note in found.notes)
    with pytest.raises(drapps.UnsupportedError, match="plan its sources"):
        drapps.mix([drapps.read(folder), drapps.read(folder)]).decode().plan(5.0, work=work)


def test_no_sample(folder, work):
    with pytest.raises(drapps.FormatError, match="has no samples"):
        drapps.read(folder).take(0).plan(5.0, work=work)


def test_samples_that_cannot_be_read(tmp_path, work):
    (tmp_path / "data").mkdir()
    pipe = drapps.read(write_flat_images(tmp_path / "data", 20, bad=(3, 11))).decode().random_horizontal_flip()
    found = pipe.plan(8.0, batch_size=4, work=work)
    assert found.facts["measured_samples"] == 18 and found.chosen
    assert any("2 samples of 20 cannot be read and were left out; a/0" in note for note in found.notes)


def test_all_samples_cannot_be_read(tmp_path, work):
    (tmp_path / "data").mkdir()
    pipe = drapps.read(write_flat_images(tmp_path / "data", 6, bad=range(6))).decode()
    with pytest.raises(drapps.BadSampleError, match="none of 6 samples could be made"):
        pipe.plan(5.0, work=work)


def test_batches_of_which_nothing_can_be_read(tmp_path, work, caplog, monkeypatch):
    """They are not delivered, and their samples are left out all the same; nothing is logged beside the note."""
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(planner, "LEAST_SAMPLES", 20)
    pipe = drapps.read(write_flat_images(tmp_path / "data", 20, bad=range(2, 20))).decode().random_horizontal_flip()
    found = pipe.plan(8.0, batch_size=2, work=work)
    assert found.facts["measured_samples"] == 2 and not caplog.records
    assert any("18 samples of 20 cannot be read and were left out; a/0" in note for note in found.notes)


def test_images_of_any_size(folder, work):
    """Batches that cannot be stacked are lists."""
    found = drapps.read(folder).decode().random_horizontal_flip().plan(8.0, batch_size=4, work=work)
    assert found.chosen and not found.refused


def test_a_filter(folder, work):
    pipe = drapps.read(folder).decode().resize((8, 8)).filter(lambda label: label != 1, field="label")
    found = pipe.plan(8.0, batch_size=4, work=work)
    assert found.chosen and "decides which samples" in found.edges[-1].why


def test_too_small_a_budget_says_what_was_not_measured(folder, work):
    found = drapps.read(folder).decode().resize((40, 40)).random_crop(32).plan(1e-6, work=work)
    assert [row.strategy.material.layout for row in found.rows] == [FILES]
    assert all("what is left of the budget" in why for why in found.unmeasured.values()) and found.unmeasured


def test_too_small_a_disk_says_how_much_is_needed(folder, work, monkeypatch):
    pipe = drapps.read(folder).decode().resize((40, 40)).random_crop(32)
    monkeypatch.setattr(Workspace, "free_bytes", lambda self: 1000)
    with pytest.raises(drapps.LimitError, match=r"trying the strategies needs \d.* [KM]B in .*, there are 1000 B"):
        pipe.plan(5.0, work=work)


def test_a_result_that_does_not_fit_is_not_chosen(folder, work, monkeypatch):
    monkeypatch.setattr(planner.page_cache, "free_disk", lambda folder: 10)
    found = drapps.read(folder).decode().resize((40, 40)).random_crop(32).plan(10.0, batch_size=4, work=work)
    assert found.chosen.material.layout == FILES
    assert all("of disk" in row.why_not for row in found.rows if row.strategy.material.layout == STORE)


def test_a_folder_that_cannot_be_written(folder):
    with pytest.raises(drapps.IOError, match="cannot work in /proc"):
        drapps.read(folder).decode().plan(5.0, work="/proc")


def test_dropping_caches_needs_root(folder, work, monkeypatch):
    monkeypatch.setattr(planner.page_cache, "may_drop_everything", lambda: False)
    with pytest.raises(drapps.ArgumentError, match="only root may"):
        drapps.read(folder).decode().plan(5.0, work=work, drop_caches=True)


def test_cold_epochs_read_from_the_device(tmp_path_factory, work):
    """posix_fadvise has dropped the files, where their file system has a device and the kernel counts its bytes."""
    folder = write_folder(tmp_path_factory.mktemp("cold") / "set", n=40, size=(300, 400))
    found = drapps.read(folder).decode().resize((16, 16)).plan(10.0, batch_size=4, work=work)
    read = {
        one.mode: one.epoch.resources.get("read_bytes")
        for one in found.measurements
        if one.strategy.material.layout == FILES
    }
    if planner.is_in_memory(str(folder)) or read["cold"] is None:
        pytest.skip("no device is read here")
    assert read["cold"] > 0 and read["warm"] == 0


# --- what is left behind ---


def test_what_a_killed_planner_left_is_removed(folder, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    program = f"""
        import drapps, os
        from drapps.plan.workspace import Workspace
        work = Workspace({str(work)!r})
        open(work.folder("half"), "w").write("half")
        print(work.path, flush=True)
        os.kill(os.getpid(), 9)
    """
    dead = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert dead.returncode == -signal.SIGKILL and os.path.exists(os.path.join(dead.stdout.strip(), "half"))
    with Workspace(work) as living:
        assert living.removed == 1 and remove_leftovers(str(work)) == 0 and os.path.isdir(living.path)
    (work / f"{PREFIX}young").mkdir()
    (work / "other").mkdir()
    assert remove_leftovers(str(work)) == 0  # may be just being made
    os.utime(work / f"{PREFIX}young", (1, 1))
    assert remove_leftovers(str(work)) == 1 and os.listdir(work) == ["other"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_plan(folder, tmp_path, how):
    """Ctrl-C: what was measured is printed, and nothing is left.  kill -9: the next plan removes what is left."""
    work = tmp_path / "work"
    work.mkdir()
    path = script(
        tmp_path,
        f"""
        import os
        from drapps.plan.trials import Trials

        whole, rounds = Trials.measure, []
        def slow(self, *args):
            rounds.append(1)
            if len(rounds) == 2:
                os.kill(os.getpid(), {int(how)})
            return whole(self, *args)
        Trials.measure = slow
        pipe = drapps.read({str(folder)!r}).{CHAIN}
    """,
    )
    command = [sys.executable, "-m", "drapps.cli", "plan", path, "--budget", "30s", "--work", str(work)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if how == signal.SIGINT:
        assert ended.returncode == 130 and "interrupted" in ended.stdout and "raw, files, page cache" in ended.stdout
    else:
        assert ended.returncode == -signal.SIGKILL and len(os.listdir(work)) == 1
        found = drapps.read(folder).decode().resize((8, 8)).plan(3.0, work=work)
        assert any("1 folder that an earlier plan had left" in note for note in found.notes)
    assert os.listdir(work) == []


# --- the page ---


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "plan.html"
    pipe = drapps.read(folder).decode().resize((40, 40)).random_crop(32).grayscale()
    found = pipe.plan(10.0, batch_size=4)
    found.write_page(path)
    return found, path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.mark.parametrize("width, dark", [(400, False), (1400, True)])
def test_the_page_in_a_browser(browser, page, width, dark):
    found, path = page
    browser.open(path, width, dark=dark)
    assert browser.errors == [] and browser.requests == [f"file://{path}"]
    assert browser.run("document.querySelectorAll('svg.pareto').length") == 3
    assert browser.run("document.querySelectorAll('svg.pareto circle').length") == 3 * len(found.rows)
    assert browser.run("document.querySelectorAll('svg.pareto g.chosen').length") == 3
    assert browser.run("document.scripts.length") == 0
    bad = """Array.from(document.querySelectorAll("svg *")).filter(node =>
        Array.from(node.attributes).some(a => /NaN|Infinity|undefined/.test(a.value))).length"""
    assert browser.run(bad) == 0
    assert browser.run("document.documentElement.scrollWidth") <= width
    colour = browser.run("getComputedStyle(document.querySelector('.chosen circle')).fill")
    assert colour != "rgb(0, 0, 0)"  # the style was allowed


def test_names_do_not_get_into_the_page(page):
    found, _ = page
    hostile = "</style><script>alert(1)</script>"
    text = make_page(found._replace(notes=[hostile], unmeasured={found.rows[0].strategy: hostile}))
    assert "<script" not in text and "&lt;script&gt;" in text


def test_a_page_without_a_measurement(page):
    found, _ = page
    text = make_page(found._replace(rows=[], chosen=None))
    assert "nothing was measured" in text and "svg" not in text.split("<main>")[1]
