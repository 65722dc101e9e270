"""Downsampling of long columns: a limited number of points per line, with spikes kept."""

POINTS = 1500


def downsample(clock, columns, stacked=(), points=POINTS):
    """Return (times, columns) of at most about `points` rows.

    Time is divided into equal slices.  In each slice a column keeps its smallest and its largest value, in their order.
    The columns named in `stacked` are drawn as a sum, so they keep the two rows where their sum is smallest and
    largest.
    """
    if len(clock) <= points:
        return list(clock), {name: list(values) for name, values in columns.items()}
    slices = _slices(clock, points // 2)
    times = [t for begin, end in slices for t in (clock[begin], clock[end - 1])]
    thinned = {name: [] for name in columns}
    for begin, end in slices:
        both = _extremes([_sum(columns, stacked, i) for i in range(begin, end)]) if stacked else (0, 0)
        for name, values in columns.items():
            part = values[begin:end]
            thinned[name] += [part[i] for i in (both if name in stacked else _extremes(part))]
    return times, thinned


def _slices(clock, n):
    """Return ranges of rows, one for each of n slices of time that has rows."""
    width = (clock[-1] - clock[0]) / n or 1.0
    place = [min(n - 1, int((t - clock[0]) / width)) for t in clock]
    borders = [i for i in range(1, len(clock)) if place[i] != place[i - 1]]
    return list(zip([0, *borders], [*borders, len(clock)]))


def _extremes(values):
    """Return the places of the smallest and largest value, in order; the first place twice if there are no values."""
    known = [i for i, v in enumerate(values) if v is not None]
    if not known:
        return 0, 0
    low, high = min(known, key=values.__getitem__), max(known, key=values.__getitem__)
    return min(low, high), max(low, high)


def _sum(columns, names, row):
    known = [columns[name][row] for name in names if columns[name][row] is not None]
    return sum(known) if known else None


def short(value):
    """Return a number with four digits, in as few characters of JSON as possible."""
    if value is None:
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded == int(rounded) else rounded
