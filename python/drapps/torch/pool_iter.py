"""PoolIter: a pass over a map-style data set in worker processes.

Results come in the order of posting (in_order), or as they are ready: then a result names the samples that it is made
of, and progress is kept for each of them.
"""

import warnings
from collections import deque
from functools import partial
from typing import NamedTuple

from torch._utils import ExceptionWrapper
from torch.utils.data import default_collate

from drapps import _core
from drapps.passes.bad_samples import indices_of
from drapps.passes.order import Work, size_of
from drapps.passes.replacement import no_replacement
from drapps.procpool.pack import PackError
from drapps.torch import init_fns
from drapps.torch.worker_iter import WorkerIter

MADE_UP = 1 << 62  # tags of batches that are not the sampler's


class Unsendable(Exception):
    """Samples cannot leave a worker process."""


class Lost(ExceptionWrapper):
    """An error in the place of a batch, which is not a worker's."""

    def __init__(self, error):
        self.exc_type, self._error = type(error), error

    def reraise(self):
        """As it is."""
        raise self._error


class Part(NamedTuple):
    """A sample of a result."""

    number: int  # of the sampler's batch that it belongs to,
    slot: int  # and its place there
    index: object
    error: object
    time: int = 0  # how often it came before in the pass


class PoolIter(WorkerIter):
    """Samples by their indices."""

    _limit_started = True
    _inline = None  # who makes the rest of the pass, where samples cannot be sent
    _before = None  # then: the progress until there

    def _open(self, loader, resume):
        dataset, by_sample = loader._plan.dataset, self._bad.policy != "raise"
        pool = self._open_pool(loader, dataset, self._collate_fn, worker_init_fn=init_fns.of_workers(loader, self),
                                 bad="report" if by_sample else "raise")  # fmt: skip
        spread = self._collate_fn is default_collate and (by_sample or not getattr(dataset, "__getitems__", None))
        self._by_worker = not spread
        return pool

    def _setup(self, loader, resume):
        self._place, self._world = self._order.config.rank, self._order.config.world_size
        self._in_order, self._keep = self._order.config.in_order, not self._order.config.mixable
        many = getattr(loader._plan.dataset, "__getitems__", None) and self._bad.policy == "raise"
        self._whole = not self._auto_collation or bool(many)
        self._simple = self._bad.policy == "raise" and (self._in_order or self._whole)
        self._works = {}  # by tag: [Work, samples that did not come yet]
        self._others = {}  # by place of a bad sample: its Part, and an iterator of what may take its place
        self._hopeless = {}  # by first place of a batch: the Part for which nothing was found
        self._along = {}  # by place of a stand-in for a whole batch: the places of others of that batch
        self._replaces = self._bad.policy == "replace" or self._bad.equal
        self._holds = self._in_order and self._replaces
        self._held, self._awaited = {}, deque()  # then: batches that came before their turn; whose turn it is
        self._made_up = MADE_UP
        self._costs = None if self._whole else loader._sample_costs()
        self._pool.expect(self._costs.median() if self._costs else 0)
        self._window.expect_samples(loader.prefetch_factor, loader.batch_size, mixes=not self._in_order and not self._keep,
                                    longest=self._costs.longest_by_mean() if self._costs else 0)  # fmt: skip
        self._loader = loader if loader._may_be_inline else None

    # --- posting ---

    def _tag(self, work):
        if work.places is None:
            return work.number * self._world + self._place
        self._made_up += 1
        return self._made_up

    def _post(self, work, again=False):
        keys = work.places and [(number * self._world + self._place, slot) for number, slot in work.places]
        tag = self._tag(work)
        costs = self._costs and self._costs.predict(work.indices)
        # Samples with keys stay together: who puts a batch of others' samples together does not know theirs.
        if not self._pool.post(tag, work.indices, costs, keep=self._keep or keys is not None, keys=keys):
            return False
        self._works[tag] = [work, 1 if self._one_slot(work) else len(work.indices)]
        if self._holds and not again:
            self._awaited.append(work.first)
        return True

    def _one_slot(self, work):
        """The batch is asked for as one thing."""
        return self._whole or len(work.indices) == 0

    # --- samples that cannot be sent ---

    def _give(self):
        """Of several threads, one goes inline while others wait for workers, or have a batch in their hands."""
        if self._inline is None:
            try:
                return super()._give()
            except Exception as error:
                if self._inline is None:
                    raise
                why = error.args[0] if isinstance(error, Unsendable) and error.args else None
            if why:
                _core.defer_sigint(self._shutdown_workers)
                warnings.warn(f"batches are made in this process, as with num_workers=0: {why}", RuntimeWarning,
                              stacklevel=3)  # fmt: skip
        if self._pool is not None:  # a signal came before they were ended
            _core.defer_sigint(self._shutdown_workers)
        hand = self._before.hand()
        return hand.take() if hand.waits else next(self._inline)

    def _offer(self, hand, receive):
        with self._turn:
            if self._inline is not None:  # who makes this batch, too
                raise Unsendable
            super()._offer(hand, receive)

    def _over(self):
        return self._inline is None and super()._over() and not self._held

    def _look_at(self, wrapper):
        if self._loader is not None and issubclass(wrapper.exc_type, PackError):
            self._go_inline()
            raise Unsendable(wrapper.exc_msg.strip().splitlines()[-1])

    def _go_inline(self):
        """Nobody asked for processes: it goes on in the caller, as torch would have begun."""
        self._before = self._progress
        self._before.commit_offers()
        self._inline = self._loader._continue_inline(self._before)
        self._progress = self._inline._progress

    # --- results ---

    def _accept(self, result):
        if isinstance(result.value, ExceptionWrapper):
            result.value.failed_at = self._failed_at(result.samples)
        if self._simple:
            return self._accept_simply(result)
        parts = [part for sample in result.samples for part in self._parts(sample)]
        if self._costs:  # then a sample is one part
            made = zip(parts, result.samples, strict=True)
            timed = [(part.index, sample.ns) for part, sample in made if part.index is not None and sample.ns]
            self._note_costs([index for index, _ in timed], [ns for _, ns in timed])
        bad = [part for part in parts if part.error is not None] if self._bad.policy != "raise" else []
        for part in bad:
            if part[:2] not in self._others:  # what takes the place of a bad sample may fail, too
                self._bad.report(part.index, part.error)
        if bad and self._replaces and self._replace(self._again(parts, bad), parts):
            return None
        if self._holds and parts[0][:2] != self._awaited[0]:
            self._held[parts[0][:2]] = result.value, parts, bad
            return None
        return self._deliver(result.value, parts, bad)

    def _failed_at(self, samples):
        """Indices that the error of a batch came of: of the first bad sample, or of all where they are asked for at
        once.  Empty: of something else, as collate_fn."""
        for sample in samples:
            if sample.error is not None:
                work = self._works[sample.tag][0]
                if not self._one_slot(work):
                    return [work.indices[sample.slot]]
                return indices_of(work.indices, self._auto_collation)
        return []

    def _accept_simply(self, result):
        """Nothing is left out, and the result is the batch that was posted."""
        work, _ = self._works.pop(result.tag)
        if self._costs and not self._one_slot(work):
            self._note_costs(work.indices, [sample.ns for sample in result.samples])
        commit = partial(self._progress.delivered_work, work)
        return result.value, size_of(work.indices) if self._auto_collation else 1, commit

    def _parts(self, sample):
        entry = self._works[sample.tag]
        entry[1] -= 1
        if entry[1] == 0:
            del self._works[sample.tag]
        work = entry[0]
        if not self._one_slot(work):
            number, slot = (work.number, sample.slot) if work.places is None else work.places[sample.slot]
            time = work.times[sample.slot] if work.times else 0
            return [Part(number, slot, work.indices[sample.slot], sample.error, time)]
        indices = work.indices if self._auto_collation and hasattr(work.indices, "__len__") else [work.indices]
        places = work.places or [(work.number, slot) for slot in range(len(indices))]
        return [Part(*place, index, sample.error) for place, index in zip(places, indices, strict=True)] or [
            Part(work.number, 0, None, sample.error)
        ]

    def _note_costs(self, indices, ns):
        """What samples took; what is slow is judged anew where it was only guessed."""
        if self._costs.note(indices, ns):
            self._pool.expect(self._costs.median())

    def _deliver(self, value, parts, bad):
        if self._holds:
            self._awaited.popleft()
        indices = [part.index for part in parts if part.index is not None]  # an empty batch has a part without
        along = [place for part in parts for place in self._along.pop(part[:2], ())]
        work = Work(parts[0].number, indices if self._auto_collation else indices[0],
                    [*(part[:2] for part in parts), *along])  # fmt: skip
        hopeless = self._hopeless.pop(parts[0][:2], None)
        if hopeless is not None:
            return Lost(no_replacement(hopeless.index, hopeless.error)), 0, partial(self._progress.delivered_work, work, along)
        commit = partial(self._progress.delivered_work, work, [*(part[:2] for part in bad), *along])
        if len(bad) == len(parts):  # nothing is left to be given
            commit()
            return None
        return value, len(parts) - len(bad), commit

    def _places(self, part):
        """What is delivered with a part: its place, and those for which it stands."""
        return [part[:2], *self._along.pop(part[:2], ())]

    # --- replacing bad samples ---

    def _again(self, parts, bad):
        """What is asked for again, with others in the place of bad samples: the batch, or, where these are left out,
        one of it, if nothing else is left."""
        if self._bad.policy == "replace":
            return parts
        return parts[:1] if len(bad) == len(parts) else []

    def _replace(self, again, parts):
        """Asks for some parts of a batch, or all, with others in the place of bad samples; False: not, or in vain."""
        indices, others = [], [part.index for part in parts]
        for part in again:
            index = part.index if part.error is None else self._replacement_of(part, others)
            if index is None:
                self._hopeless[parts[0][:2]] = self._others[part[:2]][0]
                return False
            indices.append(index)
        places = [part[:2] for part in again]
        if not again or not self._post(self._work_again(indices, places), again=True):
            return False
        left_out = [place for part in parts[len(again):] for place in self._places(part)]
        self._along[places[0]] = [*self._along.get(places[0], ()), *left_out]
        return True

    def _work_again(self, indices, places):
        """Without batches it has its own number, which its random numbers hang on."""
        return Work(places[0][0], indices, places) if self._auto_collation else Work(places[0][0], indices[0])

    def _replacement_of(self, part, others):
        place = part.number, part.slot
        if place not in self._others:
            occurrence = part.time if self._bad.policy == "replace" else 0
            self._others[place] = part, self._replacements.of(part.index, place, others, occurrence)
        return next(self._others[place][1], None)

    def _take_held(self):
        if self._held and self._awaited[0] in self._held:
            return self._deliver(*self._held.pop(self._awaited[0]))
        return None

    def _finish(self):
        if self._costs:
            self._costs.save()
        super()._finish()
