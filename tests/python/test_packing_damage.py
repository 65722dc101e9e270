"""Damage to a packed set costs the samples that it hits, by name; every sample that is delivered is the original."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

import numpy
import pytest
from imagesets import N_IMAGES, write_folder
from packsets import SMALL, assert_same_samples, shards_of, tree

import drapps

KILLS = int(os.environ.get("PACK_KILLS", "5"))
FLIPS = int(os.environ.get("PACK_FLIPS", "40"))


@pytest.fixture(scope="module")
def original(folder, tmp_path_factory):
    """A packed set, and its samples by key."""
    made = tmp_path_factory.mktemp("packed") / "set"
    drapps.read(folder).pack(made, shard_bytes=SMALL, seek_points=False)
    source = drapps.read(folder)
    return made, {source.dataset.key(i): source[i] for i in range(N_IMAGES)}


@pytest.fixture
def damaged(original, tmp_path):
    """A copy of the packed set that the test may damage."""
    shutil.copytree(original[0], tmp_path / "set")
    return tmp_path / "set"


def assert_equal(sample, wanted):
    for name, value in wanted.items():
        if isinstance(value, numpy.ndarray):
            assert sample[name].dtype == value.dtype and numpy.array_equal(sample[name], value)
        elif name != "key":
            assert sample[name] == value
    assert set(sample) == set(wanted)


def read_all(folder, originals):
    """The names of the samples that are bad; all others are as they were."""
    pipe = drapps.read(folder)
    bad = []
    for i in range(len(pipe)):
        try:
            sample = pipe[i]
        except (drapps.FormatError, drapps.FileMissingError, drapps.IOError) as error:
            bad.append(str(error))
            continue
        assert_equal(sample, originals[sample["key"]])
    return bad


def spoil(path, rng, places=None):
    """Flips a bit, cuts the file off, or writes zeros over a part, at one of the places (ranges of bytes)."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(*rng.choice(places or [(0, len(data))]))
    kind = rng.choice(["flip", "cut", "zeros"])
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[at:]
    else:
        data[at : at + 300] = bytes(len(data[at : at + 300]))
    path.write_bytes(data)
    return f"{kind} at {at} of {path.name}"


def parts_of(folder, part):
    """[(file, ranges of bytes)] of a packed set: its members, the headers before them, whole files."""
    endings = {"index": ".drapps-shard", "manifest": "drapps-set.json", "anything": ""}
    if part in endings:
        return [(path, None) for path in sorted(folder.iterdir()) if path.name.endswith(endings[part])]
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            members = tar.getmembers()
        if part == "members":
            found.append((path, [(m.offset_data, m.offset_data + m.size) for m in members if m.size]))
        else:
            found.append((path, [(m.offset, m.offset_data) for m in members]))
    return found


