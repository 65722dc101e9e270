"""Supervisor: starts the zygote and the first worker, exchanges messages with the zygote, and ends them all.

It lives in the main process.  A fork of the main process never ends these processes: it only closes what it inherited.
"""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial

from drapps.procpool.launch import FirstWorker, can_adopt, has_ended, launch, let_go
from drapps.procpool.zygote import zygote_main

END_S = 3.0
FIRST_S = 0.003  # the zygote waits this long, so that the first worker has a CPU where there are few

# Supervisors that were started and did not end; in a fork, also those of the parent.  Without these references, a pool
# in a reference cycle would be garbage together with its supervisor, and the garbage collector may finalize connections
# and processes before the pool, which needs them to end its workers.
_supervisors: set["Supervisor"] = set()


class ZygoteGone(Exception):
    """The zygote ended by itself, or was killed."""


def context_of(context):
    """Return a multiprocessing context from its name; the default one for None."""
    if context is None or isinstance(context, str):
        return multiprocessing.get_context(context)
    return context


def is_gone(pid):
    """Return whether a worker's process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return True
    return not name.startswith("drapps-") or rest.split()[0] in "ZX"


class Supervisor:
    """A zygote and the connection to it.

    early: the main process forks the first worker itself, before the zygote, which adopts it.
    """

    def __init__(self, setup, context, *, early=False):
        self._pid = os.getpid()
        self._setup, self._context = setup, context
        self._early = early and context.get_start_method() == "fork" and can_adopt()
        self._first_worker = self._process = self._conn = None
        self._ready = False  # the zygote runs
        self._ended = False  # or was asked to end
        self._starts, self._sends = threading.Lock(), threading.Lock()

    def start(self):
        """Start the processes, unless that was done."""
        with self._starts:
            if self._process is not None:
                return
            if self._ended:
                raise RuntimeError("the pool is closed")
            self._conn, theirs = self._context.Pipe()
            _supervisors.add(self)
            try:
                self._process = self._started(theirs)
            except BaseException:
                self.drop()
                raise
            finally:
                theirs.close()
            self._setup = None  # it may hold the object that is to end this one

    def _started(self, theirs):
        if self._context.get_start_method() == "fork":
            return self._forked(theirs)
        packed = self._setup.packed()
        try:
            process = self._new_zygote(zygote_main, packed, theirs)
            launch(process).start()
            return process
        finally:
            packed.close()

    def _forked(self, theirs):
        """Fork both.  All is prepared before the first fork: after it, each page that the main
        process writes is copied."""
        not_its_own = [theirs]
        first = (
            FirstWorker(self._setup, self._context, partial(_drop_all, self._pid, not_its_own)) if self._early else None
        )
        process = self._new_zygote(_forked_main, self._setup, theirs, first, self._pid)
        zygote = launch(process)
        not_its_own.append(zygote)
        try:
            if first is None:
                zygote.start()
            else:
                first.start_with(zygote, FIRST_S)
                self._first_worker = first
        finally:
            not_its_own.clear()  # they would hold each other
        return process

    def _new_zygote(self, main, *args):
        return self._context.Process(target=main, args=args, name="drapps-zygote")

    def belongs_to(self, pid):
        """Return whether that process made it."""
        return self._pid == pid

    @property
    def is_started(self):
        """Whether the zygote was started."""
        return self._process is not None

    @property
    def pid(self):
        """The pid of the zygote."""
        self.start()
        return self._process.pid

    def first_worker_exitcode(self):
        """Return the exit code of the adopted worker, which is dead."""
        return self._first_worker.exitcode()

    def send(self, *message):
        """Send a message (see zygote.py).  messages() raises where the zygote is gone."""
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
        """Yield the messages of the zygote.  Raises ZygoteGone."""
        try:
            while (conn := self._conn) is not None and not self._ended and conn.poll():
                message = conn.recv()
                if message[0] == "ready":
                    self._ready = True
                else:
                    yield message
        except (OSError, EOFError) as error:
            if self._ended:  # by another thread, since that was checked
                return
            if not isinstance(error, (EOFError, ConnectionResetError)):
                raise
            raise ZygoteGone from error

    def start_failure(self):
        """After ZygoteGone: return why the zygote never ran, or None.  A new one would fail in the same way."""
        self._process.join()
        code = self._process.exitcode  # None: somebody else got it
        if self._ready or (code is not None and code < 0):
            return None
        return (f"the process that starts them exited with code {code} before it began; what it "
                'printed says why (a program that starts processes by "spawn" or "forkserver" has to guard its main '
                'part by `if __name__ == "__main__":`)')  # fmt: skip

    def wait_for_workers(self, pids):
        """After ZygoteGone: wait until the workers are gone, too.  The kernel kills them with their parent."""
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
        """Close the descriptors."""
        _supervisors.discard(self)
        self._hang_up()
        if self._first_worker is not None:
            self._first_worker.drop()

    def _hang_up(self):
        """Close the connection.  It is forgotten first: another thread may fork meanwhile, and its child would close
        whatever has that descriptor by then."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def dismiss(self):
        """Let the zygote and its workers leave while the main process does something else.  end() waits for that."""
        with self._starts:
            self._ended = True
        if self._process is not None:
            self.send("close")

    def end(self):
        """End the zygote and its workers, and wait until they are gone."""
        if os.getpid() != self._pid:  # not in a fork
            _supervisors.discard(self)
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
        first, self._first_worker = self._first_worker, None
        if first is not None:
            first.end()


def _drop_all(main_pid, others=()):
    """Close, in a child of the main process, the main process's ends of connections, and those of other processes.
    What the main process has from its own parent stays: it may have closed that.

    main_pid: taken before the fork; os.getppid() is another process when the main process has died since.
    """
    for supervisor in list(_supervisors):
        if supervisor.belongs_to(main_pid):
            supervisor.drop()
    for other in others:
        other.close()


def _forked_main(setup, conn, first, main_pid):
    """Run the zygote as a fork of the main process."""
    adopted = first and first.hand_over()
    _drop_all(main_pid)
    zygote_main(setup, conn, adopted, main_pid)
