"""The first worker of a forked fleet: the trainer forks it itself, and it is at work while the zygote starts.

The zygote adopts it (zygote.py): it watches it, replaces it when it dies and ends it, as it does with its children.
Only the trainer can reap it, and so knows its exit code.
"""

import functools
import gc
import os

from drapps.fleet.claims import live
from drapps.fleet.launch import launch
from drapps.fleet.zygote import LEAVE_S, Adopted


@functools.cache
def can_adopt():
    """Whether a process can be watched by one that is not its parent: not with an old kernel."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class First:
    """The process, seen by the trainer.  forget: called in the worker, to close what is not its own."""

    def __init__(self, setup, context, forget):
        self._crew, self._fd = setup.crew, None
        self._process = context.Process(target=_main, daemon=True, name="drapps-worker-0",
                                        args=(setup, os.getpid(), forget))  # fmt: skip
        self._launch = launch(self._process)

    def start(self):
        """Forks it."""
        self._launch.start()
        try:
            self._fd = os.pidfd_open(self._launch.pid)
        except OSError:
            self.end()
            raise

    def hand_over(self):
        """What the zygote knows of it; called there, as it inherits the descriptor."""
        return Adopted(self._launch.pid, os.dup(self._fd))

    def drop(self):
        """Closes the descriptor."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def exitcode(self):
        """When it is dead."""
        self._process.join()
        return self._process.exitcode

    def dismiss(self):
        """It may leave by itself, where there is no zygote to say so."""
        self._crew.dismiss(0)
        self._process.join(LEAVE_S)

    def end(self):
        """It is gone after that."""
        self.drop()
        self._process.kill()
        self._process.join()
        self._process.close()


def _main(setup, parent, forget):
    """The life of the worker.  The kernel could end it with the thread that forked it, not with the trainer: it looks
    for its parent between claims, and the zygote ends it when it is at work for longer."""
    gc.freeze()
    forget()
    live(setup, 0, parent)
