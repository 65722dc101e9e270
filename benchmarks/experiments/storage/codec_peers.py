"""Codecs of drapps beside zstd, lz4, blosc2 and pcodec: ratio and speed of one thread on the same arrays.

Each library runs in a process of its own, in rounds; the figures are medians.  A codec of another library is matched
where one of drapps' has at least 95 % of its ratio and of its decoding speed.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.experiments.storage import codec_data
from drapps.bench import environments

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codec_child.py")
PEERS = ("zstd", "lz4", "blosc2", "pcodec")
NEAR = 0.95


def run_child(library, array, seconds, envs):
    python = environments.python(envs, "" if library == "drapps" else "codecs")
    done = subprocess.run([python, CHILD, library, array, str(seconds)], capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise SystemExit(f"{library}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def measure(data, rounds, seconds, envs, say):
    """[{kind, library, codec, ratio, encode, decode}], medians over the rounds."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        kinds = codec_data.write(data, folder)
        for number in range(rounds):
            for kind in kinds:
                for library in ("drapps", *PEERS):
                    say(f"round {number + 1} of {rounds}: {kind}, {library}")
                    for row in run_child(library, os.path.join(folder, f"{kind}.npy"), seconds, envs):
                        found.setdefault((kind, library, row["codec"]), []).append(row)
    return [{"kind": kind, "library": library, "codec": codec, "ratio": rows[0]["ratio"],
             "encode": statistics.median(row["encode"] for row in rows),
             "decode": statistics.median(row["decode"] for row in rows)}
            for (kind, library, codec), rows in found.items()]  # fmt: skip


def front(rows):
    """The rows that no other of the same library beats in both ratio and decoding speed."""
    return [row for row in rows if not any(
        other["ratio"] >= row["ratio"] and other["decode"] >= row["decode"] and other is not row for other in rows)]


def matches(row, ours):
    """The codec of drapps that matches a codec of another library, the fastest; None: it is ahead."""
    near = [own for own in ours if own["ratio"] >= NEAR * row["ratio"] and own["decode"] >= NEAR * row["decode"]]
    return max(near, key=lambda own: own["decode"], default=None)


def verdicts(rows):
    """[(row, the match or None)] for all codecs of the others that are on their library's front, by kind."""
    result = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        ours = [row for row in rows if row["kind"] == kind and row["library"] == "drapps"]
        for library in PEERS:
            theirs = [row for row in rows if row["kind"] == kind and row["library"] == library]
            result += [(row, matches(row, ours)) for row in front(theirs)]
    return result


def main(argv, make_parser):
    parser = make_parser("codecs", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder with texts, images, volumes and tables")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of measuring each direction of a codec (0.3)")
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR")
    args = parser.parse_args(argv)
    reason = environments.missing(args.envs, "codecs")
    if reason:
        raise SystemExit(reason)
    rows = measure(args.data, args.rounds, args.seconds, args.envs, lambda text: print(text, file=sys.stderr))
    return {"experiment": "storage codecs", "rows": rows}


def tables(result):
    """[(title, head, rows)] for people."""
    def speed(value):
        return f"{value / 1e6:.0f}"

    for kind in dict.fromkeys(row["kind"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["kind"] == kind]
        on_front = front(rows)
        head = ("library", "codec", ("ratio", "right"), ("encode MB/s", "right"), ("decode MB/s", "right"), "front")
        yield (kind, head,
               [(row["library"], row["codec"], f"{row['ratio']:.2f}", speed(row["encode"]), speed(row["decode"]),
                 "yes" if row in on_front else "") for row in sorted(rows, key=lambda row: -row["decode"])])
    yield ("codecs of others, and what of drapps matches them",
           ("data", "library", "codec", ("ratio", "right"), ("decode MB/s", "right"), "drapps"),
           [(row["kind"], row["library"], row["codec"], f"{row['ratio']:.2f}", speed(row["decode"]),
             f"{own['codec']} {own['ratio']:.2f} {speed(own['decode'])}" if own else "nothing")
            for row, own in verdicts(result["rows"])])  # fmt: skip
