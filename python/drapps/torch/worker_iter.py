"""WorkerIter: what passes in worker processes have in common: the workers, a window of batches, waiting, the end."""

import threading
import time

from torch._utils import ExceptionWrapper

from drapps import _core
from drapps.fleet.fleet import Fleet, NothingPosted
from drapps.torch import workers
from drapps.torch.iterator import Iterator, pinned

LATER = 0.01


class WorkerIter(Iterator):
    """prefetch_factor * num_workers batches are under way.

    A subclass gives _open (the fleet), _setup, _post and _accept.
    """

    def __init__(self, loader):
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 with worker processes")
        self._fleet = None
        self._n_workers = workers.share(self, int(loader.num_workers), loader.num_workers.decided)
        super().__init__(loader)

    def _begun(self, loader, resume):
        self._sampler_iter = iter(self._index_sampler)  # torch asks a second time here, which some samplers notice
        super()._begun(loader, resume)
        self._bad = loader._bad_samples()
        self._limit = loader.timeout or None
        self._window = loader.prefetch_factor * self._n_workers
        self._under_way, self._exhausted, self._left = 0, False, None
        self._turn = threading.RLock()
        self._inside, self._received = set(), 0  # threads in _receive, and how often that gave something
        if self._fleet is None:
            self._fleet = self._open(loader, resume)
        else:
            self._fleet.begin_epoch(self._base_seed, self._shared_seed)
        self._setup(loader, resume)
        try:
            self._fill()
        except BaseException:
            self._shutdown_workers()
            raise

    def _open_fleet(self, loader, dataset, collate_fn, **options):
        return Fleet(dataset, collate_fn, workers=self._n_workers, auto_collation=self._auto_collation,
                     drop_last=self._drop_last, base_seed=self._base_seed, shared_seed=self._shared_seed,
                     context=loader.multiprocessing_context, in_order=loader.in_order, lanes=loader.lanes,
                     memory_limit=loader.memory_limit, **options)  # fmt: skip

    def _alive(self):
        return self._fleet is not None

    def _leave_pass(self):
        if self._under_way and not self._fleet.clear(self._limit):
            for stuck in self._fleet.stuck(0):
                self._fleet.kill_stuck(stuck.worker)
            self._fleet.clear()

    # --- the window ---

    def _fill(self):
        """Posts until enough is under way."""
        while self._under_way < self._window and not self._exhausted:
            try:
                work = self._left or next(self._order)
            except StopIteration:
                self._exhausted = True
                self._fleet.post_end()
                return
            self._left = None if self._post(work) else work
            if self._left:
                return
            self._under_way += 1

    def _next_data(self):
        while True:
            with self._turn:
                accepted = self._take_held()
                if accepted is None and self._over():
                    self._finish()
                    raise StopIteration
            if accepted is None:
                accepted = self._receive()
            if accepted is None:
                continue
            value, n_samples = accepted
            if isinstance(value, ExceptionWrapper):
                value.reraise()
            self._yielded(n_samples)
            return pinned(self, value)

    def _receive(self):
        """(batch or its error, samples); None: nothing to deliver now."""
        thread = threading.get_ident()
        try:
            self._inside.add(thread)
            result = self._wait()
            if result is None:  # another thread took the last one
                return None
            with self._turn:
                self._received += 1
                self._under_way -= 1
                accepted = self._accept(result)
                self._fill()
                return accepted
        finally:
            self._inside.discard(thread)

    def _take_held(self):
        """Something that was received before its turn."""
        return None

    def _over(self):
        return self._exhausted and self._under_way == 0

    def _finish(self):
        if not self._persistent_workers:
            self._shutdown_workers()

    # --- waiting ---

    def _wait(self):
        """The next result; None when nothing is under way any more."""
        while True:
            fleet, received = self._fleet, self._received
            if fleet is None:
                return self._ended()
            try:
                result = fleet.next(self._limit)
            except NothingPosted:
                self._check_lost(received)
                time.sleep(LATER if self._under_way else 0)
                return None
            except Exception:
                if self._fleet is fleet:
                    raise
                return self._ended()  # by another thread
            if result is not None:
                return result
            self._late(fleet)

    def _check_lost(self, received):
        """The crew has nothing: what is under way is in the hands of another thread, or was lost."""
        with self._turn:
            if self._under_way and self._received == received and len(self._inside) == 1:
                lost, self._under_way = self._under_way, 0
                self._fill()
                raise _core.StateError(f"{lost} batch(es) were lost: an exception, as that of a signal's handler, came "
                                       "between taking and delivering; the next call goes on")  # fmt: skip

    def _ended(self):
        """The workers are gone: because all is done, or too early."""
        if not self._over():
            raise _core.StateError(self._progress.given_up or "this iteration was given up: its workers were ended")

    def _late(self, fleet):
        """Nothing came for `timeout` seconds: an error, or the samples that are stuck are bad ones."""
        stuck = sorted(fleet.stuck(self._limit * 0.9), key=lambda at: -at.seconds)
        if self._bad.policy == "raise" or not stuck:
            raise RuntimeError(f"DataLoader timed out after {self._limit} seconds" + "".join(map(_where, stuck)))
        for at in stuck:
            fleet.kill_stuck(at.worker)

    # --- the end ---

    def _resize(self, n):
        with self._turn:
            if self._fleet is not None:
                self._fleet.resize(n)
                self._window = self._window // self._n_workers * n
                self._n_workers = n

    def _shutdown_workers(self):
        fleet, self._fleet = self._fleet, None
        workers.give_back(self)
        if fleet is not None:
            fleet.close()

    def __del__(self):
        """At the end of the program, modules may be gone: nothing but the fleet is touched."""
        fleet = getattr(self, "_fleet", None)
        if fleet is not None:
            fleet.close()


def _where(at):
    return (f"; worker {at.worker} (pid {at.pid}) has been at sample {at.index!r} for {at.seconds:.1f} seconds:\n"
            f"{at.stack}")  # fmt: skip
