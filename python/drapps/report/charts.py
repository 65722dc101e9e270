"""Static charts as SVG: a distribution, a bar of shares, throughput against cost."""

import math

from drapps.report.text import count_text, escape, time_text

BINS = 40
CHARACTER = 6.5  # largest width of a character of a label, in charts 480 wide


class Frame:
    """The place of a plot in its chart."""

    def __init__(self, width, height, left, right, top, bottom):
        self.width, self.height = width, height
        self.left, self.right, self.top, self.floor = left, width - right, top, height - bottom

    def x(self, part):
        """Return the x coordinate of a position from 0 (left) to 1."""
        return round(self.left + min(1.0, max(0.0, part)) * (self.right - self.left), 1)

    def y(self, part):
        """Return the y coordinate of a position from 0 (bottom) to 1."""
        return round(self.floor - min(1.0, max(0.0, part)) * (self.floor - self.top), 1)

    def svg(self, inside, text, css):
        size = f'viewBox="0 0 {self.width} {self.height}"'
        return f'<svg class="chart {css}" {size} role="img" aria-label="{escape(text)}">{inside}</svg>'


def _line(css, x1, x2, y1, y2):
    return f'<line class="{css}" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def _text(x, y, text, anchor="middle", css=""):
    return f'<text class="{css}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


# --- a distribution ---


class LogAxis:
    """A logarithmic axis of times: positions from 0 (smallest) to 1 (largest)."""

    def __init__(self, least, most):
        self.floor = max(1e-6, least)
        self.low, self.high = math.log10(self.floor), math.log10(max(most, self.floor))
        if self.high - self.low < 0.3:  # all values equal: half a decade around them
            self.low, self.high = self.low - 0.25, self.high + 0.25

    def part(self, value):
        return (math.log10(max(value, self.floor)) - self.low) / (self.high - self.low)

    def ticks(self):
        """Return decades, with 2 and 5 between them if there are few."""
        steps = (1, 2, 5) if self.high - self.low < 2 else (1,)
        all_of_them = (m * 10.0**e for e in range(math.floor(self.low), math.ceil(self.high) + 1) for m in steps)
        return [t for t in all_of_them if 0 <= self.part(t) <= 1]


def distribution(values, facts, title):
    """Return a histogram of times, with quantiles and a line of the share of values up to each time."""
    frame = Frame(480, 200, 12, 12, 38, 24)
    axis = LogAxis(min((v for v in values if v > 0), default=0.0), facts.max)
    bins = [0] * BINS
    for v in values:
        bins[min(BINS - 1, max(0, int(axis.part(v) * BINS)))] += 1
    inside = _bars(frame, bins) + _up_to(frame, bins) + _line("axis", frame.left, frame.right, frame.floor, frame.floor)
    for t in axis.ticks():
        x = frame.x(axis.part(t))
        inside += _line("grid", x, x, frame.floor, frame.floor + 4)
    for x, anchor, text in _labels(frame, axis):
        inside += _text(x, frame.floor + 16, text, anchor)
    inside += "".join(_quantile(frame, axis, facts, *mark) for mark in QUANTILES)
    text = f"{title}: {facts.n} values, median {time_text(facts.p50)}, 99 % below {time_text(facts.p99)}"
    return frame.svg(inside, text, "distribution")


def _anchor(part):
    """Return the text anchor of a label, so that it is not cut at the border of the chart."""
    return "start" if part < 0.04 else "end" if part > 0.96 else "middle"


def _labels(frame, axis):
    """Return (x, anchor, text) of the ticks that have room for their number, decades first."""
    placed = []
    for t in sorted(axis.ticks(), key=lambda t: not _is_decade(t)):
        x, anchor, text = frame.x(axis.part(t)), _anchor(axis.part(t)), time_text(t)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * CHARACTER * len(text)
        right = left + CHARACTER * len(text)
        if all(right + CHARACTER < other[0] or left > other[1] + CHARACTER for other in placed):
            placed.append((left, right, x, anchor, text))
    return [place[2:] for place in placed]


def _is_decade(value):
    return abs(math.log10(value) - round(math.log10(value))) < 1e-9


