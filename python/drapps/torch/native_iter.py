"""NativeIter: a pass in which the engine's threads make whole batches, in the order that torch's sampler draws.

Random choices of a sample are keyed by the base seed, the sample and how often it came in the pass: they depend neither
on the number of threads nor on where the pass was resumed.
"""

import threading
from bisect import bisect_right

from drapps import _core
from drapps.torch import workers
from drapps.torch.iterator import Iterator, pinned
from drapps.torch.order import mixable

MAX_PREFETCH = 64


def open_native(loader, plan, n_workers):
    """The native loader of a plan."""
    window = min(MAX_PREFETCH, loader.prefetch_factor * n_workers)
    return plan.pipe.loader(
        batch_size=loader.batch_size or 1, workers=n_workers, prefetch=window, in_order=loader.in_order,
        on_bad_sample=loader.on_bad_sample, max_bad=loader.max_bad, memory_limit=loader.memory_limit,
        outputs=plan.outputs, output="torch", given_order=True, keep_batches=not mixable(loader), lanes=loader.lanes,
        cache=loader.cache,
    )  # fmt: skip


class NativeIter(Iterator):
    """Batches of the engine."""

    def __init__(self, loader):
        self._native = None
        self._n_workers = workers.share(self, int(loader.num_workers), loader.num_workers.decided)
        super().__init__(loader)

    def _begun(self, loader, resume):
        self._sampler_iter = iter(self._index_sampler)  # torch asks a second time here, which some samplers notice
        super()._begun(loader, resume)
        self._plan, self._in_order = loader._plan, loader.in_order
        self._turn = threading.RLock()
        self._window = loader.prefetch_factor * self._n_workers
        self._under_way, self._exhausted, self._ended = 0, False, False
        self._starts, self._pushed = [], []  # positions at which batches that were pushed begin, and what they are
        self._counts_bad = loader._counts
        if self._native is None:
            self._native = open_native(loader, self._plan, self._n_workers)
        self._native.timeout_ms = int(self._timeout * 1000) or -1
        self._native.set_epoch(self._base_seed)
        self._batches = self._native.batches()
        passed = [index for indices in self._order.passed for index in indices]
        self._position = len(passed)
        if passed:
            self._native.push_past(self._plan.ids(passed), len(self._order.passed))
        self._fill()

    def _alive(self):
        return self._native is not None

    # --- the window ---

    def _fill(self):
        while self._under_way < self._window and not self._exhausted:
            try:
                work = next(self._order)
            except StopIteration:
                self._exhausted = True
                self._native.push_end()
                return
            self._native.push(self._plan.ids(work.indices))
            self._starts.append(self._position)
            self._pushed.append(work)
            self._position += len(work.indices)
            self._under_way += 1

    def _next_data(self):
        while True:
            batch = self._take()
            with self._turn:
                self._under_way -= 1
                self._delivered(batch)
                self._fill()
            self._counts_bad["bad_samples"] += len(batch.bad)
            if batch.samples:
                self._yielded(batch.samples)
                return pinned(self, self._plan.deliver(batch))

    def _take(self):
        try:
            return next(self._batches)
        except TimeoutError:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
        except StopIteration:
            self._ended = True
            self._finish()
            raise
        except _core.StateError:
            if self._ended:  # another thread saw the end
                raise StopIteration from None
            raise

    # --- progress ---

    def _delivered(self, batch):
        left_out = [bad["position"] for bad in batch.bad if bad["action"] == "skipped"]
        for position in [*batch.positions, *left_out]:
            at = bisect_right(self._starts, position) - 1
            work, slot = self._pushed[at], position - self._starts[at]
            self._progress.delivered(*(work.number, [slot]) if work.places is None else self._one(work.places[slot]))

    def _one(self, place):
        return place[0], [place[1]]

    # --- the end ---

    def _resize(self, n):
        with self._turn:
            if self._native is not None:
                self._native.set("workers", n)
                self._n_workers = n

    def _finish(self):
        if not self._persistent_workers:
            self._shutdown_workers()

    def _shutdown_workers(self):
        native, self._native = self._native, None
        workers.give_back(self)
        if native is not None:
            native.close()

    def __del__(self):
        """At the end of the program, modules may be gone: nothing but the native loader is touched."""
        native = getattr(self, "_native", None)
        if native is not None:
            native.close()
