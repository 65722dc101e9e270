"""`drapps bench image | jpeg | loaders | setup | show`: arguments, progress, output."""

import argparse
import json
import os
import sys

from . import environments, jpeg_ways, peers, report
from .loaders import workloads

DESCRIPTION = "Measure drapps on your files, and other loaders and decoders for comparison."


def add_arguments(parser):
    """Adds the subcommands of `drapps bench` to an argparse parser; the chosen one is args.run(args)."""
    actions = parser.add_subparsers(dest="bench", required=True, metavar="WHAT")
    _add_image(actions.add_parser("image", help="imagenet-train-224, compared with other loaders"))
    _add_jpeg(actions.add_parser("jpeg", help="the JPEG decoder, compared with others: whole images and crops"))
    _add_loaders(actions.add_parser("loaders", help="torch's DataLoader and drapps's on Python data sets",
                                    formatter_class=argparse.RawDescriptionHelpFormatter))
    _add_setup(actions.add_parser("setup", help="make the environments of the other loaders"))
    _add_show(actions.add_parser("show", help="print a saved result again"))
    return parser


def _add_image(parser):
    parser.add_argument("--data", required=True, metavar="DIR", help="JPEG files, one folder a class, or flat")
    parser.add_argument("--peers", default="", metavar="all|NAME,...", help=f"beside drapps: {', '.join(others())}")
    parser.add_argument("--rounds", type=_positive, default=5, help="interleaved rounds (5)")
    parser.add_argument("--samples", type=_positive, default=4096, help="smallest window of a run (4096)")
    parser.add_argument("--retune", action="store_true", help="search the peers' settings again")
    parser.add_argument("--no-pixels", action="store_true", help="do not compare pixels with torchvision's")
    parser.add_argument("--save", metavar="FILE", help="write the result as JSON too")
    _add_envs(parser)
    _add_format(parser)
    parser.set_defaults(run=run_image)


def _add_jpeg(parser):
    parser.add_argument("--data", required=True, metavar="DIR", help="JPEG files, one folder a class, or flat")
    parser.add_argument("--n", type=_positive, default=500, help="files, evenly spread over the folder (500)")
    parser.add_argument("--rounds", type=_positive, default=5, help="interleaved rounds (5)")
    parser.add_argument("--threads", type=_positive, default=1, help="threads, each on a CPU of its own (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the crops (1)")
    parser.add_argument("--peers", default="all", metavar="all|none|NAME,...",
                        help=f"beside drapps: {', '.join(jpeg_ways.PEERS)} (all)")
    parser.add_argument("--save", metavar="FILE", help="write the result as JSON too")
    _add_envs(parser)
    _add_format(parser)
    parser.set_defaults(run=run_jpeg)


def _add_loaders(parser):
    parser.description = "\n".join(["workloads:", *(f"  {row.name:15} {row.summary}" for row in workloads.TABLE)])
    parser.add_argument("names", nargs="+", metavar="WORKLOAD", help="one or more of the workloads above, or all")
    parser.add_argument("--data", metavar="DIR", help="files for folder, unet3d and ssd, which else make their own")
    parser.add_argument("--set", action="append", default=[], type=_option, metavar="NAME=VALUE",
                        help="an option of the workload, for example workers=4")
    parser.add_argument("--rounds", type=_positive, default=5, help="each case once a round, in random order (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the order (0)")
    parser.add_argument("--only", metavar="LOADER,...", help="for example torch")
    parser.add_argument("--quick", action="store_true", help="a trial of seconds; its figures mean nothing")
    parser.add_argument("--save", metavar="DIR", help="write DIR/WORKLOAD.json too")
    parser.add_argument("--into", metavar="FILE",
                        help="write each table into the section results-WORKLOAD of a Markdown file")
    _add_format(parser)
    parser.set_defaults(run=run_loaders)


def _add_setup(parser):
    names = ", ".join(environments.TABLE)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {names}; all without a name")
    _add_envs(parser)
    parser.set_defaults(run=run_setup)


def _add_show(parser):
    parser.add_argument("result", metavar="FILE", help="what --save wrote")
    _add_format(parser)
    parser.add_argument("--into", nargs=2, metavar=("FILE", "SECTION"),
                        help="replace the section between <!-- SECTION --> and <!-- /SECTION --> of a Markdown file")
    parser.set_defaults(run=run_show)


