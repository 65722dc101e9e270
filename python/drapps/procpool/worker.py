"""A worker of a data set of torch: makes samples of batches, and finishes batches that are complete.

Map-style data sets: samples of any batch (slots.py); the worker that completes a batch collates it.  Iterable data
sets: each worker has its own iterator (items.py) and makes whole batches.
"""

from functools import partial
from operator import getitem

import torch
from torch.utils.data import IterDataPipe, default_collate
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from drapps.procpool import request as requests
from drapps.procpool.worker_loop import GOOD, Claimer
from drapps.procpool.failure import caught, pack_failure
from drapps.procpool.items import Items
from drapps.procpool.layout import Beside
from drapps.procpool.pack import pack, unpack
from drapps.procpool.seeds import COLLATE, SampleSeeds, seed_worker
from drapps.procpool.sample_writer import RowWriter, Slots


@classmethod
def _new_private(cls, size, *, device="cpu"):
    return cls(size, device=device)


def keep_storages_private():
    """torch's default_collate uses /dev/shm when it runs in a worker; here its results are copied once anyway."""
    torch.UntypedStorage._new_shared = _new_private


class Worker(Claimer):
    """What a worker of a data set does with its claims."""

    def __init__(self, setup, number):
        super().__init__(setup, number)
        self.dataset, self.init_failure = setup.dataset, None
        self._base_seed = setup.base_seed  # of the epoch that was last heard of
        self._info = torch_worker.WorkerInfo(id=number, num_workers=setup.workers, seed=setup.base_seed + number,
                                             dataset=setup.dataset)  # fmt: skip
        self.seeds = SampleSeeds(self._info.seed) if setup.seed_samples else None
        self.items = None
        self.rows = RowWriter(self) if setup.auto_collation and setup.collate_fn is default_collate else None

    def begin(self):
        """As torch starts a worker."""
        super().begin()
        setup = self.setup
        torch.set_num_threads(1)
        keep_storages_private()
        seed_worker(setup.base_seed, self.number, only_torch=self._seeds_all_anew())
        self.seed_pipe(setup.shared_seed)
        self.items = Items(self) if setup.kind == "iterable" else None  # here: they hold each other
        torch_worker._worker_info = self._info
        if setup.worker_init_fn is not None:
            self._call_init_fn()

    def _seeds_all_anew(self):
        """Each sample does, and nobody sees what was before the first one."""
        unseen = self.setup.kind == "map" and self.setup.worker_init_fn is None
        return unseen and self.seeds is not None and self.seeds.sets_numpy

    def _call_init_fn(self):
        try:
            self.setup.worker_init_fn(self.number)
        except Exception:
            self.init_failure = caught(self.number)
        if self.seeds is not None:
            self.seeds = SampleSeeds()  # of the generators that it may have put in place

    def seed_pipe(self, shared_seed):
        """Data pipes shuffle alike in all workers."""
        if shared_seed is not None and isinstance(self.dataset, IterDataPipe):
            self.dataset = apply_random_seed(self.dataset, torch.Generator().manual_seed(shared_seed))

    # --- samples ---

    def work(self, claim):
        """Makes what is claimed."""
        request = requests.Request(claim.request)
        self._base_seed = request.base_seed
        if self.init_failure is not None:
            self.fail_slots(claim, self.init_failure)
        elif request.mode == requests.WHOLE:
            self._deliver_whole(claim, request)
        elif request.mode == requests.NEXT:
            self.deliver(claim, lambda: self.items.take(claim, request))
        else:
            Slots(self, claim, request).run()

    def fail_slots(self, claim, wrapper, fatal=True):
        """No sample of the claim can be made; fatal: and that is not the samples' fault."""
        for i in range(claim.n):
            block, _ = pack_failure(wrapper, self.new_block, fatal=fatal)
            self.done(i, 1, block, True)

    def _deliver_whole(self, claim, request):
        """What is asked for at once: a batch, or a sample without one, which may be bad.  What collate_fn raises is not
        the samples' fault."""
        index = request.index()
        self.shmpool.begin(self.number, 0)
        self.seed(request, claim.tag, 0)
        try:
            data = self._fetch(index)
        except Exception:
            if self.setup.skip_bad and self.setup.auto_collation:  # an empty batch: it has no sample that could be bad
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
        """A function from one index to its sample."""
        many = getattr(self.dataset, "__getitems__", None)
        return (lambda index: many([index])[0]) if many else partial(getitem, self.dataset)

    def seed(self, request, tag, slot):
        """The generators' states for a sample."""
        if self.seeds is not None:
            self.seeds.set(request.base_seed, *request.key(tag, slot))

    def seed_batch(self, base_seed, number, slot):
        """The generators' states for collate_fn, by the key of the batch's first sample: the same whoever calls it."""
        if self.seeds is not None and not self.rows:
            self.seeds.set(base_seed, number, COLLATE + slot)

    def seed_anew(self, request):
        """As a new worker is seeded, when a later epoch begins: what was drawn before has no part in it.  The first one
        goes on from what worker_init_fn has left, as torch's."""
        if self.seeds is not None and request.epoch > 0:
            seed_worker(request.base_seed, self.number)

    def deliver(self, claim, make):
        """The result of a batch that is claimed whole."""
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
        """All samples are there: in rows of the slab, or each in its block."""
        good = [(i, sample.block) for i, sample in enumerate(claim.samples) if sample.state == GOOD]
        if len(good) < len(claim.samples) and not (self.setup.skip_bad and good):
            self.shmpool.finish(self.number, claim.batch, None, 0, True)  # the samples say why
        elif len(good) == len(claim.samples) and claim.slab is not None and all(b is None for _, b in good):
            self.shmpool.finish(self.number, claim.batch, None, 0, False)  # the slab is the result
        else:
            self.deliver(claim, lambda: self._collated(claim, good))

    def _collated(self, claim, good):
        first = claim.samples[good[0][0]]
        self.seed_batch(*self._batch_key(claim, first.tag, first.slot))
        if not self.rows:  # the user's collate_fn may keep what it gets, and the blocks are freed: it gets copies
            return self.setup.collate_fn([unpack(bytearray(block)) for _, block in good])
        found = [(i, Beside() if block is None else unpack(block)) for i, block in good]
        if len(good) == len(claim.samples) and all(type(value) is Beside for _, value in found):
            return Beside(value for _, value in found)
        return self.setup.collate_fn([self._sample(claim, i, value) for i, value in found])

    def _batch_key(self, claim, tag, slot):
        """For seed_batch; a batch of samples from several posts has no request, and no sample with a key of its own."""
        if not claim.request:
            return self._base_seed, tag, slot
        request = requests.Request(claim.request)
        return request.base_seed, *request.key(tag, slot)

    def _sample(self, claim, i, value):
        if type(value) is not Beside:
            return value
        return self.rows.book.of_slab(claim.slab.nbytes).read(claim.slab, i, claim.n_slots, value)
