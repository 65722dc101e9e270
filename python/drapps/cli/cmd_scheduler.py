"""drapps scheduler: policies in the simulator, and how well the simulator predicts this machine."""

import json
import math
import sys

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


# --- calibrate and validate ---


def _add_data(parser):
    from drapps.cli import chain_arguments

    parser.add_argument("path", metavar="DATA", help="a folder, list, tar or pattern of tars")
    chain_arguments.add_arguments(parser)


def _maker(args):
    """A function that opens the pipeline."""
    from drapps.cli import chain_arguments

    return lambda: chain_arguments.pipeline_of(args)


def _tell(text):
    """What is going on, for who looks at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="" if text else "\r", file=sys.stderr, flush=True)


def _add_calibrate(parser):
    _add_data(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the profile, JSON")
    parser.add_argument("--batch-size", metavar="N", type=int, default=64, help="(default: 64)")
    parser.add_argument("--seconds", metavar="S", type=float, default=60, help="time to measure for (default: 60)")


def _calibrate(args):
    from drapps import _core
    from drapps.sim.calibrate import calibrate

    if args.batch_size < 1:
        raise _core.ArgumentError(f"--batch-size must be at least 1, got {args.batch_size}")
    if not 2 <= args.seconds <= 600:
        raise _core.ArgumentError(f"--seconds must be a number from 2 to 600, got {args.seconds:g}")
    profile = calibrate(_maker(args), batch_size=args.batch_size, seconds=args.seconds, tell=_tell)
    _tell("")
    profile.save(args.output)
    print_table(("field", ("value", "right")), [(name, f"{value:.6g}") for name, value in profile.set.items()])


def _add_validate(parser):
    _add_data(parser)
    parser.add_argument("--profile", metavar="FILE", required=True, help="of `drapps scheduler calibrate`, same data")
    parser.add_argument("--settings", metavar="N", type=int, default=32, help="random settings (default: 32)")
    parser.add_argument("--responses", metavar="N", type=int, default=10, help="step responses (default: 10)")
    parser.add_argument("--seconds", metavar="S", type=float, default=4, help="of each setting (default: 4)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the settings (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _validate(args):
    from drapps import _core
    from drapps.sim.machine_profile import MachineProfile
    from drapps.sim.validate import validate

    if args.settings < 2 or args.responses < 0:
        raise _core.ArgumentError(
            f"--settings must be at least 2 and --responses at least 0, got {args.settings} and {args.responses}"
        )
    if not 0.2 <= args.seconds <= 600:
        raise _core.ArgumentError(f"--seconds must be a number from 0.2 to 600, got {args.seconds:g}")
    profile = MachineProfile.load(args.profile)
    found = validate(_maker(args), profile, settings=args.settings, responses=args.responses, seconds=args.seconds,
                     seed=args.seed, tell=_tell)  # fmt: skip
    _tell("")
    if args.json:
        print_json(found.as_dict())
    else:
        _print_validation(found)
    return 0 if found.good else 1


def _print_validation(found):
    right = ("workers", "readers", "prefetch", "step ms", "on CPU ms", "tenants", "read delay ms", "CPU limit",
             "engine /s", "simulator /s", "error")  # fmt: skip
    rows = []
    for case in found.cases:
        s = case.setting
        rows.append((str(s.workers), str(s.readers), str(s.prefetch), f"{1e3 * s.step:.1f}", f"{1e3 * s.step_cpu:.1f}",
                     str(s.tenants), f"{1e3 * s.read_delay:.2f}", f"{s.cpu_limit:g}" if s.cpu_limit else "",
                     f"{case.measured:.1f}", f"{case.predicted:.1f}",
                     f"{case.predicted / case.measured - 1:+.1%}"))  # fmt: skip
    print_table([(name, "right") for name in right], rows)
    if found.responses:
        print()
        right = ("workers", "readers", "prefetch", "engine settles s", "simulator settles s", "")
        rows = []
        for r in found.responses:
            pairs = [(getattr(r.before, name), getattr(r.after, name)) for name in ("workers", "readers", "prefetch")]
            rows.append((*(f"{a} to {b}" if a != b else str(a) for a, b in pairs), f"{r.measured_settle:.1f}",
                         f"{r.predicted_settle:.1f}", "near" if r.near else "off"))  # fmt: skip
        print_table([(name, "right") for name in right], rows)
    print(f"\nmean absolute error {found.mape:.1%} (aim: at most 15 %), rank correlation {found.spearman:.3f} "
          f"(aim: at least 0.9)")  # fmt: skip
    if found.responses:
        print(f"settling time within 30 % or one window of 0.6 s in {found.settled:.0%} of the step responses")
    if found.others > 0.1:
        print(f"other programs used {found.others:.2f} CPUs meanwhile: repeat this on a quiet machine")
    print("good enough to train policies for this machine" if found.good else "not good enough to train policies")


VERBS = {
    "show": ("list scenarios, machines, workloads, models and fields of the simulator", _add_show, _show),
    "eval": ("run policies in the simulator, over the same instances", _add_eval, _eval),
    "calibrate": ("measure this machine with a data set, for at most a minute", _add_calibrate, _calibrate),
    "validate": ("compare the simulator with the real engine, with random settings", _add_validate, _validate),
}
