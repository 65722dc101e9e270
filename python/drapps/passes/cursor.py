"""Where the consumer is in a pass: the one owner of that position.

Cursor is the plain form, a low-water mark and what was delivered beyond it; chains with .map() and .filter() use it.
Progress is the full form of torch's DataLoader: batches with slots, several consumer threads, a sampler with a state.
The iterator of a pass keeps its Progress up to date; the loader keeps it when the iterator is gone, so that a state can
be saved after a `break`.
"""

import threading
from collections.abc import Set
from typing import NamedTuple

from drapps import _core
from drapps.passes.consumer_timer import ConsumerTimer
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


class Progress:
    """What was delivered of one pass, and what its order was drawn from."""

    def __init__(self, epoch, draws, counts):
        self.epoch = epoch
        self.counts = counts  # of the loader
        self.timer = ConsumerTimer(counts)
        self.draws = draws
        self.base_seed = None
        self.native = False  # the engine draws the samples' random numbers
        self.order_seed = None  # of the sampler that shuffle=True makes
        self.drawn = False  # the sampler was asked for a batch
        self.yielded = 0  # batches that the consumer got
        self.position = 0  # all batches of the order before this one are delivered
        self.done = {}  # out of order: number of a batch from there on -> slots delivered, None: all of them
        self.origin = Origin()  # of the numbers of batches
        self.finished = False
        self.invalid = None  # why the pass cannot continue
        self.data_state = None  # function: the state of the data set after what was delivered
        self.made_with = None  # what states of this pass are compared by, once one was asked for
        self.lock = threading.RLock()
        self._hands = {}  # by thread
        self._sizes = {}  # batches in flight: samples of each
        self._sampler_states = {}  # after each batch in flight
        self.sampler_state = None  # after the batches before `position`
        self.first = None  # samples that fill up the last batch of ranks, where the sampler continues from a state
        self.record = None  # replay.Record, where the pass is recorded
        self.repeat = None  # replay.Repeat, where it repeats another

    # --- handing over ---

    def hand(self):
        """The Hand of the calling thread."""
        me = threading.get_ident()
        return self._hands.get(me) or self._hands.setdefault(me, Hand())

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
            for hand in list(self._hands.values()):
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
        self.counts["batches"] += 1
        self.counts["samples"] += hand.n_samples

    def commit_offers(self):
        """Counts what the hands hold as delivered, too: the pass continues elsewhere, and its threads will give it."""
        with self.lock:
            self._commit_all()
            for hand in list(self._hands.values()):
                if hand.waits:
                    self._count(hand)

    # --- what was delivered ---

    def delivered_work(self, work, left_out=()):
        """A batch is with the consumer, or lost.  left_out: places of bad samples that are not in it."""
        with self.lock:
            if self.repeat is not None:
                self.repeat.delivered(work)
            elif work.places is None:
                self.delivered(work.number)
            else:
                self.all_delivered(work.places)
            if self.record is not None:
                self.record.add(work, left_out)

    def lost(self, commit):
        """An error takes the place of a batch, after those that were given before."""
        with self.lock:
            self._commit_all()
            commit()

    def begun(self, number, n_slots, sampler_state):
        """A batch was taken from the sampler; returns its slots that were delivered before, None: all."""
        with self.lock:
            self.drawn = True
            self._sizes[number] = n_slots
            self._sampler_states[number] = sampler_state
            done = self.done.get(number, ())
            self._advance()
            return done

    def delivered(self, number, slots=None):
        """All samples of a batch, or some slots of it, are with the consumer (or were left out)."""
        with self.lock:
            if slots is not None:
                done = self.done.setdefault(number, set())
                done.update(slots)
            if slots is None or len(done) >= self._sizes[number]:
                self.done[number] = None
                self._advance()

    def all_delivered(self, places):
        """The same for (batch, slot) each."""
        for number, slot in places:
            self.delivered(number, [slot])

    def _advance(self):
        """Moves the position, but not beyond what was taken from the sampler: some batches were delivered before the
        state was saved."""
        while self.position in self._sizes and self.done.get(self.position, ()) is None:
            del self.done[self.position]
            del self._sizes[self.position]
            self.sampler_state = self._sampler_states.pop(self.position)
            self.position += 1

    # --- states ---

    def as_dict(self):
        """The part of a state that belongs to the pass.  restore() reads what is written here."""
        self.commit()
        with self.lock:
            done = {number: slots and sorted(slots) for number, slots in self.done.items() if slots is None or slots}
            more = {} if self.first is None else {"first": self.first}
            more |= {} if self.repeat is None else {"replay": self.repeat.rest()}
            return {
                "_num_yielded": self.yielded,
                "_iterator_finished": self.finished,
                "epoch": self.epoch,
                "ahead": self.position - self.yielded,
                "done": done,
                "origin": tuple(self.origin),
                "base_seed": self.base_seed,
                "native": self.native,
                "order_seed": self.order_seed,
                "drawn": self.drawn,
                "draws": self.draws,
                "sampler": self.sampler_state,
                "dataset": self.data_state() if self.data_state else None,
                **more,
            }

    def restore(self, state):
        """Continues the pass of a state, whose epoch, draws and base seed it began with."""
        self.yielded, self.position = state["_num_yielded"], state["_num_yielded"] + state["ahead"]
        self.done = {int(number): slots and set(slots) for number, slots in state["done"].items()}
        self.origin = Origin(*state["origin"])
        self.order_seed, self.drawn = state["order_seed"], state["drawn"]
        self.sampler_state, self.first = state["sampler"], state.get("first")
