"""WorkerLoop: a worker process claims work of the shmpool until it is dismissed, whatever it makes.

A worker ends when the shmpool says so or its parent is gone.  It ignores SIGINT: the main process decides what Ctrl-C
ends.  The loop also finds out what a worker does outside its samples:

Waits: in a sleep, for a lock, for a network; neither on a CPU nor in line for one.  Each claim is timed.  While much of
that time goes by without a CPU, now and then one claim is profiled: a profile function of the interpreter sees its
calls and returns, and what passes between two of them without a CPU was waited for in the function that ran.  Code that
computes is never profiled.

Stacks: a worker writes its stack into a file in memory when it gets a signal.  It registers faulthandler for that,
which works even while C code holds the interpreter's lock.
"""

import _signal  # signal's functions look up enums, in pages that a new process has to copy first
import faulthandler
import os
import signal
import sys
import sysconfig
import threading
import time
from collections import Counter
from pathlib import Path

from drapps import _core
from drapps.build_info import info

WORK, FINISH, LEAVE = 1, 2, 3  # kinds of a claim
GOOD, BAD, DIED, STUCK = range(4)  # states of a sample
POLL_MS = 1000
LONG_NS = 10_000_000
LEAST_KEPT, MOST_KEPT = 64 << 20, 256 << 20  # bytes of freed memory; less is not worth it
KEPT_PART = 1 / 8  # of the container's memory, for all workers together
MALLOC_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def worker_main(worker, parent, to_close):
    """Run a worker that the zygote forked."""
    _core.end_with_parent()
    if os.getppid() != parent:
        return
    to_close.close()
    live(worker, parent)


def live(worker, parent):
    """Run a worker.  parent: the pid of the process that forked it."""
    _core.name_process("drapps-worker")
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    offer_stack(worker.setup.stacks)
    worker.begin()
    worker.run(parent)


def keep_memory(workers):
    """Keep freed memory for later samples, unless the environment has settings of malloc."""
    if not any(name in os.environ for name in MALLOC_SETTINGS):
        limits = info()["limits"]
        part = int(limits["memory_bytes"] * KEPT_PART) // (workers * limits["local_world"])
        if part >= LEAST_KEPT:
            _core.keep_memory(min(part, MOST_KEPT))


class WorkerLoop:
    """The loop of a worker.  A subclass gives work(claim), which makes samples, and finish(claim), which makes a batch
    of samples that are all there.

    The object is made before its process is forked, because a forked process copies each page that it writes.  begin()
    does what must be done in the process.
    """

    def __init__(self, setup, number):
        self.setup, self.number, self.shmpool = setup, number, setup.shmpool
        self._keeps = False  # memory
        self._waits = Waits(self.shmpool.waited)

    def begin(self):
        """Prepare the process before its first claim."""
        self.shmpool.attach(self.number, os.getpid())

    def run(self, parent):
        """Work until the worker is dismissed, or the parent is gone."""
        while os.getppid() == parent:
            claim = self.shmpool.claim(self.number, POLL_MS)
            if claim is None:
                continue
            if claim.kind == LEAVE:
                return
            if claim.kind == FINISH:
                self._waits.run(self.finish, claim)
            else:
                began = time.monotonic_ns()
                self._waits.run(self.work, claim)
                if not self._keeps and time.monotonic_ns() - began > LONG_NS:
                    self._keep_memory()

    def done(self, i, n, block, bad):
        """Hand over slots of the claim (dr_shmpool_done).  A batch that this completes is finished at once: out of
        order, the next slots may complete another."""
        complete = self.shmpool.done(self.number, i, n, block, bad)
        if complete is not None:
            self.finish(complete)

    def _keep_memory(self):
        """Keep freed memory.  Done after a long claim: it writes to shared pages, which would delay the first batch."""
        self._keeps = True
        keep_memory(self.setup.workers)

    def new_block(self, nbytes):
        """Return a new block of shared memory, which is this worker's until it is handed over."""
        return self.shmpool.block(self.number, nbytes)


# --- waits ---

WINDOW_NS = 50_000_000  # of claims, over which it is decided whether to profile
MUCH = 0.2  # of that time
LEAST_NS = 100_000  # shorter waits are not seen
PAUSE_NS = 250_000_000  # between two profiles, a tenth of it where the last one found nothing, or
PAUSE_TIMES = 20  # times what the last one took, whichever is longer

