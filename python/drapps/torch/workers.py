"""How many workers: as many as the user says, or as many as the container has CPUs for.

The loaders of a process that leave the choice to drapps share the CPUs among those that run at the same time; the
ranks of a node share the container's (LOCAL_WORLD_SIZE, which the limits take into account).
"""

import multiprocessing
import operator
import threading
import weakref

import torch

from drapps.build_info import usual_workers

_lock = threading.Lock()
_running = weakref.WeakKeyDictionary()  # iterator -> workers it has by drapps's choice


class Count(int):
    """A number of workers that remembers who chose it, and the other arguments of its loader.

    Trainers that build a loader anew from its attributes hand it on: see rebuild.py.
    """

    def __new__(cls, n, decided=False, options=None):
        self = super().__new__(cls, operator.index(n))  # as torch, which has no half a worker
        self.decided = decided
        self.options = options or {}
        return self

    def __reduce__(self):
        return Count, (int(self), self.decided, self.options)


def accelerator_in_use():
    """Memory of an accelerator does not survive a fork."""
    if not torch.accelerator.is_available():
        return False
    module = getattr(torch, torch.accelerator.current_accelerator().type, None)
    return bool(module and getattr(module, "is_initialized", bool)())


def why_not_fork():
    """Why no processes are started that nobody asked for; None: they may be.

    Those that are not forked need a data set that can be pickled and a program that can be imported.
    """
    if accelerator_in_use():
        return "an accelerator is in use"
    method = multiprocessing.get_start_method(allow_none=True)
    return None if method in (None, "fork") else f"the start method of multiprocessing is {method}"


def why_no_children():
    """Why this process may have none; None: it may.  Workers of another loader are daemons of multiprocessing, too."""
    return "this is a daemon of multiprocessing" if multiprocessing.current_process().daemon else None


def decide(cpu_limit, iterable, needs_workers):
    """The number of workers when the user gave none.  Several would each read all of an iterable data set."""
    if not needs_workers and why_no_children():
        return 0
    return 1 if iterable else usual_workers(cpu_limit)


def share(iterator, wanted, decided):
    """The workers that an iterator gets now: what others of drapps's choice have is taken off, one always stays.  Where
    samples wait more than they compute, a policy may have wanted more workers than there are CPUs: it gets these."""
    if not decided:
        return wanted
    with _lock:
        n = max(1, min(wanted, max(wanted, usual_workers()) - sum(_running.values())))
        _running[iterator] = n
    return n


def give_back(iterator):
    """The iterator's workers are gone."""
    with _lock:
        _running.pop(iterator, None)
