"""Pipeline.profile_stages and `drapps profile --batches`: accelerator, reading and preprocessing one by one."""

import json
import math
import time

import pytest
from far import Server, SlowLink
from imagesets import write_folder

import drapps
from drapps.cli import main
from drapps.profile import StageRates
from drapps.profile.offload_line import line_of, planned_line

N, BATCH, BATCHES = 24, 4, 6


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("stages")
    write_folder(root / "photos", N, size=(120, 160))
    return root


@pytest.fixture
def far(root):
    """The address of the set on a server, behind a link of 100 KB/s: less than a CPU makes in any case."""
    with Server(root) as server:
        yield server.url("photos", SlowLink(server.port, 1e5).port)


def chain(source, blurs=0):
    pipe = drapps.read(source).decode().random_resized_crop(64)
    for _ in range(blurs):
        pipe = pipe.gaussian_blur(kernel_size=23, sigma=5.0)
    return pipe


def stages(pipe, step, **options):
    return pipe.profile_stages(step, BATCHES, batch_size=BATCH, **options)


def test_a_slow_link_is_found(far, root):
    stored = [path.stat().st_size for path in (root / "photos").rglob("*.jpg")]
    found = stages(chain(far), 0.0)
    assert found.bound == "I/O-bound" and found.rate == found.fetch < found.preprocess
    assert math.isinf(found.accelerator) and found.utilisation == 0.0
    assert min(stored) <= found.bytes <= max(stored)


def test_a_slow_accelerator_is_found(far):
    found = stages(chain(far), 60.0)
    assert found.bound == "accelerator-bound" and found.rate == BATCH / 60.0 and found.utilisation == 1.0


def test_costly_ops_are_found(root):
    found = stages(chain(root / "photos", blurs=200), lambda batch: None)
    assert found.bound == "CPU-bound" and found.rate == found.preprocess < found.fetch


def test_no_more_batches_are_spent_than_asked_for(root):
    given = []
    found = stages(chain(root / "photos"), lambda batch: given.append(len(batch[0])))
    assert max(found.batches.values()) <= BATCHES and len(given) == found.batches["accelerator"] == BATCHES
    assert set(given) == {BATCH}


def test_a_consumer_is_timed_with_one_batch(root):
    seen = []

    def step(batch):
        seen.append(bytes(batch[0].tobytes()))
        time.sleep(0.01)

    found = stages(chain(root / "photos"), step, output="numpy")
    assert len(set(seen)) == 1 and found.accelerator <= BATCH / 0.01


def test_a_stage_ends_after_its_seconds(far):
    found = chain(far).profile_stages(0.0, 1000, batch_size=1, seconds=0.2)
    assert found.batches["fetch"] < 300


def test_unlike_shapes_and_a_tiny_set(tmp_path):
    write_folder(tmp_path / "set", 2, classes=("ant",))
    found = drapps.read(tmp_path / "set").decode().profile_stages(0.0, 2, batch_size=4, collate={"image": "list"})
    assert found.fetch > 0 and found.preprocess > 0


def test_bad_samples_are_left_out(tmp_path):
    folder = write_folder(tmp_path / "set", 8, classes=("ant",))
    for path in sorted(folder.rglob("*.jpg"))[:3]:
        path.write_bytes(b"no image")
    assert stages(chain(folder), 0.0).preprocess > 0


@pytest.mark.parametrize("arguments,message", [
    ({"step": -1.0}, "step must be a function of a batch, or a non-negative number of seconds, got -1.0"),
    ({"step": "x"}, "step must be a function"), ({"batches": 0}, "batches must be an int of at least 1, got 0"),
    ({"seconds": 0}, "seconds must be a positive number, got 0"),
])  # fmt: skip
def test_wrong_arguments_are_named(root, arguments, message):
    with pytest.raises(drapps.ArgumentError, match=message):
        chain(root / "photos").profile_stages(**arguments)


def test_functions_cannot_be_measured_alone(root):
    with pytest.raises(drapps.UnsupportedError, match="Python functions"):
        chain(root / "photos").map(abs, field="image").profile_stages()


@pytest.mark.parametrize("rates,bound", [((1.0, 2.0, 3.0), "accelerator-bound"), ((3.0, 1.0, 2.0), "I/O-bound"),
                                         ((3.0, 2.0, 1.0), "CPU-bound"), ((3.0, 0.99, 1.0), "CPU-bound")])  # fmt: skip
def test_the_slowest_stage_is_the_bound(rates, bound):
    found = StageRates(*rates, {}, 1.0)
    assert found.bound == bound and found.rate == min(rates)
    assert found.utilisation == pytest.approx(min(rates) / rates[0])


# --- what is planned for a server ---


def test_the_plan_of_a_loader(far, root):
    line = planned_line(chain(far), batch_size=BATCH)
    assert line.startswith("offload: auto (sophon+), ") and "link" in line
    assert planned_line(chain(root / "photos"), batch_size=BATCH) == ""
    assert line_of(object()) == ""


def test_a_fast_network_needs_no_plan(root):
    with Server(root) as server:
        line = planned_line(chain(server.url("photos")), step=0.2, batch_size=BATCH)
    assert "measuring: not I/O-bound" in line


def test_the_command_over_a_server(far, capsys):
    main(["profile", far, "--batches", "4", "--batch-size", "4", "--samples", "4", "--size", "64"])
    text = capsys.readouterr().out
    assert "I/O-bound: " in text and "fetch" in text and "offload: auto" in text


def test_the_command_as_json(root, capsys):
    main(["profile", str(root / "photos"), "--batches", "4", "--step-ms", "60000", "--json"])
    found = json.loads(capsys.readouterr().out)["analysis"]
    assert found["bound"] == "accelerator-bound" and found["offload"] is None


def test_batches_are_not_for_a_script(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("")
    with pytest.raises(SystemExit):
        main(["profile", str(script), "--batches", "4"])
    assert "--batches is for data" in capsys.readouterr().err


def test_a_loop_over_a_server_is_explained(far, capsys):
    main(["profile", far, "--seconds", "3", "--batch-size", "4", "--samples", "4", "--size", "64", "--json"])
    found = json.loads(capsys.readouterr().out)["analysis"]
    assert any(note.startswith("offload: auto") for note in found["facts"]["notes"])
    assert found["facts"]["remote"] is True


def test_plan_says_what_the_server_would_do(far):
    plan = chain(far).plan(budget=6.0, samples=8, batch_size=BATCH)
    assert any("offload: auto (sophon+)" in note for note in plan.notes)
