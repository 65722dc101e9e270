"""kill -9 at random moments while samples are cached, while a plan is made, and while it is carried out: nothing that
was half written is ever read, and the next run finishes.  Packing: test_packing_damage.py.

CACHE_KILLS and PLAN_KILLS say how often; `make check-stress` takes 50.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from imagesets import write_folder

import drapps
from drapps.plan.measured_epochs import hash_epoch, open_loader
from drapps.plan.workspace import PREFIX

CACHE_KILLS = int(os.environ.get("CACHE_KILLS", "4"))
PLAN_KILLS = int(os.environ.get("PLAN_KILLS", "3"))
N = 120


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("photos") / "set", n=N)


@pytest.fixture
def rng():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


def kill_at(program, arguments, seconds, **more):
    """Starts a program, and kills it so many seconds after it has said "begin"; True: it had ended."""
    child = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                             **more)  # fmt: skip
    try:
        assert child.stdout.readline() == "begin\n"
        try:
            return child.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            return False
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def wait_for_end(program, arguments, **more):
    """Seconds from "begin" to the end of a program."""
    child = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                             **more)  # fmt: skip
    assert child.stdout.readline() == "begin\n"
    begun = time.monotonic()
    assert child.wait() == 0
    child.stdout.close()
    return time.monotonic() - begun


# --- caching ---

CACHE = """
import sys, drapps
pipe = drapps.read(sys.argv[1]).decode().resize((64, 64)).random_crop(48)
options = {"cache_memory": 64 << 20} if sys.argv[3] == "memory" else {}
with pipe.loader(batch_size=5, shuffle=True, workers=2, cache=sys.argv[2], output="numpy", **options) as loader:
    print("begin", flush=True)
    for batch in loader:
        pass
    for batch in loader:
        pass
"""
SLOW = {**os.environ, "DRAPPS_READ_DELAY_US": "2000"}  # so that there are moments


def read_through(pipe, **more):
    """(hash of the batches, counters) of an epoch."""
    with open_loader(pipe, {"batch_size": 5}, **more) as loader:
        return hash_epoch(loader).digest, loader.stats()


@pytest.mark.parametrize("tier", ["disk", "memory"])
def test_killed_while_caching(photos, tmp_path, rng, tier):
    pipe = drapps.read(photos).decode().resize((64, 64)).random_crop(48)
    want, _ = read_through(pipe)
    cache, memory = tmp_path / "cache", {"cache_memory": 64 << 20} if tier == "memory" else {}
    usual = wait_for_end(CACHE, [photos, tmp_path / "whole", tier], env=SLOW)
    kept = set()
    for _ in range(CACHE_KILLS):
        ended = kill_at(CACHE, [photos, cache, tier], rng.random() * usual, env=SLOW)
        shutil.copytree(cache, tmp_path / "copy")  # what the killed ones have left stays as it is for the next one
        digest, stats = read_through(pipe, cache=tmp_path / "copy", **memory)
        assert digest == want and stats["cache_damaged"] == 0
        assert stats["cache_records"] == N and stats["cache_hits"] + stats["cache_written"] == N
        kept.add(stats["cache_hits"])
        shutil.rmtree(tmp_path / "copy")
        if ended or stats["cache_hits"] == N:
            shutil.rmtree(cache)
    assert CACHE_KILLS < 20 or len(kept) > 1  # some were killed in the middle


SHARED = """
import sys, drapps
pipe = drapps.read(sys.argv[1]).decode().resize((64, 64)).random_crop(48)
with pipe.loader(batch_size=5, shuffle=True, workers=2, cache_memory=1 << 20, output="numpy") as loader:
    print("begin", flush=True)
    while True:
        for batch in loader:
            pass
"""


def test_killed_while_others_use_the_memory(photos, rng):
    """Too little memory for all samples, so that whoever is killed was about to replace some."""
    pipe = drapps.read(photos).decode().resize((64, 64)).random_crop(48)
    want, _ = read_through(pipe)
    with open_loader(pipe, {"batch_size": 5}, cache_memory=1 << 20) as loader:
        assert hash_epoch(loader).digest == want
        for _ in range(CACHE_KILLS):
            assert not kill_at(SHARED, [photos], rng.random() * 0.3)
            assert hash_epoch(loader).digest == want
        assert 0 < loader.stats()["cache_memory_records"] < N


# --- planning ---

PLAN = """
import sys, drapps
from drapps.plan.strategies import PAGE, SHARDS, STORE
source, work, made, layout = sys.argv[1:]
pipe = drapps.read(source).decode().resize((64, 64)).random_crop(48)
print("begin", flush=True)
found = pipe.plan(60.0, batch_size=5, work=work, samples=8, rounds=1, memory=0)
row = next(row for row in found.rows if row.strategy.material.layout == layout
           and row.strategy.material.label == "after resize" and not row.strategy.material.codec)
lines = found._replace(chosen=row.strategy).apply(made)
open(made + ".py", "w").write("\\n".join(lines))
"""


def check_made(made, pipe, want, layout):
    """What --apply has left so far is whole, or says that it is not."""
    if layout == "cache folder":
        if made.exists():
            shutil.copytree(made, f"{made}-copy")
            digest, stats = read_through(pipe, cache=f"{made}-copy")
            assert digest == want and stats["cache_damaged"] == 0
            shutil.rmtree(f"{made}-copy")
    elif (made / "drapps-set.json").exists():
        assert read_through(pipe.use(made))[0] == want
    elif (made / "drapps-pack.json").exists():
        with pytest.raises(drapps.StateError, match="was not finished"):
            drapps.read(made)


@pytest.mark.parametrize("layout", ["shards", "cache folder"])
def test_killed_while_planning(photos, tmp_path, rng, layout):
    pipe = drapps.read(photos).decode().resize((64, 64)).random_crop(48)
    want, _ = read_through(pipe)
    work, made = tmp_path / "work", tmp_path / "made"
    work.mkdir()
    before = hashes(photos)
    usual = wait_for_end(PLAN, [photos, work, tmp_path / "whole", layout])
    for _ in range(PLAN_KILLS):
        ended = kill_at(PLAN, [photos, work, made, layout], rng.random() * usual)
        assert all(name.startswith(PREFIX) for name in os.listdir(work)) and len(os.listdir(work)) <= 1
        check_made(made, pipe, want, layout)
        if ended:
            shutil.rmtree(made)
    wait_for_end(PLAN, [photos, work, made, layout])
    assert os.listdir(work) == [] and hashes(photos) == before
    check_made(made, pipe, want, layout)
    scope = {"pipe": pipe}
    exec(pathlib.Path(f"{made}.py").read_text(), scope)
    scope["loader"].close()
    options = {"cache": made} if layout == "cache folder" else {}
    digest, stats = read_through(scope["pipe"], **options)
    assert digest == want and (layout == "shards" or stats["cache_hits"] == N)


def hashes(folder):
    """{name: bytes} of the original files, which nothing may change."""
    return {path: path.read_bytes() for path in pathlib.Path(folder).rglob("*.jpg")}
