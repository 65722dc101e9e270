"""Epochs over a slow link: each policy of `offload`, with each share of the store's CPU; and ranges of a plain server.

Store and client are two hosts of the testbed, each on a CPU of its own.  All ways must deliver the same batches.  The
first epoch, in which rates are measured and sizes learnt, is told apart from the later ones.
"""

import pathlib
import random
import statistics
import sys
import tempfile

from benchmarks.experiments.sophon import hosts, twins
from benchmarks.experiments.testbed.testbed import Testbed

POLICIES = ("off", "all", "resize", "fastflow", "sophon", "sophon+")
NO_CPU = ("off", "sophon+")
FULL = {"bytes": 1e8, "rate": 200.0, "quotas": [0, 0.05, 0.1, 0.2, 0.4, 0.8], "epochs": 3}
QUICK = {"bytes": 2e7, "rate": 100.0, "quotas": [0, 0.1, 0.8], "epochs": 2}
EQUAL = 1.03  # epoch times that differ by less are equal


def cases(args, quotas):
    """(quota, name, case) of a round: with no CPU the policies are one and the same, but that with segments."""
    for quota in quotas:
        for policy in args.policies if quota else [name for name in NO_CPU if name in args.policies]:
            yield quota, policy, {"offload": policy}
    if args.web:
        for ranges in ("off", "on"):
            yield None, f"nginx, ranges {ranges}", {"ranges": ranges}


def measure(args, folder, data, say):
    """[row]: one for each case and round."""
    rows, hashes = [], {}
    for number in range(args.rounds):
        order = list(cases(args, args.quotas))
        random.Random(number).shuffle(order)
        for quota, name, case in order:
            say(f"round {number + 1} of {args.rounds}: {name}, {'no ops' if quota is None else f'{quota:g} CPUs'}")
            with Testbed(args.rate * 1e6, args.delay / 1000, pin=True) as bed:
                if quota is None:
                    source = f"{hosts.start_nginx(bed, folder, data)}/"
                else:
                    source = f"{hosts.start_drapps(bed, folder / 'root', quota)}/set"
                case = {**case, "source": source, "epochs": args.epochs, "batch": 32, "step": args.step / 1000}
                epochs, last = hosts.run_epochs(bed, case)
                cpu = bed.store_cpu_seconds()
            for epoch, found in enumerate(epochs):
                same = hashes.setdefault(epoch, found["hash"])
                if same != found["hash"]:
                    raise SystemExit(f"{name}, {quota} CPUs: epoch {epoch} has other batches than the others")
            rows.append({"round": number, "quota": quota, "way": name, "epochs": epochs, "explain": last["explain"],
                         "store_cpu_s": cpu})  # fmt: skip
    return rows


def main(rest, make):
    parser = make("epochs", __doc__)
    parser.add_argument("--data", required=True, metavar="IMAGES", help="a folder of class folders with JPEGs")
    parser.add_argument("--twin", type=int, metavar="N", help="N images of the sizes of Open Images, made of them")
    parser.add_argument("--quick", action="store_true", help="few bytes and quotas: two minutes")
    for name, metavar, text in (("bytes", "N", "the set is repeated, or cut off, to have so many"),
                                ("rate", "MBIT", "Mbit/s of the link"), ("epochs", "N", "of each loader")):  # fmt: skip
        parser.add_argument(f"--{name}", type=type(FULL[name]), metavar=metavar,
                            help=f"{text} (default: {FULL[name]:g}; quick: {QUICK[name]:g})")  # fmt: skip
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="from host to host (default: 0)")
    parser.add_argument("--quotas", type=float, nargs="+", metavar="CPUS", help="CPUs of the store for ops (default: "
                        f"{' '.join(map('{:g}'.format, FULL['quotas']))})")  # fmt: skip
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES, metavar="POLICY")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--step", type=float, default=0, metavar="MS", help="that the consumer takes for a batch")
    parser.add_argument("--web", action="store_true", help="also plain files and ranges of files from nginx")
    args = parser.parse_args(rest)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.epochs < 2:
        parser.error(f"epochs must be at least 2, the first of which is told apart, got {args.epochs}")
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as name:
        folder, data = pathlib.Path(name), pathlib.Path(args.data).resolve()
        if args.twin:
            data = twins.open_images_twin(data, folder / "twin", args.twin)
        # Links would lead out of the root, where the server does not follow them: these are hard, or copies.
        data = twins.repeated(data, folder / "root" / "set", args.bytes)
        sizes = [path.stat().st_size for path in twins.jpegs(data)]
        rows = measure(args, folder, data, lambda text: print(text, file=sys.stderr))
    small = sum(size > twins.CROP_BYTES for size in sizes)
    return {"experiment": "sophon epochs", "rate": args.rate, "images": len(sizes), "bytes": sum(sizes),
            "larger_than_crop": small, "rows": rows}  # fmt: skip