def check_damage(made, originals, folder, part, rounds):
    """Damages a copy of a packed set so often, once or twice each time, and reads all of it."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    parts = [(path.name, places) for path, places in parts_of(made, part)]
    for _ in range(rounds):
        shutil.copytree(made, folder)
        what = []
        for name, places in rng.sample(parts, min(len(parts), rng.randrange(1, 3))):
            what.append(spoil(folder / name, rng, places))
        try:
            read_all(folder, originals)
        except drapps.FormatError as error:
            assert "manifest" in str(error), (seed, what)
        except AssertionError:
            raise AssertionError(f"a wrong sample: seed {seed}, {what}") from None
        shutil.rmtree(folder)


@pytest.mark.parametrize("part", ["members", "headers", "index", "manifest", "anything"])
def test_random_damage(original, tmp_path, part):
    check_damage(*original, tmp_path / "set", part, FLIPS)


def specs():
    """(spec, type that it takes) for each stage of the codec table: alone, and array stages before a byte stage."""
    for stage in drapps.codec.codecs():
        dtype = "int32" if "int32" in stage["types"] else "float32"
        yield stage["name"], dtype
        if stage["kind"] != "bytes":
            yield f"{stage['name']}+zstd:1", dtype


@pytest.mark.parametrize("spec, dtype", list(specs()))
def test_random_damage_of_every_codec(tmp_path, spec, dtype):
    steps = numpy.random.default_rng(0).integers(0, 300, (10, 40, 9))
    source = drapps.from_arrays(a=steps.cumsum(axis=1).astype(dtype))
    source.pack(tmp_path / "made", codec=spec, shard_samples=4)
    pipe = drapps.read(tmp_path / "made")
    originals = {pipe[i]["key"]: pipe[i] for i in range(10)}
    if dtype == "int32":  # lossless
        assert all(numpy.array_equal(pipe[i]["a"], source[i]["a"]) for i in range(10))
    check_damage(tmp_path / "made", originals, tmp_path / "set", "members", max(FLIPS // 4, 10))


def test_a_damaged_member_costs_its_sample(original, damaged):
    shard = damaged / "shard-000001.tar"
    data = bytearray(shard.read_bytes())
    data[512 + 100] ^= 4  # in the first sample's image
    shard.write_bytes(data)
    bad = read_all(damaged, original[1])
    assert len(bad) == 1 and "shard-000001.tar" in bad[0] and "the checksum is wrong" in bad[0]
    files, samples = drapps.verify(damaged)
    assert [damage.name for damage in files] == ["shard-000001.tar"]
    first = shards_of(damaged)[0]["samples"]
    assert [damage.name for damage in samples] == [drapps.read(damaged).dataset.key(first)]
    done = subprocess.run([sys.executable, "-m", "drapps.cli", "verify", damaged], capture_output=True, text=True)
    assert done.returncode == 1 and samples[0].name in done.stdout and "1 damaged" in done.stdout
    assert "bad sample" not in done.stderr  # each is named once


def test_a_header_of_zeros_costs_nothing(original, damaged):
    shard = damaged / "shard-000000.tar"
    data = bytearray(shard.read_bytes())
    data[:512] = bytes(512)
    shard.write_bytes(data)
    assert read_all(damaged, original[1]) == []
    assert [damage.name for damage in drapps.verify(damaged)[0]] == ["shard-000000.tar"]


def test_a_truncated_shard_costs_its_end(original, damaged):
    shard = damaged / "shard-000000.tar"
    n = shards_of(damaged)[0]["samples"]
    os.truncate(shard, shard.stat().st_size // 2)
    bad = read_all(damaged, original[1])
    assert 0 < len(bad) < n and all("truncated" in text for text in bad)
    loader = drapps.read(damaged).decode().resize((8, 8)).loader(batch_size=4, on_bad_sample="skip")
    with loader:
        assert sum(len(batch.ids) for batch in loader.batches()) == N_IMAGES - len(bad)
        assert len(loader.bad_samples()) == len(bad)


def test_a_missing_shard_costs_its_samples(original, damaged):
    n = shards_of(damaged)[1]["samples"]
    (damaged / "shard-000001.tar").unlink()
    assert len(read_all(damaged, original[1])) == n
    (damaged / "shard-000001.tar.drapps-shard").unlink()
    assert len(read_all(damaged, original[1])) == n
    assert len(drapps.verify(damaged)[1]) == n


# --- interrupted ---

PACK = """
import sys, drapps
drapps.read(sys.argv[1]).decode().resize((64, 64)).pack(sys.argv[2], shard_samples=5, workers=2)
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("many") / "set", n=300)


@pytest.fixture(scope="module")
def whole(many, tmp_path_factory):
    made = tmp_path_factory.mktemp("whole") / "set"
    drapps.read(many).decode().resize((64, 64)).pack(made, shard_samples=5)
    return tree(made)


