"""A worker process: claims slots of batches, makes their samples, and finishes batches that are complete.

Map-style data sets: samples of any batch, each written into its row of the batch's slab when the layout is known, else
packed into a block; the worker that completes a batch collates it.  Iterable data sets: each worker has its own iterator
and makes whole batches.
"""

import ctypes
import os
import signal

import torch
from torch.utils.data import IterDataPipe, default_collate
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from drapps.fleet import request as requests
from drapps.fleet.book import LayoutBook
from drapps.fleet.failure import caught, pack_failure
from drapps.fleet.layout import Layout
from drapps.fleet.pack import pack, unpack
from drapps.fleet.seeds import SampleSeeds, seed_worker
from drapps.fleet.stacks import offer_stack

WORK, FINISH, LEAVE = 1, 2, 3  # kinds of a claim
GOOD = 0  # state of a sample
LOOK_MS = 1000
HOPELESS = 16
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
OF_ITERATOR = 1 << 63  # tags of random states: apart from those of batches


def name_process(name):
    """What ps and top show."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def keep_storages_private():
    """torch's default_collate makes its results in /dev/shm when it runs in a worker; here they are copied once anyway."""

    def new_private(cls, size, *, device="cpu"):
        return cls(size, device=device)

    torch.UntypedStorage._new_shared = classmethod(new_private)


