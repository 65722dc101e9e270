"""`drapps bench loaders`: arguments, progress, output."""

import argparse
import json
import os

from drapps.bench import bench_command, bench_table

from . import case_table, rounds, workloads


def make_parser():
    parser = argparse.ArgumentParser(
        prog="drapps bench loaders", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compare torch's DataLoader with drapps.DataLoader on Python data sets.",
        epilog="\n".join(["workloads:", *(f"  {row.name:15} {row.summary}" for row in workloads.TABLE)]))
    parser.add_argument("names", nargs="+", metavar="WORKLOAD", help="one or more of the workloads below, or all")
    parser.add_argument("--data", metavar="DIR", help="files for folder, unet3d and ssd (default: generated)")
    parser.add_argument("--set", action="append", default=[], type=_option, metavar="NAME=VALUE",
                        help="set an option of the workload, for example workers=4")
    parser.add_argument("--rounds", type=bench_command.positive, default=5,
                        help="run each case once a round, in random order (5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order (0)")
    parser.add_argument("--only", metavar="LOADER,...", help="run only these loaders, for example torch")
    parser.add_argument("--quick", action="store_true", help="a trial of some seconds, whose figures mean nothing")
    parser.add_argument("--save", metavar="DIR", help="also write DIR/WORKLOAD.json")
    parser.add_argument("--into", metavar="FILE",
                        help="write each table into the section results-WORKLOAD of a Markdown file")
    bench_command.add_format(parser)
    return parser


def _option(text):
    """Parse "workers=4" as ("workers", 4); a value that is not JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def main(argv=None):
    return run(make_parser().parse_args(argv))


def run(args):
    good = True
    for name in workloads.NAMES if args.names == ["all"] else args.names:
        workload = workloads.load(name)
        options = {**(workload.quick if args.quick else {}), **dict(args.set)}
        if args.data and "data" in workload.options:
            options["data"] = args.data
        result = rounds.run(name, options, args.rounds, args.seed, args.only and args.only.split(","),
                            command_text(name, args), bench_command.progress)
        save(result, name, args)
        bench_command.show(result, args)
        good = good and case_table.good(result)
    return 0 if good else 1


def command_text(name, args):
    """The command that repeats one workload, without the path of this machine."""
    words = ["drapps bench loaders", name, f"--rounds {args.rounds}", f"--seed {args.seed}"]
    words += ["--data DIR"] if args.data else []
    words += [f"--set {key}={json.dumps(value)}" for key, value in args.set]
    return " ".join(words + (["--quick"] if args.quick else []))


def save(result, name, args):
    """Write what --save and --into ask for."""
    if args.save:
        os.makedirs(args.save, exist_ok=True)
        with open(os.path.join(args.save, name + ".json"), "w") as f:
            json.dump(result, f, indent=1)
    if args.into:
        bench_table.write_section(args.into, f"results-{name}", case_table.markdown(result))
