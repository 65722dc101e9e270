"""A plan as a table for people."""

from drapps.counted import counted
from drapps.plan.outcome import sorted_rows
from drapps.plan.scoring import Prices
from drapps.plan.strategies import FILES, PAGE, Material, Strategy
from drapps.printing import print_table
from drapps.report.text import bytes_text, time_text

NUMBER = ("#", "right")
AS_IT_IS = Strategy(Material(0, FILES, label="raw"), PAGE)


def show(plan):
    """Prints the table, what is not in it, and the choice."""
    facts = plan.facts
    print(f"{plan.pipe!r}")
    print(
        f"{facts['measured_samples']} of {facts['samples']} samples, {facts['seconds']:.0f} s, {facts['rounds']} "
        f"{'round' if facts['rounds'] == 1 else 'rounds'}; {facts['ended']}; {plan.objective}"
    )
    print_table(columns(plan), [cells(plan, i, row) for i, row in enumerate(sorted_rows(plan.rows), 1)])
    print("\n".join(legend(plan)))
    for title, entries in (
        ("edges where samples cannot be stored", _illegal(plan)),
        ("not offered", plan.refused),
        ("not measured", plan.unmeasured),
    ):
        if entries:
            print(f"{title}:")
            print("\n".join(f"  {getattr(name, 'name', name)}: {why.removeprefix('not measured: ')}"
                            for name, why in entries.items()))
    for note in plan.notes:
        print(f"note: {note}")
    print("\n".join(filter(None, (choice_text(plan), doubt_text(plan)))))


def columns(plan):
    """Of the table; a tuple is set to the right."""
    money = [("money", "right")] if isinstance(plan.objective, Prices) else [("score", "right")]
    return [
        NUMBER,
        "strategy",
        ("samples/s", "right"),
        ("between", "right"),
        ("cold", "right"),
        ("warm", "right"),
        ("in memory", "right"),
        ("preparation", "right"),
        ("storage", "right"),
        *money,
        "front",
        "note",
    ]


def cells(plan, number, row):
    """Texts of a row."""
    chosen = "*" if row.strategy == plan.chosen else ""
    return [
        f"{chosen}{number}",
        row.strategy.name,
        rate_text(row.rate.mid),
        f"{rate_text(row.rate.low)} - {rate_text(row.rate.high)}",
        rate_text(row.cold.mid),
        rate_text(row.warm.mid),
        rate_text(row.memory.mid),
        time_text(row.preparation.mid),
        bytes_text(row.storage.mid),
        score_text(plan, row),
        "yes" if row.front else "",
        row.why_not,
    ]


def score_text(plan, row):
    """The score, or what the strategy costs."""
    if row.score is None:
        return "-"
    return f"{-row.score:.4g}" if isinstance(plan.objective, Prices) else f"{row.score:.3f}"


def rate_text(rate):
    """Samples/s; "-": not measured."""
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}" if rate else "-"


def choice_text(plan):
    """One line on what was chosen and what it brings."""
    row = plan.row
    if row is None:
        return "nothing was measured: a larger budget (--budget) is needed"
    untouched = next((other for other in plan.rows if other.strategy == AS_IT_IS), None)
    gain = ""
    if untouched is not None and untouched is not row and untouched.rate.mid:
        gain = f", {row.rate.mid / untouched.rate.mid:.2f} times as many as the pipeline as it is"
        if may_be_as_fast(untouched, row):
            gain = f", which may be no more than those of the pipeline as it is ({rate_text(untouched.rate.mid)})"
    return (
        f"chosen: {row.strategy.name}: {rate_text(row.rate.mid)} samples/s{gain}; "
        f"{time_text(row.preparation.mid)} of preparation, {bytes_text(row.storage.mid)}"
    )


def may_be_as_fast(other, row):
    """Whether the interval of one rate holds the middle of the other."""
    return other.rate.high >= row.rate.mid or row.rate.low <= other.rate.mid


def doubt_text(plan):
    """That the choice is not certain; "": it is, or there is none."""
    row, scale = plan.row, {one.strategy: one.metrics for one in plan.rows if not one.why_not}
    if row is None:
        return ""
    rivals = 0
    for other in plan.rows:
        if other is row or other.why_not:
            continue
        for rate, least in ((row.rate.low, other.rate.mid), (row.rate.mid, other.rate.high)):
            pair = {row.strategy: row.metrics._replace(throughput=rate),
                    other.strategy: other.metrics._replace(throughput=least)}  # fmt: skip
            scores = plan.objective.scores(pair, scale)
            if scores[other.strategy] >= scores[row.strategy] and may_be_as_fast(other, row):
                rivals += 1
                break
    if not rivals:
        return ""
    return (
        f"not certain: {rivals} of the {len(scale) - 1} others may be as good, by their intervals; a larger budget or "
        "a machine with nothing else running may tell them apart"
    )


def legend(plan):
    """What the columns say, and what is odd in them."""
    lines = [
        "between: an interval that holds the truth with 95 %; cold, warm: measured with none and all of the samples in "
        "the page cache; in memory: with all kept by cache_memory="
    ]
    odd = sum(0 < row.warm.mid < row.cold.mid for row in plan.rows)
    if odd:
        lines.append(f"warm is below cold in {counted(odd, 'row')}: reading is not what limits there, noise decides")
    return lines


def _illegal(plan):
    return {edge.label: edge.why for edge in plan.edges if not edge.legal}
