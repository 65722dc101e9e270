"""The planner's choice beside an exhaustive measurement of every strategy over the whole data set.

Exhaustive: every strategy that the planner knows is made of all samples, and measured in every round.  The planner
then has a tenth of that time.  At last its choices, the best strategy of the exhaustive measurement and the untouched
pipeline are measured side by side, in rounds: the highest of many noisy means is too high, so that it is not what a
choice is compared with.  All strategies give the same batches; one that does not is left out and named.
"""

import statistics
import sys

from benchmarks.experiments.statistics import equivalence
from benchmarks.experiments.storage import plan_pipelines
from benchmarks.experiments.storage.kept_results import KeptResults
from benchmarks.experiments.storage.storage_command import add_results
from drapps.plan.outcome import sorted_rows
from drapps.plan.plan_text import AS_IT_IS
from drapps.plan.planner import Planner
from drapps.plan.racing import Outcome, Race
from drapps.plan.scoring import Weights

FULL = {"samples": 160, "rounds": 3, "plans": 3, "pairs": 12}
QUICK = {"samples": 40, "rounds": 1, "plans": 1, "pairs": 1}
SHARE = 0.1  # of the exhaustive measurement's time: what the planner may take
BUDGET = 0.09  # of it: what it is given, as it ends a bit late
NEAR = 0.95
NO_LIMIT = 1e6  # seconds


class Every(Race):
    """Measures each arm in each round, and gives none up."""

    def run(self):
        for done in range(self._rounds):
            order = list(self.entries.values())
            if done:
                self._random.shuffle(order)
            for entry in order:
                value = None if entry.why_out else self._measure(entry.name, 0.0)
                if value is None:
                    entry.why_out = "refused"
                else:
                    entry.values.append(value)
        return Outcome(self.entries, "every strategy was measured in every round", self._rounds)


class Exhaustive(Planner):
    """Measures all strategies, or some, over the whole data set."""

    race = Every

    def __init__(self, pipe, rounds, only=(), **more):
        self._only = set(only)  # names
        super().__init__(pipe, budget=NO_LIMIT, samples=len(pipe), rounds=rounds, drop_caches=False, seed=0, **more)

    def _strategies(self):
        return [s for s in super()._strategies() if not self._only or s.name in self._only]


def measure(name, pipe, args, kept, say):
    """What the exhaustive measurement, the plans and the comparison found for a pipeline; None: no time was left."""
    common = {"objective": Weights(), "options": {"batch_size": args.batch_size}, "work": args.work, "memory": None,
              "tell": lambda text: None}  # fmt: skip

    def exhaustive():
        say("exhaustive")
        return described(Exhaustive(pipe, args.rounds, **common).run(), pipe)

    def plan(seed):
        budget = BUDGET * every["seconds"]
        say(f"plan {seed + 1} of {args.plans}, {budget:.1f} s")
        found = Planner(pipe, budget=budget, rounds=5, samples=None, seed=seed, drop_caches=False, **common).run()
        return {"chosen": found.chosen and found.chosen.name, "seconds": found.facts["seconds"],
                "samples": found.facts["measured_samples"], "strategies": len(found.rows)}  # fmt: skip

    def pairs():
        say(f"side by side, {args.pairs} rounds")
        names = {every["best"], AS_IT_IS.name, *(one["chosen"] for one in plans if one["chosen"])}
        rows = Exhaustive(pipe, args.pairs, names, **common).run().rows
        return {"values": {row.strategy.name: list(row.values) for row in rows}}

    every, plans = kept.get(("exhaustive", name), exhaustive), []
    for seed in range(args.plans if every else 0):
        plans.append(kept.get(("plan", name, seed), lambda seed=seed: plan(seed)))
    beside_each_other = kept.get(("pairs", name), pairs) if every and None not in plans else None
    return beside_each_other and {**every, **beside_each_other, "plans": plans}


def described(every, pipe):
    """The result of an exhaustive measurement."""
    return {"samples": len(pipe), "measured": every.facts["measured_samples"], "seconds": every.facts["seconds"],
            "best": every.chosen.name, "untouched": AS_IT_IS.name,
            "strategies": [{"name": row.strategy.name, "values": list(row.values), "storage": row.storage.mid,
                            "preparation": row.preparation.mid} for row in sorted_rows(every.rows)],
            "refused": {strategy.name: why for strategy, why in every.refused.items()}}  # fmt: skip


