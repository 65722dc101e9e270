"""The trainer's end of the zygote: starts it, hears from it, ends it."""

import multiprocessing
import os
import signal
import time
import weakref

from drapps.fleet.zygote import zygote_main

END_S = 3.0
_keepers = weakref.WeakSet()  # of this process


class ZygoteGone(Exception):
    """The zygote ended by itself, or was killed."""


def context_of(context):
    """A multiprocessing context from its name, or the standard one."""
    if context is None or isinstance(context, str):
        return multiprocessing.get_context(context)
    return context


def is_gone(pid):
    """Whether a worker's process has ended: nothing of it runs any more."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return True
    return not name.startswith("drapps-") or rest.split()[0] in "ZX"


class Keeper:
    """A zygote and the connection to it."""

    def __init__(self, setup, context):
        self._pid = os.getpid()
        self._conn, theirs = context.Pipe()
        _keepers.add(self)
        try:
            if context.get_start_method() == "fork":
                self._process = self._begin(context, _forked, setup, theirs)
            else:
                parcel = setup.parcel()
                try:
                    self._process = self._begin(context, zygote_main, parcel, theirs)
                finally:
                    parcel.close()
        except BaseException:
            self._conn.close()
            raise
        finally:
            theirs.close()

    def _begin(self, context, main, sent, theirs):
        process = context.Process(target=main, args=(sent, theirs), name="drapps-zygote")
        process.start()
        return process

    @property
    def pid(self):
        """Of the zygote."""
        return self._process.pid

    def send(self, *message):
        """See zygote.py; a zygote that is gone is noticed by messages()."""
        try:
            self._conn.send(message)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def messages(self):
        """What the zygote said.  Raises ZygoteGone."""
        try:
            while self._conn.poll():
                yield self._conn.recv()
        except (EOFError, ConnectionResetError) as error:
            raise ZygoteGone from error

    def wait_for_workers(self, pids):
        """After ZygoteGone: until the workers are gone too, as the kernel kills them with their parent."""
        self._process.join()
        end = time.monotonic() + END_S
        while not all(map(is_gone, pids)):
            if time.monotonic() > end:
                for pid in pids:
                    if not is_gone(pid):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def drop(self):
        """Closes the connection."""
        self._conn.close()
        _keepers.discard(self)

    def end(self):
        """Ends the zygote and its workers, and waits until they are gone."""
        if os.getpid() != self._pid:
            return
        self.send("close")
        self.drop()
        self._process.join(END_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()


def _forked(setup, trainer):
    """The zygote as a fork of the trainer: it must not keep the trainer's ends of other connections open."""
    for keeper in list(_keepers):
        keeper.drop()
    zygote_main(setup, trainer)
