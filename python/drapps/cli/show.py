"""How results are shown: tables for people, JSON for machines."""

import json
import sys


def print_json(value):
    """A result for machines."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def printable(text, but=""):
    """Without control characters, which names of files may hold: a terminal follows them.  but: those that stay."""
    return "".join(c if c in but or not (c < " " or "\x7f" <= c < "\xa0") else "?" for c in text)


def print_table(columns, rows, title=None):
    """A table for people.  A column is a name, or (name, "right")."""
    if not sys.stdout.isatty():
        return _print_plain(columns, rows)
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD)
    for column in columns:
        name, side = column if isinstance(column, tuple) else (column, "left")
        table.add_column(name, justify=side)
    for row in rows:
        table.add_row(*(printable(str(cell), but="\n") for cell in row), style=None)
    Console(markup=False).print(table)


def _print_plain(columns, rows):
    """Columns padded with blanks, whole, for a file or a pipe."""
    names = [column[0] if isinstance(column, tuple) else column for column in columns]
    right = [isinstance(column, tuple) for column in columns]
    lines = [names] + [[printable(str(cell), but="\n") for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    for line in lines:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right))
        print("  ".join(cells).rstrip())


def bytes_text(n):
    """1536 as "1.5 KB"."""
    for unit in ("B", "KB", "MB", "GB"):
        if n < 1024 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
