"""The result of a profile as text and as JSON."""

import textwrap

from drapps.printing import print_table

WIDTH = 110


def as_dict(run, findings):
    """For JSON."""
    return {
        "loader": run.loader,
        "verdict": findings[0].name if findings else None,
        "findings": [finding.as_dict() for finding in findings],
        "facts": run.facts.as_dict(),
    }


def show(run, findings):
    """Print the verdict in a few sentences, and a table of all findings."""
    if not findings:
        print(_nothing(run.facts))
        return _show_notes(run.facts)
    print(textwrap.fill(verdict(run.facts, findings[0]), WIDTH))
    print()
    rows = [(found.name, f"{found.gain:.2f}x", f"{found.gain * run.facts.rate:.0f}", found.evidence)
            for found in findings]  # fmt: skip
    print_table(("finding", ("gain", "right"), ("samples/s", "right"), "why"), rows)
    _show_notes(run.facts)


def show_stages(rates, offload=""):
    """Print the rates of the stages and the verdict.  offload: what is planned for a drapps server."""
    rows = [(stage, "unlimited" if rate == float("inf") else f"{rate:.0f}",
             f"{rate * rates.bytes / 1e6:.1f}" if stage == "fetch" else "", rates.batches[stage])
            for stage, rate in (("accelerator", rates.accelerator), ("fetch", rates.fetch),
                                ("preprocess", rates.preprocess))]  # fmt: skip
    print_table(("stage", ("samples/s", "right"), ("MB/s", "right"), ("batches", "right")), rows)
    print(textwrap.fill(rates.verdict(), WIDTH))
    if offload:
        print(textwrap.fill(offload, WIDTH))


def _show_notes(facts):
    if facts.swapped_rate:
        print(f"with drapps.DataLoader instead of torch's: {facts.swapped_rate:.0f} samples/s, "
              f"{facts.swapped_rate / facts.rate:.2f} times as many")  # fmt: skip
    for note in facts.notes:
        print(textwrap.fill(note, WIDTH))


def _nothing(facts):
    if not facts.rate:
        return "too little was measured: the program ended after a few batches; let it run for some seconds"
    return f"{_run(facts)}; no measurement explains why"


def verdict(facts, finding):
    """Return the rate of the run, what limits it, and what to do."""
    text = f"{finding.name}: {_run(facts)}."
    if finding.name != "healthy":
        text += f" Why: {finding.evidence}. To do: {finding.advice}."
    if finding.gain > 1.0:
        text += f" Expect {finding.gain * facts.rate:.0f} samples/s."
    return text


def _run(facts):
    text = f"{facts.rate:.0f} samples/s; the consumer waits {facts.wait:.0%} of its time"
    if facts.consumer_rate != float("inf"):
        text += f" and could take {facts.consumer_rate:.0f} samples/s if data were always there"
    return text