def test_killed_anywhere(many, whole, tmp_path):
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    made = tmp_path / "set"
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", PACK, many, made])
        wanted = len(list(made.glob("*.tar"))) + rng.randrange(0, 60) if made.exists() else rng.randrange(0, 60)
        end = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < end and len(list(made.glob("*.tar"))) < wanted:
            pass
        time.sleep(rng.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (made / "drapps-set.json").exists():
            assert len(drapps.read(made)) == 300
            shutil.rmtree(made)
        elif (made / "drapps-pack.json").exists():
            with pytest.raises(drapps.StateError, match="was not finished"):
                drapps.read(made)
    subprocess.run([sys.executable, "-c", PACK, many, made], check=True)
    assert tree(made) == whole, f"seed {seed}"
    subprocess.run([sys.executable, "-c", PACK, many, made], check=True)  # there is nothing left to do
    assert tree(made) == whole


def test_going_on(many, whole, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAPPS_READ_DELAY_US", "3000")  # so that there is time to interrupt it
    pipe = drapps.read(many).decode().resize((64, 64))
    monkeypatch.delenv("DRAPPS_READ_DELAY_US")

    def stop(stats):
        if stats["shards"] >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        while True:
            pipe.pack(tmp_path / "set", shard_samples=5, workers=1, progress=stop)
    names = set(tree(tmp_path / "set"))
    assert "drapps-pack.json" in names and not any("part" in name for name in names)
    os.truncate(tmp_path / "set" / "shard-000001.tar", 100)  # damaged meanwhile: made again from here on
    with pytest.raises(drapps.StateError, match="with other arguments"):
        pipe.pack(tmp_path / "set", shard_samples=6)
    done = pipe.pack(tmp_path / "set", shard_samples=5)
    assert done.resumed_samples == 5
    assert tree(tmp_path / "set") == whole


def test_ctrl_c(many, tmp_path):
    command = [sys.executable, "-m", "drapps.cli", "pack", many, tmp_path / "set", "--shard-samples", "3",
               "--op", "resize(500)", "--workers", "1"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(list((tmp_path / "set").glob("*.tar"))) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.communicate(timeout=30)[1] and process.returncode == 130
    assert not list((tmp_path / "set").glob("*part"))


def test_one_packer_at_a_time(many, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", PACK.replace("64, 64", "900, 900"), many, tmp_path / "set"])
    while not (tmp_path / "set" / "drapps-pack.json").exists():
        assert process.poll() is None
    with pytest.raises(drapps.StateError, match="another process is packing"):
        drapps.read(many).decode().resize((900, 900)).pack(tmp_path / "set", shard_samples=5)
    process.kill()
    process.wait()


def test_readers_while_it_grows(folder, tmp_path):
    drapps.read(folder).pack(tmp_path / "set", shard_samples=6)
    want = [drapps.read(folder)[i] for i in range(N_IMAGES)]
    failures, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                pipe = drapps.read(tmp_path / "set")
                assert len(pipe) % N_IMAGES == 0
                for i in range(0, len(pipe), 5):
                    assert pipe[i]["image"] == want[i % N_IMAGES]["image"]
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        drapps.read(folder).pack(tmp_path / "set", shard_samples=6, append=True)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(drapps.read(tmp_path / "set")) == 5 * N_IMAGES
    assert pathlib.Path(tmp_path / "set" / "shard-000019.tar").exists()


def test_an_addition_that_is_killed(many, tmp_path):
    made = tmp_path / "set"
    small = write_folder(tmp_path / "small", n=6)
    drapps.read(small).decode().resize((64, 64)).pack(made, shard_samples=5)
    before = [drapps.read(made)[i]["key"] for i in range(6)]
    add = PACK.replace("workers=2", "workers=2, append=True")
    for wanted in (3, 20):
        process = subprocess.Popen([sys.executable, "-c", add, many, made])
        while process.poll() is None and len(list(made.glob("*.tar"))) < wanted:
            pass
        process.kill()
        process.wait()
        assert [drapps.read(made)[i]["key"] for i in range(6)] == before and len(drapps.read(made)) == 6
    subprocess.run([sys.executable, "-c", add, many, made], check=True)
    assert len(drapps.read(made)) == 306
    assert_same_samples(drapps.read(made).skip(6), drapps.read(many).decode().resize((64, 64)))
