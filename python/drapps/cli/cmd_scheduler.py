"""drapps scheduler: policies in the simulator, and how well the simulator predicts this machine."""

import json
import math

from drapps.printing import print_json, print_table

HELP = "try policies in a simulator; calibrate it to this machine and check its predictions"


def add_arguments(parser):
    verbs = parser.add_subparsers(dest="verb", metavar="verb", required=True, title="verbs")
    for name, (text, add, _) in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        add(verb)


def run(args):
    return VERBS[args.verb][2](args)


def _add_instance(parser):
    parser.add_argument("--machine", metavar="NAME", help="(default: laptop; any: drawn by the seed)")
    parser.add_argument("--workload", metavar="NAME", help="(default: image)")
    help = "what is trained (default: the workload's usual model; varied scenarios draw what is asked for)"
    parser.add_argument("--model", metavar="NAME", help=help)
    parser.add_argument("--profile", metavar="FILE", help="a profile of `drapps scheduler calibrate`")
    parser.add_argument("--set", metavar="FIELD=VALUE,...", help="override fields")
    parser.add_argument("--weights", metavar="TEXT", help="of the reward (default: the scenario's)")


# --- show ---


def _add_show(parser):
    parser.add_argument("--json", action="store_true", help="print JSON")


def _show(args):
    from drapps import _core

    tables = json.loads(_core.sim_json())
    if args.json:
        return print_json(tables)
    for name in ("scenarios", "machines", "workloads", "models", "signals"):
        print_table((name, ""), [(row["name"], row["doc"]) for row in tables[name]])
        print()
    rows = [(f["name"], f["group"], f["unit"], f"{f['default']:g}", f"{f['least']:g}", f"{f['most']:g}", f["doc"])
            for f in tables["fields"]]  # fmt: skip
    number = ("default", "right"), ("least", "right"), ("most", "right")
    print_table(("fields", "group", "unit", *number, ""), rows)


# --- eval ---


def _add_eval(parser):
    parser.add_argument("--scenario", metavar="NAMES", default="all", help="names with commas (default: all)")
    help = "policies with commas (default: all); with parameters: --policy analytic:margin=1.3"
    parser.add_argument("--policy", metavar="NAMES", default="all", help=help)
    _add_instance(parser)
    parser.add_argument("--seeds", metavar="N", type=int, default=5, help="instances (default: 5)")
    parser.add_argument("--first-seed", metavar="N", type=int, default=0, help="(default: 0)")
    parser.add_argument("--seconds", metavar="S", type=float, default=120, help="virtual time of each (default: 120)")
    parser.add_argument("--json", action="store_true", help="print JSON, with each seed's results")


def _eval(args):
    from drapps import _core, sim

    if args.seeds < 1:
        raise _core.ArgumentError(f"--seeds must be at least 1, got {args.seeds}")
    scenarios = _names(args.scenario, [row.name for row in sim.scenarios()])
    policies = _policies(args.policy)
    rows = [row for scenario in scenarios for row in _compare(args, scenario, policies)]
    if args.json:
        return print_json(rows)
    right = ("samples/s", "of first", "wait", "CPUs", "W", "latency ms", "reward", "+-", "changes")
    print_table(("scenario", "policy", *((name, "right") for name in right)), [_eval_cells(row) for row in rows])


def _names(text, every):
    return every if text == "all" else [name for name in text.split(",") if name]


def _policies(text):
    """Names with commas; what follows a policy's colon has commas, too."""
    from drapps import sched

    names = sched.policy_names()
    found = []
    for part in text.split(","):
        if found and "=" in part and part.partition(":")[0] not in names:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return [name for name in names if name != "off"] if text == "all" else found


def _compare(args, scenario, policies):
    """A row for each policy, over the same instances."""
    from drapps.sim.simulation import Simulation

    how = dict(machine=args.machine, workload=args.workload, model=args.model, scenario=scenario, set=_fields(args),
               weights=args.weights)  # fmt: skip
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    first = None
    for policy in policies:
        results = [Simulation(**how, seed=seed).run(policy, seconds=args.seconds) for seed in seeds]
        first = first or results
        ratios = [a.rate / b.rate for a, b in zip(results, first) if b.rate]
        yield {
            "scenario": scenario,
            "policy": policy,
            "of_first": math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios and min(ratios) > 0 else None,
            **{name: _mean(getattr(r, name) for r in results)
               for name in ("rate", "wait", "cpus", "watts", "latency", "reward", "changes")},
            "reward_error": _standard_error([r.reward for r in results]),
            "seeds": [{"seed": seed, "rate": r.rate, **r._asdict()} for seed, r in zip(seeds, results)],
        }  # fmt: skip


def _mean(values):
    values = list(values)
    return sum(values) / len(values)


def _standard_error(values):
    if len(values) < 2:
        return None
    mean = _mean(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def _eval_cells(row):
    error, of_first = row["reward_error"], row["of_first"]
    return (row["scenario"], row["policy"], f"{row['rate']:.1f}", "" if of_first is None else f"{of_first:.3f}",
            f"{row['wait']:.1%}", f"{row['cpus']:.2f}", f"{row['watts']:.0f}", f"{1e3 * row['latency']:.0f}",
            f"{row['reward']:.4f}", "" if error is None else f"{error:.4f}", f"{row['changes']:.1f}")  # fmt: skip


def _fields(args):
    """The fields of a profile, overridden by --set."""
    if not args.profile:
        return args.set
    from drapps.sim.machine_profile import MachineProfile

    text = MachineProfile.load(args.profile).set_text()
    return f"{text},{args.set}" if args.set else text


VERBS = {
    "show": ("list scenarios, machines, workloads, models and fields of the simulator", _add_show, _show),
    "eval": ("run policies in the simulator, over the same instances", _add_eval, _eval),
}