def by_case(result):
    """{(quota, way): [row of each round]}."""
    found = {}
    for row in result["rows"]:
        found.setdefault((row["quota"], row["way"]), []).append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0][0] is None, item[0][0] or 0)))


def later_seconds(rows):
    return statistics.median(epoch["seconds"] for row in rows for epoch in row["epochs"][1:])


def tables(result):
    """[(title, head, rows)] for people."""
    found, shown = by_case(result), []
    plain = statistics.median(
        epoch["bytes"] for row in result["rows"] if row["way"] == "off" for epoch in row["epochs"][1:]
    )
    for (quota, way), rows in found.items():
        later = [epoch for row in rows for epoch in row["epochs"][1:]]
        prepared, gathered = (statistics.median(row["epochs"][-1][key] - row["epochs"][-2][key] for row in rows)
                              for key in ("prepared", "segments"))  # fmt: skip
        shown.append((
            "-" if quota is None else f"{quota:g}", way, f"{later_seconds(rows):.2f}",
            f"{statistics.median(row['epochs'][0]['seconds'] for row in rows):.2f}",
            f"{statistics.median(e['bytes'] for e in later) / plain:.2f}",
            f"{prepared / result['images']:.0%}", f"{gathered / result['images']:.0%}",
            f"{statistics.median(row['store_cpu_s'] for row in rows):.1f}",
        ))  # fmt: skip
    head = ("CPUs of the store", "offload", ("s, later epochs", "right"), ("s, first epoch", "right"),
            ("bytes / off", "right"), ("prepared by the store", "right"), ("in segments", "right"),
            ("its CPU s, in all", "right"))  # fmt: skip
    larger = result["larger_than_crop"] / result["images"]
    yield (f"{result['images']} images, {result['bytes'] / 1e6:.0f} MB, {larger:.1%} larger than a crop; "
           f"{result['rate']:g} Mbit/s", head, shown)  # fmt: skip
    yield "epoch times by the CPU of the store", *ordering(found)
    yield "what they say", ("", "holds", "found"), list(verdicts(found))


def ordering(found):
    """(head, rows): seconds of the later epochs, a row for each policy, a column for each quota."""
    quotas = sorted({quota for quota, _ in found if quota is not None})
    ways = [way for way in POLICIES if any((quota, way) in found for quota in quotas)]
    rows = [(way, *(f"{later_seconds(found[quota, way]):.2f}" if (quota, way) in found else "" for quota in quotas))
            for way in ways]  # fmt: skip
    return ("offload", *((f"{quota:g} CPUs", "right") for quota in quotas)), rows


def verdicts(found):
    """Rows (claim, whether it holds, figures), for the policies that were measured."""
    times = {key: later_seconds(rows) for key, rows in found.items() if key[0]}
    quotas = sorted({quota for quota, _ in times})
    for way in ("sophon", "sophon+"):
        ratios = {}
        for quota in quotas:
            others = [s for (q, other), s in times.items() if q == quota and other not in ("sophon", "sophon+")]
            if (quota, way) in times and others:
                ratios[quota] = times[quota, way] / min(others)
        if ratios:
            yield (f"{way} is best or equal to the best of the others", yes(max(ratios.values()) <= EQUAL),
                   "its time / theirs: " + listed(ratios))  # fmt: skip
    both = {quota: times[quota, "resize"] / times[quota, "off"] for quota in quotas
            if {(quota, "resize"), (quota, "off")} <= times.keys()}  # fmt: skip
    if both:
        yield ("resize is worse than off with the least CPU", yes(both[min(both)] > 1),
               "its time / that of off: " + listed(both))  # fmt: skip
    curve = [(quota, later_seconds(rows)) for (quota, way), rows in found.items() if way == "sophon+"]
    if len(curve) > 2:
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(curve, curve[1:])]
        convex = all(later >= earlier - (EQUAL - 1) * curve[0][1] / (curve[-1][0] - curve[0][0])
                     for earlier, later in zip(slopes, slopes[1:]))  # fmt: skip
        yield ("more CPU brings sophon+ less and less (convex)", yes(convex),
               "s for each CPU: " + ", ".join(f"{slope:.1f}" for slope in slopes))  # fmt: skip


def yes(holds):
    return "yes" if holds else "no"


def listed(by_quota):
    return ", ".join(f"{value:.2f} with {quota:g}" for quota, value in by_quota.items())
