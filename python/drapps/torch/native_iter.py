"""NativeIter: a pass in which the engine's threads make whole batches, in the order that torch's sampler draws.

Random choices of a sample are keyed by the base seed, the sample and how often it came in the pass: they depend neither
on the number of threads nor on where the pass was resumed.
"""

import json
import os
import sys
import threading
from collections import deque
from functools import partial

import numpy

from drapps import _core
from drapps.passes.inflight import Mixed, Refused, Times, Whole, find, places_in
from drapps.passes.order import Work, places_of
from drapps.procpool.seeds import COLLATE, CallerSeeds
from drapps.torch import workers
from drapps.torch.iterator import Iterator, pinned
from drapps.torch.samplers import has_ranks, length_of, mixable, samples_of_pass, settings_of

MAX_PREFETCH, MOST_NAMED = 64, 8
AT_ONCE = ("workers", "prefetch")  # knobs that a loader is opened with


def largest_batch(loader):
    """Samples that memory is kept for: a batch size beyond all that the sampler gives would ask for too much.

    Other samplers than torch's may give more than their length says.
    """
    known = type(loader.sampler).__module__.startswith(("torch.utils.data", "drapps.torch"))
    return min(loader.batch_size or 1, (known and length_of(loader.sampler)) or sys.maxsize)


def ahead_of(loader, n_workers):
    """Batches in flight, as torch counts them; without workers, one."""
    return (loader.prefetch_factor or 1) * max(1, n_workers)


def open_native(loader, plan, n_workers, in_order):
    """(native loader of a plan, what it was opened with): the one that an earlier pass has left, or a new one."""
    options = dict(
        batch_size=largest_batch(loader), in_order=in_order, on_bad_sample=loader.on_bad_sample,
        max_bad=loader.max_bad, memory_limit=loader.memory_limit, outputs=plan.outputs, collate={"*": "list"},
        output="torch", pushed_order=True, keep_batches=not mixable(loader), lanes=loader.lanes, cache=loader.cache,
        cache_limit=loader.cache_limit, cache_memory=loader.cache_memory, cpu_limit=loader.cpu_limit,
        offload=loader.offload, ranges=loader.ranges, equal_batches=has_ranks(loader), **loader._tuning.native(),
    )  # fmt: skip
    knobs = {"workers": n_workers, "prefetch": min(MAX_PREFETCH, ahead_of(loader, n_workers))}
    knobs = {knob: value for knob, value in knobs.items() if knob in loader._tuning.pinned} | loader._tuning.overrides
    key = (plan, os.getpid(), options)
    native = loader._engines.take(key)
    if native is None:
        native = _new_native(plan, {**options, **{knob: knobs.pop(knob) for knob in AT_ONCE if knob in knobs}})
    for knob, value in knobs.items():
        native.set(knob, value)
    return native, key


def _new_native(plan, options):
    native = plan.pipe.loader(**options)
    table = plan.ids.table
    is_whole = numpy.array_equal(table, numpy.arange(plan.pipe.dataset.size))
    if options["on_bad_sample"] != "raise" and len(table) and not is_whole:
        native.set_replacements(table)  # candidates are the samples of a Subset, by their indices there
    return native


