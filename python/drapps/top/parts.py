"""Parts of a frame: bars, numbers, rows of meters.  A line is a rich Text."""

from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

FULL, HALF, EMPTY = "█", "▌", "░"
BLOCKS = "▁▂▃▄▅▆▇█"
BAR = 14  # columns
LABEL = 10
METER = 66  # preferred columns of a meter

DIM, NAME, GOOD, FAIR, BAD = "dim", "bold", "green", "yellow", "red"


def heat(share, fair=0.6, bad=0.85):
    """Return the colour of a share that is good when low."""
    return GOOD if share < fair else FAIR if share < bad else BAD


def bar(share, style, more=0.0, width=BAR):
    """Return a bar; `more` is a second, paler part after the first."""
    share, more = min(max(share, 0.0), 1.0), max(more, 0.0)
    full = round(share * width)
    if share > 0 and full == 0:
        full, first = 1, HALF
    else:
        first = FULL * full
    pale = min(round((share + more) * width), width) - full
    text = Text().append(first, style=style)
    text.append("▒" * max(pale, 0), style=style)
    text.append(EMPTY * (width - full - max(pale, 0)), style=DIM)
    return text


class Meter(NamedTuple):
    """A label, a bar and text."""

    label: str
    share: float | Text | None  # fill of the bar; a Text replaces the bar; None: no bar
    words: str
    style: str | None = None  # colour of the bar; None: by its fill
    more: float = 0.0  # a second, paler part of the bar

    def line(self):
        """Return the meter as a line."""
        line = Text().append(f"{self.label:<{LABEL}}", style=NAME)
        if isinstance(self.share, Text):
            line.append_text(self.share).append("  ")
        elif self.share is not None:
            line.append_text(bar(self.share, self.style or heat(self.share), self.more)).append("  ")
        return line.append(self.words)


def columns(width):
    """Return (number of meters side by side, columns of each)."""
    across = max(1, width // METER)
    return across, width // across


def rows(meters, width):
    """Return rows with as many meters side by side as fit."""
    across, column = columns(width)
    lines = []
    for i in range(0, len(meters), across):
        line = Text()
        for meter in meters[i : i + across]:
            cell = meter.line()
            cell.truncate(column - 1, overflow="ellipsis", pad=True)
            line.append_text(cell).append(" ")
        line.rstrip()
        lines.append(line)
    return lines


def wrapped(label, texts, width):
    """Return short texts, each a (name, text), in as many lines as needed."""
    lines, line = [], Text().append(f"{label:<{LABEL}}", style=NAME)
    for name, words in texts:
        used = cell_len(line.plain)
        if used + cell_len(name) + 1 + cell_len(words) > width and used > LABEL:
            lines.append(line)
            line = Text(" " * LABEL)
        line.append(f"{name} ", style=DIM).append(f"{words}  ")
    lines.append(line)
    for one in lines:
        one.rstrip()
    return lines


def rule(left, right, width):
    """Return a heading of the whole width, with texts on the left and a text on the right."""
    line = Text().append("── ", style=DIM).append_text(left)
    room = width - cell_len(line.plain) - cell_len(right) - (2 if right else 3)
    if room < 1:
        line.truncate(width, overflow="ellipsis")
        return line
    line.append(" " + "─" * room, style=DIM)
    return line.append(f" {right}" if right else "──", style=DIM)


def spark(shares, width):
    """Return a block for each share, or for groups of neighbours if there are more than `width`."""
    group = -(-len(shares) // max(width, 1))
    means = [sum(part) / len(part) for part in (shares[i : i + group] for i in range(0, len(shares), group))]
    text = Text()
    for share in means:
        text.append(BLOCKS[int(min(max(share, 0.0), 0.999) * len(BLOCKS))], style=heat(share))
    return text, group


def fixed(text, width, right=False):
    """Return a text cut or padded to a number of columns."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    pad = " " * (width - cell_len(text))
    return pad + text if right else text + pad


# --- numbers ---


def number(value):
    """Return a number with about three digits: 0.42, 8.1, 37, 1234."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 20 else f"{value:.0f}"


def percent(share):
    """0.123 as "12 %"."""
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def seconds(value):
    """Return a short time: 0.0123 as "12.3 ms"."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or unit == "µs":
            digits = value * factor
            return f"{digits:.1f} {unit}" if digits < 100 else f"{digits:.0f} {unit}"


def ago(value):
    """Return a long time: "5 s", "3:12", "2:03:04"."""
    whole = max(0, int(value))
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
