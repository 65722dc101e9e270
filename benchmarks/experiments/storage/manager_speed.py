"""The compression manager beside every fixed codec, where CPU time or bandwidth is short, and when they are taken.

Corners: all CPUs or few, storage as fast as memory or slow.  In each corner the manager fills a cache folder and reads
it for some epochs; each fixed codec reads a folder that it has filled before.  All give the same bytes.  Rounds go
over all corners, and in each over all ways in a new order, so that what changes on the machine meets all of them.
After some rounds, codecs that are far slower than the best fixed one of a corner are not measured there any more.

Moves: one loader keeps new samples while CPUs, and then bandwidth, are taken away and given back.  The manager should
choose codecs that decompress faster where CPUs are short, and denser ones where bandwidth is.
"""

import contextlib
import math
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile

from benchmarks.experiments.statistics import equivalence
from benchmarks.experiments.storage import manager_child
from benchmarks.experiments.storage.kept_results import KeptResults
from benchmarks.experiments.storage.scarce import Bandwidth, Child, Cpu
from benchmarks.experiments.storage.storage_command import add_results

MANAGER = "manager"
FULL = {"rounds": 12, "samples": 96, "epochs": 1, "seconds": 0.6, "phase_samples": 240, "move_rounds": 3}
QUICK = {"rounds": 2, "samples": 48, "epochs": 1, "seconds": 0.3, "phase_samples": 96, "move_rounds": 1}
MARGIN = 0.05  # "not worse by more than": beside the plain comparison
TRIED = 3  # rounds in which all codecs are measured
SAME = 0.02  # of v and rho: means this close are no move
FAR = 0.75  # of the best fixed codec's median: slower ones are left out then


class Setup:
    """Folders, and the limits that children get."""

    def __init__(self, args, work):
        self.args, self.work, self.data = args, pathlib.Path(work), str(pathlib.Path(args.data).resolve())
        self.bandwidth = Bandwidth(work, self.work / "cache-")
        self._numbers = 0

    def run(self, config, cpu, bytes_per_s):
        """The result of a child in one state of the machine."""
        with self._open(config) as child, cpu.taken(child.pid):
            self.bandwidth.set(bytes_per_s)
            child.line()
            child.go_on()
            return child.line()

    def _open(self, config):
        trace = self.work / "run.drtrace"
        trace.unlink(missing_ok=True)
        config = {"data": self.data, "trace": str(trace), "take": self.args.samples, **config}
        return Child("manager_child.py", config, self.bandwidth.environment())

    def folder(self, name=None):
        """A folder for samples; without a name, a new one."""
        self._numbers += 1
        return str(self.work / f"cache-{name or self._numbers}")

    def run_phases(self, kind, phases):
        """What was chosen in each phase of one child, and why at its end; phases: [(name, Cpu, bytes/s)]."""
        folder = self.folder()
        names = [name for name, *_ in phases]
        each = self.args.phase_samples
        config = {"task": "phases", "kind": kind, "folder": folder, "phases": names, "samples": each,
                  "take": each * len(phases)}  # fmt: skip
        with self._open(config) as child, contextlib.ExitStack() as stack:
            self.bandwidth.set(0)
            child.line()
            child.go_on()
            for _, cpu, bytes_per_s in phases:
                child.line()
                stack.close()
                stack.enter_context(cpu.taken(child.pid))
                self.bandwidth.set(bytes_per_s)
                child.go_on()
            found = child.line()
        shutil.rmtree(folder)
        return {name: {**second_half(events), "why": why}
                for name, events, why in zip(names, found["phases"], found["whys"])}  # fmt: skip


# --- corners ---


def corners(args):
    """{name: (Cpu, bytes/s)}"""
    cpus = {"CPU rich": Cpu(""), "CPU poor": Cpu(args.cpu_poor)}
    storage = {"I/O rich": args.io_rich, "I/O poor": args.io_poor}
    return {f"{c}, {s}": (cpus[c], storage[s]) for c in cpus for s in storage}


