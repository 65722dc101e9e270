"""SampleCollector: posts the batches of a map-style data set, and makes batches for the consumer of what comes back.

Results come in the order of posting (in_order), or as they are ready: then a result names the samples that it is made
of, and progress is kept for each of them.  The collector has up to three parts:

    Posted    which batch and sample each result of the pool belongs to
    Replacer  what takes the place of bad samples; only where bad samples are replaced
    Turns     holds batches back until those before them have come; only where bad samples are replaced in order
"""

from collections import deque
from functools import partial
from typing import NamedTuple

from torch._utils import ExceptionWrapper

from drapps.passes.bad_samples import indices_of, no_replacement
from drapps.passes.order import Work, size_of, tag_of

MADE_UP = 1 << 62  # tags of batches that are not the sampler's


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
    index: object  # type: ignore[assignment]  # hides tuple.index
    error: object
    time: int = 0  # how often it came before in the pass

    @property
    def place(self):
        """The place that no other sample of the pass has."""
        return self[:2]


class SampleCollector:
    """The batches of one pass between the order and the consumer.

    bad: the pass's BadCounter.  costs: the Costs of the data set, or None.
    """

    def __init__(self, pool, config, progress, bad, costs, *, batched):
        self._progress, self._bad, self._batched = progress, bad, batched
        replaces = bad.policy == "replace" or bad.equal
        self._posted = Posted(pool, config, costs, batched)
        self._as_posted = bad.policy == "raise" and (config.in_order or pool.whole)  # nothing is left out or mixed
        self._replacer = Replacer(self._posted, bad, batched) if replaces else None
        self._turns = Turns() if replaces and config.in_order else None

    def post(self, work):
        """Posts a batch; False: the pool cannot take it now."""
        posted = self._posted.post(work)
        if posted and self._turns is not None:
            self._turns.expect(work.first)
        return posted

    @property
    def holds(self):
        """Whether batches were received before their turn."""
        return self._turns is not None and self._turns.holds

    def is_over(self, poster):
        """Whether nothing of the pass is left to be delivered."""
        return poster.is_over and not self.holds

    def accept(self, result):
        """(batch or its error, samples, what to call once it is delivered) of a result; None: nothing to deliver."""
        if isinstance(result.value, ExceptionWrapper):
            result.value.failed_at = self._posted.failed_at(result.samples)
        if self._as_posted:
            work = self._posted.take(result)
            n_samples = size_of(work.indices) if self._batched else 1
            return result.value, n_samples, partial(self._progress.delivered_work, work)
        parts = self._posted.parts(result.samples)
        bad = [part for part in parts if part.error is not None] if self._bad.policy != "raise" else []
        for part in bad:
            if self._replacer is None or not self._replacer.knows(part):
                self._bad.report(part.index, part.error)
        if bad and self._replacer is not None and self._replacer.asks_again(parts, bad):
            return None
        if self._turns is not None and not self._turns.is_next(parts[0].place):
            self._turns.hold(parts[0].place, (result.value, parts, bad))
            return None
        return self._deliver(result.value, parts, bad)

    def take_held(self):
        """The batch that was held back and whose turn it is, as accept() returns it; None: there is none."""
        held = self._turns.take()
        return None if held is None else self._deliver(*held)

    def _deliver(self, value, parts, bad):
        if self._turns is not None:
            self._turns.advance()
        along = [] if self._replacer is None else [place for part in parts for place in self._replacer.take_along(part)]
        indices = [part.index for part in parts if part.index is not None]  # an empty batch has a part without
        work = Work(parts[0].number, indices if self._batched else indices[0],
                    [*(part.place for part in parts), *along])  # fmt: skip
        error = None if self._replacer is None else self._replacer.take_error(parts[0])
        if error is not None:
            return Lost(error), 0, partial(self._progress.delivered_work, work, along)
        commit = partial(self._progress.delivered_work, work, [*(part.place for part in bad), *along])
        if len(bad) == len(parts):  # nothing is left to be given
            commit()
            return None
        return value, len(parts) - len(bad), commit

    def finish(self):
        """The pass is over."""
        self._posted.save_costs()