def worker_main(setup, number, parent, to_close):
    """The life of a worker process; parent: the process that forked it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    to_close.close()
    name_process("drapps-worker")
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    offer_stack(setup.stacks)
    Worker(setup, number).run()


class Worker:
    """What a worker does with its claims."""

    def __init__(self, setup, number):
        self.setup, self.number, self.crew = setup, number, setup.crew
        self.crew.enlist(number, os.getpid())
        self.init_failure = None
        self._start()
        self.seeds = SampleSeeds() if setup.seed_samples else None
        self.items = Items(self) if setup.kind == "iterable" else None
        self.rows = RowWriter(self) if setup.auto_collation and setup.collate_fn is default_collate else None

    def _start(self):
        """As torch starts a worker."""
        setup = self.setup
        torch.set_num_threads(1)
        keep_storages_private()
        seed = seed_worker(setup.base_seed, self.number)
        self.dataset = setup.dataset
        if isinstance(self.dataset, IterDataPipe):
            self.dataset = apply_random_seed(self.dataset, torch.Generator().manual_seed(setup.shared_seed))
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=self.number, num_workers=setup.workers, seed=seed, dataset=self.dataset)  # fmt: skip
        try:
            if setup.worker_init_fn is not None:
                setup.worker_init_fn(self.number)
        except Exception:
            self.init_failure = caught(self.number)

    def run(self):
        """Works until the crew says to leave."""
        while True:
            claim = self.crew.claim(self.number, LOOK_MS)
            if claim is None:
                continue
            if claim.kind == LEAVE:
                return
            if claim.kind == FINISH:
                self.finish(claim)
            else:
                self._work(claim)

    def new_block(self, nbytes):
        """A block of shared memory that is this worker's until it is handed over."""
        return self.crew.block(self.number, nbytes)

    # --- samples ---

    def _work(self, claim):
        request = requests.Request(claim.request)
        if self.init_failure is not None:
            self._fail_slots(claim)
        elif request.mode == requests.WHOLE:
            self.deliver(claim, lambda: self._fetch(claim, request))
        elif request.mode == requests.NEXT:
            self.deliver(claim, lambda: self.items.take(claim, request))
        else:
            Slots(self, claim, request).run()

    def _fail_slots(self, claim):
        for i in range(claim.n):
            block, _ = pack_failure(self.init_failure, self.new_block, fatal=True)
            finish = self.crew.done(self.number, i, 1, block, True)
        if finish is not None:
            self.finish(finish)

    def _fetch(self, claim, request):
        """One index for the whole batch."""
        index = request.index()
        self.crew.begin(self.number, 0)
        self.seed(request, claim.tag, 0)
        if not self.setup.auto_collation:
            return self.setup.collate_fn(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.setup.collate_fn(self.dataset.__getitems__(index))
        return self.setup.collate_fn([self.dataset[i] for i in index])

    def seed(self, request, tag, slot):
        """The generators' states for a sample."""
        if self.seeds is not None:
            self.seeds.set(request.base_seed, *request.key(tag, slot))

    def deliver(self, claim, make):
        """The result of a batch that is claimed whole."""
        try:
            block, nbytes = pack(make(), self.new_block)
        except Exception:
            self._report(claim.batch, caught(self.number))
        else:
            self.crew.finish(self.number, claim.batch, block, nbytes, False)

    def _report(self, batch, wrapper, *, fatal=False):
        block, nbytes = pack_failure(wrapper, self.new_block, fatal=fatal)
        self.crew.finish(self.number, batch, block, nbytes, True)

    # --- batches ---

    def finish(self, claim):
        """All samples are there: in rows of the slab, or each in its block."""
        good = [(i, sample[-1]) for i, sample in enumerate(claim.samples) if sample[3] == GOOD]
        if len(good) < len(claim.samples) and not (self.setup.skip_bad and good):
            self.crew.finish(self.number, claim.batch, None, 0, True)  # the samples say why
        elif len(good) == len(claim.samples) and claim.slab is not None and all(b is None for _, b in good):
            self.crew.finish(self.number, claim.batch, None, 0, False)  # the slab is the result
        else:
            samples = [self._sample(claim, i, block) for i, block in good]
            self.deliver(claim, lambda: self.setup.collate_fn(samples))

    def _sample(self, claim, i, block):
        if block is None:
            layout = self.rows.book.of_slab(claim.slab.nbytes)
            return layout.read(claim.slab, i, claim.n_slots)
        # The user's collate_fn may keep what it gets, and the block is freed: it gets a copy.
        return unpack(block if self.rows else bytearray(block))


class Slots:
    """The samples of one claim."""

    def __init__(self, worker, claim, request):
        self.worker, self.claim, self.request = worker, claim, request
        self.crew, self.number = worker.crew, worker.number
        self.open = 0  # the first slot that is not said to be done
        self.finish = None  # the claim to finish the batch, when all is done
        self.kept = {}  # samples of a whole batch that need not be packed before they are collated
        self.bad = set()

    def run(self):
        """Makes each, and finishes the batch if it is complete."""
        claim, dataset = self.claim, self.worker.dataset
        if self.worker.rows:
            self.worker.rows.begin(claim)
        for i, index in enumerate(self.request.indices(claim.first, claim.n)):
            self.crew.begin(self.number, i)
            try:
                self.worker.seed(self.request, claim.tag, claim.first + i)
                self._put(i, dataset[index])
            except Exception:
                self.bad.add(i)
                self._done(i, pack_failure(caught(self.number), self.worker.new_block)[0], bad=True)
        if self.kept:
            self._collate_kept()
        else:
            self._flush(claim.n)
            if self.finish is not None:
                self.worker.finish(self.finish)

    def _put(self, i, sample):
        rows = self.worker.rows
        if rows and rows.write(self.claim, i, sample):
            return
        if self.claim.whole:
            self.kept[i] = sample
        else:
            self._done(i, pack(sample, self.worker.new_block)[0])

    def _done(self, i, block, bad=False):
        if not self.claim.whole:
            self._flush(i)
            self.open = i + 1
        self.finish = self.crew.done(self.number, i, 1, block, bad) or self.finish

    def _flush(self, end):
        """Those in the slab that were not said to be done."""
        while self.open < end:
            n = 0
            while self.open + n < end and self.open + n not in self.bad:
                n += 1
            if n:
                self.finish = self.crew.done(self.number, self.open, n, None, False) or self.finish
            self.open += n + 1 if self.open + n < end else n

    def _collate_kept(self):
        """Nobody else has these samples: they are finished with the claim itself."""
        worker, claim = self.worker, self.claim
        if self.bad and not worker.setup.skip_bad:
            self.crew.finish(self.number, claim.batch, None, 0, True)
            return
        good = [i for i in range(claim.n) if i not in self.bad]
        samples = [self.kept[i] if i in self.kept else worker.rows.read(i, claim.n_slots) for i in good]
        worker.deliver(claim, lambda: worker.setup.collate_fn(samples))


class RowWriter:
    """Samples into the slabs of their batches, by the layout that the last ones had."""

    def __init__(self, worker):
        self._crew, self._number, self._in_order = worker.crew, worker.number, worker.setup.in_order
        self.book = LayoutBook(worker.setup.layouts)
        self._layout = self._layout_number = self._missed = None
        self._hopeless = 0  # samples in a row that had no layout

    def begin(self, claim):
        """A new claim."""
        self._together = self._in_order or claim.whole
        self._slab, self._first = None, None

    def write(self, claim, i, sample):
        """Whether the sample is in its row now."""
        if self._layout is None and not self._learn(sample):
            return False
        row = self._place(claim, i)
        if self._slab is None:
            return False
        if self._layout.write(sample, self._slab.address, row, claim.n_slots):
            return True
        self._learn(sample)
        return False

    def read(self, row, rows):
        """A sample of this claim that was written."""
        return self.book.of_slab(self._slab.nbytes).read(self._slab, row, rows)

    def _place(self, claim, i):
        if self._together and self._first is not None:
            return self._first + i
        nbytes = self.book.slab_bytes(self._layout, self._layout_number, claim.n_slots)
        slot, self._slab = self._crew.place(self._number, i, nbytes)
        self._first = slot - i
        return slot

    def _learn(self, sample):
        """Takes the layout of a sample that did not fit, when it is the first, or the second of its kind in a row."""
        layout = Layout.of(sample) if self._hopeless < HOPELESS else None
        self._hopeless = self._hopeless + 1 if layout is None else 0
        known, self._missed = self._missed, layout
        if layout is None or (self._layout is not None and layout != known):
            return False
        number = self.book.number(layout)
        if number is not None and self._first is None:
            self._layout, self._layout_number = layout, number
        return self._layout is not None


class Items:
    """The iterator of an iterable data set."""

    def __init__(self, worker):
        self._worker = worker
        self._epoch = self._iterator = None

    def _begin(self, request):
        worker = self._worker
        if self._epoch is not None and isinstance(worker.dataset, IterDataPipe):
            worker.dataset = apply_random_seed(worker.dataset, torch.Generator().manual_seed(request.shared_seed))
        self._epoch, self._taken, self._ended = request.epoch, 0, False
        self._iterator = iter(worker.dataset)

    def _next(self, request):
        self._worker.seed(request, OF_ITERATOR + self._worker.number, self._taken)
        self._taken += 1
        return next(self._iterator)

    def take(self, claim, request):
        """The next batch, collated; or torch's object that says that there is none."""
        self._worker.crew.begin(self._worker.number, 0)
        if self._epoch != request.epoch:
            self._begin(request)
        n, before = request.items()
        try:
            self._skip_to(before, request)
            data = self._batch(n, request)
        except StopIteration:
            self._ended = True
            return torch_worker._IterableDatasetStopIteration(self._worker.number)
        return self._worker.setup.collate_fn(data)

    def _skip_to(self, before, request):
        """What the worker delivered that this one replaces."""
        while self._taken < before and not self._ended:
            try:
                self._next(request)
            except StopIteration:
                raise
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
