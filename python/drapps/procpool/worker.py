"""A worker of a data set of torch: makes samples, and collates the batches that it completes.

Map-style data sets: a worker claims samples of any batch (Slots).  With default_collate, RowWriter writes each sample
into its row of the batch's slab; else, and where a sample does not fit, the sample is packed into a block of its own.
The worker that completes a batch collates what is not in the slab.  Iterable data sets: each worker has its own
iterator (Items) and makes whole batches.

A sample's exception never ends a worker: it is packed into the sample's block.
"""

from functools import partial
from itertools import chain, repeat
from operator import getitem

import torch
from torch.utils.data import IterDataPipe, default_collate
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from drapps.procpool.layout import Beside, Layout, LayoutRegistry
from drapps.procpool.pack import NEXT, WHOLE, Request, pack, unpack
from drapps.procpool.seeds import COLLATE, SampleSeeds, seed_worker
from drapps.procpool.torch_pack import caught, pack_failure
from drapps.procpool.worker_loop import GOOD, WorkerLoop

HOPELESS = 16  # samples in a row without a layout, until none is looked for any more
OF_ITERATOR = 1 << 63  # tags of random states: apart from those of batches


def _new_private(cls, size, *, device="cpu"):
    return cls(size, device=device)


def keep_storages_private():
    """Keep default_collate from using /dev/shm, as it does in a worker of torch: here its results are copied once."""
    torch.UntypedStorage._new_shared = classmethod(_new_private)


