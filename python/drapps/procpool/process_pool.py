"""ProcessPool: worker processes as the main process sees them, whatever they make.

The main process posts batches and takes results.  The shmpool (drapps/shmpool.h) decides which worker makes which
sample and in which order results come; the zygote replaces dead workers; the prefetch window says how many batches to
post.  A subclass and its kind of worker define requests and results: dataset_pool.py for data sets of torch,
chain_pool.py for chains with Python functions.

Every batch that was posted comes back once, from next() or take(), unless clear() discards it.  Only the process that
made a pool may use it.  Nothing here needs torch.
"""

import atexit
import contextlib
import functools
import os
import threading
import time
import warnings
import weakref
from collections import namedtuple
from multiprocessing import util

from drapps import _core
from drapps.procpool.supervisor import Supervisor, ZygoteGone, context_of
from drapps.procpool.prefetch_window import PrefetchWindow, reorder_window
from drapps.procpool.tuning import BEGIN_S, Controller
from drapps.procpool.worker_loop import new_stacks, stack_of
from drapps.procpool.zygote import describe
from drapps.trace import tell

READY, AGAIN, END = range(3)
CLAIM_NS = 1_000_000
CHEAP_NS = 1_000_000  # cheaper samples are not spread over workers where each would have to be packed
TOGETHER_NS = 1_000_000_000
POLL_S = 0.1
WAITED_S = 0.0005
REPORT_S, REPORT_STEP_S = 1.0, 0.001
MAX_WORKERS = 256
MAX_BATCHES = 1024
MAX_ZYGOTES = 16  # that may end before the pool fails

Stuck = namedtuple("Stuck", "worker pid tag slot index seconds stack")

_open_pools: weakref.WeakSet["ProcessPool"] = weakref.WeakSet()


class NothingPosted(LookupError):
    """Raised by next() when every posted batch was taken."""


class ProcessPoolFailed(_core.Error, RuntimeError):
    """The worker processes cannot be kept alive."""


