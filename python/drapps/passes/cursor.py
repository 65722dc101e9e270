"""The consumer of a pass: where it is, and how long it waited.  Each has one owner.

Cursor is the plain form of the position, a low-water mark and what was delivered beyond it; chains with .map() and
.filter() use it.  Progress is the full form of torch's DataLoader: batches with slots (Delivered), several consumer
threads (Hands), a sampler with a state (Drawn).  The iterator of a pass keeps its Progress up to date; the loader keeps
it when the iterator is gone, so that a state can be saved after a `break`.

ConsumerTimer measures waits and steps; wait_range marks waits for torch.profiler.
"""

import sys
import threading
import time
from collections.abc import Set
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from drapps import _core
from drapps.passes.order import Origin


class Cursor(NamedTuple):
    """How far the consumer is in a rank's part of an epoch, whose batches may come out of order."""

    number: int = 0  # of the next batch
    local: int = 0  # all local positions before it are delivered,
    ahead: Set = frozenset()  # and these beyond it

    def after(self, locals):
        """The cursor once a batch of these local positions is delivered."""
        local, ahead = self.local, {*self.ahead, *locals}
        while local in ahead:
            ahead.discard(local)
            local += 1
        return Cursor(self.number + 1, local, ahead)

    def state(self):
        """The cursor as plain values."""
        return {"number": self.number, "local": self.local, "ahead": sorted(self.ahead)}


class Hand:
    """The batch that one consumer thread is being handed.

    An exception that a signal's handler raises may come between any two steps.  So a batch is in `box` from the moment
    it is taken until it is accepted, in `value` until it is given, and counts as delivered only after that.
    """

    __slots__ = ("box", "commit", "given", "n_samples", "offered", "value")

    def __init__(self):
        self.box = []  # a raw result that was taken and not yet accepted
        self.offered = self.given = False
        self.value = self.commit = None
        self.n_samples = 0

    @property
    def waits(self):
        """Whether a batch is there that the consumer did not get."""
        return self.offered and not self.given

    def take(self):
        """That batch, for the consumer.  No signal handler can run inside."""
        value, self.value, self.given = self.value, None, True
        return value


class Hands:
    """Hands batches to the consumer's threads, and counts those that were given.

    counts: of the loader.  yielded: batches that the consumer got.
    """

    def __init__(self, counts):
        self.timer = ConsumerTimer(counts)
        self.yielded = 0
        self.lock = threading.RLock()  # of the pass's progress
        self._counts = counts
        self._by_thread = {}

    def mine(self):
        """The Hand of the calling thread."""
        me = threading.get_ident()
        return self._by_thread.get(me) or self._by_thread.setdefault(me, Hand())

    def offer(self, hand, value, n_samples, commit):
        """Puts a batch into a hand.  commit: called once it was given, to note what was delivered with it."""
        with self.lock:
            self._commit(hand)
            hand.value, hand.n_samples, hand.commit = value, n_samples, commit
            hand.given, hand.offered = False, True

    def commit(self):
        """Counts the batches that were given as delivered."""
        _core.defer_sigint(self._commit_all)

    def _commit_all(self):
        with self.lock:
            for hand in list(self._by_thread.values()):
                self._commit(hand)

    def _commit(self, hand):
        if hand.offered and hand.given:
            self._count(hand)
            hand.offered = False

    def _count(self, hand):
        """Counts a batch once: one that commit_offers has counted may be given afterwards."""
        commit, hand.commit = hand.commit, None
        if commit is None:
            return
        commit()
        self.yielded += 1
        self._counts["batches"] += 1
        self._counts["samples"] += hand.n_samples

    def commit_offers(self):
        """Counts what the hands hold as delivered, too: the pass continues elsewhere, and its threads will give it."""
        with self.lock:
            self._commit_all()
            for hand in list(self._by_thread.values()):
                if hand.waits:
                    self._count(hand)

    def lost(self, commit):
        """An error takes the place of a batch, after those that were given before."""
        with self.lock:
            self._commit_all()
            commit()


