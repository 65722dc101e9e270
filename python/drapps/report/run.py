"""A trace as columns: the values of each sensor and each flow counter over time."""

import math
from bisect import bisect_left
from collections import defaultdict
from functools import cached_property

from drapps.report.figures import Figures
from drapps.trace import Passes, busy_time

WINDOW = 1.0  # seconds over which rates are averaged
LONGEST_GAP = 10  # a line is broken where a record is later than this many usual intervals


class Run:
    """The columns of one trace.  Records are sorted by time; values that are not finite numbers are left out."""

    def __init__(self, trace, name):
        self.trace, self.name, self.meta = trace, name, dict(trace.meta or {})
        self.snapshots = _in_order(trace.snapshots, lambda s: s.time)
        self.flows = _in_order(trace.flow, lambda f: f.time)
        self.decisions = _in_order(trace.decisions, lambda d: d.time)
        self.events = _in_order(trace.events, lambda e: e.get("t", math.nan))
        self.passes = Passes(self.events)
        self.spans, self._times = defaultdict(list), {}
        for span in trace.spans:
            if math.isfinite(span.begin) and math.isfinite(span.end):
                self.spans[span.kind].append(span)
        self.begin, self.end = self._bounds()

    def _bounds(self):
        """Return the first and last time of the sampled records; without any, of the other records."""
        times = [t for t in (self.snapshot_clock, self.flow_clock) if t]
        if not times:
            times = [[d.time for d in self.decisions], [e["t"] for e in self.events]]
            times += [[s.begin for s in spans] + [s.end for s in spans] for spans in self.spans.values()]
            times = [sorted(t) for t in times if t] or [[0.0]]
        return min(t[0] for t in times), max(t[-1] for t in times)

    @property
    def seconds(self):
        return self.end - self.begin

    @cached_property
    def snapshot_clock(self):
        return [s.time for s in self.snapshots]

    @cached_property
    def flow_clock(self):
        return [f.time for f in self.flows]

    def sensor(self, name):
        """Return a sensor's value in each snapshot; None where it is absent."""
        return [_number(s.get(name)) for s in self.snapshots]

    def level(self, name):
        """Return a sensor's level, 0 to 1, in each snapshot."""
        return [_number(s.levels.get(name)) for s in self.snapshots]

    def modelled(self, name):
        """Return whether a sensor's values are estimates."""
        return any(name in s.modelled for s in self.snapshots)

    def gauge(self, name):
        """Return a gauge of the flow in each record."""
        return [_number(f.values.get(name)) for f in self.flows]

    def total(self, name):
        """Return a sum of the flow since the first record, in each record.  A decrease means that
        counting restarted."""
        total, last, out = 0.0, None, []
        for f in self.flows:
            value = _number(f.values.get(name))
            if value is not None:
                total += 0 if last is None else value - last if value >= last else value
                last = value
            out.append(None if last is None else total)
        return out

    def grown(self, name):
        """Return the growth of a sum of the flow; None if it is absent."""
        seen = [v for v in self.total(name) if v is not None]
        return seen[-1] if len(seen) > 1 else None

    def rate(self, name):
        """Return a sum of the flow as a rate, averaged over WINDOW."""
        return _rates(self.flow_clock, self.total(name))

    def wait_share(self):
        """Return wait / (wait + step) of the consumers, averaged over WINDOW; from the monitor if the flow lacks it."""
        wait, step = self.rate("wait"), self.rate("step")
        return [None if w is None else min(1.0, w / (w + s) if s is not None and w + s > 0 else w)
                for w, s in zip(wait, step)]  # fmt: skip

    @cached_property
    def figures(self):
        """The key figures."""
        return Figures(self)

    def times(self, kind):
        """Return the durations of the spans of a kind, shortest first."""
        if kind not in self._times:
            self._times[kind] = sorted(max(0.0, s.end - s.begin) for s in self.spans[kind])
        return self._times[kind]

    @cached_property
    def busy_times(self):
        """Return the CPU time of each sample, shortest first; if unknown, its duration."""
        return sorted(map(busy_time, self.spans["work"]))

    @cached_property
    def tells_cpu(self):
        """Return whether samples are judged by CPU time, which does not depend on other programs."""
        return any(s.cpu for s in self.spans["work"])

    def total_at(self, name, time):
        """Return a sum of the flow at some time, interpolated between records."""
        clock, total = self.flow_clock, self.total_columns[name]
        if not clock:
            return 0.0
        i = min(max(bisect_left(clock, time), 1), len(clock) - 1)
        if len(clock) < 2 or time <= clock[0]:
            return total[0] or 0.0
        before, after = total[i - 1] or 0.0, total[i] or 0.0
        part = (time - clock[i - 1]) / (clock[i] - clock[i - 1]) if clock[i] > clock[i - 1] else 1.0
        return before + (after - before) * min(1.0, part)

    @cached_property
    def total_columns(self):
        return _Lazy(self.total)

    @property
    def gaps(self):
        """Return the times (begin, end) in which due records are missing: the machine slept, or the clock was set."""
        clock = self.snapshot_clock or self.flow_clock
        steps = sorted(b - a for a, b in zip(clock, clock[1:]) if b > a)
        longest = max(WINDOW, LONGEST_GAP * steps[len(steps) // 2]) if steps else 0
        return [(a, b) for a, b in zip(clock, clock[1:]) if b - a > longest]


class _Lazy(dict):
    """Columns, each made at its first use."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, name):
        self[name] = self.make(name)
        return self[name]


def _in_order(records, time):
    return sorted((r for r in records if math.isfinite(time(r))), key=time)


def _number(value):
    return value if value is not None and math.isfinite(value) else None


def _rates(clock, totals):
    """Return the growth per second since the first record at most WINDOW ago; None if unknown."""
    out, first = [], 0
    for i, (now, total) in enumerate(zip(clock, totals)):
        while first < i - 1 and now - clock[first] > WINDOW:
            first += 1
        then = totals[first]
        known = total is not None and then is not None and now > clock[first]
        out.append((total - then) / (now - clock[first]) if known else None)
    return out
