"""PoolIter: a pass whose batches are made in worker processes.

It waits for results and hands batches to the consumer's threads.  The rest is done by its parts, which it owns:

    pool       the worker processes (procpool/dataset_pool.py), kept from pass to pass with persistent_workers
    poster     posts the batches of the order while the pool's prefetch window has room (procpool/prefetch_window.py)
    collector  posts one batch, and makes the consumer's batch of a result: sample_collector.py, stream_collector.py
    rest       what makes the rest of the pass in the caller, where samples cannot be sent
"""

import math
import threading
import time
import warnings
from functools import partial

from torch._utils import ExceptionWrapper

from drapps import _core
from drapps.passes.bad_samples import note_samples
from drapps.procpool.dataset_pool import DatasetPool, NothingPosted
from drapps.procpool.pack import PackError
from drapps.procpool.prefetch_window import Poster
from drapps.procpool.tuning import CONTROLLER_KNOBS
from drapps.torch import workers
from drapps.torch.iterator import Iterator, pinned
from drapps.torch.sample_collector import SampleCollector
from drapps.torch.samplers import length_of, settings_of
from drapps.torch.stream_collector import Noting, StreamCollector

LATER = 0.01
START_S = 0.003  # for posts before the workers start: a sampler may take its time


class Unsendable(Exception):
    """Samples cannot leave a worker process."""


class InlineRest:
    """Makes the rest of a pass in the caller.

    loader: None where that is not allowed, because the user asked for processes.
    """

    def __init__(self, loader):
        self._loader = loader
        self._before = None  # the progress until then
        self.iterator = None  # which makes the rest; None: nothing had to be

    @property
    def is_allowed(self):
        """Whether the pass may continue in the caller."""
        return self._loader is not None

    def begin(self, progress):
        """As torch would have begun the pass."""
        self._before = progress
        progress.hands.commit_offers()
        self.iterator = self._loader._continue_inline(progress)

    def give(self):
        """The next batch: one that the thread did not get before, or a new one."""
        hand = self._before.hands.mine()
        return hand.take() if hand.waits else next(self.iterator)


