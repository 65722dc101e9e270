"""The first stage of the profiler over a remote set: three accelerators, and three workloads with a known bottleneck.

Accelerators of three speeds behind the same link: how busy is each, as predicted and as measured over an epoch?
Workloads that are bound by the accelerator, by the link and by the CPU: are they named rightly, and is nothing
offloaded but where the link is the bottleneck?
"""

import pathlib
import sys
import tempfile

from benchmarks.experiments.sophon import hosts, twins
from benchmarks.experiments.testbed.testbed import Testbed

FASTER = (0.7, 1.5, 2.9)  # accelerators: times the link's rate of samples
BLURS = 40  # ops that make the CPU the bottleneck
FULL = {"bytes": 1e8, "rate": 100.0, "batches": 50}
QUICK = {"bytes": 1e7, "rate": 50.0, "batches": 8}
MOST_BATCHES = 150


def cases(args, sample_bytes):
    """(name, expected bound or None, bits a second, case)."""
    link = args.rate * 1e6
    for factor in FASTER:
        step = args.batch / (factor * link / 8 / sample_bytes)
        yield f"accelerator of {factor:g} times the link", None, link, {"step": step, "offload": "off"}
    slow = 3 * args.batch / (link / 8 / sample_bytes)
    yield "slow accelerator", "accelerator-bound", link, {"step": slow}
    yield "slow link", "I/O-bound", link, {"step": 0.001}
    yield "costly ops", "CPU-bound", 20 * link, {"step": 0.001, "blurs": BLURS}


def measure(args, root, sample_bytes, say):
    rows = []
    for name, expected, rate, case in cases(args, sample_bytes):
        say(name)
        with Testbed(rate, pin=True) as bed:
            source = f"{hosts.start_drapps(bed, root, 1)}/set"
            case = {"offload": "auto", "blurs": 0, "batches": args.batches, "batch": args.batch, "epochs": args.epochs,
                    **case, "source": source}  # fmt: skip
            rows.append({"name": name, "expected": expected, "step": case["step"],
                         **hosts.run_child(bed, "stage_child.py", case)[-1]})  # fmt: skip
    return rows


def main(rest, make):
    parser = make("stages", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--quick", action="store_true", help="few bytes and batches")
    for name, metavar, text in (("bytes", "N", "the set is repeated, or cut off, to have so many"),
                                ("rate", "MBIT", "Mbit/s of the link"),
                                ("batches", "N", "of each stage, at most")):  # fmt: skip
        parser.add_argument(f"--{name}", type=type(FULL[name]), metavar=metavar,
                            help=f"{text} (default: {FULL[name]:g}; quick: {QUICK[name]:g})")  # fmt: skip
    parser.add_argument("--batch", type=int, default=32, help="samples of a batch (default: 32)")
    parser.add_argument("--epochs", type=int, default=1, help="that are measured beside the prediction (default: 1)")
    args = parser.parse_args(rest)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        root = pathlib.Path(name, "root")
        folder = twins.repeated(pathlib.Path(args.data).resolve(), root / "set", args.bytes)
        sizes = [path.stat().st_size for path in twins.jpegs(folder)]
        rows = measure(args, root, sum(sizes) / len(sizes), lambda text: print(text, file=sys.stderr))
    return {"experiment": "sophon stages", "rate": args.rate, "images": len(sizes), "rows": rows}


def tables(result):
    """[(title, head, rows)] for people."""
    right = [(name, "right") for name in ("accelerator", "fetch", "preprocess")]
    yield (f"samples/s of each stage; {result['images']} images, {result['rate']:g} Mbit/s",
           ("workload", *right, "found", ("batches", "right"), ("prepared by the store", "right")),
           [(row["name"], *(f"{row[stage]:.0f}" for stage, _ in right), row["bound"], sum(row["batches"].values()),
             row["prepared"]) for row in result["rows"]])  # fmt: skip
    accelerators = [row for row in result["rows"] if row["expected"] is None]
    yield ("use of the accelerator", ("", ("predicted", "right"), ("measured", "right")),
           [(row["name"], f"{row['utilisation']:.2f}", f"{row['measured_utilisation']:.2f}")
            for row in accelerators])  # fmt: skip
    named = [row for row in result["rows"] if row["expected"]]
    orders = [[row[key] for row in accelerators] for key in ("utilisation", "measured_utilisation")]
    spent = max(sum(row["batches"].values()) for row in result["rows"])
    yield "what they say", ("", "holds", "found"), [
        ("workloads are named rightly", yes(all(row["bound"] == row["expected"] for row in named)),
         ", ".join(f"{row['name']}: {row['bound']}" for row in named)),
        ("only behind a slow link does the store prepare samples",
         yes(all(row["prepared"] == 0 for row in named if row["expected"] != "I/O-bound")),
         ", ".join(f"{row['name']}: {row['prepared']}" for row in named)),
        ("a faster accelerator is used less, as predicted",
         yes(all(order == sorted(order, reverse=True) for order in orders)), ""),
        (f"at most {MOST_BATCHES} batches are spent", yes(spent <= MOST_BATCHES), str(spent)),
    ]  # fmt: skip


def yes(holds):
    return "yes" if holds else "no"
