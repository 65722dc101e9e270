"""drapps preview: samples after a pipeline beside their originals, on one HTML page."""

from drapps.cli import chain_arguments, pipeline_file
from drapps.counted import counted

HELP = "write an HTML page with samples before and after a pipeline"


def add_arguments(parser):
    what = "a Python file that defines a pipeline; or data: a folder, a list, a tar file or a pattern"
    parser.add_argument("path", help=what)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="preview.html", help="the HTML file to write (default: preview.html)"
    )
    parser.add_argument("-n", type=int, default=16, metavar="N", help="number of samples to show (default: 16)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choices (default: 0)")
    parser.add_argument("--epoch", type=int, default=0, help="epoch of the random choices (default: 0)")
    parser.add_argument("--name", help="for a Python file: the variable that holds the pipeline")
    chain_arguments.add_arguments(parser.add_argument_group("for data"))


def run(args):
    from drapps import _core
    from drapps.preview import make_preview

    if pipeline_file.is_one(args.path):
        pipe = pipeline_file.load(args.path, args.name)
        if pipe is None:
            return 1
    elif args.name:
        raise _core.ArgumentError("--name is for a Python file")
    else:
        pipe = chain_arguments.pipeline_of(args)
    shown = make_preview(pipe, args.n, args.seed, args.epoch)
    size = shown.write(args.output)
    print(f"{args.output}: {counted(shown.samples, 'sample')}, {size / 1000:.0f} kB; open it in a browser")
