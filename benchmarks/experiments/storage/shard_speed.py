"""Shards beside the files that they were made of: from the page cache, and where each open of a file takes 1 ms.

The slow storage is slow_open.c of benchmarks/c: a library for LD_PRELOAD that sleeps before each open.  Both ways must
deliver the same bytes.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import drapps
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
SMALL_FILES, SMALL_SIDE = 4000, 48
OPEN_US = 1000


def write_small_files(folder):
    """Many small JPEGs in ten classes."""
    rng = np.random.default_rng(0)
    for i in range(SMALL_FILES):
        place = folder / f"{i % 10}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
        coarse.resize((SMALL_SIDE, SMALL_SIDE), Image.Resampling.BICUBIC).save(place / f"{i:05d}.jpg", quality=90)


def slow_open(folder):
    """Compiles slow_open.c; returns the library."""
    library = folder / "slow_open.so"
    source = HERE.parents[1] / "c" / "slow_open.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def run_child(path, size, epochs, slow=None):
    env = dict(os.environ)
    if slow:
        env.update(LD_PRELOAD=str(slow), SLOW_OPEN=str(path), SLOW_OPEN_US=str(OPEN_US))
    done = subprocess.run([sys.executable, HERE / "shard_child.py", path, str(size), str(epochs)], env=env,
                          capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise SystemExit((done.stderr or done.stdout).strip().splitlines()[-1])
    return json.loads(done.stdout)


def measure(cases, rounds, epochs, say):
    """{case: {way: [rate, ...]}} in interleaved rounds.  cases: {name: (files, shards, size, slow library)}."""
    found = {}
    for number in range(rounds):
        for name, (files, shards, size, slow) in cases.items():
            hashes = set()
            for way, path in (("files", files), ("shards", shards)):
                say(f"round {number + 1} of {rounds}: {name}, {way}")
                result = run_child(path, size, epochs, slow)
                found.setdefault(name, {}).setdefault(way, []).append(result["rate"])
                hashes.add(result["hash"])
            if len(hashes) != 1:
                raise SystemExit(f"{name}: files and shards gave different bytes")
    return found


def main(argv, make_parser):
    parser = make_parser("shards", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder of images, a folder for each class")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4, help="of each run; the best of all but the first counts (4)")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="drapps-storage-") as work:
        work = pathlib.Path(work)
        small, slow = work / "small", slow_open(work)
        write_small_files(small)
        sets = {"photos": pathlib.Path(args.data).resolve(), "small files": small}
        packed = {}
        for name, files in sets.items():
            packed[name] = work / f"packed-{len(packed)}"
            drapps.read(files).pack(packed[name])
        cases = {"page cache": (sets["photos"], packed["photos"], 224, None),
                 "small files, page cache": (small, packed["small files"], 32, None),
                 "small files, 1 ms an open": (small, packed["small files"], 32, slow)}
        found = measure(cases, args.rounds, args.epochs, lambda text: print(text, file=sys.stderr))
        sizes = {name: [bytes_of(sets[name]), bytes_of(packed[name])] for name in sets}
    return {"experiment": "storage shards", "rates": found, "bytes": sizes}


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def tables(result):
    """[(title, head, rows)] for people."""
    rows = []
    for name, ways in result["rates"].items():
        files, shards = (statistics.median(ways[way]) for way in ("files", "shards"))
        ratios = [b / a for a, b in zip(ways["files"], ways["shards"])]
        rows.append((name, f"{files:.0f}", f"{shards:.0f}", f"{statistics.median(ratios):.2f}",
                     f"{min(ratios):.2f} to {max(ratios):.2f}"))
    head = ("storage", ("files", "right"), ("shards", "right"), ("ratio", "right"), "of the rounds")
    yield "samples a second", head, rows
    yield ("bytes on disk", ("data", ("files", "right"), ("shards", "right")),
           [(name, f"{a:,}", f"{b:,}") for name, (a, b) in result["bytes"].items()])