def beside(values, name, other):
    """(ratio, low, high) of two strategies over the rounds; the bounds are None after one round."""
    ratios = [a / b for a, b in zip(values[name], values[other])]
    if len(ratios) < 2:
        return ratios[0], None, None
    if name == other:
        return 1.0, 1.0, 1.0
    test = equivalence(ratios)
    return test.ratio, test.low, test.high


def main(argv, make_parser):
    parser = make_parser("planner", __doc__)
    parser.add_argument("--data", required=True, metavar="DIR",
                        help="a folder with the folders imagenet, photos, volumes and text")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="few samples and rounds: some minutes, and no verdict")
    for name, text in (("samples", "of photographs; a quarter of large ones and volumes"),
                       ("rounds", "of the exhaustive measurement"), ("plans", "by other samples each"),
                       ("pairs", "rounds of the comparison")):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"{text} ({FULL[name]}; quick: {QUICK[name]})")
    parser.add_argument("--pipelines", default=",".join(plan_pipelines.PIPELINES), help="which of them (all)")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--work", metavar="DIR", help="where strategies are tried, on the disk that is meant")
    add_results(parser)
    args = parser.parse_args(argv)
    for name, value in (QUICK if args.quick else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    kept = KeptResults(args, {name.replace("_", "-"): getattr(args, name) for name in
                              ("data", "samples", "rounds", "pairs", "batch_size")})  # fmt: skip
    found = {}
    for name in args.pipelines.split(","):
        if name not in plan_pipelines.PIPELINES:
            parser.error(f"--pipelines must be of {', '.join(plan_pipelines.PIPELINES)}, got {name!r}")
        pipe = plan_pipelines.pipeline(name, args.data, args.samples)
        if pipe is None:
            print(f"{name}: left out, {args.data} has no data for it", file=sys.stderr)
            continue
        one = measure(name, pipe, args, kept, lambda text, name=name: print(f"{name}: {text}", file=sys.stderr))
        if one is None:
            print(f"{name}: not finished", file=sys.stderr)
        else:
            found[name] = one
    return {"experiment": "storage planner", "pipelines": found}


def tables(result):
    """[(title, head, rows)] for people."""
    rows, gains, every = [], [], []
    for name, found in result["pipelines"].items():
        values, best, untouched = found["values"], found["best"], found["untouched"]
        for plan in found["plans"]:
            share = plan["seconds"] / found["seconds"]
            ratio, *bounds = beside(values, plan["chosen"], best) if plan["chosen"] else (0.0, None, None)
            verdict = "as good" if ratio >= NEAR and share <= SHARE else "worse" if ratio < NEAR else "too slow"
            rows.append((name, len(found["strategies"]), f"{found['seconds']:.0f} s", f"{plan['seconds']:.1f} s",
                         f"{100 * share:.0f} %", plan["chosen"] or "nothing", best, f"{ratio:.3f}",
                         _between(bounds), verdict))  # fmt: skip
        gain, *bounds = beside(values, best, untouched)
        gains.append((name, f"{statistics.fmean(values[untouched]):.0f}", f"{statistics.fmean(values[best]):.0f}",
                      f"{gain:.2f}", _between(bounds)))  # fmt: skip
        every += [(name, one["name"], f"{statistics.fmean(one['values']):.0f}", f"{one['preparation']:.2f} s",
                   f"{one['storage'] / 1e6:.1f}") for one in found["strategies"]]  # fmt: skip
    yield ("the planner beside an exhaustive measurement",
           ("pipeline", ("strategies", "right"), ("exhaustive", "right"), ("plan", "right"), ("share", "right"),
            "chosen", "best", ("chosen / best", "right"), "90 %", "verdict"), rows)  # fmt: skip
    yield ("the best strategy beside the pipeline as it is",
           ("pipeline", ("as it is", "right"), ("best", "right"), ("times", "right"), "90 %"), gains)  # fmt: skip
    yield ("all strategies, exhaustive", ("pipeline", "strategy", ("samples/s", "right"), ("preparation", "right"),
                                          ("MB", "right")), every)  # fmt: skip


def _between(bounds):
    return f"{bounds[0]:.3f} to {bounds[1]:.3f}" if bounds[0] is not None else "-"
