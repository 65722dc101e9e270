"""Formats numbers for people, and escapes text for HTML."""

import html

BLANK = "\u00a0"


def escape(value):
    """Return any value as text for an element or a quoted attribute."""
    return html.escape(str(value), quote=True)


def percent(share):
    """Return 0.034 as "3.4 %", with a non-breaking space."""
    if share is None:
        return "–"
    value = 100 * share
    return f"{value:.0f}{BLANK}%" if abs(value) >= 9.95 or value == 0 else f"{value:.1f}{BLANK}%"


def count_text(value):
    """Return 1234.5 as "1 235"; small numbers with three digits."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}"


def time_text(seconds):
    """0.00123 as "1.23 ms"."""
    if seconds is None:
        return "–"
    if seconds == 0:
        return f"0{BLANK}s"
    for limit, scale, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if abs(seconds) < limit:
            return f"{_three(seconds * scale)}{BLANK}{unit}"
    return f"{_three(seconds / 3600)}{BLANK}h"


def bytes_text(n):
    """1536 as "1.54 kB"."""
    if n is None:
        return "–"
    for limit, scale, unit in ((1e3, 1, "B"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB"), (1e12, 1e9, "GB")):
        if abs(n) < limit:
            return f"{_three(n / scale)}{BLANK}{unit}"
    return f"{_three(n / 1e12)}{BLANK}TB"


def clock_text(seconds):
    """Return a time of the run: 75.25 as "1:15.2"."""
    minutes, rest = divmod(max(0.0, seconds), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"


def _three(value):
    """Return a number with three digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