class PoolIter(Iterator):
    """Batches of worker processes."""

    def __init__(self, loader):
        self._pool = None
        wanted = loader._tuning.learnt.get("workers", int(loader.num_workers))
        self._n_workers = workers.share(self, wanted, loader.num_workers.decided)
        super().__init__(loader)

    def _begun(self, loader, resume):
        super()._begun(loader, resume)
        self._tuning, self._timeout = loader._tuning, loader.timeout
        self._turn = threading.RLock()
        is_new = self._pool is None
        if is_new:
            self._pool = self._open_pool(loader, resume)
            loader._counters.watch(self._pool)
        self._begin_window(loader)
        if is_new:
            self._pool.adapt(self._controller_settings(loader))
        if self._progress.drawn.draws["kept_seeds"]:  # also where a pass goes on that was not the first of its workers
            self._pool.begin_epoch(self._base_seed, self._shared_seed)
        self._pool.name_epoch(self._progress.epoch)
        self._collector = self._stream_collector(loader, resume) if loader._iterable else self._sample_collector(loader)
        self._poster = Poster(self._pool, self._order, self._collector.post)
        self._rest = InlineRest(loader if loader._may_be_inline and not loader._iterable else None)
        self._tell_begin()
        self._start_pool()

    def _open_pool(self, loader, resume):
        if loader._iterable:
            saved = resume["dataset"]["workers"] if resume else []
            dataset, collate_fn = self._dataset, Noting(self._collate_fn, self._auto_collation)
            options = {"kind": "iterable", "states": [state for _, state, _ in saved]}
        else:
            dataset, collate_fn = loader._plan.dataset, self._collate_fn
            options = {"bad": "raise" if self._bad.policy == "raise" else "report"}
        context = "fork" if loader._may_be_inline else loader.multiprocessing_context  # None would settle the program's
        return DatasetPool(dataset, collate_fn, workers=self._n_workers, auto_collation=self._auto_collation,
                           drop_last=self._drop_last, base_seed=self._workers_seed, shared_seed=self._shared_seed,
                           worker_init_fn=workers.init_fn_of(loader, self), context=context,
                           in_order=self._order.config.in_order, lanes=loader.lanes, memory_limit=loader.memory_limit,
                           cpu_limit=loader.cpu_limit, **options)  # fmt: skip

    def _begin_window(self, loader):
        override = self._tuning.overrides.get("prefetch", 0)
        default = override or self._tuning.learnt.get("prefetch", loader.prefetch_factor * self._n_workers)
        is_given = "prefetch" in self._tuning.pinned and not override
        batch_samples = loader.batch_size or (1 if loader.batch_sampler is None else self._n_workers)
        self._pool.begin_window(default, override=override, per_worker=loader.prefetch_factor if is_given else 0,
                                batch_samples=batch_samples)  # fmt: skip

    def _sample_collector(self, loader):
        config, pool = self._order.config, self._pool
        costs = None if pool.whole else loader._sample_costs()
        pool.expect(costs.median() if costs else 0)
        pool.window.expect_samples(loader.prefetch_factor, loader.batch_size,
                                   mixes=config.mixable and not config.in_order,
                                   longest=costs.longest_by_mean() if costs else 0)  # fmt: skip
        return SampleCollector(pool, config, self._progress, self._bad, costs, batched=self._auto_collation)

    def _stream_collector(self, loader, resume):
        return StreamCollector(self._pool, self._progress, resume and resume["dataset"], size=loader.batch_size,
                               in_order=loader.in_order, batched=self._auto_collation)  # fmt: skip

    def _controller_settings(self, loader):
        settings = {**settings_of(loader), "workers": self._n_workers, "prefetch": self._pool.window.default}
        n_samples = None if loader._iterable else length_of(loader.dataset)
        return self._tuning.of_processes(type(loader.dataset).__name__, loader.cpu_limit, settings,
                                         ("workers",) if loader._iterable else (),
                                         **({} if n_samples is None else {"samples": n_samples}))  # fmt: skip

    def _tell_begin(self):
        """For the trace: the pass, and its bad samples."""
        epoch = self._progress.epoch
        self._bad.tell = partial(self._tuning.tell, "bad", epoch=epoch)
        self._tuning.tell("start", epoch=epoch, workers=self._pool.workers, prefetch=self._pool.window.batches)

    def _start_pool(self):
        """The first worker should find work, but not wait for a slow sampler."""
        try:
            filled = _core.defer_sigint(self._fill, START_S)
            self._pool.start()
            for knob, value in list(self._tuning.overrides.items()):
                if knob in CONTROLLER_KNOBS:  # the pool was opened with the others
                    self._pool.turn(knob, value)
            if not filled:
                _core.defer_sigint(self._fill)
        except BaseException:
            self._shutdown_workers()
            raise

    def _alive(self):
        return self._pool is not None

    def _leave_pass(self):
        if self._pool.window.in_flight and not self._pool.clear(self._timeout or None):
            for stuck in self._pool.stuck(0):
                self._pool.kill_stuck(stuck.worker)
            self._pool.clear()

    # --- giving batches to consumers ---

    def _give(self):
        """Of several threads, one goes inline while others wait for workers, or have a batch in their hands."""
        if self._rest.iterator is None:
            try:
                return super()._give()
            except Exception as error:
                if self._rest.iterator is None:
                    raise
                why = error.args[0] if isinstance(error, Unsendable) and error.args else None
            if why:
                _core.defer_sigint(self._shutdown_workers)
                warnings.warn(f"batches are made in this process, as with num_workers=0: {why}", RuntimeWarning,
                              stacklevel=3)  # fmt: skip
        if self._pool is not None:  # a signal came before they were ended
            _core.defer_sigint(self._shutdown_workers)
        return self._rest.give()

    def _next_data(self):
        hand = self._progress.hands.mine()
        while not hand.waits:
            with self._turn:
                if self._collector.holds:
                    _core.defer_sigint(self._offer, hand, self._collector.take_held)
                if not hand.waits and not hand.box and self._is_over():
                    self._finish()
                    raise StopIteration
            if not hand.waits and (hand.box or self._wait(hand.box)):
                _core.defer_sigint(self._offer, hand, partial(self._receive, hand.box))

    def _is_over(self):
        return self._rest.iterator is None and self._collector.is_over(self._poster)

    def _fill(self, seconds=math.inf):
        """Posts until the prefetch window is full; False: it took too long."""
        if self._pool.controller is not None:
            self._tuning.attach(self._pool.controller)
        return self._poster.fill(seconds)

    def _offer(self, hand, receive):
        """What was received, if that is a batch, goes to the hand; an error of one is raised."""
        with self._turn:
            if self._rest.iterator is not None:  # which makes this batch, too
                raise Unsendable
            received = receive()
            if received is None:
                return
            value, n_samples, commit = received
            if isinstance(value, ExceptionWrapper):
                self._go_inline_if_unsendable(value)
                self._progress.hands.lost(commit)
                self._fill()
                self._reraise(value)
            self._progress.hands.offer(hand, pinned(self, value), n_samples, commit)
            self._fill()
            pool = self._pool  # which another thread may close
            if pool is not None and self._is_over() and not self._persistent_workers:
                pool.dismiss()  # that was the last batch: they leave while it is used

    def _receive(self, box):
        """(batch or its error, samples, what to call once it is delivered); None: nothing to deliver now."""
        try:
            received = self._collector.accept(self._pool.opened(box))
        except _core.BadSampleError as error:
            self._give_up_if_too_many(error)
            raise
        if received is None:
            self._fill()
        return received

    def _go_inline_if_unsendable(self, wrapper):
        """Nobody asked for processes: the pass goes on in the caller, as torch would have begun."""
        if self._rest.is_allowed and issubclass(wrapper.exc_type, PackError):
            self._rest.begin(self._progress)
            self._progress = self._rest.iterator._progress
            raise Unsendable(wrapper.exc_msg.strip().splitlines()[-1])

    def _reraise(self, wrapper):
        """Raises what a batch came to; failed_at: indices of the samples, where it was one."""
        try:
            wrapper.reraise()
        except Exception as error:
            if getattr(wrapper, "failed_at", None):
                note_samples(error, wrapper.failed_at, self._bad.listed)
            raise

    # --- waiting ---

    def _wait(self, box):
        """Whether the next result is in the box; False: nothing is in flight any more."""
        while True:
            pool = self._pool
            if pool is None:
                return self._ended()
            try:
                if pool.take(box, self._timeout or None):
                    return True
            except NothingPosted:
                time.sleep(LATER if pool.window.in_flight else 0)  # another thread has the last one in its hands
                return False
            except Exception:
                if self._pool is pool:
                    raise
                return self._ended()  # by another thread
            self._late(pool)

    def _ended(self):
        """The workers are gone: because all is done, or too early."""
        if not self._is_over():
            raise _core.StateError(self._progress.invalid or "this iteration was given up: its workers were ended")
        return False

    def _late(self, pool):
        """Nothing came for `timeout` seconds: an error, or the samples that are stuck are bad ones."""
        stuck = sorted(pool.stuck(self._timeout * 0.9), key=lambda at: -at.seconds)
        if self._bad.policy == "raise" or not stuck:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds" + "".join(map(_where, stuck)))
        for at in stuck:
            pool.kill_stuck(at.worker)

    # --- knobs, and the end ---

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
                self._pool.window.override(value)

    def _finish(self):
        self._collector.finish()
        if not self._persistent_workers:
            self._shutdown_workers()

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
                self._tuning.learnt[knob] = int(pool.controller.get(knob))

    def __del__(self):
        """At the end of the program, modules may be gone: nothing but the pool is touched."""
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool.close()


def _where(at):
    return (f"; worker {at.worker} (pid {at.pid}) has been at sample {at.index!r} for {at.seconds:.1f} seconds:\n"
            f"{at.stack}")  # fmt: skip
