"""Tar shards on nginx over a link with a delay: drapps beside WebDataset and MosaicML Streaming.

All read the same images, shuffled, from the same server over the same link, in rounds that alternate.  Two kinds of
work: fetching alone, and the usual training transforms.  Of the link's rate counts what came after the first second.
"""

import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import drapps
from drapps.bench import environments, peers

from benchmarks.experiments.sophon import hosts, twins
from benchmarks.experiments.testbed.testbed import Testbed

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("webdataset", "streaming")
AIM_LINK, AIM_PEER = 0.95, 1.3
FULL = {"bytes": 1.1e9, "seconds": 12.0, "rounds": 3, "workers": [2, 4]}
QUICK = {"bytes": 6e7, "seconds": 3.0, "rounds": 1, "workers": [2]}
SHARD_BYTES = 1 << 26
WORK = {False: "fetch", True: "transforms"}


def ways(args, found):
    """(name, what it does, case): all that are measured in a round.  found: peers that are there."""
    yield "drapps", False, {"ranges": "off"}
    yield "drapps, whole files", True, {"ranges": "off"}
    yield "drapps, ranges", True, {"ranges": "auto"}
    yield "drapps, drapps serve", True, {"offload": "auto"}
    for name in found:
        for workers in args.workers:
            for ops in (False, True):
                yield f"{peers.row(name).title.split(' on ')[0]}, {workers} workers", ops, {"peer": name,
                                                                                     "workers": workers}  # fmt: skip


