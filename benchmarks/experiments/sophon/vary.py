"""A link whose rate varies: what offload plans while the link is fast, slow and fast again.

The rate follows a trace of (seconds, Mbit/s), over and over.  The adaptive loader is compared with one that sends
samples as they are stored and one that offloads a fixed prefix; all must deliver the same batches.
"""

import pathlib
import sys
import tempfile
import threading

from benchmarks.experiments.sophon import hosts, twins
from benchmarks.experiments.testbed.testbed import Testbed

TRACE = "10:400,15:40,10:400,15:100"


def parse_trace(text):
    """[(seconds, bits a second)] of "10:400,15:40"."""
    try:
        found = [(float(seconds), float(rate) * 1e6) for seconds, rate in (part.split(":") for part in text.split(","))]
    except ValueError:
        found = []
    if not found or min(min(pair) for pair in found) <= 0:
        raise SystemExit(f"trace must be SECONDS:MBIT,..., all above 0, got {text!r}")
    return found


class Weather(threading.Thread):
    """Changes the rate of a testbed's link while it is not ended."""

    def __init__(self, bed, trace):
        super().__init__(daemon=True)
        self.bed, self.trace, self.over = bed, trace, threading.Event()

    def run(self):
        while True:
            for seconds, rate in self.trace:
                self.bed.set_rate(rate)
                if self.over.wait(seconds):
                    return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.join()


def measure(args, folder, trace, say):
    """[row]: one for each way."""
    rows = []
    for way in args.ways:
        say(way)
        with Testbed(trace[0][1], pin=True) as bed:
            source = f"{hosts.start_drapps(bed, folder / 'root', args.cpus)}/set"
            case = {"source": source, "offload": way, "epochs": args.epochs, "batch": 32, "step": args.step / 1000,
                    "trace": str(folder / f"{way}.drtrace")}  # fmt: skip
            with Weather(bed, trace):
                epochs, last = hosts.run_epochs(bed, case)
        rows.append({"way": way, "epochs": epochs, **last})
    for epoch in range(args.epochs):
        if len({row["epochs"][epoch]["hash"] for row in rows}) > 1:
            raise SystemExit(f"epoch {epoch}: ways gave different batches")
    return rows


def main(rest, make):
    parser = make("vary", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--bytes", type=float, default=1e8, help="the set is repeated to have so many (default: 1e8)")
    parser.add_argument("--trace", default=TRACE, help=f"SECONDS:MBIT,... (default: {TRACE})")
    parser.add_argument("--ways", nargs="+", default=["off", "resize", "sophon+"], help="of offload, to compare")
    parser.add_argument("--cpus", type=float, default=1, help="of the store for ops (default: 1)")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--step", type=float, default=100, metavar="MS",
                        help="that the consumer takes for a batch (default: 100)")  # fmt: skip
    args = parser.parse_args(rest)
    trace = parse_trace(args.trace)
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        folder = pathlib.Path(name)
        twins.repeated(pathlib.Path(args.data).resolve(), folder / "root" / "set", args.bytes)
        rows = measure(args, folder, trace, lambda text: print(text, file=sys.stderr))
    return {"experiment": "sophon vary", "trace": args.trace, "rows": rows}


def tables(result):
    """[(title, head, rows)] for people."""
    rows = result["rows"]
    head = ("offload", ("s in all", "right"), ("MB received", "right"), ("prepared by the store", "right"),
            ("plans", "right"), "share of the samples in each plan")  # fmt: skip
    yield (f"{len(rows[0]['epochs'])} epochs of {rows[0]['epochs'][0]['samples']} samples, Mbit/s {result['trace']}",
           head, [(row["way"], f"{sum(epoch['seconds'] for epoch in row['epochs']):.1f}",
                   f"{sum(epoch['bytes'] for epoch in row['epochs']) / 1e6:.0f}",
                   f"{row['epochs'][-1]['prepared'] / sum(epoch['samples'] for epoch in row['epochs']):.0%}",
                   len(row["plans"]), shares(row["plans"])) for row in rows])  # fmt: skip


def shares(plans):
    """ "3 s: 20 %, 12 s: 80 %": where plans differ by a tenth from the one before."""
    shown, last = [], None
    for plan in plans:
        share = plan["samples"] / max(plan["of"], 1)
        if last is None or abs(share - last) > 0.1:
            shown.append(f"{plan['at']:.0f} s: {share:.0%}")
            last = share
    return ", ".join(shown)
