"""Pieces of HTML that several sections use.  Their arguments are plain text and escaped here."""

from drapps.report.text import escape

BOUNDS = ("unknown", "consumer", "cpu", "workers", "storage", "memory", "prefetch", "quota", "others", "blocked")


def section(title, inside, css=""):
    """Return a section of the page; `inside` is HTML."""
    return f'<section class="{css}"><h2>{escape(title)}</h2>{inside}</section>'


def table(columns, rows, css=""):
    """Return a table; columns whose name begins with "#" have numbers."""
    sides = [' class="n"' if name.startswith("#") else "" for name in columns]
    head = "".join(f"<th{side}>{escape(name.lstrip('#'))}" for name, side in zip(columns, sides))
    body = "".join(f"<tr>{_cells(row, sides)}" for row in rows)
    return f'<div class="scroll"><table class="{css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table></div>'


def _cells(row, sides):
    return "".join(f"<td{side}>{escape(value)}" for value, side in zip(row, sides))


def titled(title, inside, css=""):
    """Return a part of a section; "" if `inside` is empty."""
    return f'<div class="{css}"><h3>{escape(title)}</h3>{inside}</div>' if inside else ""


def dot(css):
    """Return a square in a colour of page.css."""
    return f'<i class="dot {css}"></i>'


def bound_class(bound):
    """Return the CSS class of a bound; always one of the table, whatever a file contains."""
    return f"b-{bound}" if bound in BOUNDS else "b-unknown"