def prepare(args, folder, found, say):
    """Shards below root/: packed (tar, with seek points, for drapps and WebDataset), mds (for Streaming)."""
    root = folder / "root"
    images = twins.repeated(pathlib.Path(args.data).resolve(), folder / "images", args.bytes)
    root.mkdir()
    say("writing tar shards")
    drapps.read(images).pack(root / "packed", upto=0, shard_bytes=SHARD_BYTES)
    if "streaming" in found:
        say("writing MDS shards")
        case = {"bench": bench_folder(), "pack": True, "images": str(images), "out": str(root / "mds")}
        done = subprocess.run([peer_python(args, "streaming"), HERE / "remote_peer.py", json.dumps(case)],
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode:
            raise SystemExit(f"MDS shards: {done.stderr.strip()[-2000:]}")
    return root, len(twins.jpegs(images))


def bench_folder():
    return str(pathlib.Path(environments.__file__).parent)


def peer_python(args, name):
    return environments.python(args.envs, peers.row(name).environment)


def measure_way(args, bed, folder, root, ops, case):
    """The line of one child."""
    case = {**case, "ops": ops, "seconds": args.seconds}
    if "offload" in case:
        return run(bed, {**case, "source": f"{hosts.start_drapps(bed, root, args.cpus)}/packed"})
    url = hosts.start_nginx(bed, folder, root)
    if "peer" not in case:
        return run(bed, {**case, "source": f"{url}/packed/"})
    local = folder / "local"
    shutil.rmtree(local, ignore_errors=True)
    case.update(bench=bench_folder(), url=f"{url}/packed" if case["peer"] == "webdataset" else url, bucket="mds",
                local=str(local), shards=sorted(path.name for path in root.glob("packed/*.tar")))  # fmt: skip
    return hosts.run_child(bed, "remote_peer.py", case, peer_python(args, case["peer"]))[-1]


def run(bed, case):
    return hosts.run_child(bed, "remote_child.py", case)[-1]


def measure(args, folder, root, found, say):
    """[row]: one for each way and round."""
    rows = []
    for number in range(args.rounds):
        order = list(ways(args, found))
        random.Random(number).shuffle(order)
        for name, ops, case in order:
            say(f"round {number + 1} of {args.rounds}: {name}, {WORK[ops]}")
            with Testbed(args.rate * 1e6, args.delay / 1000) as bed:
                rows.append({"round": number, "way": name, "ops": ops, "peer": case.get("peer"),
                             **measure_way(args, bed, folder, root, ops, case)})  # fmt: skip
    return rows


def main(rest, make):
    parser = make("remote", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--quick", action="store_true", help="few bytes, one round: two minutes")
    for name, metavar, text in (("bytes", "N", "the set is repeated to have so many"),
                                ("seconds", "S", "of each run, after the first"), ("rounds", "N", "")):  # fmt: skip
        parser.add_argument(f"--{name}", type=type(FULL[name]), metavar=metavar,
                            help=f"{text} (default: {FULL[name]:g}; quick: {QUICK[name]:g})".strip())  # fmt: skip
    parser.add_argument("--workers", type=int, nargs="+", metavar="N", help="of the other loaders, each tried "
                        "(default: 2 4; quick: 2)")  # fmt: skip
    parser.add_argument("--rate", type=float, default=500, metavar="MBIT", help="Mbit/s of the link (default: 500)")
    parser.add_argument("--delay", type=float, default=10, metavar="MS", help="from host to host (default: 10)")
    parser.add_argument("--cpus", type=float, default=1, help="of drapps serve for ops (default: 1)")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS, metavar="PEER",
                        help="webdataset, streaming; those that `drapps bench setup` has installed")  # fmt: skip
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR", help="of the other loaders")
    args = parser.parse_args(rest)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    absent = {name: environments.missing(args.envs, peers.row(name).environment) for name in args.peers}
    found = [name for name in args.peers if not absent[name]]
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        folder = pathlib.Path(name)
        say = lambda text: print(text, file=sys.stderr)  # noqa: E731
        root, images = prepare(args, folder, found, say)
        rows = measure(args, folder, root, found, say)
    return {"experiment": "sophon remote", "rate": args.rate, "delay": args.delay, "images": images, "rows": rows,
            "missing": {name: why for name, why in absent.items() if why}}  # fmt: skip


def rates(result):
    """{(ops, way): (samples a second, share of the link's rate)}: medians of the rounds."""
    found = {}
    for row in result["rows"]:
        found.setdefault((row["ops"], row["way"]), []).append(row)
    link = result["rate"] * 1e6 / 8
    return {key: (statistics.median(row["samples"] / row["seconds"] for row in rows),
                  statistics.median(row["bytes"] / row["seconds"] / link for row in rows))
            for key, rows in sorted(found.items())}  # fmt: skip


def tables(result):
    """[(title, head, rows)] for people."""
    found = rates(result)
    names = {row["way"] for row in result["rows"] if row["peer"]}
    best = {ops: max((rate for (o, way), (rate, _) in found.items() if o == ops and way in names), default=0)
            for ops in (False, True)}  # fmt: skip
    rows = [(way, WORK[ops], f"{rate:.0f}", f"{share:.3f}", f"{rate / best[ops]:.2f}" if best[ops] else "")
            for (ops, way), (rate, share) in found.items()]  # fmt: skip
    yield (f"{result['images']} images, {result['rate']:g} Mbit/s, {2 * result['delay']:g} ms for a request",
           ("loader", "work", ("samples/s", "right"), ("of the link", "right"), ("/ better of the others", "right")),
           rows)  # fmt: skip
    if result["missing"]:
        yield "not measured", ("loader", "why"), list(result["missing"].items())
    ours = found.get((False, "drapps"))
    claims = [(f"fetching takes {AIM_LINK:g} of the link", ours[1], AIM_LINK)] if ours else []
    claims += [(f"{way}, {WORK[ops]}: {AIM_PEER:g} times the better of the others", rate / best[ops], AIM_PEER)
               for (ops, way), (rate, _) in found.items() if way not in names and best[ops]]  # fmt: skip
    yield "aims", ("", "holds", ("found", "right")), [
        (text, "yes" if value >= aim else "no", f"{value:.3f}") for text, value, aim in claims]  # fmt: skip
