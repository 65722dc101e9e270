"""Pieces of HTML that several sections use.  What they are given is text, and is escaped here."""

from drapps.report.text import escape

BOUNDS = ("unknown", "trainer", "cpu", "workers", "storage", "memory", "prefetch", "quota", "others", "blocked")


def section(title, inside, css=""):
    """A section of the page; `inside` is HTML."""
    return f'<section class="{css}"><h2>{escape(title)}</h2>{inside}</section>'


def table(columns, rows, css=""):
    """A table; columns whose name begins with "#" hold numbers."""
    sides = [' class="n"' if name.startswith("#") else "" for name in columns]
    head = "".join(f"<th{side}>{escape(name.lstrip('#'))}" for name, side in zip(columns, sides))
    body = "".join(f"<tr>{_cells(row, sides)}" for row in rows)
    return f'<div class="scroll"><table class="{css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table></div>'


def _cells(row, sides):
    return "".join(f"<td{side}>{escape(value)}" for value, side in zip(row, sides))


def titled(title, inside, css=""):
    """A part of a section; nothing where `inside` is."""
    return f'<div class="{css}"><h3>{escape(title)}</h3>{inside}</div>' if inside else ""


def dot(css):
    """A square in a colour of page.css."""
    return f'<i class="dot {css}"></i>'


def bound_class(bound):
    """The CSS class of a bound: one of the table, whatever a file says."""
    return f"b-{bound}" if bound in BOUNDS else "b-unknown"
