"""InlineIter: num_workers=0, everything in the thread that asks for the batch, as torch does it."""

from contextlib import nullcontext
from functools import partial
from itertools import islice

from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from drapps import _core, cached
from drapps.passes.bad_samples import CarefulFetcher, indices_of, note_samples
from drapps.passes.order import places_of, size_of, stateful
from drapps.procpool.worker import restore
from drapps.procpool.seeds import COLLATE, CallerSeeds
from drapps.torch.iterator import Iterator, pinned


class Counting:
    """A collate_fn that notes how many samples it got."""

    def __init__(self, collate, batched):
        self._collate, self._batched = collate, batched
        self.n_samples = 0

    def __call__(self, samples):
        self.n_samples = len(samples) if self._batched and hasattr(samples, "__len__") else 1
        return self._collate(samples)


class InlineIter(Iterator, _SingleProcessDataLoaderIter):
    """torch's own iterator of one process, with states, counters and the bad-sample policy."""

    _torch_name = "_SingleProcessDataLoaderIter"
    _asks = 1

    def __init__(self, loader):
        self._put_back = None
        super().__init__(loader)
        if self._put_back is not None:  # here, because it may set torch's generator, which the pass has drawn from
            self._dataset_fetcher.dataset_iter.load_state_dict(self._put_back)

    def _beginning(self, loader, kept_seeds=None):
        restore_data(loader.dataset, loader._resume)
        return super()._beginning(loader, kept_seeds)

    def _begun(self, loader, resume):
        super()._begun(loader, resume)
        reader = self._dataset_fetcher
        if loader._iterable:
            self._put_back = _continue_data(reader, self._auto_collation, loader.batch_size, resume)
        self._progress.data_state = _data_state(self._dataset, getattr(reader, "dataset_iter", None))
        self._collate = reader.collate_fn = Counting(self._collate_fn, self._auto_collation)
        self._iterable = loader._iterable
        self._work = None
        self._cache = None
        if loader.cache is not None or loader.cache_memory:
            self._cache = loader._engines.functions(
                lambda: cached.Cache(loader.cache, loader.cache_limit, adaptive=loader.adaptive_compression,
                                     counts=loader._counters.ended, memory=loader.cache_memory))  # fmt: skip
        self._samples, self._seeds = self._dataset, None
        if not loader._iterable and _draws_as_workers(loader, self._progress):
            self._samples, self._seeds = loader._lowered().dataset, CallerSeeds(self._base_seed, self._order)
        self._careful = None
        if self._bad.policy != "raise" and not loader._iterable:
            self._careful = CarefulFetcher(self._samples, self._bad, self._seeds and self._seeds.set)

    def _next_data(self):
        with self._progress.hands.lock:
            hand = self._progress.hands.mine()
            while not hand.waits:
                _core.defer_sigint(self._draw)
                try:
                    with (
                        nullcontext() if self._cache is None else cached.using(self._cache),
                        nullcontext() if self._seeds is None else self._seeds.preserving(),
                    ):
                        made, batch = self._fetch(self._work)
                except Exception as error:
                    _core.defer_sigint(self._leave_out)
                    self._give_up_if_too_many(error)
                    raise
                _core.defer_sigint(self._made, hand, pinned(self, batch) if made else None, made)

    def _draw(self):
        """The batch that comes next; one whose making was interrupted comes again."""
        self._work = self._work or next(self._order)

    def _delivery(self, work):
        """What says that a batch was delivered."""
        return partial(self._progress.delivered_work, work, self._careful.left_out if self._careful else ())

    def _leave_out(self):
        work, self._work = self._work, None
        self._progress.hands.lost(self._delivery(work))

    def _made(self, hand, batch, made):
        work, self._work = self._work, None
        if made:
            self._progress.hands.offer(hand, batch, self._collate.n_samples, self._delivery(work))
        else:
            self._delivery(work)()

    def _fetch(self, work):
        """(whether there is a batch, the batch)."""
        if self._careful is None and self._seeds is None:
            if self._iterable:
                return True, self._dataset_fetcher.fetch(work.indices)
            return True, self._collate(self._asked_for(work.indices))
        indices = work.indices if self._auto_collation else [work.indices]
        places = places_of(work, size_of(indices))
        if self._careful is None:
            samples = self._asked_for(work.indices, lambda slot: self._seeds.set(places[slot]))
            if not getattr(self._samples, "__getitems__", None):  # which is asked once, and its numbers go on
                self._seed_batch(places)
            return True, self._collate(samples)
        samples = self._careful.samples(places, indices, work.times)
        if not samples:
            return False, None
        self._seed_batch(place for place in places if place not in self._careful.left_out)
        return True, self._collate(samples if self._auto_collation else samples[0])

    def _asked_for(self, indices, before=lambda slot: None):
        """What collate_fn gets, as torch's reader makes it; before: called before each sample, or before all of them
        where the data set is asked once.  An error names the sample."""
        many = self._auto_collation and getattr(self._samples, "__getitems__", None)
        at = indices_of(indices, self._auto_collation)
        try:
            if many or not self._auto_collation:
                before(0)
                return many(indices) if many else self._samples[indices]
            found = []
            for slot, index in enumerate(indices):
                at = [index]
                before(slot)
                found.append(self._samples[index])
            return found
        except Exception as error:
            note_samples(error, at, self._bad.listed)
            raise

    def _seed_batch(self, places):
        """Before collate_fn, as in a worker."""
        if self._seeds is not None and self._auto_collation:
            self._seeds.set(next(iter(places)), COLLATE)


def _draws_as_workers(loader, progress):
    """Whether samples draw the numbers that they draw in worker processes, and not from the program's generators."""
    return loader.record or loader.seed is not None or progress.repeat is not None


# --- states of data sets ---


def _data_state(dataset, dataset_iter):
    """A function that gives the state of a data set that has one; None for others."""
    if not stateful(dataset) and not stateful(dataset_iter):
        return None
    return lambda: {
        "set": dataset.state_dict() if stateful(dataset) else None,
        "iterator": dataset_iter.state_dict() if stateful(dataset_iter) else None,
    }


def restore_data(dataset, resume):
    """Puts a data set with a state where the saved pass was; before it is iterated."""
    saved = resume and resume["dataset"]
    if saved and saved["set"] is not None:
        restore(dataset, saved["set"])


def _continue_data(reader, batched, batch_size, resume):
    """Brings an iterable data set to where the saved pass was; returns the state that its iterator still has to get."""
    saved = resume and resume["dataset"]
    if saved:
        return saved["iterator"]
    if resume:
        n = (resume["_num_yielded"] + resume["ahead"]) * (batch_size if batched else 1)
        next(islice(reader.dataset_iter, n, n), None)
    return None
