"""The first worker of a forked pool: the trainer forks it itself, and it is at work while the zygote starts.

The zygote adopts it (zygote.py): it watches it, replaces it when it dies and ends it, as it does with its children.
Only the trainer can reap it, and so knows its exit code.
"""

import contextlib
import functools
import gc
import os
import signal

from drapps.procpool.worker_loop import live
from drapps.procpool.launch import has_ended, launch, let_go, start_both
from drapps.procpool.zygote import Adopted


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
        self._process = context.Process(target=_main, daemon=True, name="drapps-worker-0",
                                        args=(setup.new_worker(0), os.getpid(), forget))  # fmt: skip
        self._launch = launch(self._process)

    def start_with(self, zygote, pause_s):
        """Forks it, and the zygote, which leaves the CPUs to it for a moment."""
        try:
            start_both(self._launch, zygote, pause_s)
        except BaseException:
            self.end()
            raise

    def hand_over(self):
        """What the zygote knows of it; called there, as it inherits the descriptor."""
        self._launch.close()
        return Adopted(self._launch.pid, self._launch.fd)

    def drop(self):
        """Closes the descriptor."""
        fd, self._launch.fd = self._launch.fd, None
        if fd is not None:
            os.close(fd)

    def exitcode(self):
        """When it is dead."""
        self._process.join()
        return self._process.exitcode

    def end(self):
        """It is gone after that."""
        if self._launch.pid is None:  # it could not be forked
            return
        if self._launch.fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._launch.fd, signal.SIGKILL)
        elif not has_ended(self._process):
            self._process.kill()
        self.drop()
        self._process.join()
        let_go(self._process)


def _main(worker, parent, forget):
    """The life of the worker.  The kernel could end it with the thread that forked it, not with the trainer: it looks
    for its parent between claims, and the zygote ends it when it is at work for longer."""
    gc.freeze()
    forget()
    live(worker, parent)