class Worker(WorkerLoop):
    """A worker of a data set of torch."""

    def __init__(self, setup, number):
        super().__init__(setup, number)
        self.dataset, self.init_failure = setup.dataset, None
        self._base_seed = setup.base_seed  # of the last request's epoch
        self._info = torch_worker.WorkerInfo(id=number, num_workers=setup.workers, seed=setup.base_seed + number,
                                             dataset=setup.dataset)  # fmt: skip
        self.seeds = SampleSeeds(self._info.seed) if setup.seed_samples else None
        self.items = None
        self.rows = RowWriter(self) if setup.auto_collation and setup.collate_fn is default_collate else None

    def begin(self):
        """Prepare the process as torch prepares a worker."""
        super().begin()
        setup = self.setup
        torch.set_num_threads(1)
        keep_storages_private()
        seed_worker(setup.base_seed, self.number, only_torch=self._seeds_all_anew())
        self.seed_pipe(setup.shared_seed)
        self.items = Items(self) if setup.kind == "iterable" else None  # made here, as the two refer to each other
        torch_worker._worker_info = self._info
        if setup.worker_init_fn is not None:
            self._call_init_fn()

    def _seeds_all_anew(self):
        """Whether each sample is seeded, and no code of the user runs before the first one."""
        unseen = self.setup.kind == "map" and self.setup.worker_init_fn is None
        return unseen and self.seeds is not None and self.seeds.sets_numpy

    def _call_init_fn(self):
        try:
            self.setup.worker_init_fn(self.number)
        except Exception:
            self.init_failure = caught(self.number)
        if self.seeds is not None:
            self.seeds = SampleSeeds()  # worker_init_fn may have replaced generators

    def seed_pipe(self, shared_seed):
        """Seed data pipes, which shuffle alike in all workers."""
        if shared_seed is not None and isinstance(self.dataset, IterDataPipe):
            self.dataset = apply_random_seed(self.dataset, torch.Generator().manual_seed(shared_seed))

    # --- samples ---

    def work(self, claim):
        """Make the samples of a claim."""
        request = Request(claim.request)
        self._base_seed = request.base_seed
        if self.init_failure is not None:
            self.fail_slots(claim, self.init_failure)
        elif request.mode == WHOLE:
            self._deliver_whole(claim, request)
        elif request.mode == NEXT:
            self.deliver(claim, lambda: self.items.take(claim, request))
        else:
            Slots(self, claim, request).run()

    def fail_slots(self, claim, wrapper, fatal=True):
        """Hand over an error for each sample of the claim.  fatal: it is not the samples' fault."""
        for i in range(claim.n):
            block, _ = pack_failure(wrapper, self.new_block, fatal=fatal)
            self.done(i, 1, block, True)

    def _deliver_whole(self, claim, request):
        """Make what was asked for at once: a batch, or a single sample, which may be bad.  An error of collate_fn is
        not the samples' fault."""
        index = request.index()
        self.shmpool.begin(self.number, 0)
        self.seed(request, claim.tag, 0)
        try:
            data = self._fetch(index)
        except Exception:
            if self.setup.skip_bad and self.setup.auto_collation:  # an empty batch has no sample that could be bad
                self._report(claim.batch, caught(self.number))
            else:
                self.fail_slots(claim, caught(self.number), fatal=False)
        else:
            self.deliver(claim, lambda: self.setup.collate_fn(data))

    def _fetch(self, index):
        if not self.setup.auto_collation:
            return self.dataset[index]
        if getattr(self.dataset, "__getitems__", None):
            return self.dataset.__getitems__(index)
        return [self.dataset[i] for i in index]

    def getter(self):
        """Return a function from an index to its sample."""
        many = getattr(self.dataset, "__getitems__", None)
        return (lambda index: many([index])[0]) if many else partial(getitem, self.dataset)

    def seed(self, request, tag, slot):
        """Seed the generators for a sample."""
        if self.seeds is not None:
            self.seeds.set(request.base_seed, *request.key(tag, slot))

    def seed_batch(self, base_seed, number, slot):
        """Seed the generators for collate_fn by the key of the batch's first sample, so that every
        worker draws the same."""
        if self.seeds is not None and not self.rows:
            self.seeds.set(base_seed, number, COLLATE + slot)

    def seed_anew(self, request):
        """Seed as a new worker is seeded when a later epoch begins.  The first epoch continues from the state that
        worker_init_fn left, as torch's."""
        if self.seeds is not None and request.epoch > 0:
            seed_worker(request.base_seed, self.number)

    def deliver(self, claim, make):
        """Finish a batch with what make() returns, or with its exception."""
        try:
            block, nbytes = pack(make(), self.new_block)
        except Exception:
            self._report(claim.batch, caught(self.number))
        else:
            self.shmpool.finish(self.number, claim.batch, block, nbytes, False)

    def _report(self, batch, wrapper, *, fatal=False):
        block, nbytes = pack_failure(wrapper, self.new_block, fatal=fatal)
        self.shmpool.finish(self.number, batch, block, nbytes, True)

    # --- batches ---

    def finish(self, claim):
        """Finish a batch whose samples are all there: in rows of the slab, or each in its block."""
        good = [(i, sample.block) for i, sample in enumerate(claim.samples) if sample.state == GOOD]
        if len(good) < len(claim.samples) and not (self.setup.skip_bad and good):
            self.shmpool.finish(self.number, claim.batch, None, 0, True)  # the samples have the errors
        elif len(good) == len(claim.samples) and claim.slab is not None and all(b is None for _, b in good):
            self.shmpool.finish(self.number, claim.batch, None, 0, False)  # the slab is the result
        else:
            self.deliver(claim, lambda: self._collated(claim, good))

    def _collated(self, claim, good):
        first = claim.samples[good[0][0]]
        self.seed_batch(*self._batch_key(claim, first.tag, first.slot))
        if not self.rows:  # the blocks will be freed, and the user's collate_fn may keep its samples: it gets copies
            return self.setup.collate_fn([unpack(bytearray(block)) for _, block in good])
        found = [(i, Beside() if block is None else unpack(block)) for i, block in good]
        if len(good) == len(claim.samples) and all(type(value) is Beside for _, value in found):
            return Beside(value for _, value in found)
        return self.setup.collate_fn([self._sample(claim, i, value) for i, value in found])

    def _batch_key(self, claim, tag, slot):
        """Return the arguments of seed_batch.  A batch of samples from several posts has no
        request, and no keys in it."""
        if not claim.request:
            return self._base_seed, tag, slot
        request = Request(claim.request)
        return request.base_seed, *request.key(tag, slot)

    def _sample(self, claim, i, value):
        if type(value) is not Beside:
            return value
        return self.rows.registry.of_slab(claim.slab.nbytes).read(claim.slab, i, claim.n_slots, value)


