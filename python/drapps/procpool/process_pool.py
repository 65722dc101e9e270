"""Processes: worker processes, seen from the process that trains, whatever it is that they make.

The trainer posts batches and takes results.  Who makes which sample, the order of results and the replacement of dead
workers are the business of the shmpool (drapps/shmpool.h), the workers and the zygote.  What a batch is asked for with, and
what becomes of its samples, a subclass and its kind of worker say: pool.py for data sets of torch, chain.py for chains
with Python functions.  Nothing here needs torch.
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
from drapps.procpool.supervisor import Keeper, ZygoteGone, context_of
from drapps.procpool.pool_controller import BEGIN_S, Controller
from drapps.procpool.worker_diagnostics import new_stacks, stack_of
from drapps.procpool.prefetch_window import PrefetchWindow, reorder_window
from drapps.procpool.zygote import describe
from drapps.trace import tell

READY, AGAIN, END = range(3)
CLAIM_NS = 1_000_000
CHEAP_NS = 1_000_000  # samples below that are not spread over workers when each would have to be packed
TOGETHER_NS = 1_000_000_000
LOOK_S = 0.1
WAITED_S = 0.0005
HEAR_S, HEAR_STEP_S = 1.0, 0.001
MAX_WORKERS = 256
MAX_BATCHES = 1024
MAX_ZYGOTES = 16  # that may be killed

Stuck = namedtuple("Stuck", "worker pid tag slot index seconds stack")

_open_pools = weakref.WeakSet()


class NothingPosted(LookupError):
    """next() was called, and every batch that was posted is taken."""


class ProcessPoolFailed(_core.Error, RuntimeError):
    """The worker processes cannot be kept alive."""


class ProcessPool:
    """Worker processes and what they are at.

    A subclass makes a setup (the settings of its workers: workers, shmpool, stacks, new_worker, opened; parcel where they
    are not always forked), calls _prepare with it, and gives _result and _index.
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
        self._lock = threading.Lock()  # of what is heard from the zygote
        self._sizes = threading.Lock()  # of changes of the number of workers
        self._ending = threading.RLock()  # several threads may close it, at the end of the program above all
        self._redone = set()  # (tag, slot) that are made again
        self._pending = {}  # tag: [indices, slots that are not delivered yet]
        self._dead_pids, self._zygotes, self._failure = [], 0, None
        self._last_death = "a worker process ended"
        self._mean_ns, self._waited = 0, False
        self._keeper = self._setup = None
        self._adapt = self._controller = self._trace = None
        self._priority = 0
        self.at_end = None  # called with itself and stats() when it ends

    def _prepare(self, setup):
        """All is there but the processes."""
        self._setup = setup
        self._looked = time.monotonic()
        self._keeper = Keeper(setup, self._context, early=True)
        _open_pools.add(self)
        _close_at_the_end()

    def start(self):
        """The processes begin, when they have not yet; next() does it too.

        Best after the first posts: the first worker finds something to do, and the trainer, which copies each page that
        it writes after a fork, has little left to do.
        """
        keeper = self._keeper
        if keeper is None or keeper.is_started:
            return
        try:
            _core.defer_sigint(keeper.start)  # what a signal's handler raises in a hook of fork is lost
        except BaseException:
            self.close()
            raise
        if self._adapt is not None and self._adapt.at_once:
            self._take_off()

    # --- the controller ---

    _indices_are_ids = True  # of samples; else positions of the order

    def _traced(self):
        """{tag: [the index of each slot, ...]} for a trace, as far as slots are samples."""
        return self._pending

    def adapt(self, settings):
        """Let a controller turn the knobs, once the pool has run for a moment.  settings: an Adapt.

        To be called after window.begin_pass(), whose default the controller begins with, and before start(), so that no
        process is forked beside the controller's thread.
        """
        self._adapt, self._begun = settings, time.monotonic()
        self._trace = settings.trace
        self._shmpool.set_trace(settings.trace, self._traced(), self._indices_are_ids)

    def name_epoch(self, number):
        """The epoch that begins now, for a trace.  What was posted before has to be taken or cleared."""
        self._shmpool.set_epoch(number)

    def _take_off(self):
        with self._sizes:  # another thread may take off, or close the pool
            if self._keeper is None or self._adapt is None:
                return
            adapt, self._adapt = self._adapt, None
            self._controller = Controller(self, self._shmpool, adapt, workers=self._workers,
                                          prefetch=self.window.default, memory_limit=self._memory_limit)  # fmt: skip
            self.window.controller = self._controller
            self._controller.watch(self._keeper.pid)

    @property
    def controller(self):
        """None before it begins, and without one."""
        return self._controller

    def turn(self, knob, value):
        """The user turns a knob of the controller, which begins now where it has not yet: it is the user's from then on."""
        self._check_process()
        if self._controller is None:
            self._take_off()
        if self._controller is not None:  # else it is closed
            self._controller.set(knob, value)
            self.follow(self._controller)

    def follow(self, knobs):
        """Does what the controller proposals, in its thread.  The knobs are read under the lock: the user turns them, too."""
        with contextlib.suppress(OSError, ValueError), self._sizes:  # of a connection that is closed meanwhile
            workers, priority = int(knobs.get("workers")), knobs.get("priority")
            if workers != self._workers:
                self._change_workers(workers)
            if priority != self._priority and self._keeper is not None:
                self._priority = priority
                self._keeper.send("renice", nice_of(priority))

    # --- posting ---

    @property
    def _cheap(self):
        """Whether samples take so little time that handing them over one by one would take more."""
        return 0 < self._mean_ns < CHEAP_NS

    def _check_process(self):
        """A forked child has the same board before it: what it takes, the trainer would miss."""
        if os.getpid() != self._pid:
            raise _core.ForkedError("the worker processes belong to the parent process; make an iterator here")

    def _post(self, tag, index, n_slots, request, costs, worker, **options):
        self._check_process()
        self._pending[tag] = [index, n_slots]
        posted = self._shmpool.post(tag, n_slots, request, costs, worker, **options)
        if posted:
            self.window.posted()
        else:
            del self._pending[tag]
        return posted

    def post_end(self):
        """Nothing more is posted in this epoch."""
        self._check_process()
        self._shmpool.post_end()

    # --- taking ---

    def next(self, timeout=None):
        """The next Result; None after timeout seconds.  Raises NothingPosted."""
        box = []
        return self.opened(box) if self.take(box, timeout) else None

    def take(self, box, timeout=None):
        """Puts what the workers made next into the box, a list; False after timeout seconds.  Raises NothingPosted.

        What is in the box is there also when a signal's handler ends the call; opened() makes a Result of it.
        """
        self._check_process()
        if self._keeper is None:
            raise RuntimeError("the pool is closed")
        self.start()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now - self._looked >= LOOK_S:
                self._looked = now
                self._look_after()
                if self._adapt is not None and now - self._begun >= BEGIN_S:
                    self._take_off()
            left = LOOK_S if end is None else min(LOOK_S, max(0.0, end - now))
            status = self._shmpool.next(int(left * 1000), box)
            if status == READY:
                self._waited = time.monotonic() - now > WAITED_S
                return True
            if status == END:
                self._look_after()
                raise NothingPosted("every batch that was posted is taken")
            if end is not None and time.monotonic() >= end:
                return False

    def opened(self, box):
        """The Result of what take() put into the box, which is empty then."""
        raw = box.pop()
        self.window.opened(raw, waited=self._waited)
        return self._result(raw)

    def _delivered(self, samples):
        """Notes what the shmpool said of samples that were taken."""
        again = {(sample.tag, sample.slot) for sample in samples if sample.attempts > 1}
        if again:
            self._hear_of(again)
        for sample in samples:
            pending = self._pending.get(sample.tag)
            if pending is not None:
                pending[1] -= 1
                if pending[1] <= 0:
                    del self._pending[sample.tag]
        self._mean_ns += (samples[0].ns - self._mean_ns) / 8

    def _hear_of(self, again):
        """Workers died at these samples: the zygote has said so, or is about to.  The warning names what is pending."""
        end = time.monotonic() + HEAR_S
        while not again <= self._redone and time.monotonic() < end:
            self._look_after()
            time.sleep(HEAR_STEP_S)
        self._redone -= again

    def clear(self, timeout=None):
        """Gives up all that is posted; False when a worker is still at it after timeout seconds."""
        self._check_process()
        end = None if timeout is None else time.monotonic() + timeout
        while not self._shmpool.clear(int(LOOK_S * 1000)):
            self._look_after()
            if end is not None and time.monotonic() >= end:
                return False
        self._pending.clear()
        self._redone.clear()
        self.window.cleared()
        return True

    # --- workers ---

    def _look_after(self):
        """Hears from the zygote, and replaces it when it is gone."""
        with self._lock:
            try:
                for what, told in self._keeper.messages() if self._keeper else ():
                    if what == "failed":
                        self._failure = self._failure or told
                    else:
                        self._note_death(told)
            except ZygoteGone:
                self._failure = self._failure or self._keeper.start_failure()
                if self._failure is None:
                    _core.defer_sigint(self._replace_zygote)
        if self._failure is not None:
            raise ProcessPoolFailed(f"the worker processes failed: {self._failure}")

    def _index(self, tag, slot):
        """What a slot was posted for."""
        index = self._pending.get(tag, (None,))[0]
        return index if index is None else index[slot]

    def _note_death(self, death):
        if death.exitcode is None:
            death = death._replace(exitcode=self._keeper.first_exitcode())
        self._dead_pids.append(death.pid)
        self._last_death = describe(death.worker, death.pid, death.exitcode)
        self._tell_death(death.worker, death.pid, death.redone, replaced=death.replaced, exitcode=death.exitcode)
        self._warn(self._last_death, death.redone, death.replaced)

    def _tell_death(self, worker, pid, redone, **more):
        """For the trace, which counts workers from 1 on."""
        tell(self._trace, "died", worker=worker + 1, pid=pid, redone=len(redone), **more)

    def _warn(self, who, redone, replaced):
        self._redone.update(redone)
        was = "was replaced" if replaced else "was not replaced"
        lost = ", ".join(repr(self._index(tag, slot)) for tag, slot in redone)
        warnings.warn(f"{who} and {was}; {f'made again: {lost}' if lost else 'no sample was lost'}", RuntimeWarning,
                      stacklevel=2)  # fmt: skip

    def _replace_zygote(self):
        """What its workers had claimed is done again by the new one's."""
        pid, pids = self._keeper.pid, self.pids
        self._zygotes += 1
        if self._zygotes >= MAX_ZYGOTES:
            self._failure = f"the process that starts them ended {self._zygotes} times"
            return
        self._keeper.wait_for_workers(pids.values())
        self._keeper.end()
        lost = {worker: self._shmpool.reap(worker) for worker in range(MAX_WORKERS)}  # also dismissed ones
        for worker, pid_of in pids.items():
            self._tell_death(worker, pid_of, lost[worker], replaced=True, zygote=pid)
        self._dead_pids.extend(pids.values())
        with self._sizes:
            self._keeper = Keeper(self._setup, self._context)
            self._keeper.start()
            if self._workers != self._setup.workers:
                self._keeper.send("resize", self._workers)
            if self._priority:
                self._keeper.send("renice", nice_of(self._priority))
        if self._controller is not None:
            self._controller.watch(self._keeper.pid)
        self._last_death = f"the zygote (pid {pid}) ended with workers {[*pids]}"
        self._warn(self._last_death, [sample for redone in lost.values() for sample in redone], True)

    @property
    def pids(self):
        """The process of each worker that is there, by its number."""
        at = ((worker, self._shmpool.worker_at(worker).pid) for worker in range(MAX_WORKERS))
        return {worker: pid for worker, pid in at if pid}

    @property
    def zygote_pid(self):
        """The process that workers are forked from."""
        return self._keeper.pid

    @property
    def workers(self):
        """How many there should be."""
        return self._workers

    def resize(self, workers):
        """More or fewer workers, from now on; those that are too many finish what they are at."""
        self._check_process()
        check(workers=(workers, range(1, MAX_WORKERS + 1)))
        if self._controller is not None:
            self._controller.set("workers", workers)
        elif self._adapt is not None:
            self._adapt = self._adapt._replace(pinned=(*self._adapt.pinned, "workers"))
        with self._sizes:
            if self._keeper is not None:
                self.window.resize(workers)
            self._change_workers(workers)

    def _change_workers(self, workers):
        if self._keeper is None:
            return
        self._workers = workers
        self.window.set_workers(workers)
        self._keeper.send("resize", workers)

    def stuck(self, seconds):
        """Workers that have been at one sample, or at putting one batch together, for longer than that."""
        found, now = [], time.monotonic_ns()
        for worker in range(MAX_WORKERS):
            at = self._shmpool.worker_at(worker)
            if at.pid and at.kind and now - at.since_ns > seconds * 1e9:
                stack, index = stack_of(at.pid, self._setup.stacks), self._index(at.tag, at.slot)
                found.append(Stuck(worker, at.pid, at.tag, at.slot, index, (now - at.since_ns) / 1e9, stack))
        return found

    def kill_stuck(self, worker):
        """Ends a worker; the sample that it is at is given up, as a bad one."""
        self._check_process()
        self._keeper.send("kill", worker)

    @property
    def deaths(self):
        """Workers that died so far."""
        return len(self._dead_pids)

    def stats(self):
        """Counters, as a dict: see dr_shmpool_stats; and deaths, of workers, which alone are known after the end."""
        shmpool = self._shmpool
        return {**(shmpool.stats() if shmpool is not None else {}), "deaths": self.deaths}

    # --- the end ---

    def dismiss(self):
        """Everything was taken and nothing more is posted: the processes leave meanwhile, and close() is quicker."""
        self._check_process()
        keeper = self._keeper
        if keeper is not None:
            keeper.dismiss()

    def close(self):
        """Ends all processes.  Results that were taken stay valid."""
        if not self._fds:  # closed: at the end of the program even os may be gone
            return
        if os.getpid() != self._pid:
            if self._keeper is not None:
                self._keeper.end()
            return
        with self._ending:
            if self._fds:
                _core.defer_sigint(self._end)  # half-way, a process would be left that nobody knows

    def _end(self):
        _open_pools.discard(self)
        with self._sizes:
            keeper, self._keeper = self._keeper, None
        with contextlib.ExitStack() as at_last:  # also when a signal's handler ends a wait
            at_last.callback(self._end_shmpool)
            if keeper is not None:
                at_last.callback(keeper.end)
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
        self._shmpool.close_fd()  # nobody joins any more, and results may keep the memory for long
        self._shmpool = self._setup = None

    def __del__(self):
        if getattr(self, "_fds", None):
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def nice_of(priority):
    """What the kernel calls it.  Above 0 is for privileged users, and so not used."""
    return 10 if priority < 0 else 0


def check(**settings):
    """Raises ValueError on a setting, given as (value, allowed), that is not allowed."""
    for name, (value, allowed) in settings.items():
        if value not in allowed:
            text = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else " and ".join(map(repr, allowed))
            raise ValueError(f"{name} is {value!r}, allowed are {text}")


@atexit.register
def _close_all():
    for pool in list(_open_pools):
        pool.close()


@functools.cache
def _finalizer(_pid):
    return util.Finalize(None, _close_all, exitpriority=100)


def _close_at_the_end():
    """Processes of multiprocessing run no atexit, and wait for their children when they end."""
    _finalizer(os.getpid())
