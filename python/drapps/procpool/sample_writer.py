"""The samples of one claim of a worker: each in its row of the batch's slab, or packed into a block of its own."""

from drapps.procpool.layout_registry import LayoutBook
from drapps.procpool.failure import caught, pack_failure
from drapps.procpool.layout import Beside, Layout
from drapps.procpool.pack import pack

HOPELESS = 16  # samples in a row without a layout, until none is looked for any more


class Slots:
    """The samples of one claim."""

    def __init__(self, worker, claim, request):
        self.worker, self.claim, self.request = worker, claim, request
        self.shmpool, self.number = worker.shmpool, worker.number
        self.open = 0  # the first slot that is not said to be done
        # Of a whole batch, which this worker finishes itself:
        self.kept = {}  # samples that are not in the slab
        self.beside = {}  # what of samples in the slab is not there
        self.bad = set()

    def run(self):
        """Makes each, and finishes the batch if it is complete."""
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
        """Puts a sample where it belongs: the block, if it has one of its own."""
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
        """Those in the slab that were not said to be done."""
        start = self.open
        for i in range(start, end + 1):
            if i == end or i in self.bad:
                if i > start:
                    self.worker.done(start, i - start, None, False)
                start = i + 1
        self.open = end

    def _finish_whole(self):
        """Nobody else has these samples: they are finished with the claim itself."""
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
    """Samples into the slabs of their batches, by the layout that the last ones had."""

    def __init__(self, worker):
        self._shmpool, self._number, self._in_order = worker.shmpool, worker.number, worker.setup.in_order
        self.book = LayoutBook(worker.setup.layouts)
        self._layout = self._layout_number = None
        self._next = None  # layout and number from the next claim on: those of a claim's rows must be the same
        self._missed = None  # the layout of the last sample that did not fit
        self._hopeless = 0

    def begin(self, claim):
        """A new claim."""
        self._together = self._in_order or claim.whole
        self._slab = self._first = None
        if self._next is not None:
            (self._layout, self._layout_number), self._next = self._next, None

    def write(self, claim, i, sample):
        """Writes a sample into its row: what goes beside it, or None when it is not there."""
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
        """A sample of this claim that was written."""
        return self.book.of_slab(self._slab.nbytes).read(self._slab, row, rows, others)

    def _place(self, claim, i):
        if self._together and self._first is not None:
            return self._first + i
        nbytes = self.book.slab_bytes(self._layout, self._layout_number, claim.n_slots)
        placement = self._shmpool.place(self._number, i, nbytes)
        self._slab, self._first = placement.slab, placement.slot - i
        return placement.slot

    def _learn(self, sample):
        """Takes the layout of a sample that did not fit, when it is the first, or the second of its kind in a row."""
        layout = Layout.of(sample) if self._hopeless < HOPELESS else None
        self._hopeless = self._hopeless + 1 if layout is None else 0
        known, self._missed = self._missed, layout
        if layout is not None and (self._layout is None or layout == known):
            number = self.book.number(layout)
            self._next = None if number is None else (layout, number)
