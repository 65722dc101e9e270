"""cache=: batches are the same with a cache and without; later epochs and runs start after what is kept."""

import glob
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import drapps
from drapps import cached


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(3)
    root = tmp_path / "photos"
    for i in range(24):
        folder = root / f"class{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (60 + i, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:02}.png")
    return root


def pipe_of(root):
    return drapps.read(root, index=False).decode().resize(32).random_crop(24).random_horizontal_flip()


def epochs(root, n=2, **options):
    """The batches of some epochs, and the loader's statistics."""
    with pipe_of(root).loader(batch_size=5, shuffle=True, seed=2, output="numpy", **options) as loader:
        batches = [(x.copy(), y.copy()) for _ in range(n) for x, y in loader]
        return batches, loader.stats(), loader.explain()


def assert_same(a, b):
    assert len(a) == len(b)
    for (x, y), (u, v) in zip(a, b, strict=True):
        assert np.array_equal(x, u)
        assert np.array_equal(y, v)


def test_the_same_batches_and_hits_in_later_epochs_and_runs(photos, tmp_path):
    want, stats, _ = epochs(photos)
    assert stats["cache_hits"] == stats["cache_misses"] == 0
    got, stats, text = epochs(photos, cache=tmp_path / "cache")
    assert_same(got, want)
    assert (stats["cache_misses"], stats["cache_hits"], stats["cache_written"]) == (24, 24, 24)
    assert "cache: keeps decode, resize -> label int64 (), image" in text
    got, stats, _ = epochs(photos, cache=tmp_path / "cache")
    assert_same(got, want)
    assert (stats["cache_misses"], stats["cache_hits"], stats["bytes_read"]) == (0, 48, 0)
    assert stats["cache_disk_bytes"] <= stats["cache_limit_bytes"]


def test_a_changed_file_is_made_again(photos, tmp_path):
    epochs(photos, 1, cache=tmp_path / "cache")
    Image.new("RGB", (90, 70), "red").save(photos / "class0" / "00.png")
    got, stats, _ = epochs(photos, 1, cache=tmp_path / "cache")
    assert stats["cache_misses"] == 1
    assert_same(got, epochs(photos, 1)[0])


