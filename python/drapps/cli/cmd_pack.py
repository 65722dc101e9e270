"""drapps pack: a data set as tar shards that are read fast and checked, with the first ops run once."""

import re

from drapps.cli import pipeline_file
from drapps.cli.op_text import add_ops
from drapps.cli.progress_bar import progress_bar
from drapps.counted import counted
from drapps.printable import printable
from drapps.printing import bytes_text, print_json

HELP = "pack a data set into tar shards"

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def add_arguments(parser):
    what = "a folder, a list, a tar file, a pattern of tar files or a packed set; or a Python file with a pipeline"
    parser.add_argument("source", metavar="SOURCE", help=f"{what}, as FILE.py or FILE.py:NAME")
    parser.add_argument("folder", help="the folder of the packed set")
    parser.add_argument("--format", default="auto", help="how to read the source (default: auto)")
    when = "default: none; of a Python file: those before the first random one that are worth it"
    ops = parser.add_argument_group(f"ops that run once, before storing ({when})")
    ops.add_argument(
        "--op", action="append", default=[], metavar="OP", help='"resize(512)"; may be given several times'
    )
    ops.add_argument("--graph", metavar="FILE", help="JSON of Pipeline.to_json")
    ops.add_argument("--upto", metavar="OP", help="the last op that runs: its name, or the number of ops")
    what = "codec of arrays and texts: one of `drapps codec list`, auto, or FIELD=SPEC,... (default: none)"
    parser.add_argument("--codec", metavar="SPEC", help=what)
    parser.add_argument("--name", default="shard", help="shards are called NAME-000000.tar, ... (default: shard)")
    parser.add_argument("--shard-size", default="512Mi", metavar="BYTES", help="most bytes of a shard (default: 512Mi)")
    parser.add_argument("--shard-samples", type=int, metavar="N", help="most samples of a shard (default: any number)")
    parser.add_argument("--workers", type=int, metavar="N", help="threads (default: as many as the container allows)")
    parser.add_argument("--append", action="store_true", help="add to an existing set")
    parser.add_argument("--no-seek-points", action="store_true", help="do not learn where the rows of JPEGs begin")
    help = "continue at samples that cannot be decoded or made: list them, and store them as they are or as bad ones"
    parser.add_argument("--keep-bad", action="store_true", help=help)
    help = "do not decode images that are stored as they are; damaged ones are not noticed then"
    parser.add_argument("--no-image-check", action="store_true", help=help)
    parser.add_argument("--no-space-check", action="store_true", help="start even if the disk seems too small")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    pipe, upto = _pipeline(args)
    if pipe is None:
        return 1
    if args.upto:
        upto = int(args.upto) if args.upto.isdecimal() else args.upto
    with progress_bar("packing", len(pipe)) as show:
        done = pipe.pack(
            args.folder, upto=upto, codec=args.codec, name=args.name, shard_bytes=_bytes(args.shard_size),
            workers=args.workers,
            shard_samples=args.shard_samples, append=args.append, seek_points=not args.no_seek_points,
            on_bad_sample="keep" if args.keep_bad else "raise", check_space=not args.no_space_check,
            check_images=not args.no_image_check,
            progress=lambda stats: show(stats["samples"], stats["samples_total"]),
        )  # fmt: skip
    if args.json:
        return print_json(_json(done))
    print(_text(done, _why_no_ops(pipe) if upto is None else ""))


def _pipeline(args):
    """The pipeline, and how many of its ops run; None: its file failed."""
    from drapps import _core
    from drapps.pipeline import read

    path, _, name = args.source.partition(":") if re.search(r"\.py(:\w+)?$", args.source) else (args.source, "", "")
    if pipeline_file.is_one(path):
        if args.op or args.graph:
            raise _core.ArgumentError("--op and --graph are for data, not for a Python file")
        return pipeline_file.load(path, name or None), None
    pipe = read(args.source, format=args.format)
    if args.op and args.graph:
        raise _core.ArgumentError("give --op or --graph, not both")
    if args.graph:
        with open(args.graph, encoding="utf-8") as file:
            return pipe.from_json(file.read()), None
    pipe = add_ops(pipe, args.op)
    return pipe, len(pipe.stages)


def _bytes(text):
    """512Mi, 1G, 1000000 in bytes."""
    from drapps import _core

    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([kmg]i?)?b?", text.strip().lower())
    if not found or not int(float(found[1]) * UNITS[found[2] or ""]):
        raise _core.ArgumentError(f"--shard-size must be a number of bytes such as 512Mi or 1G, got {text!r}")
    return int(float(found[1]) * UNITS[found[2] or ""])


def _text(done, why_no_ops=""):
    where = printable(done.folder)
    if done.resumed_samples == done.samples:
        return f"{where}: nothing to pack: all {counted(done.samples, 'sample')} are there, and have not changed"
    new = done.samples - done.resumed_samples
    parts = [f"{where}: {counted(new, 'sample')} packed, {bytes_text(done.bytes)} written"]
    parts.append(counted(done.shards, "shard") + " in the set")
    if done.resumed_samples:
        parts.append(f"{counted(done.resumed_samples, 'sample')} were there from a run before")
    if done.bad:
        parts.append(f"{done.bad} bad")
    lines = [f"{printable(sample.key)}: {printable(sample.error)}" for sample in done.bad_samples]
    if done.bad > len(lines):
        lines.append(f"... and {done.bad - len(lines)} more")
    forms = ", ".join(f"{field}: {form}" for field, form in done.stored.items() if form != "key")
    ran = ", ".join(done.ops) or "none" + why_no_ops
    return "\n".join([*lines, ", ".join(parts), f"ops that ran: {ran}; stored: {forms}"])


def _json(done):
    return {**done._asdict(), "bad_samples": [sample._asdict() for sample in done.bad_samples]}


def _why_no_ops(pipe):
    """Why the default ran no op, for a pipeline that has some."""
    if not pipe.stages:
        return ""
    return " (none is worth storing: decoded images of full size take more than their files; --upto stores them anyway)"