# --- samples of a claim ---


class Slots:
    """The samples of one claim."""

    def __init__(self, worker, claim, request):
        self.worker, self.claim, self.request = worker, claim, request
        self.shmpool, self.number = worker.shmpool, worker.number
        self.open = 0  # the first slot that was not handed over
        # Of a whole batch, which this worker finishes itself:
        self.kept = {}  # samples that are not in the slab
        self.beside = {}  # what of samples in the slab is not there
        self.bad = set()

    def run(self):
        """Make each sample, and finish the batch if it is complete."""
        claim, get = self.claim, self.worker.getter()
        try:
            indices = self.request.indices(claim.first, claim.n)
        except Exception:
            self.worker.fail_slots(claim, caught(self.number))
            return
        if self.worker.rows:
            self.worker.rows.begin(claim)
        for i, index in enumerate(indices):
            self.shmpool.begin(self.number, i)
            try:
                self.worker.seed(self.request, claim.tag, claim.first + i)
                block = self._put(i, get(index))
            except Exception:
                self.bad.add(i)
                block = pack_failure(caught(self.number), self.worker.new_block)[0]
            if block is not None:
                self._done(i, block, bad=i in self.bad)
        if self.kept or self.beside:
            self._finish_whole()
        else:
            self._flush(claim.n)

    def _put(self, i, sample):
        """Put a sample into its row or a block.  Returns the block, or None."""
        rows = self.worker.rows
        others = rows.write(self.claim, i, sample) if rows else None
        if others == []:
            return None
        if not self.claim.whole:
            return pack(sample if others is None else Beside(others), self.worker.new_block)[0]
        if others is None:
            self.kept[i] = sample
        else:
            self.beside[i] = others
        return None

    def _done(self, i, block, bad):
        if not self.claim.whole:
            self._flush(i)
            self.open = i + 1
        self.worker.done(i, 1, block, bad)

    def _flush(self, end):
        """Hand over the samples in the slab up to `end`."""
        start = self.open
        for i in range(start, end + 1):
            if i == end or i in self.bad:
                if i > start:
                    self.worker.done(start, i - start, None, False)
                start = i + 1
        self.open = end

    def _finish_whole(self):
        """Finish a batch that was claimed whole: no other worker has samples of it."""
        worker, claim = self.worker, self.claim
        if len(self.beside) == claim.n:
            worker.deliver(claim, lambda: Beside(self.beside.values()))
            return
        if self.bad and not worker.setup.skip_bad:
            self.shmpool.finish(self.number, claim.batch, None, 0, True)
            return
        good = [i for i in range(claim.n) if i not in self.bad]
        worker.deliver(claim, lambda: self._collated(good))

    def _collated(self, good):
        key = self.request.key(self.claim.tag, self.claim.first + good[0])
        self.worker.seed_batch(self.request.base_seed, *key)
        return self.worker.setup.collate_fn([self._sample(i) for i in good])

    def _sample(self, i):
        if i in self.kept:
            return self.kept[i]
        return self.worker.rows.read(i, self.claim.n_slots, self.beside.get(i, ()))