def _add_envs(parser):
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR",
                        help="folder of the peers' environments (%(default)s)")


def _add_format(parser):
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _option(text):
    """"workers=4" as ("workers", 4); a value that is no JSON is text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def others():
    return [name for name in peers.NAMES if name not in peers.OURS]


def peer_names(text):
    """The value of --peers as names, with both ways of drapps first."""
    wanted = others() if text == "all" else [word for word in text.split(",") if word]
    for name in wanted:
        peers.row(name)
    return list(dict.fromkeys([*peers.OURS, *wanted]))


def decoder_names(text):
    """The value of --peers of `bench jpeg` as names, with drapps' own ways first."""
    words = {"all": list(jpeg_ways.PEERS), "none": []}.get(text, [word for word in text.split(",") if word])
    for name in words:
        jpeg_ways.row(name)
    return list(dict.fromkeys([row.name for row in jpeg_ways.TABLE if not row.environment] + words))


def progress(text):
    print(text, file=sys.stderr, flush=True)


def page_of(result):
    """The module that shows a result."""
    if result.get("bench") == "jpeg":
        from . import jpeg

        return jpeg
    if result.get("bench") == "loaders":
        from .loaders import table

        return table
    return report


def show(result, args):
    if args.json:
        print(json.dumps(result))
    elif args.markdown:
        print(page_of(result).markdown(result), end="")
    else:
        page_of(result).print_table(result)


def save(result, args):
    if args.save:
        with open(args.save, "w") as f:
            json.dump(result, f, indent=1)


def run_image(args):
    from .runner import run_image

    result = run_image(args.data, peer_names(args.peers), args.rounds, args.samples, args.envs, args.retune,
                       not args.no_pixels, progress)
    save(result, args)
    show(result, args)
    return 0 if result["peers"] else 1


def run_jpeg(args):
    from . import jpeg

    result = jpeg.run_jpeg(args.data, decoder_names(args.peers), args.n, args.rounds, args.threads, args.seed,
                           args.envs, progress)
    save(result, args)
    show(result, args)
    return 0


def loaders_command(name, args):
    """The command that repeats one workload, without the path of this machine."""
    words = ["drapps bench loaders", name, f"--rounds {args.rounds}", f"--seed {args.seed}"]
    words += ["--data DIR"] if args.data else []
    words += [f"--set {key}={json.dumps(value)}" for key, value in args.set]
    return " ".join(words + (["--quick"] if args.quick else []))


def run_loaders(args):
    from .loaders import rounds, table

    good = True
    for name in workloads.NAMES if args.names == ["all"] else args.names:
        workload = workloads.load(name)
        options = {**(workload.quick if args.quick else {}), **dict(args.set)}
        if args.data and "data" in workload.options:
            options["data"] = args.data
        result = rounds.run(name, options, args.rounds, args.seed, args.only and args.only.split(","),
                            loaders_command(name, args), progress)
        keep(result, name, args)
        show(result, args)
        good = good and table.good(result)
    return 0 if good else 1


def keep(result, name, args):
    """What --save and --into ask for."""
    if args.save:
        os.makedirs(args.save, exist_ok=True)
        with open(os.path.join(args.save, name + ".json"), "w") as f:
            json.dump(result, f, indent=1)
    if args.into:
        report.write_section(args.into, f"results-{name}", page_of(result).markdown(result))


def run_setup(args):
    for name in args.names:
        if name not in environments.TABLE:
            raise SystemExit(f"no environment is called {name!r}; there are {', '.join(environments.TABLE)}")
    return 1 if environments.setup(args.names or list(environments.TABLE), args.envs) else 0


def run_show(args):
    with open(args.result) as f:
        result = json.load(f)
    if args.into:
        report.write_section(*args.into, page_of(result).markdown(result))
    else:
        show(result, args)
    return 0


def main(argv=None):
    parser = add_arguments(argparse.ArgumentParser(prog="drapps bench", description=DESCRIPTION))
    args = parser.parse_args(argv)
    return args.run(args)