# A wait is reported where the user's own code called a library; in the library where there is no such code.
LIBRARIES = tuple(f"{folder}/" for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
PACKAGES = ("drapps", "torch", "torchvision", "PIL", "numpy")
OWN = str(Path(__file__).parent.parent) + "/"


class Delay:
    """Nanoseconds for which this thread could have run and had no CPU; 0 where the kernel does not tell."""

    def __init__(self):
        try:
            self._fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def __call__(self):
        try:
            return int(os.pread(self._fd, 96, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def close(self):
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Clock:
    """Blocked time of this thread: what passed, without its CPU time and without its time in line for a CPU."""

    def __init__(self, delay):
        self._delay = delay
        self.begin()

    def begin(self):
        self._wall, self._cpu, self._waited = time.monotonic_ns(), time.thread_time_ns(), self._delay()

    def passed(self):
        """(time, blocked part of it) since begin()."""
        wall = time.monotonic_ns() - self._wall
        return wall, max(0, wall - (time.thread_time_ns() - self._cpu) - (self._delay() - self._waited))


class WaitProfile:
    """A profile function that sums blocked time by function and line."""

    def __init__(self, delay):
        self.places = Counter()
        self._clock, self._last = Clock(delay), time.monotonic_ns()

    def __call__(self, frame, event, arg):
        now = time.monotonic_ns()
        if now - self._last > LEAST_NS:
            blocked = self._clock.passed()[1]
            if blocked > LEAST_NS:
                self.places[place_of(frame.f_back if event == "call" else frame)] += blocked
            self._clock.begin()
            now = time.monotonic_ns()
        self._last = now


def place_of(frame):
    """The innermost function that is not a library's, else the outermost that is not drapps's: "f (file.py:12)"."""
    outermost = frame
    while frame is not None and not frame.f_code.co_filename.startswith(OWN):
        if not _is_library(frame.f_code.co_filename):
            return _name(frame)
        outermost, frame = frame, frame.f_back
    return _name(outermost)


def _is_library(path):
    if path.startswith("<frozen"):
        return True
    _, site, rest = path.rpartition("-packages/")
    return rest.split("/", 1)[0] in PACKAGES if site else path.startswith(LIBRARIES)


def _name(frame):
    if frame is None:
        return "?"
    name, file = frame.f_code.co_qualname.replace("<locals>.", ""), os.path.basename(frame.f_code.co_filename)
    return f"{name} ({file}:{frame.f_lineno})"


def profile_waits(function, *args, delay):
    """Calls the function; {place: nanoseconds blocked}.  A program that has a profile function of its own keeps it."""
    profile = WaitProfile(delay)
    if sys.getprofile() is not None:
        function(*args)
        return profile.places
    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return profile.places


class Waits:
    """The waits of one worker.  tell(place, nanoseconds) is called for each."""

    def __init__(self, tell):
        self._tell = tell
        self._delay = None
        self._wall = self._cpu = self._delayed = 0  # of the claims in this window; delayed: when it began
        self._profiles, self._next = False, 0

    def run(self, work, claim):
        """Call work(claim), and profile the call now and then."""
        begun, cpu = time.monotonic_ns(), time.thread_time_ns()
        profiles = self._profiles and begun >= self._next
        pause = PAUSE_NS
        if profiles:
            pause = PAUSE_NS if self._profile(work, claim) else PAUSE_NS // 10
        else:
            work(claim)
        now = time.monotonic_ns()
        self._wall, self._cpu = self._wall + now - begun, self._cpu + time.thread_time_ns() - cpu
        if profiles:
            self._next = now + max(pause, PAUSE_TIMES * (now - begun))
        if self._wall > WINDOW_NS:
            self._judge()

    def _profile(self, work, claim):
        """Return whether a wait was seen.  Claims differ: the one that completes a batch also collates."""
        places = profile_waits(work, claim, delay=self._delay)
        for place, ns in places.items():
            self._tell(place, ns)
        return bool(places)

    def _judge(self):
        """Decide whether the claims of this window waited much."""
        if self._delay is None:
            self._delay = Delay()  # of this process
        delay = self._delay()
        self._profiles = self._wall - self._cpu - (delay - self._delayed) > MUCH * self._wall
        self._wall, self._cpu, self._delayed = 0, 0, delay


# --- stacks ---

STACK_SIGNAL = signal.SIGRTMIN + 7
WAIT_S = 0.5
STEP_S = 0.01

_one_at_a_time = threading.Lock()


def offer_stack(fd):
    """Make this process append its stacks to the file when it gets STACK_SIGNAL."""
    faulthandler.register(STACK_SIGNAL, file=fd, all_threads=True, chain=False)


def new_stacks():
    """Return the descriptor of a file in memory to which several processes append their stacks."""
    fd = os.memfd_create("drapps-stacks")
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_APPEND)
    finally:
        os.close(fd)


def stack_of(pid, fd):
    """Return the stack of a process as text; empty when it does not answer."""
    with _one_at_a_time:
        os.ftruncate(fd, 0)
        try:
            os.kill(pid, STACK_SIGNAL)
        except ProcessLookupError:
            return ""
        end, size = time.monotonic() + WAIT_S, 0
        while time.monotonic() < end:
            time.sleep(STEP_S)
            size, before = os.fstat(fd).st_size, size
            if size and size == before:
                break
        return os.pread(fd, size, 0).decode(errors="replace")