@dataclass
class Drawn:
    """What the order of a pass was drawn from."""

    draws: dict  # states of generators
    base_seed: int | None = None
    native: bool = False  # the engine draws the samples' random numbers
    order_seed: int | None = None  # of the sampler that shuffle=True makes
    begun: bool = False  # the sampler was asked for a batch
    first: Any = None  # samples that fill up the last batch of ranks, where the sampler continues from a state


class Delivered:
    """The batches that were delivered, of those that the sampler gave.  Its calls hold the lock of Hands."""

    def __init__(self):
        self.position = 0  # all batches of the order before this one are delivered
        self.done = {}  # out of order: number of a batch from there on -> slots delivered, None: all of them
        self.origin = Origin()  # of the numbers of batches
        self.sampler_state = None  # after the batches before `position`
        self._sizes = {}  # batches in flight: samples of each
        self._sampler_states = {}  # after each batch in flight

    def begin(self, number, n_slots, sampler_state):
        """A batch was taken from the sampler; returns its slots that were delivered before, None: all."""
        self._sizes[number] = n_slots
        self._sampler_states[number] = sampler_state
        done = self.done.get(number, ())
        self._advance()
        return done

    def add(self, number, slots=None):
        """All samples of a batch, or some slots of it, are with the consumer (or were left out)."""
        if slots is not None:
            done = self.done.setdefault(number, set())
            done.update(slots)
        if slots is None or len(done) >= self._sizes[number]:
            self.done[number] = None
            self._advance()

    def _advance(self):
        """Moves the position, but not beyond what was taken from the sampler: some batches were delivered before the
        state was saved."""
        while self.position in self._sizes and self.done.get(self.position, ()) is None:
            del self.done[self.position]
            del self._sizes[self.position]
            self.sampler_state = self._sampler_states.pop(self.position)
            self.position += 1


class Progress:
    """One pass: what its order was drawn from, and what was delivered of it."""

    def __init__(self, epoch, draws, counts):
        self.epoch = epoch
        self.hands = Hands(counts)
        self.drawn = Drawn(draws)
        self.delivered = Delivered()
        self.finished = False
        self.invalid = None  # why the pass cannot continue
        self.data_state = None  # function: the state of the data set after what was delivered
        self.made_with = None  # what states of this pass are compared by, once one was asked for
        self.record = None  # replay.Record, where the pass is recorded
        self.repeat = None  # replay.Repeat, where it repeats another

    def begun(self, number, n_slots, sampler_state):
        """A batch was taken from the sampler; returns its slots that were delivered before, None: all."""
        with self.hands.lock:
            self.drawn.begun = True
            return self.delivered.begin(number, n_slots, sampler_state)

    def delivered_work(self, work, left_out=()):
        """A batch is with the consumer, or lost.  left_out: places of bad samples that are not in it."""
        with self.hands.lock:
            if self.repeat is not None:
                self.repeat.delivered(work)
            elif work.places is None:
                self.delivered.add(work.number)
            else:
                self.delivered_places(work.places)
            if self.record is not None:
                self.record.add(work, left_out)

    def delivered_batch(self, number):
        """A batch of which the number alone is known is with the consumer, or lost."""
        with self.hands.lock:
            self.delivered.add(number)

    def delivered_places(self, places):
        """Single samples, each as (batch, slot), are with the consumer (or were left out)."""
        with self.hands.lock:
            for number, slot in places:
                self.delivered.add(number, [slot])

    # --- states ---

    def as_dict(self):
        """The part of a state that belongs to the pass.  restore() reads what is written here."""
        self.hands.commit()
        with self.hands.lock:
            drawn, delivered, yielded = self.drawn, self.delivered, self.hands.yielded
            some = {number: slots for number, slots in delivered.done.items() if slots is None or slots}
            done = {number: slots and sorted(slots) for number, slots in some.items()}
            more = {} if drawn.first is None else {"first": drawn.first}
            more |= {} if self.repeat is None else {"replay": self.repeat.rest()}
            return {
                "_num_yielded": yielded,
                "_iterator_finished": self.finished,
                "epoch": self.epoch,
                "ahead": delivered.position - yielded,
                "done": done,
                "origin": tuple(delivered.origin),
                "base_seed": drawn.base_seed,
                "native": drawn.native,
                "order_seed": drawn.order_seed,
                "drawn": drawn.begun,
                "draws": drawn.draws,
                "sampler": delivered.sampler_state,
                "dataset": self.data_state() if self.data_state else None,
                **more,
            }

    def restore(self, state):
        """Continues the pass of a state, whose epoch, draws and base seed it began with."""
        drawn, delivered, yielded = self.drawn, self.delivered, state["_num_yielded"]
        self.hands.yielded, delivered.position = yielded, yielded + state["ahead"]
        delivered.done = {int(number): slots and set(slots) for number, slots in state["done"].items()}
        delivered.origin = Origin(*state["origin"])
        drawn.order_seed, drawn.begun = state["order_seed"], state["drawn"]
        delivered.sampler_state, drawn.first = state["sampler"], state.get("first")


