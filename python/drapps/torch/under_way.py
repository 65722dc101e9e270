"""What a native pass has pushed and not got back, and what of it each batch that comes back means for its progress."""

from bisect import bisect_right
from functools import partial


class Whole:
    """Batches come back as they were pushed, each under its number, without samples where all were left out."""

    def __init__(self, progress, first):
        self._progress, self._next = progress, first
        self._works = {}

    def pushed(self, work):
        """The next batch; how much of the window it takes."""
        self._works[self._next] = work
        self._next += 1
        return 1

    def delivered(self, batch):
        """A batch came back: how much of the window that frees, and what says so once the consumer has it."""
        return 1, partial(self._progress.delivered, self._works.pop(batch.number).number)


class Mixed:
    """Samples come back in whatever batch they got ready for: each is found by its position."""

    def __init__(self, progress, first):
        self._progress, self._position = progress, first
        self._starts, self._works = [], []  # positions at which batches that were pushed begin, and what they are

    def pushed(self, work):
        """The next batch; how much of the window it takes."""
        self._starts.append(self._position)
        self._works.append(work)
        self._position += len(work.indices)
        return len(work.indices)

    def delivered(self, batch):
        """Samples came back, or were left out: how much of the window that frees, and what says so once the consumer
        has them."""
        left_out = [bad["position"] for bad in batch.bad if bad["action"] == "skipped"]
        positions = {*batch.positions, *left_out}  # a sample may stand where another was left out
        return len(positions), partial(self._progress.all_delivered, [self._place(position) for position in positions])

    def _place(self, position):
        at = bisect_right(self._starts, position) - 1
        work, slot = self._works[at], position - self._starts[at]
        return (work.number, slot) if work.places is None else work.places[slot]
