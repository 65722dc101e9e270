"""What caches and threads bring, by the size of samples: images of 10 KB to 20 MB.

Caches: JPEGs from slow storage, from the system's page cache, and decoded in the program's memory (cache_memory=).
Threads: a loader with one worker and with one for each CPU, beside a pool of Python threads that is given one sample at
a time.  Rounds go over all sizes and ways; all ways deliver the same bytes.
"""

import io
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np
from PIL import Image

from benchmarks.experiments.storage.plan_pipelines import PHOTOS
from benchmarks.experiments.storage.codec_data import files
from benchmarks.experiments.storage.kept_results import KeptResults
from benchmarks.experiments.storage.scarce import Bandwidth, run_child
from benchmarks.experiments.storage.storage_command import add_results

SIZES = {"10 KB": 58, "100 KB": 183, "1 MB": 591, "5 MB": 1320, "20 MB": 2640}  # sides of square images
TOTAL_BYTES = 240 << 20  # of a size's decoded samples, about
MOST, LEAST, OTHERS = 2000, 8, 32  # samples; different ones
BATCH_BYTES = 40 << 20
FULL = {"rounds": 5, "epochs": 3, "seconds": 0.5, "total": TOTAL_BYTES}
QUICK = {"rounds": 2, "epochs": 1, "seconds": 0.2, "total": TOTAL_BYTES // 4}


def write_images(data, folder, side, n):
    """n square JPEGs of some photographs of a folder, each as several files; returns bytes of one, on average."""
    sources = files(pathlib.Path(data), *PHOTOS)
    if not sources:
        raise SystemExit(f"{data}: has no JPEG files")
    blobs = []
    for path in sources[:: max(1, len(sources) // OTHERS)][: min(n, OTHERS)]:
        with Image.open(path) as image, io.BytesIO() as file:
            image.convert("RGB").resize((side, side)).save(file, "JPEG", quality=90)
            blobs.append(file.getvalue())
    for i in range(n):
        place = folder / str(i % 2)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:05d}.jpg").write_bytes(blobs[i % len(blobs)])
    return sum(len(blobs[i % len(blobs)]) for i in range(n)) / n


def ways(cpus):
    """{way: (child's way, threads, in memory, slow)}"""
    return {"storage": ("native", cpus, False, True), "page cache": ("native", cpus, False, False),
            "application": ("native", cpus, True, False), "one worker": ("native", 1, False, False),
            "handoff, one thread": ("handoff", 1, False, False),
            "handoff, all CPUs": ("handoff", cpus, False, False)}  # fmt: skip


def measure(args, work, kept, say):
    """{size: {"bytes", "stored", "samples", "rates": {way: [rate of each round]}}}"""
    bandwidth, cpus = Bandwidth(work, "/sizes/"), len(os.sched_getaffinity(0))
    stored, found = {}, {}
    for number in range(args.rounds):
        for name, side in SIZES.items():
            n = int(np.clip(args.total // (side * side * 3), LEAST, MOST))
            for way, setting in ways(cpus).items():
                def run(name=name, side=side, way=way, setting=setting, n=n):
                    if name not in stored:
                        say(f"writing {n} images of {name}")
                        stored[name] = write_images(args.data, work / "sizes" / str(side), side, n)
                    say(f"round {number + 1} of {args.rounds}: {name}, {way}")
                    return {**_run(args, work, bandwidth, name, side, n, setting), "stored": stored[name]}

                result = kept.get((name, number, way), run)
                if result is None:
                    return _checked(found)
                one = found.setdefault(name, {"bytes": side * side * 3, "stored": result["stored"], "samples": n,
                                              "rates": {}, "hashes": {}})  # fmt: skip
                one["rates"].setdefault(way, []).append(statistics.median(result["rates"]))
                one["hashes"].setdefault(setting[0], set()).add(result["hash"])
    return _checked(found)


def _run(args, work, bandwidth, name, side, n, setting):
    """What a child found for one size and way."""
    (kind, threads, memory, slow), size = setting, side * side * 3
    bandwidth.set(args.bandwidth if slow else 0)
    config = {"folder": str(work / "sizes" / str(side)), "way": kind, "threads": threads,
              "batch": int(np.clip(BATCH_BYTES // size, 1, 64)), "epochs": args.epochs, "seconds": args.seconds,
              "memory": 2 * n * size + (64 << 20) if memory else 0}  # fmt: skip
    result = run_child("size_child.py", config, bandwidth.environment())
    if memory and not result["kept"]:
        raise SystemExit(f"{name}: nothing was kept in memory")
    return result


def _checked(found):
    """The sizes of which every way was measured; all of these gave the same bytes."""
    whole = len(ways(1))
    for name, one in found.items():
        if any(len(hashes) > 1 for hashes in one.pop("hashes").values()):
            raise SystemExit(f"{name}: ways gave different bytes")
    return {name: one for name, one in found.items() if len(one["rates"]) == whole}


def main(argv, make_parser):
    parser = make_parser("sizes", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder of photographs")
    parser.add_argument("--quick", action="store_true", help="few samples and rounds: some minutes")
    for name, text in (("rounds", "over all sizes and ways"), ("epochs", "of each run"), ("seconds", "of each epoch"),
                       ("total", "bytes of the decoded samples of each size")):  # fmt: skip
        kind = type(FULL[name])
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=f"{text} ({FULL[name]}; quick: {QUICK[name]})")
    parser.add_argument("--bandwidth", type=float, default=62.5e6, metavar="BYTES/S", help="of slow storage (62.5e6)")
    parser.add_argument("--work", metavar="DIR", help="where images are kept meanwhile")
    add_results(parser)
    args = parser.parse_args(argv)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    names = ("data", "epochs", "seconds", "total", "bandwidth")
    kept = KeptResults(args, {name: getattr(args, name) for name in names})
    with tempfile.TemporaryDirectory(prefix="drapps-storage-", dir=args.work) as work:
        sizes = measure(args, pathlib.Path(work), kept, lambda text: print(text, file=sys.stderr))
    return {"experiment": "storage sizes", "bandwidth": args.bandwidth, "cpus": len(os.sched_getaffinity(0)),
            "sizes": sizes}  # fmt: skip


def ratio(rates, way, other):
    """Of the rounds: median, least and most."""
    found = [a / b for a, b in zip(rates[way], rates[other])]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def tables(result):
    """[(title, head, rows)] for people."""
    caches, threads = [], []
    for name, one in result["sizes"].items():
        rates = one["rates"]
        middle = {way: f"{statistics.median(values):.0f}" for way, values in rates.items()}
        caches.append((name, f"{one['stored'] / 1e3:.1f} KB",
                       *(middle[way] for way in ("storage", "page cache", "application")),
                       ratio(rates, "application", "page cache"), ratio(rates, "application", "storage")))  # fmt: skip
        threads.append((name, middle["one worker"], middle["page cache"], ratio(rates, "page cache", "one worker"),
                        middle["handoff, one thread"], middle["handoff, all CPUs"],
                        ratio(rates, "handoff, all CPUs", "handoff, one thread")))  # fmt: skip
    right = [(name, "right") for name in ("JPEG", "storage", "page cache", "application")]
    yield ("caches: samples a second, by the size of a decoded sample",
           ("sample", *right, "application / page cache", "application / storage"), caches)  # fmt: skip
    n = result["cpus"]
    yield (f"threads: samples a second with one and with {n}",
           ("sample", ("drapps, 1", "right"), (f"drapps, {n}", "right"), "speed-up",
            ("one at a time, 1", "right"), (f"one at a time, {n}", "right"), "speed-up"), threads)  # fmt: skip
