"""Figures of the parts of a run, from its trace: waiting of the consumer, batches in flight, batches needed."""

from typing import NamedTuple

SETTLE = 3.0  # seconds in which a loader may adapt


class Part(NamedTuple):
    """A part of a run.  Times are seconds, counts are batches."""

    stall: float  # share of its time in which the consumer waited
    rate: float  # a second
    latency: float  # from the begin of a batch's first sample until the batch is ready
    buffered: float  # mean number of batches begun and not taken
    ready: float  # mean number of batches finished and not taken
    prefetch: float  # the knobs at the end of the part
    readers: float

    @property
    def need(self):
        """The batches in flight that the rate needs, by Little's law."""
        return self.rate * self.latency

    @property
    def hoard(self):
        """Buffered batches relative to the need."""
        return self.buffered / self.need if self.need else 0.0


def part(trace, begin, end):
    """Return the part of a drapps.trace.Trace between two times."""
    ticks = [tick for tick in trace.flow if begin <= tick.time <= end]
    if len(ticks) < 3:
        raise RuntimeError(f"{len(ticks)} readings of the loader in {end - begin:.1f} s are too few")
    grown = {name: ticks[-1].values[name] - ticks[0].values[name] for name in ("wait", "step", "batches", "latency")}
    inside = [tick.values for tick in ticks[1:]]
    passed, batches = ticks[-1].time - ticks[0].time, max(grown["batches"], 1)
    return Part(
        stall=grown["wait"] / max(grown["wait"] + grown["step"], 1e-9), rate=grown["batches"] / passed,
        latency=grown["latency"] / batches, buffered=sum(values["open"] for values in inside) / len(inside),
        ready=sum(values["ready"] for values in inside) / len(inside),
        prefetch=knob_at(trace.knobs, "prefetch", end), readers=knob_at(trace.knobs, "readers", end),
    )  # fmt: skip


def knob_at(knobs, name, time):
    """Return the value of a knob at some time.  knobs: (time, values of all knobs) after each decision."""
    known = [values[name] for decided, values in knobs if decided <= time]
    if not known:
        raise RuntimeError("nothing was decided before that time")
    return known[-1]


def doubled_after(knobs, name, changed):
    """Return the seconds from a change until a knob has doubled (2n - 1 counts, as knobs are ints); None: never.

    >>> doubled_after([(1, {"n": 5}), (2.5, {"n": 8}), (3.5, {"n": 9})], "n", 2)
    1.5
    """
    aim = 2 * knob_at(knobs, name, changed) - 1
    return next((time - changed for time, values in knobs if time > changed and values[name] >= aim), None)


def of_run(trace, times):
    """Return the figures of a run: its parts by name, and the time until its depth doubled."""
    begun, changed, ended = times["begun"], times["changed"], times["ended"]
    settle = min(SETTLE, (ended - changed) / 2)
    parts = {
        "slow": part(trace, (begun + changed) / 2, changed),
        "change": part(trace, changed, changed + settle),
        "fast": part(trace, changed + settle, ended),
        "since": part(trace, changed, ended),
    }
    return parts, doubled_after(trace.knobs, "prefetch", changed)
