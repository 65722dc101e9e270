"""What is known of a worker from outside its samples: where its code waits, and its Python stack.

Waits: in a sleep, for a lock, for a network; neither on a CPU nor in line for one.  Each claim is timed.  While much of
that time goes by without a CPU, now and then one claim is profiled: a profile function of the interpreter sees its
calls and returns, and what passes between two of them without a CPU was waited for in the function that ran.  Code that
computes is never profiled.

Stacks: a worker writes its stack into a file in memory when it gets a signal.  It registers faulthandler for that, which
works even while C code holds the interpreter's lock.
"""

import faulthandler
import os
import signal
import sys
import sysconfig
import threading
import time
from collections import Counter
from pathlib import Path

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