# name and height of its label: each has a row, as they may be next to each other
QUANTILES = (("p50", 34), ("p95", 23), ("p99", 12))


def _quantile(frame, axis, facts, name, height):
    part = axis.part(getattr(facts, name))
    x = frame.x(part)
    return _line("mark", x, x, height, frame.floor) + _text(x, height, name, _anchor(part), "mark")


def _bars(frame, bins):
    most, width = max(bins) or 1, frame.x(1 / BINS) - frame.x(0) - 1
    tops = [(frame.x(i / BINS), frame.y(n / most)) for i, n in enumerate(bins) if n]
    return "".join(
        f'<rect class="bar" x="{x}" y="{y}" width="{width:.1f}" height="{frame.floor - y:.1f}"/>' for x, y in tops
    )


def _up_to(frame, bins):
    """Return the line of the share of values up to the end of each bin."""
    points, seen, whole = [f"{frame.x(0)},{frame.y(0)}"], 0, sum(bins) or 1
    for i, n in enumerate(bins):
        seen += n
        points.append(f"{frame.x((i + 1) / BINS)},{frame.y(seen / whole)}")
    return f'<polyline class="below" points="{" ".join(points)}"/>'


# --- shares ---


def share_bar(shares, title):
    """Return a bar divided into [(CSS class, name, share), ...]."""
    parts, at = [], 0.0
    for css, name, share in shares:
        place = f'x="{at * 1000:.1f}" y="0" width="{share * 1000:.1f}" height="20"'
        parts.append(f'<rect class="{css}" {place}><title>{escape(name)}: {share:.1%}</title></rect>')
        at += share
    shape = 'viewBox="0 0 1000 20" preserveAspectRatio="none"'
    return f'<svg class="shares" {shape} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


# --- throughput against cost ---


def pareto(points):
    """Return a chart of [(number, name, samples/s, CPU ms a sample), ...]: up and left is better."""
    frame = Frame(560, 320, 58, 12, 12, 40)
    most_rate, most_cost = 1.15 * max(p[2] for p in points), 1.15 * max(p[3] for p in points)
    place = lambda p: (frame.x(p[3] / most_cost), frame.y(p[2] / most_rate))  # noqa: E731
    front = " ".join(f"{x},{y}" for x, y in map(place, pareto_front(points)))
    inside = _pareto_axes(frame, most_rate, most_cost) + f'<polyline class="front" points="{front}"/>'
    inside += "".join(_dot(point, *place(point)) for point in points)
    return frame.svg(inside, "throughput against CPU cost, one dot a run", "pareto")


def _dot(point, x, y):
    number, name, rate, cost = point
    text = escape(f"{number + 1} {name}: {count_text(rate)} samples/s, {cost:.3g} ms of CPU a sample")
    circle = f'<circle cx="{x}" cy="{y}" r="6"><title>{text}</title></circle>'
    return f'<g class="run{number % 7}">{circle}{_text(x + 10, y - 8, number + 1, "start")}</g>'


def pareto_front(points):
    """Return the runs that no other run beats in both figures, by cost."""
    front = []
    for point in sorted(points, key=lambda p: (p[3], -p[2])):
        if not front or point[2] > front[-1][2]:
            front.append(point)
    return front


def _pareto_axes(frame, most_rate, most_cost):
    lines = _line("axis", frame.left, frame.right, frame.floor, frame.floor)
    lines += _line("axis", frame.left, frame.left, frame.top, frame.floor)
    for v in round_steps(most_cost):
        lines += _text(frame.x(v / most_cost), frame.floor + 16, f"{v:g}")
    for v in round_steps(most_rate):
        y = frame.y(v / most_rate)
        lines += _line("grid", frame.left, frame.right, y, y) + _text(frame.left - 6, y + 4, f"{v:g}", "end")
    lines += _text((frame.left + frame.right) / 2, frame.height - 6, "CPU ms a sample (less is better)")
    return lines + _text(frame.left + 6, 20, "samples/s (more is better)", "start")


def round_steps(most):
    """Return some round numbers up to `most`, for an axis."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(m * power for m in (1, 2, 5, 10) if most / (m * power) <= 6)
    return [float(f"{i * step:.12g}") for i in range(1, int(most / step) + 1)]
