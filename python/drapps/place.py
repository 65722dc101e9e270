"""Where a consumer is in an epoch whose batches may come out of order."""

from collections.abc import Set
from typing import NamedTuple


class Place(NamedTuple):
    """How far the consumer is in a rank's stream of an epoch."""

    number: int = 0  # of the next batch
    local: int = 0  # all before it is delivered,
    ahead: Set = frozenset()  # and these beyond it

    def after(self, locals):
        """The place when one more batch is delivered."""
        local, ahead = self.local, {*self.ahead, *locals}
        while local in ahead:
            ahead.discard(local)
            local += 1
        return Place(self.number + 1, local, ahead)

    def state(self):
        """As plain values."""
        return {"number": self.number, "local": self.local, "ahead": sorted(self.ahead)}
