"""What a cache in the program's memory brings over a slow link, by the size of samples: images of 10 KB to 20 MB.

Epochs over files on nginx, and over the same files decoded in memory (cache_memory=), which an epoch has filled.
"""

import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

from benchmarks.experiments.sophon import hosts
from benchmarks.experiments.storage import size_sweep
from benchmarks.experiments.testbed.testbed import Testbed

CHILD = pathlib.Path(size_sweep.__file__).with_name("size_child.py")
FULL = {"rounds": 3, "epochs": 3, "seconds": 1.0, "total": 120 << 20}
QUICK = {"rounds": 1, "epochs": 1, "seconds": 0.1, "total": 10 << 20}
LARGE, AIM = 1_000_000, 10  # bytes of a sample from which on the cache is to be so many times as fast


def measure(args, folder, say):
    """{size: {"bytes", "stored", "samples", "remote": [samples/s of each round], "memory": [...]}}"""
    found = {}
    for name in args.sizes:
        side = size_sweep.SIZES[name]
        n = int(np.clip(args.total // (side * side * 3), size_sweep.LEAST, size_sweep.MOST))
        place = folder / "sets" / str(side)
        size_sweep.write_images(args.data, place, side, n)
        stored = sum(path.stat().st_size for path in place.rglob("*.jpg")) / n
        found[name] = {"bytes": side * side * 3, "stored": stored, "samples": n, "remote": [], "memory": []}
    for number in range(args.rounds):
        for name, one in found.items():
            say(f"round {number + 1} of {args.rounds}: {name}")
            hashes = set()
            for way in ("remote", "memory"):
                result = run(args, folder, one, size_sweep.SIZES[name], way == "memory")
                one[way].append(statistics.median(result["rates"]))
                hashes.add(result["hash"])
                if way == "memory" and not result["kept"]:
                    raise SystemExit(f"{name}: nothing was kept in memory")
            if len(hashes) > 1:
                raise SystemExit(f"{name}: the cache gave other batches")
    return found


def run(args, folder, one, side, in_memory):
    with Testbed(args.rate * 1e6, args.delay / 1000) as bed:
        config = {"folder": f"{hosts.start_nginx(bed, folder, folder / 'sets')}/{side}/", "way": "native",
                  "threads": len(os.sched_getaffinity(0)), "epochs": args.epochs, "seconds": args.seconds,
                  "batch": int(np.clip(size_sweep.BATCH_BYTES // one["bytes"], 1, 64)),
                  "memory": 2 * one["samples"] * one["bytes"] + (64 << 20) if in_memory else 0}  # fmt: skip
        return hosts.run_child(bed, CHILD, config)[-1]


def main(rest, make):
    parser = make("cache", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder of photographs")
    parser.add_argument("--quick", action="store_true", help="few samples, one round")
    for name, text in (("rounds", ""), ("epochs", "of each run"), ("seconds", "of each epoch, at least"),
                       ("total", "bytes of the decoded samples of each size")):  # fmt: skip
        parser.add_argument(f"--{name}", type=type(FULL[name]), metavar="N",
                            help=f"{text} (default: {FULL[name]:g}; quick: {QUICK[name]:g})".strip())  # fmt: skip
    parser.add_argument("--sizes", nargs="+", default=list(size_sweep.SIZES), choices=size_sweep.SIZES, metavar="SIZE",
                        help=f"of a decoded sample (default: {', '.join(size_sweep.SIZES)})")  # fmt: skip
    parser.add_argument("--rate", type=float, default=500, metavar="MBIT", help="Mbit/s of the link (default: 500)")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="from host to host (default: 0)")
    args = parser.parse_args(rest)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        sizes = measure(args, pathlib.Path(name), lambda text: print(text, file=sys.stderr))
    return {"experiment": "sophon cache", "rate": args.rate, "sizes": sizes}


def tables(result):
    """[(title, head, rows)] for people."""
    rows, gains = [], {}
    for name, one in result["sizes"].items():
        gains[name] = statistics.median(a / b for a, b in zip(one["memory"], one["remote"]))
        rows.append((name, f"{one['stored'] / 1e3:.1f} KB", f"{statistics.median(one['remote']):.0f}",
                     f"{statistics.median(one['memory']):.0f}", f"{gains[name]:.1f}"))  # fmt: skip
    yield (f"samples/s by the size of a decoded sample; {result['rate']:g} Mbit/s",
           ("sample", ("JPEG", "right"), ("over the link", "right"), ("in memory", "right"), ("gain", "right")),
           rows)  # fmt: skip
    large = [gain for name, gain in gains.items() if result["sizes"][name]["bytes"] >= LARGE]
    if large:
        yield "aims", ("", "holds", "found"), [
            (f"from 1 MB on, memory is {AIM} times as fast", "yes" if min(large) >= AIM else "no",
             f"at least {min(large):.1f} times")]  # fmt: skip