class RowWriter:
    """Writes samples into the slabs of their batches, by the layout that the last ones had."""

    def __init__(self, worker):
        self._shmpool, self._number, self._in_order = worker.shmpool, worker.number, worker.setup.in_order
        self.registry = LayoutRegistry(worker.setup.layouts)
        self._layout = self._layout_number = None
        self._next = None  # layout and number from the next claim on: those of a claim's rows must be the same
        self._missed = None  # the layout of the last sample that did not fit
        self._hopeless = 0

    def begin(self, claim):
        """Begin a claim."""
        self._together = self._in_order or claim.whole
        self._slab = self._first = None
        if self._next is not None:
            (self._layout, self._layout_number), self._next = self._next, None

    def write(self, claim, i, sample):
        """Write a sample into its row.  Returns what goes beside the row, or None when the sample does not fit."""
        if self._layout is None:
            self._learn(sample)
            if self._next is None:
                return None
            self.begin(claim)
        row = self._place(claim, i)
        if self._slab is not None:
            others = self._layout.write(sample, self._slab.address, row, claim.n_slots)
            if others is not None:
                return others
        self._learn(sample)
        return None

    def read(self, row, rows, others):
        """Return a sample of this claim that was written."""
        return self.registry.of_slab(self._slab.nbytes).read(self._slab, row, rows, others)

    def _place(self, claim, i):
        if self._together and self._first is not None:
            return self._first + i
        nbytes = self.registry.slab_bytes(self._layout, self._layout_number, claim.n_slots)
        placement = self._shmpool.place(self._number, i, nbytes)
        self._slab, self._first = placement.slab, placement.slot - i
        return placement.slot

    def _learn(self, sample):
        """Use the layout of a sample that did not fit, when it is the first, or the second of its kind in a row."""
        layout = Layout.of(sample) if self._hopeless < HOPELESS else None
        self._hopeless = self._hopeless + 1 if layout is None else 0
        known, self._missed = self._missed, layout
        if layout is not None and (self._layout is None or layout == known):
            number = self.registry.number(layout)
            self._next = None if number is None else (layout, number)


# --- iterable data sets ---


def restore(dataset, state):
    """Load the state of a data set before it is iterated.  One that is its own iterator may have to be iterated first:
    iterated_from() loads the state again then."""
    try:
        dataset.load_state_dict(state)
    except Exception:
        if not hasattr(dataset, "__next__"):
            raise


def iterated_from(dataset, state):
    """Return an iterator that continues from a state of the data set."""
    restore(dataset, state)
    iterator = iter(dataset)
    if iterator is dataset:  # iter() may have reset it
        dataset.load_state_dict(state)
    return iterator


class Items:
    """The iterator of a worker over an iterable data set."""

    def __init__(self, worker):
        self._worker = worker
        self._epoch = self._iterator = None

    def _begin(self, request):
        worker = self._worker
        worker.seed_pipe(request.shared_seed)
        worker.seed_anew(request)
        self._taken, self._ended = 0, False
        state, skipped = self._state(), request.items()[1]
        if state is None or not skipped:
            self._iterator = iter(worker.dataset)
        else:
            self._iterator, self._taken = iterated_from(worker.dataset, state), skipped
        self._epoch = request.epoch

    def _state(self):
        """Return the state of the data set where the pass continues, or None."""
        states = self._worker.setup.states
        return states[self._worker.number] if states else None

    def _next(self, request):
        self._worker.seed(request, OF_ITERATOR + self._worker.number, self._taken)
        self._taken += 1
        return next(self._iterator)

    def take(self, claim, request):
        """Return the next batch, collated; or torch's object for the end of the iterator."""
        self._worker.shmpool.begin(self._worker.number, 0)
        if self._epoch != request.epoch:
            self._begin(request)
            self._catch_up(request)
        try:
            data = self._batch(request.items()[0], request)
        except StopIteration:
            self._ended = True
            return torch_worker._IterableDatasetStopIteration(self._worker.number)
        return self._worker.setup.collate_fn(data)

    def _catch_up(self, request):
        """Skip to where the pass was that this one continues, and the worker that this one replaces.  An error ended
        its batch, and the next one began with the item after it."""
        n, skipped, batches = request.items()
        skipped -= self._taken  # what its state has skipped
        for size in chain(repeat(None, skipped), repeat(n, batches)):
            try:
                self._batch(size, request)
            except StopIteration:
                self._ended = True
                return
            except Exception:
                continue

    def _batch(self, n, request):
        if self._ended:
            raise StopIteration
        if n is None:
            return self._next(request)
        data = []
        while len(data) < n and not self._ended:
            try:
                data.append(self._next(request))
            except StopIteration:
                self._ended = True
        if not data or (self._worker.setup.drop_last and len(data) < n):
            raise StopIteration
        return data
