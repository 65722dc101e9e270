"""What a cache in the program's memory brings over a slow link, by the size of samples: images of 10 KB to 20 MB.

Epochs over files on nginx, and over the same images in memory (cache_memory=), which an epoch has filled.  Files are
JPEGs, and the same as PPM, which is as large as the sample is.
"""

import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np
from PIL import Image

from benchmarks.experiments.sophon import hosts
from benchmarks.experiments.storage import size_sweep
from benchmarks.experiments.testbed.testbed import Testbed

CHILD = pathlib.Path(size_sweep.__file__).with_name("size_child.py")
FULL = {"rounds": 3, "epochs": 3, "seconds": 1.0, "total": 120 << 20}
QUICK = {"rounds": 1, "epochs": 1, "seconds": 0.1, "total": 10 << 20}
LARGE, AIM = 1_000_000, 10  # bytes of a file from which on the cache is to be so many times as fast


def write_sets(args, folder, say):
    """{(format, size): {"bytes", "stored", "samples", "place", "remote": [], "memory": []}}; files are below sets/."""
    found = {}
    for name in args.sizes:
        side = size_sweep.SIZES[name]
        n = int(np.clip(args.total // (side * side * 3), size_sweep.LEAST, size_sweep.MOST))
        say(f"writing {n} images of {name}")
        jpegs = folder / "sets" / f"jpeg-{side}"
        size_sweep.write_images(args.data, jpegs, side, n)
        for form, place in (("JPEG", jpegs), ("PPM", plain_copy(jpegs, folder / "sets" / f"ppm-{side}"))):
            stored = sum(path.stat().st_size for path in place.rglob("*.*")) / n
            found[form, name] = {"bytes": side * side * 3, "stored": stored, "samples": n, "place": place.name,
                                 "remote": [], "memory": []}  # fmt: skip
    return found


def plain_copy(jpegs, folder):
    """The images of a folder as PPM."""
    for path in jpegs.rglob("*.jpg"):
        place = folder / path.relative_to(jpegs).with_suffix(".ppm")
        place.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(path) as image:
            image.save(place)
    return folder


def measure(args, folder, say):
    """The sets, with samples/s of each round."""
    found = write_sets(args, folder, say)
    for number in range(args.rounds):
        for (form, name), one in found.items():
            say(f"round {number + 1} of {args.rounds}: {form}, {name}")
            hashes = set()
            for way in ("remote", "memory"):
                result = run(args, folder, one, way == "memory")
                one[way].append(statistics.median(result["rates"]))
                hashes.add(result["hash"])
                if way == "memory" and not result["kept"]:
                    raise SystemExit(f"{form}, {name}: nothing was kept in memory")
            if len(hashes) > 1:
                raise SystemExit(f"{form}, {name}: the cache gave other batches")
    return [{"form": form, "size": name, **one} for (form, name), one in found.items()]


def run(args, folder, one, in_memory):
    with Testbed(args.rate * 1e6, args.delay / 1000) as bed:
        url = hosts.start_nginx(bed, folder, folder / "sets")
        config = {"folder": f"{url}/{one['place']}/", "way": "native", "threads": len(os.sched_getaffinity(0)),
                  "epochs": args.epochs, "seconds": args.seconds,
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
    rows, large = [], []
    for one in result["sizes"]:
        gain = statistics.median(a / b for a, b in zip(one["memory"], one["remote"]))
        rows.append((one["size"], one["form"], f"{one['stored'] / 1e3:.1f} KB",
                     *(f"{statistics.median(one[way]):.0f}" for way in ("remote", "memory")), f"{gain:.1f}"))
        large += [gain] if one["stored"] >= LARGE else []
    yield (f"samples/s by the size of a decoded sample; {result['rate']:g} Mbit/s",
           ("sample", "files", *((name, "right") for name in ("each", "over the link", "in memory", "gain"))), rows)
    if large:
        yield "aims", ("", "holds", "found"), [
            (f"memory is {AIM} times as fast as files of 1 MB and more", "yes" if min(large) >= AIM else "no",
             f"at least {min(large):.1f} times")]  # fmt: skip
