"""drapps preview: samples after a pipeline beside their originals, as one page of HTML."""

import os
import runpy
import sys
import traceback

from drapps.cli import chain_arguments
from drapps.counted import counted

HELP = "a page of HTML that shows samples before and after a pipeline"


def add_arguments(parser):
    what = "a Python file that makes a pipeline; or data: a folder, list, tar or pattern of tars"
    parser.add_argument("path", help=what)
    parser.add_argument("-o", "--output", metavar="FILE", default="preview.html", help="the page (default: preview.html)")
    parser.add_argument("-n", type=int, default=16, metavar="N", help="samples to show (default: 16)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default: 0)")
    parser.add_argument("--epoch", type=int, default=0, help="likewise (default: 0)")
    parser.add_argument("--name", help="for a Python file: the variable that holds the pipeline")
    chain_arguments.add_arguments(parser.add_argument_group("for data"))


def run(args):
    from drapps import _core
    from drapps.preview import make_preview

    if args.path.endswith(".py") and os.path.isfile(args.path):
        try:
            names = _names_of(args.path)
        except Exception as error:  # the file's own, shown as Python shows it
            from drapps.profile.run_script import own_traceback

            traceback.print_exception(type(error), error, own_traceback(error, args.path))
            return 1
        pipe = _chosen(names, args.path, args.name)
    elif args.name:
        raise _core.ArgumentError("--name is for a Python file")
    else:
        pipe = chain_arguments.pipeline_of(args)
    shown = make_preview(pipe, args.n, args.seed, args.epoch)
    size = shown.write(args.output)
    print(f"{args.output}: {counted(shown.samples, 'sample')}, {size / 1000:.0f} kB, to be opened in a browser")


def _names_of(path):
    """What a Python file defines.  It is imported, not run as a program: what `__name__ == "__main__"` guards is not."""
    kept = sys.argv, sys.path[:]
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        return runpy.run_path(path, run_name="pipeline")
    finally:
        sys.argv, sys.path[:] = kept


def _chosen(names, path, name):
    """The pipeline by this name; without one the only pipeline, or the one named pipe or pipeline."""
    from drapps import _core
    from drapps.pipeline import Pipeline

    pipes = {key: value for key, value in names.items() if isinstance(value, Pipeline)}
    if name is not None and name not in pipes:
        raise _core.ArgumentError(f"--name: {path} has no pipeline {name!r}; it has {', '.join(pipes) or 'none'}")
    candidates = [name] if name else list(pipes) if len(pipes) == 1 else [k for k in ("pipe", "pipeline") if k in pipes]
    if candidates:
        return pipes[candidates[0]]
    if pipes:
        raise _core.ArgumentError(f"{path} has several pipelines: choose one by --name: {', '.join(pipes)}")
    raise _core.ArgumentError(f"{path} has no drapps.Pipeline among its global variables")