def test_a_file_changed_to_the_same_size_and_time_is_made_again(photos, tmp_path):
    path = photos / "class0" / "00.png"
    epochs(photos, 1, cache=tmp_path / "cache")
    before, data = path.stat(), bytearray(path.read_bytes())
    Image.new("RGB", (80, 60), "red").save(path)
    path.write_bytes(path.read_bytes().ljust(len(data), b"\0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    got, stats, _ = epochs(photos, 1, cache=tmp_path / "cache")
    assert stats["cache_misses"] == 1
    assert_same(got, epochs(photos, 1)[0])


def test_a_deleted_cache_is_filled_anew(photos, tmp_path):
    import shutil

    want, _, _ = epochs(photos, 1, cache=tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    got, stats, _ = epochs(photos, 1, cache=tmp_path / "cache")
    assert stats["cache_written"] == 24
    assert_same(got, want)


def test_the_limit_is_kept(photos, tmp_path):
    want, _, _ = epochs(photos)
    got, stats, text = epochs(photos, cache=tmp_path / "cache", cache_limit=20000)
    assert_same(got, want)
    on_disk = sum(f.stat().st_size for f in (tmp_path / "cache").rglob("*.drst"))
    assert 0 < on_disk <= 20000
    assert stats["cache_stopped"].startswith("cache_limit is reached")
    assert "stopped: cache_limit is reached" in text


def test_a_reference_run_ignores_it(photos, tmp_path):
    got, stats, _ = epochs(photos, cache=tmp_path / "cache", reference=True)
    assert stats["cache_hits"] == stats["cache_misses"] == 0
    assert_same(got, epochs(photos)[0])


def test_a_folder_that_cannot_be_is_an_error(photos):
    with pytest.raises(drapps.IOError, match="cannot make the folder /proc/none"):
        epochs(photos, cache="/proc/none/cache")


LOOP = """
import sys, drapps
pipe = drapps.read(sys.argv[1], index=False).decode().resize(32).random_crop(24).random_horizontal_flip()
loader = pipe.loader(batch_size=5, shuffle=True, seed=2, output="numpy", cache=sys.argv[2])
print("begun", flush=True)
while True:
    for batch in loader:
        pass
    {extra}
"""


def test_kill_9_in_the_middle(photos, tmp_path):
    want, _, _ = epochs(photos)
    again = "import shutil; shutil.rmtree(sys.argv[2], ignore_errors=True); loader.close(); " \
        "loader = pipe.loader(batch_size=5, cache=sys.argv[2], output='numpy')"  # fmt: skip
    for moment in range(4):
        command = [sys.executable, "-c", LOOP.format(extra=again), str(photos), str(tmp_path / "cache")]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        child.stdout.readline()
        while child.poll() is None and not glob.glob(f"{tmp_path}/cache/*/data-*"):
            time.sleep(0.001)
        time.sleep(0.013 * moment)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        got, stats, _ = epochs(photos, cache=tmp_path / "cache")
        assert_same(got, want)
        assert stats["cache_damaged"] == 0


def test_two_processes_fill_one_cache(photos, tmp_path):
    want, _, _ = epochs(photos)
    once = LOOP.replace("while True:", "if True:").format(extra="pass")
    command = [sys.executable, "-c", once, str(photos), str(tmp_path / "cache")]
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    got, stats, _ = epochs(photos, cache=tmp_path / "cache")
    assert stats["cache_misses"] == 0
    assert_same(got, want)


def test_an_image_that_later_ops_only_look_at_is_kept(tmp_path):
    """Boxes are cut off at the edges of an image that nobody else needs after the cut."""
    rng = np.random.default_rng(0)
    pipe = drapps.from_arrays(image=rng.integers(0, 256, (8, 16, 16, 3), dtype=np.uint8),
                              boxes=rng.uniform(0, 40, (8, 2, 4)).astype(np.float32),
                              volume=rng.random((8, 1, 4, 4, 4), dtype=np.float32),
                              kinds={"boxes": "boxes", "volume": "volume"})  # fmt: skip
    pipe = pipe.resize((8, 8), fields="image,boxes").random_brightness(fields="volume")
    pipe = pipe.clamp_bounding_boxes(fields="image,boxes")
    runs = []
    for cache in (None, tmp_path / "cache", tmp_path / "cache"):
        with pipe.loader(batch_size=2, output="numpy", outputs="boxes,volume", cache=cache) as loader:
            runs.append([(batch["boxes"].copy(), batch["volume"].copy()) for batch in loader])
    assert_same(runs[1], runs[0])
    assert_same(runs[2], runs[0])


# --- in memory, and at a place of one's choice ---


@pytest.mark.parametrize("disk", [False, True])
def test_memory_gives_the_same_batches(photos, tmp_path, disk):
    kept = {"cache": tmp_path / "cache"} if disk else {}
    got, stats, text = epochs(photos, cache_memory=64 << 20, **kept)
    assert_same(got, epochs(photos)[0])
    assert stats["cache_memory_records"] == stats["cache_memory_written"] == 24
    assert stats["cache_memory_hits"] == stats["cache_hits"] > 0
    assert 0 < stats["cache_memory_bytes"] <= stats["cache_memory_limit_bytes"] == 64 << 20
    assert stats["cache_written"] == (24 if disk else 0)
    assert "cache in memory: 24 samples" in text and "needed again last" in text
    assert stats["cache_memory_codec"] in text


def test_loaders_of_a_machine_share_memory(photos):
    want, stats, _ = epochs(photos, 1, cache_memory=16 << 20)
    assert stats["cache_hits"] == 0
    code = (
        "import sys, drapps\n"
        "pipe = drapps.read(sys.argv[1], index=False).decode().resize(32).random_crop(24).random_horizontal_flip()\n"
        "loader = pipe.loader(batch_size=5, shuffle=True, seed=2, output='numpy', cache_memory=16 << 20)\n"
        "list(loader)\n"
        "print(loader.stats()['cache_memory_records'], flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(photos)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"24\n"
        got, stats, _ = epochs(photos, 1, cache_memory=16 << 20)
        assert stats["cache_memory_hits"] == 24 and stats["bytes_read"] == 0
        assert_same(got, want)
    finally:
        child.kill()
        child.communicate()
    got, stats, _ = epochs(photos, 1, cache_memory=16 << 20)  # the last user was killed: begun anew
    assert stats["cache_memory_hits"] == 0 and stats["cache_memory_records"] == 24
    assert_same(got, want)


@pytest.mark.parametrize("at, kept", [("decode", "decode ->"), (0, "decode ->"), ("resize", "decode, resize ->")])
def test_the_place_can_be_chosen(photos, tmp_path, at, kept):
    got, _, text = epochs(photos, cache=tmp_path / "cache", cache_at=at)
    assert_same(got, epochs(photos)[0])
    assert f"cache: keeps {kept}" in text


@pytest.mark.parametrize("at, words", [
    ("random_crop", "op 2 .random_crop. is random"), (7, "cache_at must be an op, 0 to 3"), ("crop", "no such op"),
])  # fmt: skip
def test_no_other_place_can(photos, at, words):
    with pytest.raises(drapps.ArgumentError, match=words):
        epochs(photos, 1, cache_memory=1 << 20, cache_at=at)


def test_wrong_memory(photos):
    with pytest.raises(drapps.ArgumentError, match="cache_memory must be 0 or at least 1048576 bytes or None, got 5"):
        epochs(photos, 1, cache_memory=5)
    with pytest.raises((ValueError, TypeError), match="cache_memory must be"):
        epochs(photos, 1, cache_memory=-1)
    with pytest.raises(drapps.ArgumentError, match="cache_at needs cache or cache_memory"):
        epochs(photos, 1, cache_at="decode")


def test_every_choice_is_in_the_trace(photos, tmp_path):
    """Forced codecs are obeyed and written down, choices with the terms that they were made of."""
    pipe = drapps.read(photos, index=False).decode().resize(32).random_crop(24)
    loader = pipe.loader(batch_size=4, output="numpy", cache_memory=16 << 20, trace=tmp_path / "run.drtrace")
    loader.set("codec", 0)
    list(loader)
    loader.close()
    events = [e for e in drapps.trace.read(tmp_path / "run.drtrace").events if e["event"] == "codec"]
    assert len(events) == 24
    assert {(e["tier"], e["codec"], e["why"], e["class"]) for e in events} == {("memory", "none", "set", "8-bit")}
    loader = pipe.loader(batch_size=4, output="numpy", cache=tmp_path / "kept", trace=tmp_path / "auto.drtrace")
    list(loader)
    assert loader.get("codec") == -1
    loader.close()
    events = [e for e in drapps.trace.read(tmp_path / "auto.drtrace").events if e["event"] == "codec"]
    assert len(events) == 24 and {e["tier"] for e in events} == {"disk"}
    for event in events:
        known = {t["codec"]: t["u"] for t in event["terms"] if t["u"] is not None}
        unknown = {t["codec"] for t in event["terms"]} - set(known)
        assert event["codec"] in unknown if unknown else known[event["codec"]] == max(known.values())
        for t in event["terms"]:
            if t["u"] is not None:
                assert 0 <= t["compat"] <= 1 and 0 < t["v"] <= 1 and 0 < t["rho"] <= 1
                assert abs(t["u"] - (0.02 * t["v"] + 0.02 * t["rho"] + t["compat"] + t["bonus"])) < 1e-5


def test_python_functions_in_memory(tmp_path):
    made = []

    @drapps.deterministic
    def prepare(i):
        made.append(i)
        return np.full(1000, i)

    cache = cached.Cache(None, memory=4 << 20)
    with cached.using(cache):
        for _ in range(3):
            assert [int(prepare(i)[7]) for i in range(20)] == list(range(20))
    (stats,) = cache.stats().values()
    assert made == list(range(20)) and stats["memory_hits"] == 40 and stats["memory_records"] == 20
    cache.close()


def test_the_report_has_the_choices(photos, tmp_path):
    from drapps.report.codecs import codec_table
    from drapps.report.run import Run

    pipe = drapps.read(photos, index=False).decode().resize(32).random_crop(24)
    loader = pipe.loader(batch_size=4, output="numpy", cache_memory=16 << 20, trace=tmp_path / "run.drtrace")
    list(loader)
    loader.close()
    text = codec_table(Run(drapps.trace.read(tmp_path / "run.drtrace"), "run"))
    assert "Compression of the cache" in text and "<td>memory<td>8-bit<td>none" in text
    other = pipe.loader(batch_size=4, output="numpy", trace=tmp_path / "none.drtrace")
    list(other)
    other.close()
    assert codec_table(Run(drapps.trace.read(tmp_path / "none.drtrace"), "none")) == ""


class Marked:
    """A data set in Python; each sample says in which process it was made."""

    def __len__(self):
        return 12

    @drapps.deterministic(key=lambda self, i: i)
    def prepare(self, i):
        return np.array([i, os.getpid()])

    def __getitem__(self, i):
        return self.prepare(i)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataloader_keeps_in_memory(workers):
    pytest.importorskip("torch")
    loader = drapps.DataLoader(Marked(), 3, num_workers=workers, cache_memory=4 << 20, persistent_workers=workers > 0)
    first, second = ([row.tolist() for batch in loader for row in batch] for _ in range(2))
    assert first == second and [row[0] for row in first] == list(range(12))
    assert loader.cache_memory == 4 << 20
    if workers == 0:
        assert loader.stats()["cache_hits"] == 12
