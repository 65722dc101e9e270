"""Progress: how far one pass over the data has come.

The iterator of a pass keeps it up to date; the loader keeps it when the iterator is gone, so that a state can be saved
after a `break` too.
"""

import threading


class Progress:
    """What was delivered of one pass, and what its order was drawn from."""

    def __init__(self, epoch, draws):
        self.epoch = epoch
        self.draws = draws
        self.base_seed = None
        self.order_seed = None  # of the RandomSampler that shuffle=True makes
        self.drawn = False  # the sampler was asked for a batch
        self.yielded = 0  # batches that the consumer got
        self.position = 0  # batches of the order before this one are done
        self.done = {}  # out of order: number of a batch from there on -> slots delivered, None: all of them
        self.finished = False
        self.given_up = None  # why the pass may not go on
        self.data_state = None  # function: the state of the data set after what was delivered
        self.lock = threading.RLock()
        self._sizes = {}  # batches under way: samples of each
        self._sampler_states = {}  # after each batch under way
        self.sampler_state = None  # after the batches before `position`

    def begun(self, number, n_slots, sampler_state):
        """A batch of the order was taken from the sampler."""
        with self.lock:
            self.drawn = True
            self._sizes[number] = n_slots
            self._sampler_states[number] = sampler_state

    def delivered(self, number, slots=None):
        """All samples of a batch, or some slots of it, are with the consumer (or were left out)."""
        with self.lock:
            if slots is not None:
                done = self.done.setdefault(number, set())
                done.update(slots)
            if slots is None or len(done) >= self._sizes[number]:
                self.done[number] = None
                self._advance()

    def _advance(self):
        while self.done.get(self.position, ()) is None:
            del self.done[self.position]
            self._sizes.pop(self.position, None)
            self.sampler_state = self._sampler_states.pop(self.position, None)
            self.position += 1

    def as_dict(self):
        """The part of a state that belongs to the pass."""
        with self.lock:
            done = {number: slots and sorted(slots) for number, slots in self.done.items() if slots is None or slots}
            return {
                "_num_yielded": self.yielded,
                "_iterator_finished": self.finished,
                "epoch": self.epoch,
                "ahead": self.position - self.yielded,
                "done": done,
                "base_seed": self.base_seed,
                "order_seed": self.order_seed,
                "drawn": self.drawn,
                "draws": self.draws,
                "sampler": self.sampler_state,
                "dataset": self.data_state() if self.data_state else None,
            }
