"""The tables of the experiments, as Markdown."""


def table(columns, rows):
    """Return a table of texts."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def spread(summary, digits=0):
    """mean ± sd [95 % CI]"""
    text = f"{summary.mean:.{digits}f} ± {summary.sd:.{digits}f}"
    return text if summary.n < 2 else f"{text} [{summary.low:.{digits}f}, {summary.high:.{digits}f}]"


def verdict(equivalence):
    """Return the ratio with its 90 % interval and the result of the test."""
    if equivalence is None:
        return "one round: not tested"
    words = "equivalent" if equivalence.equivalent else "at least as good" if equivalence.at_least else "not shown"
    better = " and better" if equivalence.low > 1 else ""
    return f"{equivalence.ratio:.3f} [{equivalence.low:.3f}, {equivalence.high:.3f}], {words}{better}"


def adapt(rows):
    """Return the table of the phases of a policy."""
    columns = ("phase", "samples/s", "best static setting of the phase", "its samples/s", "ratio, TOST ± 10 %",
               "consumer waits", "CPUs used", "settled after, longest", "lost in 3 s, by the static one")  # fmt: skip
    return table(columns, [
        (f"{row['phase']}: {row['condition']}", spread(row["rate"]), row["beside"], spread(row["static_rate"]),
         verdict(row["equivalence"]), f"{row['wait'].mean:.1%}", f"{row['cpu'].mean:.2f}",
         f"{row['settling'].mean:.1f} s, {row['longest_settling']:.1f} s",
         f"{row['lost'].mean:.2f} s, {row['static_lost'].mean:.2f} s")
        for row in rows])  # fmt: skip


def grid(rates):
    """Return the table of the searched grid.  rates: {(condition's name, contender's name): samples/s}."""
    conditions, names = (list(dict.fromkeys(key[k] for key in rates)) for k in range(2))
    best = {condition: max(rates[condition, name] for name in names) for condition in conditions}
    return table(("setting", *conditions), [
        (name, *(_marked(rates[condition, name], best[condition]) for condition in conditions)) for name in names])


def _marked(rate, best):
    return f"**{rate:.0f}**" if rate == best else f"{rate:.0f}"


def others(runs, names):
    """Return the table of mean rates per phase of all contenders."""
    conditions = [f"{k}: {phase['condition']}" for k, phase in enumerate(next(iter(runs.values()))[0], 1)]
    return table(("loader", *conditions, "rounds"), [
        (name, *(f"{_mean(run[k]['settled']['samples_per_s'] for run in runs[name]):.0f}"
                 for k in range(len(conditions))), str(len(runs[name]))) for name in names])  # fmt: skip


def _mean(values):
    values = list(values)
    return sum(values) / len(values)


def training(rows):
    """Return the table of training times."""
    return table(("loader", "seconds of training", "drapps's speed with a policy, as part of it"), [
        (row["name"], spread(row["seconds"], 1), verdict(row["equivalence"])) for row in rows])
