"""How what a cache kept was compressed: the choices of codecs, and the terms that they were made of."""

from collections import Counter, defaultdict

from drapps.report.markup import section, table
from drapps.report.text import bytes_text

EVENT = "codec"
TERMS = ("v", "rho", "compat", "u")
WHYS = ("best", "probe", "set")


def choices(run):
    """{(tier, class): its events} of samples that were kept, as far as they are whole."""
    found = defaultdict(list)
    for event in run.events:
        if event.get("event") == EVENT and isinstance(event.get("terms"), list):
            found[str(event.get("tier")), str(event.get("class"))].append(event)
    return found


def codec_table(run):
    """The section; nothing where no sample was kept."""
    rows = [row for key, events in sorted(choices(run).items()) for row in _rows(key, events)]
    columns = ("where", "data", "codec", "#chosen", "#as best", "#to try", "#by the user", "#stored", "#v", "#rho",
               "#compat", "#U")  # fmt: skip
    note = ("<p class='note'>v, rho, compat: speed, ratio and fit to the machine, each as a part of the best codec's, "
            "when a codec was chosen last; U: their weighted sum. The greatest U wins.</p>")  # fmt: skip
    return section("Compression of the cache", table(columns, rows) + note, "codecs") if rows else ""


def _rows(key, events):
    """One for each codec that was weighed, as it was when something was chosen last."""
    chosen = defaultdict(Counter)
    stored = Counter()
    for event in events:
        chosen[str(event.get("codec"))][event.get("why")] += 1
        stored[str(event.get("codec"))] += _number(event.get("stored")) or 0
    for terms in events[-1]["terms"]:
        if isinstance(terms, dict):
            name = str(terms.get("codec"))
            counts = [str(chosen[name][why]) for why in WHYS]
            values = ["" if (value := _number(terms.get(term))) is None else f"{value:.3f}" for term in TERMS]
            yield (*key, name, str(chosen[name].total()), *counts, bytes_text(stored[name]), *values)


def _number(value):
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