# --- waiting ---


class ConsumerTimer:
    """How long the consumers of a pass waited for batches, and how long they used them.

    sums: a dict in which wait_ns and step_ns grow.  They mean the same in every loader, and this is their definition:

    - wait_ns: time in which at least one consumer was inside next().
    - step_ns: time between two calls of next(), in which no consumer was inside: the training step.

    Both are wall-clock time, however many consumers there are: together they are the time from the first call of
    next() of a pass to the end of the pass.  Time after the end, or after the pass was cancelled, counts as neither.

    Each executor measures them once, where the wait happens: native loaders in C (src/exec/flow.c), worker processes
    for their controller in C (src/shmpool/shmpool_flow.c).  This timer serves the loaders of Python, whose passes may
    run in the caller, where no C code sees the consumer.
    """

    def __init__(self, sums):
        self._sums = sums
        self._waiting = set()  # threads
        self._until = None  # counted up to here; None: no call has come, or the pass is over
        self._lock = threading.RLock()

    def begin_wait(self):
        """The calling thread begins to wait."""
        _core.defer_sigint(self._begin_wait)

    def _begin_wait(self):
        with self._lock:
            now = self._count()
            self._waiting.add(threading.get_ident())
            self._until = now

    def end_wait(self, over=False):
        """The calling thread has waited; over: the pass came to its end."""
        _core.defer_sigint(self._end_wait, over)

    def _end_wait(self, over):
        with self._lock:
            self._count()
            self._waiting.discard(threading.get_ident())
            if over and not self._waiting:
                self._until = None

    def stop(self):
        """The pass is over, or cancelled: later time is no part of it."""
        _core.defer_sigint(self._stop)

    def _stop(self):
        with self._lock:
            self._count()
            self._until = None

    def count(self):
        """Adds the time up to now to the sums."""
        _core.defer_sigint(self._count)

    def _count(self):
        with self._lock:
            now = time.monotonic_ns()
            if self._until is not None:
                self._sums["wait_ns" if self._waiting else "step_ns"] += now - self._until
                self._until = now
            return now


# Waits as ranges in torch.profiler.  They cost one dict look-up while no profiler runs.

_nothing = nullcontext()


def is_profiled():
    """Return whether torch.profiler is running."""
    profiler = sys.modules.get("torch.autograd.profiler")
    return profiler is not None and getattr(profiler, "_is_profiler_enabled", False)


def wait_range():
    """Return a context manager for the time in which the consumer waits for a batch."""
    if not is_profiled():
        return _nothing
    return sys.modules["torch.autograd.profiler"].record_function("drapps: wait for batch")