def measure(setup, kinds, places, kept, say):
    """{kind: {corner: {way: {round: result}}}}; rounds that there was no time for are missing."""
    found = {kind: {corner: {} for corner in places} for kind in kinds}
    folders = {}
    for number in range(setup.args.rounds):
        for kind in kinds:
            for corner, (cpu, bytes_per_s) in places.items():
                there = found[kind][corner]
                ways = [MANAGER, *in_race(there)] if number >= TRIED else [MANAGER, *manager_child.CODECS]
                for way in random.Random(f"{number} {corner}").sample(ways, len(ways)):
                    def run(kind=kind, corner=corner, cpu=cpu, bytes_per_s=bytes_per_s, way=way):
                        say(f"round {number + 1} of {setup.args.rounds}: {kind}, {corner}, {way}")
                        return _run(setup, folders, kind, way, cpu, bytes_per_s, say)

                    result = kept.get(("corner", kind, corner, number, way), run)
                    if result is None:
                        return _checked(found)
                    there.setdefault(way, {})[number] = result
    return _checked(found)


def in_race(ways):
    """The codecs of a corner that are not far behind the best one, by the rounds so far; what they were is the same
    when results are read again."""
    middle = {way: statistics.median(rate(ways[way][number]) for number in range(TRIED)) for way in ways
              if way != MANAGER}  # fmt: skip
    return [way for way in manager_child.CODECS if middle[way] >= FAR * max(middle.values())]


def rate(result):
    """Samples a second of one run."""
    return statistics.median(result["rates"])


def _run(setup, folders, kind, way, cpu, bytes_per_s, say):
    """One way in one corner; a fixed codec's folder is filled when it is needed first."""
    args = setup.args
    if way == MANAGER:
        folder = setup.folder()
        result = setup.run(_config(kind, way, folder, args.epochs, args.seconds), cpu, bytes_per_s)
        shutil.rmtree(folder)
        return result
    if (kind, way) not in folders:
        say(f"{kind}: filling with {way}")
        folders[kind, way] = setup.folder(f"{kind}-{way}")
        setup.run(_config(kind, way, folders[kind, way], 0), Cpu(""), 0)
    return setup.run(_config(kind, way, folders[kind, way], args.epochs, args.seconds), cpu, bytes_per_s)


def _checked(found):
    """The results, which are of the same bytes for each kind."""
    for kind, places in found.items():
        results = [result for ways in places.values() for rounds in ways.values() for result in rounds.values()]
        if len({result["hash"] for result in results}) > 1:
            raise SystemExit(f"{kind}: codecs gave different bytes")
    return found


def _config(kind, codec, folder, epochs, seconds=0.0):
    return {"task": "epochs", "kind": kind, "codec": codec, "folder": folder, "epochs": epochs, "seconds": seconds}


def judge(ways):
    """The manager beside the fixed codec that was fastest: {"best", "ratio", "low", "high", ...}, by the rounds in
    which both were measured; ways: {way: {round: result}}."""
    rates = {way: {number: rate(result) for number, result in results.items()} for way, results in ways.items()}
    middle = {way: statistics.median(values.values()) for way, values in rates.items()}
    most = max(len(values) for way, values in rates.items() if way != MANAGER)
    lasting = [way for way in rates if way != MANAGER and len(rates[way]) >= most - 1]  # the others were far behind
    best = max(lasting, key=middle.get)
    found = {"best": best, "rates": middle}
    ratios = [rates[MANAGER][number] / rates[best][number] for number in rates[MANAGER] if number in rates[best]]
    if len(ratios) < 2:
        return {**found, "ratio": ratios[0] if ratios else 0.0, "rounds": len(ratios), "verdict": "too few rounds"}
    test = equivalence(ratios, MARGIN)
    verdict = "worse" if test.high < 1 else "better" if test.low > 1 else "not worse"
    return {**found, "ratio": test.ratio, "low": test.low, "high": test.high, "within_margin": test.at_least,
            "rounds": len(ratios), "noise": statistics.stdev(map(math.log, rates[best].values())),
            "verdict": verdict}  # fmt: skip


