"""drapps bench jpeg: the protocol with its processes, figures, what is missing."""

import io
import json
import os

import numpy
import pytest
from imagesets import picture
from PIL import Image

from drapps.bench import bench_command, jpeg_bench, jpeg_child, jpeg_ways

OWN = ["libjpeg", "drapps", "index"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Six photographs, one of them CMYK, and one that is damaged."""
    root = tmp_path_factory.mktemp("jpegs")
    for i in range(6):
        image = picture(i, 40 + 9 * i, 70)
        (image.convert("CMYK") if i == 3 else image).save(root / f"{i}.jpg")
    (root / "9.jpg").write_bytes((root / "0.jpg").read_bytes()[:300])
    return root


def bench(files, names, tmp_path, **options):
    settings = {"n": 100, "rounds": 2, "threads": 1, "seed": 1, "envs": str(tmp_path), "say": lambda text: None}
    return jpeg_bench.run_jpeg(str(files), names, **{**settings, **options})


def test_own_decoders(files, tmp_path):
    result = bench(files, OWN, tmp_path)
    assert result["data"]["files"] == 5 and result["data"]["left_out"] == 2 and result["missing"] == []
    assert {(e["task"], e["decoder"]) for e in result["results"]} == {(t, n) for t in jpeg_bench.TASKS for n in OWN}
    for entry in result["results"]:
        assert entry["ms_per_image"]["n"] == 2 and entry["ms_per_image"]["min"] > 0
        assert entry["differing_images"] == 0
        if entry["decoder"] == jpeg_ways.BASELINE:
            assert entry["over_libjpeg"]["median"] == 1 and "libjpeg-turbo" in entry["version"]


def test_pillow_gives_the_same_pixels(files, tmp_path):
    result = bench(files, [*OWN, "pillow"], tmp_path)
    assert {e["differing_images"] for e in result["results"] if e["decoder"] == "pillow"} == {0}


def test_two_threads(files, tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    assert bench(files, OWN, tmp_path, threads=2)["threads"] == 2


def test_too_many_threads_are_refused(files, tmp_path):
    with pytest.raises(SystemExit, match="--threads must be at most .*, got 5000"):
        bench(files, OWN, tmp_path, threads=5000)


def test_a_missing_peer_is_said(files, tmp_path, monkeypatch):
    row = jpeg_ways.row("simplejpeg")
    monkeypatch.setattr(jpeg_ways, "TABLE", (*jpeg_ways.TABLE, row._replace(name="gone")))
    result = bench(files, [*OWN, "gone"], tmp_path)  # its process does not know that row, and there is no environment
    assert [m["decoder"] for m in result["missing"]] == ["gone"]
    assert "gone" in result["missing"][0]["reason"] and "drapps bench setup torch" in result["missing"][0]["reason"]
    assert len(result["results"]) == 6
    assert "gone: not measured" in jpeg_bench.markdown(result)


class Wrong(jpeg_ways.Way):
    """Decodes file 1 wrongly and refuses file 2."""

    def decode(self, i, box):
        pixels = numpy.asarray(Image.open(io.BytesIO(self.files[i])).convert("RGB")).copy()
        pixels[0, 0, 0] ^= i == 1
        if i == 2:
            raise ValueError("no")
        return jpeg_ways.cut(pixels, box)

    def version(self):
        return "1"


class Here:
    """A child without a process."""

    def __init__(self, server):
        self.server = server

    def ask(self, **order):
        return self.server.answer(order)


def test_differing_pixels_are_counted(files):
    class Table:
        @staticmethod
        def row(name):
            return jpeg_ways.Row(name, name, "", {"wrong": Wrong}.get(name) or jpeg_ways.row(name).way)

    paths = [str(files / f"{i}.jpg") for i in (0, 1, 2)]
    server = jpeg_child.Server({"paths": paths, "boxes": [[0, 0, 8, 8]] * 3, "cpus": []}, Table)
    child = Here(server)
    started = {name: (child, child.ask(open=name)["version"]) for name in ("libjpeg", "wrong")}
    differing = jpeg_bench.compare(started, lambda text: None)
    assert differing == {("libjpeg", "full"): 0, ("wrong", "full"): 2, ("libjpeg", "crop"): 0, ("wrong", "crop"): 2}
    with pytest.raises(ValueError, match="no"):
        child.ask(run="wrong", task="full", threads=2)


def test_an_error_is_an_answer():
    out = io.StringIO()
    jpeg_child.serve(jpeg_child.Server({"paths": [], "boxes": []}, jpeg_ways), ['{"run": "x", "task": "full"}'], out)
    assert "error" in json.loads(out.getvalue())


def test_names():
    assert bench_command.decoder_names("none") == OWN
    assert bench_command.decoder_names("pillow,drapps") == [*OWN, "pillow"]
    assert bench_command.decoder_names("all") == [*OWN, *jpeg_ways.PEERS]
    with pytest.raises(SystemExit, match="nvjpeg"):
        bench_command.decoder_names("nvjpeg")


def test_command(files, tmp_path, capsys):
    saved = tmp_path / "result.json"
    arguments = ["jpeg", "--data", str(files), "--rounds", "1", "--peers", "none", "--envs", str(tmp_path)]
    assert bench_command.main([*arguments, "--json", "--save", str(saved)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads(saved.read_text())
    assert bench_command.main(["show", str(saved)]) == 0
    text = capsys.readouterr().out
    assert "drapps, with index" in text and "differing images" in text
    assert bench_command.main(["show", str(saved), "--markdown"]) == 0
    assert "| full | drapps |" in capsys.readouterr().out


def test_files_are_evenly_spread():
    assert jpeg_bench.choose(list("abcdefgh"), 4) == ["a", "c", "e", "g"]
    assert jpeg_bench.choose(list("ab"), 9) == ["a", "b"]
