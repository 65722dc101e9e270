"""What a run's trace says of its parts: how long the consumer waited, what was in flight, what that takes."""

from typing import NamedTuple

SETTLE = 3.0  # seconds that a loader may take to follow


class Part(NamedTuple):
    """A part of a run.  Times are seconds, counts are batches."""

    stall: float  # share of its time in which the consumer waited
    rate: float  # a second
    latency: float  # from a batch's first sample begun to the batch ready
    buffered: float  # mean of those begun and not taken
    ready: float  # mean of those finished and not taken
    prefetch: float  # the knobs at its end
    readers: float

    @property
    def need(self):
        """In flight at that rate, by Little's law."""
        return self.rate * self.latency

    @property
    def hoard(self):
        """What is buffered, as part of the need."""
        return self.buffered / self.need if self.need else 0.0


def part(trace, begin, end):
    """The part of a drapps.trace.Trace between two times."""
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
    """How a knob stood; knobs: (time, all of them) after each decision."""
    known = [values[name] for decided, values in knobs if decided <= time]
    if not known:
        raise RuntimeError("nothing was decided before that time")
    return known[-1]


def doubled_after(knobs, name, changed):
    """Seconds from a change until a knob stands at twice what it was, whole batches: one less counts; None: never.

    >>> doubled_after([(1, {"n": 5}), (2.5, {"n": 8}), (3.5, {"n": 9})], "n", 2)
    1.5
    """
    aim = 2 * knob_at(knobs, name, changed) - 1
    return next((time - changed for time, values in knobs if time > changed and values[name] >= aim), None)


def of_run(trace, times):
    """The figures of a run: its parts by name, and how soon its depth doubled."""
    begun, changed, ended = times["begun"], times["changed"], times["ended"]
    settle = min(SETTLE, (ended - changed) / 2)
    parts = {
        "slow": part(trace, (begun + changed) / 2, changed),
        "change": part(trace, changed, changed + settle),
        "fast": part(trace, changed + settle, ended),
        "since": part(trace, changed, ended),
    }
    return parts, doubled_after(trace.knobs, "prefetch", changed)
