"""A race: which of some arms has the highest utility, with few measurements.

Rounds measure all arms that are still in the race, in a new order each, so that what changes on the machine meets all
of them.  After each measurement the arms whose utility is, with confidence, below that of the best leave the race.
The noise of one measurement is taken to be alike for all arms, relative to the rate, and is learnt as the race goes
on; so an arm that is far behind leaves after its first.
"""

import random
from typing import NamedTuple

from drapps.plan.intervals import Interval, pooled_noise, rate_interval

ROUNDS = 5  # PRESTO's; more, up to
MOST_ROUNDS = 20  # where the best two cannot be told apart and the budget allows it
TOLERANCE = 0.02  # of the rate: arms this close to each other are not told apart
FIRST_SHARE = 0.75  # of the budget, for first measurements; the rest is for the best
ONCE = 0.5  # of the highest rate: below that, one measurement is enough to leave
PATIENCE = 4.0  # an arm may take this many times as long as the best so far


class Entry:
    """An arm and what was measured of it."""

    def __init__(self, name):
        self.name, self.values, self.why_out = name, [], ""
        self.left_out = False  # the budget had no room for it in the first round

    @property
    def measured(self):
        """Whether there is a value at all."""
        return bool(self.values)


class Outcome(NamedTuple):
    """How a race ended."""

    entries: dict  # {name: Entry}
    why: str  # it ended
    rounds: int


class Race:
    """names: the most promising first.

    measure(name, limit): a positive rate, or None where the arm cannot be measured; it may stop early and give a rough
    value once it is clear that the rate is below `limit`.
    seconds(name): what the next measurement of an arm is expected to take.
    utilities({name: rate}, middle): {name: utility}, each rising with its own rate; middle: {name: rate} by which
    they are scaled, so that utilities of several rates of an arm can be compared.
    left(): seconds of the budget that are left.
    rounds: the most rounds; None: ROUNDS, and up to MOST_ROUNDS while the best two cannot be told apart.
    """

    def __init__(self, names, measure, seconds, left, utilities=lambda rates, middle: rates, rounds=None, seed=0):
        self.entries = {name: Entry(name) for name in names}
        self._measure, self._seconds, self._left, self._utilities = measure, seconds, left, utilities
        self._rounds, self._random = rounds or ROUNDS, random.Random(seed)
        self._most_rounds = rounds or MOST_ROUNDS
        self._done = 0  # rounds
        self.interrupted = False

    def run(self):
        """Returns the Outcome; Ctrl-C ends the race with what there is."""
        why = ""
        try:
            self._first_round(self._left())
            self._done = 1
            why = self._later_rounds()
            while self._take_left_out():
                why = self._later_rounds()
        except KeyboardInterrupt:
            why, self.interrupted = "interrupted", True
        return Outcome(self.entries, why, self._done)

    def _later_rounds(self):
        """Measures those in the race until it is decided; returns why that ended."""
        while self._done < self._most_rounds and (self._done < self._rounds or not self._is_decided()):
            if len(self.running()) < 2:
                return "the others are clearly worse"
            if self._all_alike():
                return "those left are alike"
            if not self._round():
                return "the budget is spent"
            self._done += 1
        return "every round was measured"

    # --- rounds ---

    def _first_round(self, budget):
        """Each arm once, in the given order; what does not fit into the budget is left out, and something cheaper
        may.
        """
        for entry in self.entries.values():
            needed = self._seconds(entry.name)
            if self._best() and needed > self._left() - (1 - FIRST_SHARE) * budget:
                entry.left_out = True
                entry.why_out = (
                    f"not measured: needs {needed:.2g} s, and what is left of the budget is for the best ones"
                )
                continue
            self._take(entry)

    def _take_left_out(self):
        """Measures the most promising of those that were left out; False: the budget has no room for any."""
        for entry in self.entries.values():
            if entry.left_out and self._seconds(entry.name) <= self._left():
                entry.why_out, entry.left_out = "", False
                self._take(entry)
                return True
        return False

    def _round(self):
        """Those in the race once more; False: the budget is spent."""
        order = self.running()
        self._random.shuffle(order)
        for entry in order:
            if entry.why_out:  # it left during this round
                continue
            if self._seconds(entry.name) > self._left():
                return False
            self._take(entry)
        return True

    def _take(self, entry):
        best = self._best()
        value = self._measure(entry.name, best / PATIENCE if best else 0.0)
        if value is None:
            entry.why_out = entry.why_out or "refused"
            return
        entry.values.append(value)
        self._eliminate()

    def _best(self):
        """The highest rate so far."""
        return max((bounds.mid for bounds in self.rates().values()), default=0.0)

    # --- entries that are still measured ---

    def running(self):
        """Entries that are measured and in the race."""
        return [entry for entry in self.entries.values() if entry.measured and not entry.why_out]

    def rates(self):
        """{name: Interval} of the rates of all that was measured."""
        noise = pooled_noise([entry.values for entry in self.entries.values()])
        return {name: rate_interval(entry.values, noise) for name, entry in self.entries.items() if entry.measured}

    def utilities(self):
        """{name: Interval} of the utilities of all that was measured."""
        rates = self.rates()
        middle = {name: bounds.mid for name, bounds in rates.items()}
        at = [self._utilities({name: bounds[k] for name, bounds in rates.items()}, middle) for k in range(3)]
        return {name: Interval(*(values[name] for values in at)) for name in rates}

    def _eliminate(self):
        utilities = self.utilities()
        running = self.running()
        best = max(running, key=lambda entry: utilities[entry.name].mid)
        for entry in running:
            if (
                entry is not best
                and utilities[entry.name].high < utilities[best.name].low
                and not self._may_be_chance(entry)
            ):
                entry.why_out = f"clearly worse than {getattr(best.name, 'name', best.name)}"

    def _may_be_chance(self, entry):
        """Whether an arm was measured once alone, and is not so far behind that it must be slower: machines that
        others use, too, have more noise than the prior says."""
        rates = self.rates()
        fastest = max(rates[other.name].mid for other in self.running())
        return len(entry.values) == 1 and ONCE * fastest < rates[entry.name].mid < fastest

    def _is_decided(self):
        """Whether the intervals of the best two are apart."""
        utilities = self.utilities()
        first, *others = sorted((utilities[entry.name] for entry in self.running()), key=lambda one: -one.mid)
        return not others or first.low > others[0].high

    def _all_alike(self):
        """Whether those in the race are known to be within the tolerance of each other."""
        rates, names = self.rates(), [entry.name for entry in self.running()]
        low, high = min(rates[name].low for name in names), max(rates[name].high for name in names)
        return high <= low * (1 + TOLERANCE)
