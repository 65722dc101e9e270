"""ChainPool: worker processes for chains with Python functions (Pipeline.map, Pipeline.filter).

A batch is posted as positions of an epoch's order; its result is a Group of outcomes.  Native ops of the chain run in
the worker as well, so that data between them and the functions stays in one process.  Workers are always forked, and
need no torch.
"""

import sys
from array import array
from dataclasses import dataclass
from functools import partial
from typing import Any

from drapps import _core
from drapps.procpool.process_pool import CLAIM_NS, POLL_S, MAX_BATCHES, TOGETHER_NS, NothingPosted, ProcessPool
from drapps.procpool.pack import PackError, pack, unpack
from drapps.procpool.prefetch_window import Poster
from drapps.procpool.worker_loop import GOOD, WorkerLoop
from drapps.stages import Group, Outcome, gathered, portable

MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class ChainSetup:
    """The settings of the workers.  They are forked, so that functions need not be picklable."""

    new_maker: Any
    collate: Any  # None: the main process collates
    workers: int
    shmpool: Any
    stacks: int  # the descriptor of the file where workers write their Python stacks when asked

    def opened(self):
        """Return the setup: a forked process has everything."""
        return self

    def new_worker(self, number):
        """Return a worker, before its process is forked."""
        return ChainWorker(self, number)


# --- the worker ---


class ChainWorker(WorkerLoop):
    """Makes an outcome of each position.  Errors are outcomes, too."""

    def __init__(self, setup, number):
        super().__init__(setup, number)
        self._maker = None

    def begin(self):
        """Prepare the process."""
        super().begin()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)

    def work(self, claim):
        """Make the outcomes of a claim."""
        request = array("Q", bytes(claim.request))
        epoch, positions = request[0], request[1 + claim.first : 1 + claim.first + claim.n]
        made = []
        for i, position in enumerate(positions):
            self.shmpool.begin(self.number, i)
            outcome = self._outcome(epoch, position)
            if claim.whole:
                made.append(outcome)
                continue
            block, _ = self._packed(outcome, lambda error, at=position: portable(Outcome(at, "failed", error=error)))
            self.done(i, 1, block, False)
        if claim.whole:
            self._deliver(claim.batch, made, self.setup.collate)

    def _outcome(self, epoch, position):
        try:
            self._maker = self._maker or self.setup.new_maker(alone=True)
            return portable(self._maker.make(epoch, position))
        except Exception as error:
            return portable(Outcome(position, "failed", error=error))

    def finish(self, claim):
        """Gather a batch.  Where samples ended their workers, the main process does it: it knows
        which samples these are."""
        outcomes = [unpack(sample.block) for sample in claim.samples if sample.state == GOOD]
        self._deliver(claim.batch, outcomes, self.setup.collate if len(outcomes) == len(claim.samples) else None)

    def _deliver(self, batch, outcomes, collate):
        def failed(error):
            return Group([portable(Outcome(outcomes[0].position, "failed", error=error))])

        try:
            group = gathered(outcomes, collate)
        except Exception as error:
            group = failed(error)
        self.shmpool.finish(self.number, batch, *self._packed(group, failed), False)

    def _packed(self, value, failed):
        """Pack a value, or failed(error) where it cannot be pickled."""
        try:
            return pack(value, self.new_block)
        except PackError as error:
            return pack(failed(error), self.new_block)


# --- the main process ---


class ChainPool(ProcessPool):
    """The worker processes of a chain.

    new_maker: returns a Maker; called in each worker with alone=True.  collate: makes a batch's fields of samples; None
    where a batch is not what was posted together.
    """

    _indices_are_ids = False

    def __init__(self, new_maker, collate, *, workers, in_order, lanes, memory_limit, cpu_limit):
        super().__init__(workers, context="fork", in_order=in_order, lanes=lanes, memory_limit=memory_limit,
                         cpu_limit=cpu_limit, max_attempts=MAX_ATTEMPTS, max_batches=MAX_BATCHES)  # fmt: skip
        self._maker = new_maker()  # for names, and for replacements of samples that end workers
        self._tag = self._epoch = 0
        self._prepare(ChainSetup(new_maker, collate, workers, self._shmpool, *self._fds))

    def post(self, epoch, positions):
        """Post a batch of positions.  Returns False when the shmpool is full."""
        self._tag, self._epoch = self._tag + 1, epoch
        request = array("Q", [epoch, *positions]).tobytes()
        return self._post(self._tag, positions, len(positions), request, None, -1, keep=self._cheap,
                          min_claim_ns=TOGETHER_NS if self._cheap else CLAIM_NS)  # fmt: skip

    def _result(self, raw):
        lost = [self._lost(sample) for sample in raw.samples if sample.state != GOOD]
        self._delivered(raw.samples)
        if raw.head is None and len(lost) < len(raw.samples):
            raise _core.Error(f"{self._last_death}, as others before, while it put a batch together")
        group = Group([]) if raw.head is None else unpack(raw.head)
        return Group(sorted([*group.outcomes, *lost], key=lambda o: o.position)) if lost else group

    def _lost(self, sample):
        """Return the outcome of a sample that ended its workers."""
        self._check_workers()
        error = _core.BadSampleError(f"{self._index(sample.tag, sample.slot)}: each of {sample.attempts} worker "
                                     f"processes ended while it was made; the last: {self._last_death}")  # fmt: skip
        return self._maker.bad(self._epoch, super()._index(sample.tag, sample.slot), error)

    def _index(self, tag, slot):
        position = super()._index(tag, slot)
        return None if position is None else self._maker.name(self._epoch, position)


class Groups:
    """The groups of an epoch: an iterator that keeps the pool's prefetch window full.

    batches: an iterator of lists of positions.  controls.given_up: nobody waits for the groups any more.
    """

    def __init__(self, pool, epoch, batches, controls):
        self._pool, self._controls = pool, controls
        self._poster = Poster(pool, batches, partial(pool.post, epoch))
        pool.name_epoch(epoch)
        self._poster.fill()
        pool.start()

    def __iter__(self):
        return self

    def __next__(self):
        self._poster.fill()
        try:
            while (group := self._pool.next(POLL_S)) is None:
                if self._controls.given_up:
                    raise _core.CancelledError("the pass was given up")
        except NothingPosted:
            raise StopIteration from None
        self._poster.fill()
        return group
