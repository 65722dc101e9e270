"""Charts that do not move, as SVG: a distribution, a bar of shares, throughput against cost."""

import math

from drapps.report.text import count_text, escape, time_text

BINS = 40
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 190, 12, 12, 26, 24


def distribution(values, facts, title):
    """A histogram over a logarithmic axis of time, with the share of values below as a line, and quantiles."""
    floor = max(1e-6, min((v for v in values if v > 0), default=1e-6))
    low, high = math.log10(floor), math.log10(max(facts.max, floor) * 1.0001)
    if high - low < 0.3:  # one value, or all alike: half a decade around it
        low, high = low - 0.25, high + 0.25
    place = lambda v: LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, (math.log10(max(v, floor)) - low) / (high - low)))  # noqa: E731
    bins = [0] * BINS
    for v in values:
        bins[min(BINS - 1, int((place(v) - LEFT) / (WIDTH - LEFT - RIGHT) * BINS))] += 1
    parts = [_bars(bins), _below(bins), _time_axis(low, high, place)]
    parts += [_mark(place(v), name) for name, v in (("p50", facts.p50), ("p95", facts.p95), ("p99", facts.p99))]
    text = f"{title}: {facts.count} values, median {time_text(facts.p50)}, 99 % below {time_text(facts.p99)}"
    return _svg(WIDTH, HEIGHT, text, "".join(parts), "distribution")


def _bars(bins):
    width, most = (WIDTH - LEFT - RIGHT) / BINS, max(bins) or 1
    floor = HEIGHT - BOTTOM
    return "".join(
        f'<rect class="bar" x="{LEFT + i * width:.1f}" y="{floor - n / most * (floor - TOP):.1f}" width="{width - 1:.1f}" '
        f'height="{n / most * (floor - TOP):.1f}"/>' for i, n in enumerate(bins) if n
    )  # fmt: skip


def _below(bins):
    """The share of values up to each bin's end."""
    width, total, floor = (WIDTH - LEFT - RIGHT) / BINS, sum(bins) or 1, HEIGHT - BOTTOM
    points, seen = [f"{LEFT},{floor}"], 0
    for i, n in enumerate(bins):
        seen += n
        points.append(f"{LEFT + (i + 1) * width:.1f},{floor - seen / total * (floor - TOP):.1f}")
    return f'<polyline class="below" points="{" ".join(points)}"/>'


def _time_axis(low, high, place):
    """Decades, with 2 and 5 between them where there are few."""
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in steps]
    floor = HEIGHT - BOTTOM
    shown = [t for t in ticks if low <= math.log10(t) <= high]
    labels = "".join(f'<line class="grid" x1="{place(t):.1f}" x2="{place(t):.1f}" y1="{floor}" y2="{floor + 4}"/>'
                     f'<text x="{place(t):.1f}" y="{floor + 16}" text-anchor="middle">{time_text(t)}</text>' for t in shown)  # fmt: skip
    return f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>{labels}'


def _mark(x, name):
    height = {"p50": 20, "p95": 12, "p99": 20}[name]  # p95 is often next to p99
    anchor = "end" if name == "p95" else "start" if name == "p99" else "middle"
    return (f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text class="mark" x="{x:.1f}" y="{height}" text-anchor="{anchor}">{name}</text>')  # fmt: skip


def share_bar(shares, title):
    """One bar cut into parts: [(css class, name, share), ...]."""
    parts, at = [], 0.0
    for css, name, share in shares:
        parts.append(f'<rect class="{css}" x="{at * 1000:.1f}" y="0" width="{share * 1000:.1f}" height="20">'
                     f"<title>{escape(name)}: {share:.1%}</title></rect>")  # fmt: skip
        at += share
    return (f'<svg class="shares" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(title)}">{"".join(parts)}</svg>')  # fmt: skip


def pareto(points):
    """Throughput against CPU cost: [(label, samples/s, CPU ms a sample), ...]; up and left is better."""
    width, height, left, bottom = 560, 320, 58, 40
    most_x = 1.15 * max(cost for _, _, cost in points) or 1
    most_y = 1.15 * max(rate for _, rate, _ in points) or 1
    x = lambda cost: left + cost / most_x * (width - left - 12)  # noqa: E731
    y = lambda rate: height - bottom - rate / most_y * (height - bottom - 12)  # noqa: E731
    front = [f"{x(cost):.1f},{y(rate):.1f}" for _, rate, cost in pareto_front(points)]
    parts = [_pareto_axes(x, y, most_x, most_y, width, height, left, bottom)]
    parts.append(f'<polyline class="front" points="{" ".join(front)}"/>')
    for i, (label, rate, cost) in enumerate(points):
        parts.append(f'<g class="run{i % 7}"><circle cx="{x(cost):.1f}" cy="{y(rate):.1f}" r="6"><title>{escape(label)}: '
                     f"{count_text(rate)} samples/s, {cost:.3g} ms of CPU a sample</title></circle>"
                     f'<text x="{x(cost) + 10:.1f}" y="{y(rate) - 8:.1f}">{i + 1}</text></g>')  # fmt: skip
    return _svg(width, height, "throughput against CPU cost, one dot a run", "".join(parts), "pareto")


def pareto_front(points):
    """The runs that no other run beats in both, by cost."""
    front = []
    for point in sorted(points, key=lambda p: (p[2], -p[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def _pareto_axes(x, y, most_x, most_y, width, height, left, bottom):
    floor = height - bottom
    lines = [f'<line class="axis" x1="{left}" x2="{width - 12}" y1="{floor}" y2="{floor}"/>']
    lines += [f'<line class="axis" x1="{left}" x2="{left}" y1="12" y2="{floor}"/>']
    lines += [f'<text x="{x(v):.1f}" y="{floor + 16}" text-anchor="middle">{v:g}</text>' for v in round_steps(most_x)]
    for v in round_steps(most_y):
        lines.append(f'<line class="grid" x1="{left}" x2="{width - 12}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>')
        lines.append(f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:g}</text>')
    lines.append(f'<text x="{(left + width) / 2}" y="{height - 6}" text-anchor="middle">CPU ms a sample (less is better)</text>')
    lines.append(f'<text x="{left + 6}" y="20">samples/s (more is better)</text>')
    return "".join(lines)


def round_steps(most):
    """Some round numbers up to `most`, for an axis."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(m * power for m in (1, 2, 5, 10) if most / (m * power) <= 6)
    return [float(f"{i * step:.12g}") for i in range(1, int(most / step) + 1)]


def _svg(width, height, text, inside, css):
    return f'<svg class="chart {css}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(text)}">{inside}</svg>'