class ProcessPool:
    """Worker processes, and the batches that they make.

    A subclass makes a setup (the settings of its workers: workers, shmpool, stacks, new_worker, opened, and packed
    where they may be started afresh), calls _prepare with it, and gives _result and _index.
    """

    def __init__(self, workers, *, context, in_order, lanes, memory_limit, cpu_limit, max_attempts, max_batches):
        check(workers=(workers, range(1, MAX_WORKERS + 1)))
        self._pid = os.getpid()
        self._context = context_of(context)
        reorder = reorder_window(workers, MAX_WORKERS)
        self._shmpool = _core.open_shmpool(max_workers=MAX_WORKERS, max_batches=max_batches, in_order=in_order,
                                           lanes=lanes, max_attempts=max_attempts, reorder_window=reorder)  # fmt: skip
        self._memory_limit = memory_limit
        self.window = PrefetchWindow(self._shmpool, workers, in_order=in_order, reorder=reorder,
                                     memory_limit=memory_limit)  # fmt: skip
        self._shmpool.set_ceiling(cpu_limit or 0)
        self._fds = [new_stacks()]
        self._workers = workers
        self._lock = threading.Lock()  # of messages of the zygote
        self._sizes = threading.Lock()  # of the number of workers, and of the controller
        self._ending = threading.RLock()  # several threads may close the pool
        self._redone = set()  # (tag, slot) that are made again
        self._indices = {}  # by tag: what the slots were posted for, until all are delivered
        self._open_slots = {}  # by tag: how many are not delivered yet
        self._dead_pids, self._zygotes, self._failure = [], 0, None
        self._last_death = "a worker process ended"
        self._mean_ns, self._waited = 0, False
        self._supervisor = self._setup = None
        self._adapt = self._controller = self._trace = None
        self._priority = 0
        self.at_end = None  # called with the pool and its stats() when it ends

    def _prepare(self, setup):
        """Set the pool up, without starting processes."""
        self._setup = setup
        self._checked = time.monotonic()
        self._supervisor = Supervisor(setup, self._context, early=True)
        _open_pools.add(self)
        _close_at_the_end()

    def start(self):
        """Start the processes, unless they run; next() does that, too.

        Best called after the first posts: the first worker finds work, and the main process, which copies each page
        that it writes after a fork, has little left to do.
        """
        supervisor = self._supervisor
        if supervisor is None or supervisor.is_started:
            return
        try:
            _core.defer_sigint(supervisor.start)  # an exception of a signal handler in a fork hook would be lost
        except BaseException:
            self.close()
            raise
        if self._adapt is not None and self._adapt.at_once:
            self._start_controller()

    # --- the controller ---

    _indices_are_ids = True  # of samples; else positions of the order

    def _traced(self):
        """Return {tag: [the index of each slot]} for a trace; empty where slots are no samples."""
        return self._indices

    def adapt(self, settings):
        """Let a controller turn the knobs, once the pool has run for a moment.  settings: an Adapt.

        To be called after window.begin_pass(), whose default the controller begins with, and before start(), so that no
        process is forked beside the controller's thread.
        """
        self._adapt, self._begun = settings, time.monotonic()
        self._trace = settings.trace
        self._shmpool.set_trace(settings.trace, self._traced(), self._indices_are_ids)

    def name_epoch(self, number):
        """Set the number of the epoch, for a trace.  What was posted before must be taken or cleared."""
        self._shmpool.set_epoch(number)

    def _start_controller(self):
        with self._sizes:  # another thread may start it, or close the pool
            if self._supervisor is None or self._adapt is None:
                return
            adapt, self._adapt = self._adapt, None
            self._controller = Controller(self, self._shmpool, adapt, workers=self._workers,
                                          prefetch=self.window.default, memory_limit=self._memory_limit)  # fmt: skip
            self.window.controller = self._controller
            self._controller.watch(self._supervisor.pid)

    @property
    def controller(self):
        """The Controller; None before it starts, and without one."""
        return self._controller

    def turn(self, knob, value):
        """Set a knob for the user: no policy changes it any more.  Starts the controller if there is none yet."""
        self._check_process()
        if self._controller is None:
            self._start_controller()
        if self._controller is not None:  # else it is closed
            self._controller.set(knob, value)
            self.follow(self._controller)

    def follow(self, knobs):
        """Apply the controller's values.  Called in its thread; reads them under the lock, as the
        user sets them, too."""
        with contextlib.suppress(OSError, ValueError), self._sizes:  # the connection may be closed meanwhile
            workers, priority = int(knobs.get("workers")), knobs.get("priority")
            if workers != self._workers:
                self._change_workers(workers)
            if priority != self._priority and self._supervisor is not None:
                self._priority = priority
                self._supervisor.send("renice", nice_of(priority))

    # --- posting ---

    @property
    def _cheap(self):
        """Whether handing samples over one by one would take longer than making them."""
        return 0 < self._mean_ns < CHEAP_NS

    def _check_process(self):
        """Raise in a forked child: it shares the board, and the main process would miss the results that it takes."""
        if os.getpid() != self._pid:
            raise _core.ForkedError("the worker processes belong to the parent process; make an iterator here")

    def _post(self, tag, index, n_slots, request, costs, worker, **options):
        self._check_process()
        self._indices[tag], self._open_slots[tag] = index, n_slots
        posted = self._shmpool.post(tag, n_slots, request, costs, worker, **options)
        if posted:
            self.window.posted()
        else:
            self._forget(tag)
        return posted

    def _forget(self, tag):
        del self._indices[tag], self._open_slots[tag]

    def post_end(self):
        """Say that nothing more is posted in this epoch."""
        self._check_process()
        self._shmpool.post_end()

    # --- taking ---

    def next(self, timeout=None):
        """Return the next Result, or None after timeout seconds.  Raises NothingPosted."""
        box = []
        return self.opened(box) if self.take(box, timeout) else None

    def take(self, box, timeout=None):
        """Append the next raw result to the box, a list; return False after timeout seconds.  Raises NothingPosted.

        A result is in the box even when the handler of a signal raises; opened() makes a Result of it.
        """
        self._check_process()
        if self._supervisor is None:
            raise RuntimeError("the pool is closed")
        self.start()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now - self._checked >= POLL_S:
                self._checked = now
                self._check_workers()
                if self._adapt is not None and now - self._begun >= BEGIN_S:
                    self._start_controller()
            left = POLL_S if end is None else min(POLL_S, max(0.0, end - now))
            status = self._shmpool.next(int(left * 1000), box)
            if status == READY:
                self._waited = time.monotonic() - now > WAITED_S
                return True
            if status == END:
                self._check_workers()
                raise NothingPosted("every batch that was posted is taken")
            if end is not None and time.monotonic() >= end:
                return False

    def opened(self, box):
        """Return the Result of what take() put into the box, and empty the box."""
        raw = box.pop()
        self.window.opened(raw, waited=self._waited)
        return self._result(raw)

    def _delivered(self, samples):
        """Note the samples of a result that was taken."""
        again = {(sample.tag, sample.slot) for sample in samples if sample.attempts > 1}
        if again:
            self._await_death_reports(again)
        for sample in samples:
            left = self._open_slots.get(sample.tag)
            if left is None:
                continue
            if left > 1:
                self._open_slots[sample.tag] = left - 1
            else:
                self._forget(sample.tag)
        self._mean_ns += (samples[0].ns - self._mean_ns) / 8

    def _await_death_reports(self, again):
        """Wait for the zygote's reports of workers that died at these samples, while their indices are known."""
        end = time.monotonic() + REPORT_S
        while not again <= self._redone and time.monotonic() < end:
            self._check_workers()
            time.sleep(REPORT_STEP_S)
        self._redone -= again

    def clear(self, timeout=None):
        """Discard all that is posted; return False when a worker is still busy with it after timeout seconds."""
        self._check_process()
        end = None if timeout is None else time.monotonic() + timeout
        while not self._shmpool.clear(int(POLL_S * 1000)):
            self._check_workers()
            if end is not None and time.monotonic() >= end:
                return False
        self._indices.clear()
        self._open_slots.clear()
        self._redone.clear()
        self.window.cleared()
        return True

    # --- workers ---

    def _check_workers(self):
        """Handle messages of the zygote, and replace it when it is gone."""
        with self._lock:
            try:
                for what, content in self._supervisor.messages() if self._supervisor else ():
                    if what == "failed":
                        self._failure = self._failure or content
                    else:
                        self._note_death(content)
            except ZygoteGone:
                self._failure = self._failure or self._supervisor.start_failure()
                if self._failure is None:
                    _core.defer_sigint(self._replace_zygote)
        if self._failure is not None:
            raise ProcessPoolFailed(f"the worker processes failed: {self._failure}")

    def _index(self, tag, slot):
        """Return what a slot was posted for; None where that is not known any more."""
        index = self._indices.get(tag)
        return index if index is None else index[slot]

    def _note_death(self, death):
        if death.exitcode is None:
            death = death._replace(exitcode=self._supervisor.first_worker_exitcode())
        self._dead_pids.append(death.pid)
        self._last_death = describe(death.worker, death.pid, death.exitcode)
        self._tell_death(death.worker, death.pid, death.redone, replaced=death.replaced, exitcode=death.exitcode)
        self._warn(self._last_death, death.redone, death.replaced)

    def _tell_death(self, worker, pid, redone, **more):
        """Write a death into the trace, which counts workers from 1."""
        tell(self._trace, "died", worker=worker + 1, pid=pid, redone=len(redone), **more)

    def _warn(self, who, redone, replaced):
        self._redone.update(redone)
        was = "was replaced" if replaced else "was not replaced"
        lost = ", ".join(repr(self._index(tag, slot)) for tag, slot in redone)
        again = f"made again: {lost}" if lost else "no sample is made again"
        warnings.warn(f"{who} and {was}; {again}", RuntimeWarning, stacklevel=2)

    def _replace_zygote(self):
        """Start a new zygote.  Its workers make again what the old ones had claimed."""
        pid, pids = self._supervisor.pid, self.pids
        self._zygotes += 1
        if self._zygotes >= MAX_ZYGOTES:
            self._failure = f"the process that starts them ended {self._zygotes} times"
            return
        self._supervisor.wait_for_workers(pids.values())
        self._supervisor.end()
        lost = {worker: self._shmpool.reap(worker) for worker in range(MAX_WORKERS)}  # also dismissed ones
        for worker, pid_of in pids.items():
            self._tell_death(worker, pid_of, lost[worker], replaced=True, zygote=pid)
        self._dead_pids.extend(pids.values())
        with self._sizes:
            self._supervisor = Supervisor(self._setup, self._context)
            self._supervisor.start()
            if self._workers != self._setup.workers:
                self._supervisor.send("resize", self._workers)
            if self._priority:
                self._supervisor.send("renice", nice_of(self._priority))
        if self._controller is not None:
            self._controller.watch(self._supervisor.pid)
        self._last_death = f"the zygote (pid {pid}) ended with workers {[*pids]}"
        self._warn(self._last_death, [sample for redone in lost.values() for sample in redone], True)

    @property
    def pids(self):
        """{worker: pid} of the workers that are attached."""
        at = ((worker, self._shmpool.worker_at(worker).pid) for worker in range(MAX_WORKERS))
        return {worker: pid for worker, pid in at if pid}

    @property
    def zygote_pid(self):
        """The pid of the zygote."""
        return self._supervisor.pid

    @property
    def workers(self):
        """How many workers there should be."""
        return self._workers

    def resize(self, workers):
        """Change the number of workers.  Those that are too many finish their claims first."""
        self._check_process()
        check(workers=(workers, range(1, MAX_WORKERS + 1)))
        if self._controller is not None:
            self._controller.set("workers", workers)
        elif self._adapt is not None:
            self._adapt = self._adapt._replace(pinned=(*self._adapt.pinned, "workers"))
        with self._sizes:
            if self._supervisor is not None:
                self.window.resize(workers)
            self._change_workers(workers)

    def _change_workers(self, workers):
        if self._supervisor is None:
            return
        self._workers = workers
        self.window.set_workers(workers)
        self._supervisor.send("resize", workers)

    def stuck(self, seconds):
        """Return a Stuck for each worker that has been busy with one sample, or one collate, for longer than that."""
        found, now = [], time.monotonic_ns()
        for worker in range(MAX_WORKERS):
            at = self._shmpool.worker_at(worker)
            if at.pid and at.kind and now - at.since_ns > seconds * 1e9:
                stack, index = stack_of(at.pid, self._setup.stacks), self._index(at.tag, at.slot)
                found.append(Stuck(worker, at.pid, at.tag, at.slot, index, (now - at.since_ns) / 1e9, stack))
        return found

    def kill_stuck(self, worker):
        """Kill a worker.  Its sample is given up, as a bad one."""
        self._check_process()
        self._supervisor.send("kill", worker)

    @property
    def deaths(self):
        """How many workers died so far."""
        return len(self._dead_pids)

    def stats(self):
        """Return counters as a dict: those of dr_shmpool_stats, and deaths.  After close(), only deaths are known."""
        shmpool = self._shmpool
        return {**(shmpool.stats() if shmpool is not None else {}), "deaths": self.deaths}

    # --- the end ---

    def dismiss(self):
        """Let the processes leave: everything was taken and nothing more is posted.  close() is quicker then."""
        self._check_process()
        supervisor = self._supervisor
        if supervisor is not None:
            supervisor.dismiss()

    def close(self):
        """End all processes.  Results that were taken stay valid."""
        if not self._fds:  # closed; at the end of the program even os may be gone
            return
        if os.getpid() != self._pid:
            if self._supervisor is not None:
                self._supervisor.end()
            return
        with self._ending:
            if self._fds:
                _core.defer_sigint(self._end)  # interrupted half-way, a process would be left behind

    def _end(self):
        _open_pools.discard(self)
        with self._sizes:
            supervisor, self._supervisor = self._supervisor, None
        with contextlib.ExitStack() as at_last:  # also when the handler of a signal raises in a wait
            at_last.callback(self._end_shmpool)
            if supervisor is not None:
                at_last.callback(supervisor.end)
            if self._controller is not None:
                self._controller.end()

    def _end_shmpool(self):
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        tell, self.at_end = self.at_end, None
        if tell is not None:
            tell(self, self.stats())
        self.window.close()
        self._shmpool.close_fd()  # no process joins any more, and results may keep the memory for long
        self._shmpool = self._setup = None

    def __del__(self):
        if getattr(self, "_fds", None):
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def nice_of(priority):
    """Return the nice value of a priority.  Priorities above 0 would need privileges, and are not used."""
    return 10 if priority < 0 else 0


def check(**settings):
    """Raise ValueError on a setting, given as (value, allowed), that is not allowed."""
    for name, (value, allowed) in settings.items():
        if value not in allowed:
            text = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else " or ".join(map(repr, allowed))
            raise ValueError(f"{name} must be {text}, got {value!r}")


@atexit.register
def _close_all():
    for pool in list(_open_pools):
        pool.close()


@functools.cache
def _finalizer(_pid):
    return util.Finalize(None, _close_all, exitpriority=100)


def _close_at_the_end():
    """Close all pools when this process ends.  Processes of multiprocessing run no atexit, and wait
    for their children."""
    _finalizer(os.getpid())
