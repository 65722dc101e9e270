"""A pipeline that a Python file defines, for commands that take one in place of data."""

import os
import runpy
import sys
import traceback


def is_one(path):
    """Is it a Python file?"""
    return path.endswith(".py") and os.path.isfile(path)


def load(path, name=None):
    """The pipeline of the file by this name, or its only one; None: the file failed, and its traceback was printed."""
    try:
        names = _names_of(path)
    except Exception as error:  # an error of the file, shown as by Python
        from drapps.profile.run_script import own_traceback

        traceback.print_exception(type(error), error, own_traceback(error, path))
        return None
    return _chosen(names, path, name)


def _names_of(path):
    """Return the names that a Python file defines.  It is imported: code under `__name__ ==
    "__main__"` does not run."""
    kept = sys.argv, sys.path[:]
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        return runpy.run_path(path, run_name="pipeline")
    finally:
        sys.argv, sys.path[:] = kept


def _chosen(names, path, name):
    """Return the pipeline of this name; without a name the only pipeline, or the one named pipe or pipeline."""
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
