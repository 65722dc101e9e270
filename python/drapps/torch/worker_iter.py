"""WorkerIter: what passes in worker processes have in common: the workers, a window of batches, waiting, the end."""

import math
import threading
import time
from functools import partial

from torch._utils import ExceptionWrapper

from drapps import _core
from drapps.passes.bad_samples import note_samples
from drapps.procpool.dataset_pool import DatasetPool, NothingPosted
from drapps.procpool.pool_controller import CONTROLLER_KNOBS
from drapps.torch import workers
from drapps.torch.iterator import Iterator, pinned
from drapps.torch.explain import settings_of
from drapps.torch.state import length_of

LATER = 0.01
START_S = 0.003  # for posts before the workers start: a sampler may take its time


class WorkerIter(Iterator):
    """Keeps the prefetch window of its pool full (procpool/prefetch_window.py).

    A subclass gives _open (the pool), _setup, _post and _accept.
    """

    _by_worker = True  # a batch is made by one worker
    _limit_started = False  # large batches are begun one after the other
    _held = ()  # what was received before its turn

    def __init__(self, loader):
        self._pool = None
        self._learnt = loader._tuning.learnt
        wanted = self._learnt.get("workers", int(loader.num_workers))
        self._n_workers = workers.share(self, wanted, loader.num_workers.decided)
        super().__init__(loader)

    def _begun(self, loader, resume):
        super()._begun(loader, resume)
        self._bad_list = loader._bad_list
        self._limit = loader.timeout or None
        self._tuning = loader._tuning
        self._exhausted, self._left = False, None
        self._turn = threading.RLock()
        is_new = self._pool is None
        if is_new:
            self._pool = self._open(loader, resume)
            loader._counters.watch(self._pool)
        self._begin_window(loader)
        if is_new:
            self._pool.adapt(self._controller_settings(loader))
        if self._progress.draws["kept_seeds"]:  # also where a pass goes on that was not the first of its workers
            self._pool.begin_epoch(self._base_seed, self._shared_seed)
        self._pool.name_epoch(self._progress.epoch)
        self._setup(loader, resume)
        self._tell_begin()
        try:
            filled = _core.defer_sigint(self._fill, START_S)
            self._pool.start()
            self._turn_what_was_said()
            if not filled:
                _core.defer_sigint(self._fill)
        except BaseException:
            self._shutdown_workers()
            raise

    def _begin_window(self, loader):
        override = self._tuning.overrides.get("prefetch", 0)
        default = override or self._learnt.get("prefetch", loader.prefetch_factor * self._n_workers)
        is_given = "prefetch" in self._tuning.pinned and not override
        batch_samples = loader.batch_size or (1 if loader.batch_sampler is None else self._n_workers)
        self._window = self._pool.window
        self._window.begin_pass(default, override=override, per_worker=loader.prefetch_factor if is_given else 0,
                                batch_samples=batch_samples, by_worker=self._by_worker,
                                limit_started=self._limit_started)  # fmt: skip

    def _turn_what_was_said(self):
        """Knobs that take a controller; the others the pool was opened with."""
        for knob, value in list(self._tuning.overrides.items()):
            if knob in CONTROLLER_KNOBS:
                self._pool.turn(knob, value)

    def _open_pool(self, loader, dataset, collate_fn, **options):
        context = "fork" if loader._may_be_inline else loader.multiprocessing_context  # None would settle the program's
        return DatasetPool(dataset, collate_fn, workers=self._n_workers, auto_collation=self._auto_collation,
                     drop_last=self._drop_last, base_seed=self._workers_seed, shared_seed=self._shared_seed,
                     context=context, in_order=self._order.config.in_order, lanes=loader.lanes,
                     memory_limit=loader.memory_limit, cpu_limit=loader.cpu_limit, **options)  # fmt: skip

    def _controller_settings(self, loader):
        settings = {**settings_of(loader), "workers": self._n_workers, "prefetch": self._window.default}
        n_samples = None if loader._iterable else length_of(loader.dataset)
        return self._tuning.of_processes(type(loader.dataset).__name__, loader.cpu_limit, settings,
                                           ("workers",) if loader._iterable else (),
                                           **({} if n_samples is None else {"samples": n_samples}))  # fmt: skip

    def _tell_begin(self):
        """For the trace: the pass, and its bad samples."""
        epoch = self._progress.epoch
        self._bad.tell = partial(self._tuning.tell, "bad", epoch=epoch)
        self._tuning.tell("start", epoch=epoch, workers=self._pool.workers, prefetch=self._ahead())

    def _alive(self):
        return self._pool is not None

    def _leave_pass(self):
        if self._under_way and not self._pool.clear(self._limit):
            for stuck in self._pool.stuck(0):
                self._pool.kill_stuck(stuck.worker)
            self._pool.clear()

    # --- the prefetch window ---

    @property
    def _under_way(self):
        return self._window.in_flight

    def _ahead(self):
        """How many batches should be in flight."""
        return self._window.batches

    def _fill(self, seconds=math.inf):
        """Posts until the prefetch window is full; False: it took too long."""
        controller, end = self._pool.controller, time.monotonic() + seconds
        if controller is not None:
            self._tuning.attach(controller)
        for _ in range(self._window.room()):
            if self._exhausted:
                break
            try:
                work = self._left or next(self._order)
            except StopIteration:
                self._exhausted = True
                self._pool.post_end()
                break
            self._left = None if self._post(work) else work
            if self._left:
                break
            if time.monotonic() > end:
                return False
        return True

    def _next_data(self):
        hand = self._progress.hand()
        while not hand.waits:
            with self._turn:
                if self._held:
                    _core.defer_sigint(self._offer, hand, self._take_held)
                if not hand.waits and not hand.box and self._over():
                    self._finish()
                    raise StopIteration
            if not hand.waits and (hand.box or self._wait(hand.box)):
                _core.defer_sigint(self._offer, hand, partial(self._receive, hand.box))

    def _offer(self, hand, receive):
        """What was received, if that is a batch, goes to the hand; an error of one is raised."""
        with self._turn:
            received = receive()
            if received is None:
                return
            value, n_samples, commit = received
            if isinstance(value, ExceptionWrapper):
                self._look_at(value)
                self._progress.lost(commit)
                self._fill()
                self._reraise(value)
            self._progress.offer(hand, pinned(self, value), n_samples, commit)
            self._fill()
            pool = self._pool  # which another thread may close
            if pool is not None and self._over() and not self._persistent_workers:
                pool.dismiss()  # that was the last batch: they leave while it is used

    def _reraise(self, wrapper):
        """Raises what a batch came to; failed_at: indices of the samples, where it was one."""
        try:
            wrapper.reraise()
        except Exception as error:
            if getattr(wrapper, "failed_at", None):
                note_samples(error, wrapper.failed_at, self._bad_list)
            raise

    def _look_at(self, wrapper):
        """An error that a batch came to, before it counts as one."""

    def _receive(self, box):
        """(batch or its error, samples, what to call once it is delivered); None: nothing to deliver now."""
        try:
            received = self._accept(self._pool.opened(box))
        except _core.BadSampleError as error:
            self._give_up_if_too_many(error)
            raise
        if received is None:
            self._fill()
        return received

    def _take_held(self):
        """The one of `_held` whose turn it is, if it is there."""
        return None

    def _over(self):
        return self._exhausted and self._under_way == 0

    def _finish(self):
        if not self._persistent_workers:
            self._shutdown_workers()

    # --- waiting ---

    def _wait(self, box):
        """Whether the next result is in the box; False: nothing is in flight any more."""
        while True:
            pool = self._pool
            if pool is None:
                return self._ended()
            try:
                if pool.take(box, self._limit):
                    return True
            except NothingPosted:
                time.sleep(LATER if self._under_way else 0)  # another thread has the last one in its hands
                return False
            except Exception:
                if self._pool is pool:
                    raise
                return self._ended()  # by another thread
            self._late(pool)

    def _ended(self):
        """The workers are gone: because all is done, or too early."""
        if not self._over():
            raise _core.StateError(self._progress.invalid or "this iteration was given up: its workers were ended")
        return False

    def _late(self, pool):
        """Nothing came for `timeout` seconds: an error, or the samples that are stuck are bad ones."""
        stuck = sorted(pool.stuck(self._limit * 0.9), key=lambda at: -at.seconds)
        if self._bad.policy == "raise" or not stuck:
            raise RuntimeError(f"DataLoader timed out after {self._limit} seconds" + "".join(map(_where, stuck)))
        for at in stuck:
            pool.kill_stuck(at.worker)

    # --- the end ---

    def _set_knob(self, knob, value):
        with self._turn:
            if self._pool is None:
                return
            if knob == "workers":
                self._pool.resize(value)
                self._n_workers = value
            else:
                self._pool.turn(knob, value)
            if knob == "prefetch":
                self._window.override(value)

    def _shutdown_workers(self):
        pool, self._pool = self._pool, None
        workers.give_back(self)
        if pool is not None:
            self._learn(pool)
            pool.close()

    def _learn(self, pool):
        """The next pass begins where the controller has left this one."""
        for knob in ("workers", "prefetch"):
            if pool.controller is not None and knob not in self._tuning.pinned:
                self._learnt[knob] = int(pool.controller.get(knob))

    def __del__(self):
        """At the end of the program, modules may be gone: nothing but the pool is touched."""
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool.close()


def _where(at):
    return (f"; worker {at.worker} (pid {at.pid}) has been at sample {at.index!r} for {at.seconds:.1f} seconds:\n"
            f"{at.stack}")  # fmt: skip
