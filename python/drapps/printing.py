"""Prints results: as tables, or as JSON for programs."""

import json
import sys

from drapps.printable import UNSAFE, printable


def print_json(value):
    """Print a result as JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(UNSAFE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text))


def print_table(columns, rows, title=None):
    """Print a table.  A column is a name, or (name, "right")."""
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
        table.add_row(*(printable(cell, but="\n") for cell in row), style=None)
    Console(markup=False).print(table)


def _print_plain(columns, rows):
    """Print columns padded with blanks and never cut, for a file or a pipe."""
    names = [column[0] if isinstance(column, tuple) else column for column in columns]
    right = [isinstance(column, tuple) for column in columns]
    lines = [names] + [[printable(cell, but="\n") for cell in row] for row in rows]
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
