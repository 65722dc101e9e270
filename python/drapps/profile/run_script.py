"""Runs a program or a plain loop, and watches its loaders."""

import os
import runpy
import sys
import time
from contextlib import contextmanager
from typing import NamedTuple

from drapps.profile.facts import Facts
from drapps.profile.host import Host
from drapps.profile.session import Measured, Plan
from drapps.profile.watch import Watch


class Run(NamedTuple):
    """The result of a run."""

    facts: Facts | None  # None: the program iterated no loader
    loader: str  # the loader that the facts describe
    error: BaseException | None  # what ended the program before enough was measured
    again: bool = False  # the program got some batches twice


def run_script(path, arguments=(), seconds=14.0, stop=True):
    """Run a Python file as __main__ and watch its loaders.  stop: end it when everything is measured."""
    with _watching(seconds, stop) as watch:
        return _result(watch, _ended(lambda: _as_main(path, arguments)))


def run_loop(open_loader, step=0.0, seconds=14.0):
    """Open a loader and iterate it, epoch after epoch, with a consumer that takes `step` seconds per batch."""
    with _watching(seconds, True) as watch, open_loader() as loader:
        return _result(watch, _ended(lambda: _loop(loader, step)))


@contextmanager
def _watching(seconds, stop):
    host = Host()
    try:
        with Watch(host, Plan.of(seconds), stop).hooked() as watch:
            yield watch
    finally:
        host.close()


def _ended(program):
    """Run a program; return the error that ended it, or None if it ended normally or by this module."""
    try:
        program()
    except Measured:
        return None
    except BaseException as error:
        return error
    return None


def _result(watch, error):
    session = watch.main_session()
    if session is None:
        return Run(None, "", error)
    return Run(session.result(), repr(session.loader), error, watch.gave_again())


def _as_main(path, arguments):
    """Set sys.argv and sys.path as `python path arguments` does."""
    kept = sys.argv, sys.path[:]
    sys.argv = [os.fspath(path), *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(os.fspath(path), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = kept


def own_traceback(error, path):
    """Return the traceback of a program's error from its own file on, without the frames of this package."""
    own = error.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename != os.fspath(path):
        own = own.tb_next
    at_fault = isinstance(error, SyntaxError) and error.filename == os.fspath(path)  # the file did not run at all
    return own if own is not None or at_fault else error.__traceback__


def _loop(loader, step):
    while True:
        for _ in loader:
            if step:
                time.sleep(step)