# --- moves ---


def phases_of(args):
    """[(name, Cpu, bytes/s)]: CPUs are taken where storage is neither fast nor slow, bandwidth where CPUs are free."""
    free, few = Cpu(""), Cpu(args.cpu_poor)
    return [("all there", free, args.io_middle), ("CPU taken", few, args.io_middle),
            ("CPU back", free, args.io_middle), ("bandwidth back", free, args.io_rich),
            ("bandwidth taken", free, args.io_poor), ("all back", free, args.io_rich)]  # fmt: skip


def second_half(events):
    """What one phase came to: choices of the best, means of v and rho (docs/cache.md) of these."""
    late = [event for event in events[len(events) // 2 :] if event["why"] == "best"]
    chosen = [next(t for t in event["terms"] if t["codec"] == event["codec"]) for event in late]
    return {"choices": manager_child.counted(late)["best"],
            "v": statistics.fmean(t["v"] for t in chosen) if chosen else None,
            "rho": statistics.fmean(t["rho"] for t in chosen) if chosen else None}  # fmt: skip


MOVES = (  # (phase, the one before, term that should grow, what that means)
    ("CPU taken", "all there", "v", "faster to decompress"),
    ("bandwidth taken", "bandwidth back", "rho", "denser"),
)


def moves(rounds):
    """[(what was taken, term, before, after, verdict)], means over the rounds."""
    for taken, before, term, text in MOVES:
        a, b = ([r[phase][term] for r in rounds if r[phase][term] is not None] for phase in (before, taken))
        if not a or not b:
            yield taken, term, None, None, "nothing was chosen"
            continue
        a, b = statistics.fmean(a), statistics.fmean(b)
        yield taken, term, a, b, "as before" if abs(b - a) < SAME else text if b > a else f"not {text}"


def measure_moves(setup, kinds, kept, say):
    """{kind: [phases of each round]}"""
    found = {kind: [] for kind in kinds}
    for number in range(setup.args.move_rounds):
        for kind in kinds:
            def run(kind=kind):
                say(f"{kind}: moves, {number + 1} of {setup.args.move_rounds}")
                return setup.run_phases(kind, phases_of(setup.args))

            result = kept.get(("moves", kind, number), run)
            if result is not None:
                found[kind].append(result)
    return found


# --- command ---


def main(argv, make_parser):
    parser = make_parser("manager", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="a folder of images, a folder for each class")
    parser.add_argument("--quick", action="store_true", help="few samples and rounds: some minutes")
    for name, text in (("rounds", "of the corners"), ("samples", "of the data set"), ("epochs", "measured in a run"),
                       ("seconds", "of each of these at least; short epochs are repeated"),
                       ("phase-samples", "kept in each phase of the moves"), ("move-rounds", "of the moves")):
        full, quick = (form[name.replace("-", "_")] for form in (FULL, QUICK))
        parser.add_argument(f"--{name}", type=type(full), metavar="N", help=f"{text} ({full}; quick: {quick})")
    parser.add_argument("--kinds", default="floats,pixels", help="what is kept: floats,pixels")
    parser.add_argument("--cpu-poor", default="quota:0.5", metavar="quota:CPUS|burn:THREADS",
                        help="how CPU time is taken (quota:0.5); a quota needs a writable control group")  # fmt: skip
    parser.add_argument("--io-rich", type=float, default=0, metavar="BYTES/S", help="0: the page cache (0)")
    parser.add_argument("--io-middle", type=float, default=800e6, metavar="BYTES/S",
                        help="while CPUs are taken (800e6)")  # fmt: skip
    parser.add_argument("--io-poor", type=float, default=62.5e6, metavar="BYTES/S", help="(62.5e6, as PRESTO's)")
    parser.add_argument("--only", choices=("corners", "moves"))
    parser.add_argument("--work", metavar="DIR", help="where samples are kept meanwhile")
    add_results(parser)
    args = parser.parse_args(argv)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.quick and args.kinds == "floats,pixels":
        args.kinds = "floats"
    kinds = args.kinds.split(",")
    names = ("data", "samples", "epochs", "seconds", "phase_samples", "cpu_poor", "io_rich", "io_middle", "io_poor")
    settings = {name.replace("_", "-"): getattr(args, name) for name in names}
    kept = KeptResults(args, settings)
    result = {"experiment": "storage manager", **settings, "cpus": len(os.sched_getaffinity(0)), "corners": {},
              "moves": {}}  # fmt: skip

    def say(text):
        print(text, file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="drapps-storage-", dir=args.work) as work:
        setup = Setup(args, work)
        if args.only != "corners":
            result["moves"] = measure_moves(setup, kinds, kept, say)
        if args.only != "moves":
            result["corners"] = measure(setup, kinds, corners(args), kept, say)
    return result


def tables(result):
    """[(title, head, rows)] for people."""
    codecs = list(manager_child.CODECS)
    head = ("kept", "corner", *((name, "right") for name in (*codecs, MANAGER)), "best", ("rounds", "right"),
            ("manager / best", "right"), "90 %", "verdict")  # fmt: skip
    rows, chosen = [], []
    for kind, corners_of in result["corners"].items():
        for corner, ways in corners_of.items():
            if MANAGER not in ways or len(ways) < 2:
                continue
            found = judge(ways)
            between = f"{found['low']:.3f} to {found['high']:.3f}" if "low" in found else "-"
            rates = (f"{found['rates'][way]:.0f}" if way in found["rates"] else "-" for way in (*codecs, MANAGER))
            rows.append((kind, corner, *rates, found["best"], str(found["rounds"]), f"{found['ratio']:.3f}", between,
                         found["verdict"]))  # fmt: skip
            runs = list(ways[MANAGER].values())
            chosen.append((kind, corner, _choices_text([run["choices"]["best"] for run in runs]),
                           _choices_text([run["choices"]["probe"] for run in runs]),
                           f"{statistics.fmean(run['share'] for run in runs):.2f}",
                           f"{statistics.median(run['fill_s'] for run in runs):.1f} s"))  # fmt: skip
    if rows:
        yield "samples a second, later epochs (medians)", head, rows
        yield ("what the manager chose", ("kept", "corner", "as the best", "to measure it", ("stored / raw", "right"),
                                          ("first epoch", "right")), chosen)  # fmt: skip
    rows = []
    for kind, rounds in result["moves"].items():
        for phase in rounds[0] if rounds else ():
            rows.append((kind, phase, _choices_text([r[phase]["choices"] for r in rounds]),
                         *(_mean_text([r[phase][term] for r in rounds]) for term in ("v", "rho"))))  # fmt: skip
    if rows:
        head = ("kept", "phase", "choices", ("v", "right"), ("rho", "right"))
        yield "choices in the second half of each phase", head, rows
        head = ("kept", "what happened", "term", ("before", "right"), ("then", "right"), "verdict")
        yield "moves", head, [(kind, taken, term, _mean_text([a]), _mean_text([b]), verdict)
                              for kind, rounds in result["moves"].items() if rounds
                              for taken, term, a, b, verdict in moves(rounds)]  # fmt: skip


def _choices_text(rounds):
    """{codec: n} of some rounds as "zstd 80 %, lz4 20 %"."""
    total = {}
    for one in rounds:
        for codec, n in one.items():
            total[codec] = total.get(codec, 0) + n
    every, most_first = sum(total.values()), sorted(total.items(), key=lambda one: -one[1])
    return ", ".join(f"{codec} {100 * n / every:.0f} %" for codec, n in most_first) or "-"


def _mean_text(values):
    values = [value for value in values if value is not None]
    return f"{statistics.fmean(values):.2f}" if values else "-"
