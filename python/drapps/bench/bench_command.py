"""`drapps bench image | jpeg | loaders | setup | show`: arguments, progress, output."""

import argparse
import json
import sys

from . import bench_table, checkout, environments, jpeg_ways, peers

DESCRIPTION = "Measure drapps on your files, and other loaders and decoders for comparison."


def add_arguments(parser):
    """Add the subcommands of `drapps bench` to a parser; args.run(args) runs the chosen one."""
    actions = parser.add_subparsers(dest="bench", required=True, metavar="WHAT")
    _add_image(actions.add_parser("image", help="compare loaders on imagenet-train-224"))
    _add_jpeg(actions.add_parser("jpeg", help="compare JPEG decoders on whole images and crops"))
    actions.add_parser("loaders", help="compare torch's DataLoader and drapps's on Python data sets (needs a checkout)",
                       add_help=False)
    _add_setup(actions.add_parser("setup", help="create the environments of the other loaders"))
    _add_show(actions.add_parser("show", help="print a saved result again"))
    return parser


def _add_image(parser):
    parser.add_argument("--data", required=True, metavar="DIR", help="JPEG files, one folder per class or all in one")
    parser.add_argument(
        "--peers", default="", metavar="all|NAME,...", help=f"loaders to compare with: {', '.join(others())}"
    )
    parser.add_argument("--rounds", type=positive, default=5, help="number of interleaved rounds (5)")
    parser.add_argument(
        "--samples", type=positive, default=4096, help="measure at least this many samples in each run (4096)"
    )
    parser.add_argument("--retune", action="store_true", help="search for the best settings of the peers again")
    parser.add_argument("--no-pixels", action="store_true", help="do not compare the pixels with torchvision's")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    _add_envs(parser)
    add_format(parser)
    parser.set_defaults(run=run_image)


def _add_jpeg(parser):
    parser.add_argument("--data", required=True, metavar="DIR", help="JPEG files, one folder per class or all in one")
    parser.add_argument("--n", type=positive, default=500, help="number of files, evenly spread over the folder (500)")
    parser.add_argument("--rounds", type=positive, default=5, help="number of interleaved rounds (5)")
    parser.add_argument("--threads", type=positive, default=1, help="number of threads, each on its own CPU (1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the crops (1)")
    parser.add_argument("--peers", default="all", metavar="all|none|NAME,...",
                        help=f"decoders to compare with: {', '.join(jpeg_ways.PEERS)} (all)")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    _add_envs(parser)
    add_format(parser)
    parser.set_defaults(run=run_jpeg)


def _add_setup(parser):
    names = ", ".join(environments.TABLE)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"environments to create: {names} (default: all)")
    _add_envs(parser)
    parser.set_defaults(run=run_setup)


def _add_show(parser):
    parser.add_argument("result", metavar="FILE", help="file written by --save")
    add_format(parser)
    parser.add_argument("--into", nargs=2, metavar=("FILE", "SECTION"),
                        help="replace the section between <!-- SECTION --> and <!-- /SECTION --> of a Markdown file")
    parser.set_defaults(run=run_show)


def _add_envs(parser):
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR",
                        help="folder of the peers' environments (%(default)s)")


def add_format(parser):
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive int, got {text!r}")
    return value


def others():
    return [name for name in peers.NAMES if name not in peers.OURS]


def peer_names(text):
    """Return the value of --peers as names, with both ways of drapps first."""
    wanted = others() if text == "all" else [word for word in text.split(",") if word]
    for name in wanted:
        peers.row(name)
    return list(dict.fromkeys([*peers.OURS, *wanted]))


def decoder_names(text):
    """Return the value of --peers of `bench jpeg` as names, with the ways of drapps first."""
    words = {"all": list(jpeg_ways.PEERS), "none": []}.get(text, [word for word in text.split(",") if word])
    for name in words:
        jpeg_ways.row(name)
    return list(dict.fromkeys([row.name for row in jpeg_ways.TABLE if not row.environment] + words))


def progress(text):
    print(text, file=sys.stderr, flush=True)


def page_of(result):
    """Return the module that shows a result."""
    if result.get("bench") == "jpeg":
        from . import jpeg_bench

        return jpeg_bench
    if result.get("bench") == "loaders":
        return checkout.import_benchmark("benchmarks.loaders.case_table", "a result of drapps bench loaders")
    return bench_table


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
    from . import jpeg_bench

    result = jpeg_bench.run_jpeg(args.data, decoder_names(args.peers), args.n, args.rounds, args.threads, args.seed,
                                 args.envs, progress)
    save(result, args)
    show(result, args)
    return 0


def run_setup(args):
    for name in args.names:
        if name not in environments.TABLE:
            raise SystemExit(f"environment must be one of {', '.join(environments.TABLE)}, got {name!r}")
    return 1 if environments.setup(args.names or list(environments.TABLE), args.envs) else 0


def run_show(args):
    with open(args.result) as f:
        result = json.load(f)
    if args.into:
        bench_table.write_section(*args.into, page_of(result).markdown(result))
    else:
        show(result, args)
    return 0


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["loaders"]:
        command = checkout.import_benchmark("benchmarks.loaders.loaders_command", "drapps bench loaders")
        return command.main(argv[1:])
    parser = add_arguments(argparse.ArgumentParser(prog="drapps bench", description=DESCRIPTION))
    args = parser.parse_args(argv)
    return args.run(args)
