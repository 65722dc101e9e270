"""drapps plan: which ops of a pipeline are worth running once, in which form to store the results, and the cost."""

import math
import re
import sys

from drapps.cli import chain_arguments, pipeline_file
from drapps.printing import print_json

HELP = "measure which ops of a pipeline are worth running once, and how to store their results"
UNITS = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600}
SIZES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def add_arguments(parser):
    parser.add_argument("path", nargs="?", help="a Python file that makes a pipeline")
    parser.add_argument("--data", metavar="PATH", help="instead of the file: a folder, list, tar or pattern of tars")
    parser.add_argument("--name", help="for a Python file: the variable that holds the pipeline")
    parser.add_argument("--budget", default="5min", help="time to measure for: 90s, 5min, 1h (default: 5min)")
    parser.add_argument("--batch-size", type=int, default=64, help="batch size of training (default: 64)")
    parser.add_argument("--workers", type=int, help="workers of training (default: what the container allows)")
    parser.add_argument("--samples", type=int, help="measure with at most this many samples")
    help = "most rounds of measurements (default: 5, and up to 20 while the best two cannot be told apart)"
    parser.add_argument("--rounds", type=int, help=help)
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of samples (default: 0)")
    help = "where strategies are tried; made if missing (default: the system's folder for temporary files)"
    parser.add_argument("--work", metavar="DIR", help=help)
    parser.add_argument(
        "--memory", metavar="SIZE", help="for samples in memory: 4GB (default: half of what is free; 0: none)"
    )
    parser.add_argument(
        "--drop-caches", action="store_true", help="drop the system's whole page cache before cold epochs (root)"
    )
    choice = parser.add_argument_group("the choice (default: the highest throughput)")
    help = "weights of preprocessing time, storage and throughput: 0,0,1, or 1,1,1 for equal weights"
    choice.add_argument("--weights", metavar="P,S,T", help=help)
    choice.add_argument("--cpu-hour", type=float, default=0, help="price of a CPU for an hour")
    choice.add_argument("--gb-month", type=float, default=0, help="price of a GB for a month")
    choice.add_argument("--gpu-hour", type=float, default=0, help="price of the machine that trains, for an hour")
    choice.add_argument("--epochs", type=float, help="epochs of the training that is paid for (default: 1)")
    choice.add_argument("--months", type=float, help="months for which the data are kept (default: 1)")
    results = parser.add_argument_group("results")
    results.add_argument("-o", "--output", metavar="FILE", help="a page of HTML")
    results.add_argument("--json", action="store_true", help="print JSON")
    results.add_argument("--csv", metavar="FILE", help="a line for each strategy")
    results.add_argument(
        "--log", metavar="FILE", help="a line of CSV for each measured epoch, with what the machine did"
    )
    help = "prepare the chosen strategy in this folder, and print the code that uses it"
    results.add_argument("--apply", metavar="DST", help=help)
    chain_arguments.add_arguments(parser.add_argument_group("for data"))


def run(args):
    from drapps.plan import plan

    how = dict(
        budget=_seconds(args.budget),
        objective=_objective(args),
        options=_options(args),
        memory=_bytes(args.memory),
        work=args.work,
        drop_caches=args.drop_caches,
        rounds=None if args.rounds is None else _positive("--rounds", args.rounds),
        seed=args.seed,
        tell=_tell,
        samples=None if args.samples is None else _positive("--samples", args.samples),
    )
    pipe = _pipeline(args)
    if pipe is None:
        return 1
    found = plan(pipe, **how)
    _write(args, found)
    if found.interrupted:
        return 130
    if args.apply:
        lines = found.apply(args.apply)
        if args.data is not None or not args.path.endswith(".py"):  # no program of the user's has this pipeline
            lines = [f"pipe = {pipe!r}", *lines]
        print("\n".join(lines), file=sys.stderr if args.json else sys.stdout)
    return 0 if found.chosen else 1


def _write(args, found):
    from drapps.atomic_write import write_atomic

    if args.json:
        print_json(found.as_dict())
    else:
        found.show()
    for path, text in ((args.csv, found.as_csv), (args.log, found.log_csv)):
        if path:
            write_atomic(path, text().encode("utf-8"))
    if args.output:
        found.write_page(args.output)


def _tell(text):
    """What is going on, for who looks at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# --- arguments ---


def _pipeline(args):
    """The pipeline; None: the Python file failed, and said why."""
    from drapps import _core

    if (args.path is None) == (args.data is None):
        raise _core.ArgumentError("give a Python file that makes a pipeline, or --data")
    if args.data is not None or not args.path.endswith(".py"):
        args.path = args.data or args.path
        return chain_arguments.pipeline_of(args)
    if not pipeline_file.is_one(args.path):
        raise _core.FileMissingError(f"{args.path}: no such file")
    return pipeline_file.load(args.path, args.name)


def _options(args):
    found = {"batch_size": _positive("--batch-size", args.batch_size)}
    return found if args.workers is None else {**found, "workers": args.workers}


def _objective(args):
    """Weights, or prices where one is given."""
    from drapps import _core
    from drapps.build_info import usual_workers
    from drapps.plan.scoring import Prices, Weights, check_objective

    prices = {name: getattr(args, name) for name in ("cpu_hour", "gb_month", "gpu_hour")}
    if args.weights and any(prices.values()):
        raise _core.ArgumentError("give --weights or prices, not both")
    if any(prices.values()):
        more = {name: getattr(args, name) for name in ("epochs", "months") if getattr(args, name) is not None}
        return check_objective(Prices(**prices, **more, cpus=usual_workers(0)))
    if args.weights is None:
        return Weights()
    try:
        preprocessing, storage, throughput = map(float, args.weights.split(","))
        return check_objective(Weights(preprocessing, storage, throughput))
    except ValueError as error:
        if isinstance(error, _core.Error):
            raise
        raise _core.ArgumentError(f"--weights must be three numbers such as 0,0,1, got {args.weights!r}") from None


def _positive(name, value):
    from drapps import _core

    if value < 1:
        raise _core.ArgumentError(f"{name} is {value}, must be at least 1")
    return value


def _seconds(text):
    """The text "5min" as 300.0."""
    value = _number("--budget", text, UNITS)
    if not value:
        from drapps import _core

        raise _core.ArgumentError("--budget is 0, must be above 0")
    return value


def _bytes(text):
    """The text "4GB" as 4e9; None stays."""
    return None if text is None else int(_number("--memory", text, SIZES))


def _number(name, text, units):
    from drapps import _core

    found = re.fullmatch(r"([0-9.]+) *([a-zA-Z]*)", text)
    try:
        value = float(found[1]) * units[found[2].lower()]
    except (TypeError, ValueError, KeyError):
        value = math.nan
    if not math.isfinite(value):
        units = ", ".join(filter(None, units))
        raise _core.ArgumentError(f"{name} must be a number with a unit ({units}), got {text!r}")
    return value
