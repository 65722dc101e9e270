"""The trainer's end of the processes: starts them, hears from the zygote, ends them."""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial

from drapps.procpool.launch import First, can_adopt, has_ended, launch, let_go
from drapps.procpool.zygote import zygote_main

END_S = 3.0
FIRST_S = 0.003  # in which the first worker has a CPU for itself, where there are few

# Those that were started and did not end; in a fork of the trainer also the trainer's.  Without this, a pool in a
# cycle would be garbage together with its keeper, and the garbage collector may finalize connections and processes
# before the pool, which needs them to end its workers.
_keepers = set()


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
    """A zygote and the connection to it.

    early: the trainer forks the first worker itself, before the zygote, which adopts it.
    """

    def __init__(self, setup, context, *, early=False):
        self._pid = os.getpid()
        self._setup, self._context = setup, context
        self._early = early and context.get_start_method() == "fork" and can_adopt()
        self._first = self._process = self._conn = None
        self._ready = False  # the zygote has begun
        self._ended = False  # or told to
        self._starts, self._sends = threading.Lock(), threading.Lock()

    def start(self):
        """When that was not done yet."""
        with self._starts:
            if self._process is not None:
                return
            if self._ended:
                raise RuntimeError("the pool is closed")
            self._conn, theirs = self._context.Pipe()
            _keepers.add(self)
            try:
                self._process = self._started(theirs)
            except BaseException:
                self.drop()
                raise
            finally:
                theirs.close()
            self._setup = None  # which may hold whoever is to end this

    def _started(self, theirs):
        if self._context.get_start_method() == "fork":
            return self._forked(theirs)
        parcel = self._setup.parcel()
        try:
            process = self._new_zygote(zygote_main, parcel, theirs)
            launch(process).start()
            return process
        finally:
            parcel.close()

    def _forked(self, theirs):
        """All is prepared before the first fork: after one, the trainer copies each page that it writes."""
        not_its_own = [theirs]
        first = First(self._setup, self._context, partial(_drop_all, self._pid, not_its_own)) if self._early else None
        process = self._new_zygote(_forked_main, self._setup, theirs, first, self._pid)
        zygote = launch(process)
        not_its_own.append(zygote)
        try:
            if first is None:
                zygote.start()
            else:
                first.start_with(zygote, FIRST_S)
                self._first = first
        finally:
            not_its_own.clear()  # they would hold each other
        return process

    def _new_zygote(self, main, *args):
        return self._context.Process(target=main, args=args, name="drapps-zygote")

    def belongs_to(self, pid):
        """To the process that made it."""
        return self._pid == pid

    @property
    def is_started(self):
        """The zygote was."""
        return self._process is not None

    @property
    def pid(self):
        """Of the zygote."""
        self.start()
        return self._process.pid

    def first_exitcode(self):
        """Of the worker that was adopted, and is dead."""
        return self._first.exitcode()

    def send(self, *message):
        """See zygote.py; a zygote that is gone is noticed by messages()."""
        self.start()
        with self._sends:
            conn = self._conn
            if conn is None:  # another thread has ended it
                return
            try:
                conn.send(message)
            except OSError as error:  # when it was told to end, another thread may have closed the connection
                if not self._ended and not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                    raise

    def messages(self):
        """What the zygote said.  Raises ZygoteGone."""
        try:
            while (conn := self._conn) is not None and not self._ended and conn.poll():
                message = conn.recv()
                if message[0] == "ready":
                    self._ready = True
                else:
                    yield message
        except (OSError, EOFError) as error:
            if self._ended:  # by another thread, since that was looked at
                return
            if not isinstance(error, (EOFError, ConnectionResetError)):
                raise
            raise ZygoteGone from error

    def start_failure(self):
        """After ZygoteGone: why it never began, when it ended by itself before that; another would do the same."""
        self._process.join()
        code = self._process.exitcode  # None: somebody else got it
        if self._ready or (code is not None and code < 0):
            return None
        return (f"the process that starts them exited with code {code} before it began; what it "
                'printed says why (a program that starts processes by "spawn" or "forkserver" has to guard its main '
                'part by `if __name__ == "__main__":`)')  # fmt: skip

    def wait_for_workers(self, pids):
        """After ZygoteGone: until the workers are gone too, as the kernel kills them with their parent."""
        self._process.join()
        self._end_first()
        end = time.monotonic() + END_S
        while not all(map(is_gone, pids)):
            if time.monotonic() > end:
                for pid in pids:
                    if not is_gone(pid):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def drop(self):
        """Closes the descriptors."""
        _keepers.discard(self)
        self._hang_up()
        if self._first is not None:
            self._first.drop()

    def _hang_up(self):
        """It is forgotten before it is closed: another thread may fork meanwhile, and its child would close whatever
        has that number by then."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def dismiss(self):
        """The zygote and its workers may leave, while the trainer does something else; end() waits for that."""
        with self._starts:
            self._ended = True
        if self._process is not None:
            self.send("close")

    def end(self):
        """Ends the zygote and its workers, and waits until they are gone."""
        if os.getpid() != self._pid:  # not in a fork
            _keepers.discard(self)
            return
        with self._starts:
            self._ended = True
        try:
            if self._process is not None:
                self._end_zygote()
        finally:
            self._end_first()
            self.drop()

    def _end_zygote(self):
        self.send("close")
        self._hang_up()
        try:
            self._process.join(END_S)
        finally:  # also when a signal's handler ends the wait
            if not has_ended(self._process):
                self._process.kill()
            self._process.join()
            let_go(self._process)

    def _end_first(self):
        first, self._first = self._first, None
        if first is not None:
            first.end()


def _drop_all(trainer, others=()):
    """A child of the trainer must not keep the trainer's ends of connections open, nor those of other processes.  What
    the trainer has from its own parent is not known here: it may have closed it.

    trainer: its pid, as it was before the fork; os.getppid() is another process when the trainer has died since.
    """
    for keeper in list(_keepers):
        if keeper.belongs_to(trainer):
            keeper.drop()
    for other in others:
        other.close()


def _forked_main(setup, conn, first, trainer):
    """The zygote as a fork of the trainer, whose pid is trainer."""
    adopted = first and first.hand_over()
    _drop_all(trainer)
    zygote_main(setup, conn, adopted, trainer)
