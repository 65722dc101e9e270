"""Progress: how far one pass over the data has come.

The iterator of a pass keeps it up to date; the loader keeps it when the iterator is gone, so that a state can be saved
after a `break` too.
"""

import threading

from drapps import _core
from drapps.pace import Pace
from drapps.torch.samplers import Origin


class Hand:
    """What one consumer thread is being handed.

    An exception that a signal's handler raises may come between any two steps.  So a batch is in `box` from the moment
    it is taken until it is accepted, in `value` until it is given, and counts as delivered only after that.
    """

    __slots__ = ("box", "given", "n_samples", "offered", "settle", "value")

    def __init__(self):
        self.box = []  # what was taken and not looked at yet
        self.offered = self.given = False
        self.value = self.settle = None
        self.n_samples = 0

    @property
    def waits(self):
        """A batch is there that the consumer did not get."""
        return self.offered and not self.given

    def take(self):
        """That batch, for the consumer.  Nothing in here gives a signal's handler the chance to come in between."""
        value, self.value, self.given = self.value, None, True
        return value


class Progress:
    """What was delivered of one pass, and what its order was drawn from."""

    def __init__(self, epoch, draws, counts):
        self.epoch = epoch
        self.counts = counts  # of the loader
        self.pace = Pace(counts)
        self.draws = draws
        self.base_seed = None
        self.native = False  # the engine draws the samples' random numbers
        self.order_seed = None  # of the RandomSampler that shuffle=True makes
        self.drawn = False  # the sampler was asked for a batch
        self.yielded = 0  # batches that the consumer got
        self.position = 0  # batches of the order before this one are done
        self.done = {}  # out of order: number of a batch from there on -> slots delivered, None: all of them
        self.origin = Origin()  # of the numbers of batches
        self.finished = False
        self.given_up = None  # why the pass may not go on
        self.data_state = None  # function: the state of the data set after what was delivered
        self.made_with = None  # what states of this pass are compared by, once one was asked for
        self.lock = threading.RLock()
        self._hands = {}  # by thread
        self._sizes = {}  # batches under way: samples of each
        self._sampler_states = {}  # after each batch under way
        self.sampler_state = None  # after the batches before `position`
        self.first = None  # samples that fill up the last batch of ranks, where the sampler goes on from a state
        self.record = None  # replay.Record, where the pass is recorded
        self.repeat = None  # replay.Repeat, where it repeats another

    # --- handing over ---

    def hand(self):
        """That of this thread."""
        me = threading.get_ident()
        return self._hands.get(me) or self._hands.setdefault(me, Hand())

    def offer(self, hand, value, n_samples, settle):
        """A batch is ready to be given; settle: says of what was delivered with it, once it was given."""
        with self.lock:
            self._settle(hand)
            hand.value, hand.n_samples, hand.settle = value, n_samples, settle
            hand.given, hand.offered = False, True

    def settle(self):
        """What was given counts from now on."""
        _core.defer_sigint(self._settle_all)

    def _settle_all(self):
        with self.lock:
            for hand in list(self._hands.values()):
                self._settle(hand)

    def _settle(self, hand):
        if hand.offered and hand.given:
            self._count(hand)
            hand.offered = False

    def _count(self, hand):
        """Once: what count_offers has counted may be given afterwards."""
        settle, hand.settle = hand.settle, None
        if settle is None:
            return
        settle()
        self.yielded += 1
        self.counts["batches"] += 1
        self.counts["samples"] += hand.n_samples

    def count_offers(self):
        """The pass goes on elsewhere: what its threads have in their hands, and will give, counts as delivered."""
        with self.lock:
            self._settle_all()
            for hand in list(self._hands.values()):
                if hand.waits:
                    self._count(hand)

    # --- what was delivered ---

    def settled(self, work, left_out=()):
        """A batch is with the consumer, or lost.  left_out: places of bad samples that are not in it."""
        with self.lock:
            if self.repeat is not None:
                self.repeat.given(work)
            elif work.places is None:
                self.delivered(work.number)
            else:
                self.all_delivered(work.places)
            if self.record is not None:
                self.record.add(work, left_out)

    def lost(self, settle):
        """An error comes in the place of a batch: after those that were given before."""
        with self.lock:
            self._settle_all()
            settle()

    def begun(self, number, n_slots, sampler_state):
        """A batch of the order was taken from the sampler; returns its slots that were delivered before, None: all."""
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
        """Not beyond what was taken from the sampler: some was delivered before the state was saved."""
        while self.position in self._sizes and self.done.get(self.position, ()) is None:
            del self.done[self.position]
            del self._sizes[self.position]
            self.sampler_state = self._sampler_states.pop(self.position)
            self.position += 1

    # --- states ---

    def as_dict(self):
        """The part of a state that belongs to the pass.  What is added here is read in go_on."""
        self.settle()
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

    def go_on(self, state):
        """The pass continues that of a state; it has begun with the epoch, the draws and the base seed of that one."""
        self.yielded, self.position = state["_num_yielded"], state["_num_yielded"] + state["ahead"]
        self.done = {int(number): slots and set(slots) for number, slots in state["done"].items()}
        self.origin = Origin(*state["origin"])
        self.order_seed, self.drawn = state["order_seed"], state["drawn"]
        self.sampler_state, self.first = state["sampler"], state.get("first")
