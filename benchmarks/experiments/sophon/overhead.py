"""What it costs to learn sizes and times of samples in the first epoch: offload="auto" beside "off", nothing prepared.

The link is fast, so that the client's CPU limits the epoch, samples are learnt, and none is prepared by the store.
Rounds alternate; each run is a process with one epoch.
"""

import pathlib
import sys
import tempfile

from benchmarks.experiments.sophon import hosts, twins
from benchmarks.experiments.statistics import equivalence
from benchmarks.experiments.testbed.testbed import Testbed

MARGIN = 0.01
RATE = 10e9  # bits a second: no bottleneck
LEARNING = "measuring"  # the phase in which samples are learnt and nothing is prepared


def measure(args, root, say):
    """[{way: line of the child}]: one for each round."""
    rounds = []
    for number in range(args.rounds):
        found = {}
        for way in (("off", "auto"), ("auto", "off"))[number % 2]:
            say(f"round {number + 1} of {args.rounds}: {way}")
            with Testbed(RATE, pin=True) as bed:
                case = {"source": f"{hosts.start_drapps(bed, root, 1)}/set", "offload": way, "workers": 1, "epochs": 1,
                        "batch": 32, "step": 0}  # fmt: skip
                found[way] = hosts.run_epochs(bed, case)[0][0]
        if found["auto"]["hash"] != found["off"]["hash"]:
            raise SystemExit("offload=auto gave other batches than off")
        rounds.append(found)
    return rounds


def main(rest, make):
    parser = make("overhead", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--bytes", type=float, default=3e8, help="the set is repeated to have so many (default: 3e8)")
    parser.add_argument("--rounds", type=int, default=16)
    args = parser.parse_args(rest)
    if args.rounds < 2:
        parser.error(f"rounds must be at least 2, got {args.rounds}")
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        root = pathlib.Path(name, "root")
        twins.repeated(pathlib.Path(args.data).resolve(), root / "set", args.bytes)
        rounds = measure(args, root, lambda text: print(text, file=sys.stderr))
    return {"experiment": "sophon overhead", "rounds": rounds}


def tables(result):
    """[(title, head, rows)] for people."""
    rounds, rows = result["rounds"], []
    learnt = [one for one in rounds if one["auto"]["phase"] == LEARNING and not one["auto"]["prepared"]]
    if len(learnt) < 2:
        yield f"{len(learnt)} of {len(rounds)} epochs learnt throughout: too few", (), []
        return
    for name, key in (("time of the epoch", "seconds"), ("CPU time of the client", "cpu_s")):
        found = equivalence([one["auto"][key] / one["off"][key] for one in learnt], MARGIN)
        rows.append((name, f"{found.ratio - 1:+.2%}", f"{found.low - 1:+.2%} to {found.high - 1:+.2%}"))
    yield (f"first epoch of {rounds[0]['off']['samples']} samples, auto / off; {len(learnt)} of {len(rounds)} pairs, "
           "those that learnt throughout and prepared nothing",
           ("", ("mean", "right"), "90 % interval"), rows)  # fmt: skip