class NativeIter(Iterator):
    """Batches of the engine."""

    _native_pass = True

    def __init__(self, loader):
        self._native = None
        self._n_workers = workers.share(self, int(loader.num_workers), loader.num_workers.decided)
        super().__init__(loader)

    def _begun(self, loader, resume):
        super()._begun(loader, resume)
        self._tuning = loader._tuning
        self._plan, self._engines, self._counts_bad = loader._plan, loader._engines, loader._counts
        self._turn = threading.RLock()
        self._exhausted, self._ended = False, False
        self._refused, self._pushed, self._taken = deque(), 0, 0
        if self._native is None:
            self._native, self._key = open_native(loader, self._plan, self._n_workers, self._order.config.in_order)
            loader._counters.watch_native(self._native, self._plan)
        self._tuning.attach(self._native)
        self._native.timeout_ms = int(self._timeout * 1000) or -1
        self._native.set_epoch(self._base_seed)
        self._tell_begin(loader)
        self._batches = self._native.batches()
        self._open_window(loader)
        _core.defer_sigint(self._fill)

    def _tell_begin(self, loader):
        """For the trace: which pass it is, for the engine knows its seed alone, and what the user asked for."""
        told = {"event": "pass", "pass": self._progress.epoch, "epoch": self._base_seed,
                "settings": settings_of(loader)}
        n_samples = samples_of_pass(loader)
        if n_samples is not None:
            base = sum(map(len, self._order.passed))
            told |= {"base": base, "samples": max(0, n_samples - base)}
        self._native._core.note(json.dumps(told, default=str))

    def _alive(self):
        return self._native is not None

    # --- the window ---

    def _open_window(self, loader):
        """Counted in batches, or in samples where these go to other batches: some may be left out of them."""
        self._find = partial(find, self._plan.ids, policy=self._bad.policy, replacements=self._bad.replacements)
        ids, n_batches = self._past(self._order.passed)
        self._in_flight, self._unit = 0, 1
        self._window = self._tuning.overrides.get("prefetch", ahead_of(loader, self._n_workers))
        self._mixes = not self._order.config.in_order and mixable(loader)
        if self._mixes:
            self._unit = loader.batch_size
            self._books = Mixed(self._progress, len(ids))
        else:
            self._books = Whole(self._progress, n_batches, len(ids))
        if self._progress.repeat is None and (self._progress.record is not None or self._progress.delivered.done):
            times = Times(self._find, self._plan.ids.table)
            times.of(ids)
            self._order.times_of = times.of_work
        if len(ids):
            self._native.push_past(ids, n_batches)

    def _past(self, batches):
        """(ids, batches) that were pushed of those that are left behind."""
        try:
            return self._plan.ids([index for indices in batches for index in indices]), len(batches)
        except Exception:  # not all were
            first = self._progress.delivered.origin.number
            found = [self._find(Work(number, indices)).ids for number, indices in enumerate(batches, first)]
            return [one for ids in found for one in ids], sum(len(ids) > 0 for ids in found)

    def _ahead(self):
        """Samples or batches to keep pushed: the engine knows the prefetch window."""
        return self._native.prefetch_window(self._window) * self._unit

    def _fill(self):
        while not self._exhausted and self._in_flight + len(self._refused) * self._unit < self._ahead():
            try:
                work = next(self._order)
            except StopIteration:
                self._exhausted = True
                self._native.push_end()
                return
            found = self._find(work)
            if found.bad:
                work = self._leave_out(work, found)
            if work is not None:
                self._native.push(found.ids, work.times)
                self._pushed += 1
                self._in_flight += self._books.pushed(work)

    def _leave_out(self, work, found):
        """What remains of a batch with indices that are not there; None: nothing is to be pushed."""
        error = found.bad[0][1] if self._bad.policy == "raise" else self._report(found.bad)
        if error is not None or not found.ids:
            self._refused.append(Refused(0 if self._mixes else self._pushed, work, error))
            return None
        if self._mixes:  # else the batch is delivered as a whole
            gone = set(range(len(work.indices))).difference(found.slots)
            self._progress.delivered_places(places_in(work, gone))
        kept = places_in(work, found.slots) if self._mixes or work.places else None
        times = work.times and [work.times[slot] for slot in found.slots]
        return Work(work.number, [work.indices[slot] for slot in found.slots], kept, times)

    def _report(self, bad):
        """Of indices that are not there; the error where these are too many: nothing is pushed after that."""
        try:
            for index, error in bad:
                self._bad.report(index, error)
        except _core.BadSampleError as error:
            self._exhausted = True
            self._native.push_end()
            return error
        return None

    def _tell_refused(self):
        """A batch that could not be pushed is due: raises its error."""
        with self._turn:
            while self._refused and self._refused[0].due <= self._taken:
                _, work, error = self._refused.popleft()
                left_out = () if error is not None else places_in(work, range(len(work.indices)))
                self._progress.delivered_work(work, left_out)
                self._fill()
                if error is not None:
                    self._give_up_if_too_many(error)
                    raise error

    def _next_data(self):
        hand = self._progress.hands.mine()
        while not hand.waits:
            if self._refused:
                _core.defer_sigint(self._tell_refused)
            batch = self._take(hand.box)
            _core.defer_sigint(self._accept, hand, batch)

    def _accept(self, hand, batch):
        with self._turn:
            hand.box.clear()
            self._taken += 1
            back = self._books.delivered(batch)
            self._in_flight -= back.freed
            self._note_bad(batch.bad)
            if batch.error and not self._plan.goes_on:  # as torch's: the batch is lost, and the next call goes on
                self._progress.hands.lost(back.commit)
                self._fill()
                raise batch.error
            if batch.samples or batch.error:
                made = self._finished(batch, back)
                n_samples = batch.samples or len(back.work.indices)
                self._progress.hands.offer(hand, pinned(self, made), n_samples, back.commit)
            else:  # all were left out
                back.commit()
            self._fill()

    def _finished(self, batch, back):
        """What the consumer gets of a batch.  What Python code draws for it, hangs on its first
        place, as in a worker."""
        if not batch.error and not self._plan.collate.draws:
            return self._checked(self._plan.deliver, batch, back)
        seeds = CallerSeeds(self._base_seed, self._order)
        with seeds.preserving():
            if batch.error:
                return self._checked(partial(self._in_python, seeds), back.work, back)
            seeds.set(back.first, COLLATE)
            return self._checked(self._plan.deliver, batch, back)

    def _checked(self, make, of, back):
        """An error costs the batch alone."""
        try:
            return make(of)
        except Exception:
            self._progress.hands.lost(back.commit)
            self._fill()
            raise

    def _in_python(self, seeds, work):
        """A batch with a sample that the engine cannot read, where the data set knows what to do then."""
        samples = []
        for place, index in zip(places_of(work, len(work.indices)), work.indices, strict=True):
            seeds.set(place)
            samples.append(self._dataset[index])
        seeds.set(places_of(work, len(work.indices))[0], COLLATE)
        return self._collate_fn(samples)

    def _note_bad(self, rows):
        self._counts_bad["bad_samples"] += len(rows)
        for bad in rows:
            index = self._plan.ids.index_of(bad["id"])
            self._bad.listed.add(index, bad["error"], self._progress.epoch, bad.get("key"))

    def _take(self, box):
        try:
            return self._batches.take(box)
        except TimeoutError:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds{self._at()}") from None
        except StopIteration:
            self._ended = True
            self._finish()
            raise
        except _core.StateError:
            if self._ended:  # another thread saw the end
                raise StopIteration from None
            raise

    def _at(self):
        """The samples that the workers are at, in words."""
        native = self._native  # which another thread may end
        running = [] if native is None else native.running()
        text = "".join(map(self._where, running[:MOST_NAMED]))
        return text + (f"; and {len(running) - MOST_NAMED} more" if len(running) > MOST_NAMED else "")

    def _where(self, at):
        index = self._plan.ids.index_of(at["id"])
        name, who = self._bad.listed.name(index, at.get("key")), "worker" if at["worker"] > 0 else "reader"
        return f"; {who} {abs(at['worker'])} has been at sample {index} ({name}) for {at['seconds']:.1f} seconds"

    # --- the end ---

    def _set_knob(self, knob, value):
        with self._turn:
            if self._native is None:
                return
            self._native.set(knob, value)
            if knob == "workers":
                self._n_workers = value
            elif knob == "prefetch":
                self._window = value

    def _finish(self):
        if not self._persistent_workers:
            self._engines.put(self._key, self._let_go())

    def _let_go(self):
        native, self._native = self._native, None
        workers.give_back(self)
        return native

    def _shutdown_workers(self):
        native = self._let_go()
        if native is not None:
            self._leave(native)

    def _leave(self, native):
        """A pass that has not come to its end is left.  A trace is that of all passes: its writer
        waits for the next."""
        if self._tuning.trace is None:
            native.close()
        else:
            native.give_up()
            self._engines.put(self._key, native)

    def __del__(self):
        """At the end of the program, all native loaders were closed, and modules may be gone:
        nothing is touched then."""
        native = getattr(self, "_native", None)
        if native is not None and not native._core.closed:
            self._leave(native)