class Posted:
    """The batches that are in flight, by tag, and what samples cost.

    costs: a Costs, which predicts them, or None.
    """

    def __init__(self, pool, config, costs, batched):
        self._pool, self._config, self._costs, self._batched = pool, config, costs, batched
        self._works = {}  # by tag: [Work, samples that did not come yet]
        self._made_up = MADE_UP

    def post(self, work):
        """Posts a batch; False: the pool cannot take it now."""
        keys = work.places and [(tag_of(self._config, number), slot) for number, slot in work.places]
        tag = self._tag(work)
        costs = self._costs and self._costs.predict(work.indices)
        # Samples with keys stay together: who puts a batch of others' samples together does not know theirs.
        keep = not self._config.mixable or keys is not None
        if not self._pool.post(tag, work.indices, costs, keep=keep, keys=keys):
            return False
        self._works[tag] = [work, 1 if self._has_one_slot(work) else len(work.indices)]
        return True

    def _tag(self, work):
        if work.places is None:
            return tag_of(self._config, work.number)
        self._made_up += 1
        return self._made_up

    def _has_one_slot(self, work):
        """Whether the batch is asked for as one thing."""
        return self._pool.whole or len(work.indices) == 0

    def take(self, result):
        """The Work of a result that is the batch as it was posted."""
        work, _ = self._works.pop(result.tag)
        if self._costs and not self._has_one_slot(work):
            self._note_costs(work.indices, [sample.ns for sample in result.samples])
        return work

    def parts(self, samples):
        """The Parts of a result, from whichever batches its samples are."""
        parts = [part for sample in samples for part in self._parts_of(sample)]
        if self._costs:  # then a sample is one part
            made = zip(parts, samples, strict=True)
            timed = [(part.index, sample.ns) for part, sample in made if part.index is not None and sample.ns]
            self._note_costs([index for index, _ in timed], [ns for _, ns in timed])
        return parts

    def _parts_of(self, sample):
        entry = self._works[sample.tag]
        entry[1] -= 1
        if entry[1] == 0:
            del self._works[sample.tag]
        work = entry[0]
        if not self._has_one_slot(work):
            number, slot = (work.number, sample.slot) if work.places is None else work.places[sample.slot]
            time = work.times[sample.slot] if work.times else 0
            return [Part(number, slot, work.indices[sample.slot], sample.error, time)]
        indices = work.indices if self._batched and hasattr(work.indices, "__len__") else [work.indices]
        places = work.places or [(work.number, slot) for slot in range(len(indices))]
        return [Part(*place, index, sample.error) for place, index in zip(places, indices, strict=True)] or [
            Part(work.number, 0, None, sample.error)
        ]

    def failed_at(self, samples):
        """Indices that the error of a batch came of: of the first bad sample, or of all where they are asked for at
        once.  Empty: of something else, as collate_fn."""
        for sample in samples:
            if sample.error is not None:
                work = self._works[sample.tag][0]
                if not self._has_one_slot(work):
                    return [work.indices[sample.slot]]
                return indices_of(work.indices, self._batched)
        return []

    def _note_costs(self, indices, ns):
        """What samples took; what is slow is judged anew where it was only guessed."""
        if self._costs.note(indices, ns):
            self._pool.expect(self._costs.median())

    def save_costs(self):
        """At the end of a pass."""
        if self._costs:
            self._costs.save()


class Replacer:
    """Asks for batches again, with replacements of their bad samples."""

    def __init__(self, posted, bad, batched):
        self._posted, self._bad, self._batched = posted, bad, batched
        self._others = {}  # by place of a bad sample: its Part, and an iterator of what may take its place
        self._hopeless = {}  # by first place of a batch: the Part for which nothing was found
        self._along = {}  # by place of a stand-in for a whole batch: the places of others of that batch

    def knows(self, part):
        """Whether the sample was bad before: what takes its place may fail, too."""
        return part.place in self._others

    def asks_again(self, parts, bad):
        """Asks for some parts of a batch, or all, with others in the place of bad samples; False: not, or in vain."""
        again = self._parts_again(parts, bad)
        indices, others = [], [part.index for part in parts]
        for part in again:
            index = part.index if part.error is None else self._replacement_of(part, others)
            if index is None:
                self._hopeless[parts[0].place] = self._others[part.place][0]
                return False
            indices.append(index)
        places = [part.place for part in again]
        if not again or not self._posted.post(self._work_again(indices, places)):
            return False
        left_out = [place for part in parts[len(again) :] for place in (part.place, *self.take_along(part))]
        self._along[places[0]] = [*self._along.get(places[0], ()), *left_out]
        return True

    def _parts_again(self, parts, bad):
        """The batch, or, where bad samples are left out, one of it, if nothing else is left."""
        if self._bad.policy == "replace":
            return parts
        return parts[:1] if len(bad) == len(parts) else []

    def _work_again(self, indices, places):
        """Without batches it has its own number, which its random numbers hang on."""
        return Work(places[0][0], indices, places) if self._batched else Work(places[0][0], indices[0])

    def _replacement_of(self, part, others):
        if part.place not in self._others:
            occurrence = part.time if self._bad.policy == "replace" else 0
            candidates = self._bad.replacements.of(part.index, part.place, others, occurrence)
            self._others[part.place] = part, candidates
        return next(self._others[part.place][1], None)

    def take_along(self, part):
        """The places for which a part stands besides its own."""
        return self._along.pop(part.place, ())

    def take_error(self, first):
        """The error of a batch for which no replacement was found, by its first part; None: it has none."""
        hopeless = self._hopeless.pop(first.place, None)
        return None if hopeless is None else no_replacement(hopeless.index, hopeless.error)


class Turns:
    """The order in which batches are delivered, where one that is asked for again comes after later ones."""

    def __init__(self):
        self._awaited = deque()  # first places of the batches that were posted and not delivered
        self._held = {}  # by first place: batches that came before their turn

    @property
    def holds(self):
        """Whether there are batches that came before their turn."""
        return bool(self._held)

    def expect(self, first):
        """A batch was posted."""
        self._awaited.append(first)

    def is_next(self, first):
        """Whether it is the turn of a batch."""
        return first == self._awaited[0]

    def hold(self, first, batch):
        """Keeps a batch until its turn."""
        self._held[first] = batch

    def take(self):
        """The batch whose turn it is; None: it has not come."""
        return self._held.pop(self._awaited[0], None) if self._held else None

    def advance(self):
        """A batch is delivered: it is the turn of the next one."""
        self._awaited.popleft()
