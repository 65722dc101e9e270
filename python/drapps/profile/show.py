"""What was found, for people and for machines."""

import textwrap

from drapps.cli.show import print_table

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
    """A verdict in a few sentences, and a table of all findings."""
    if not findings:
        print("too little was measured: the program ended before some batches had been used")
        return
    print(textwrap.fill(verdict(run.facts, findings[0]), WIDTH))
    print()
    rows = [(found.name, f"{found.gain:.2f}x", f"{found.gain * run.facts.rate:.0f}", found.evidence)
            for found in findings]  # fmt: skip
    print_table(("finding", ("gain", "right"), ("samples/s", "right"), "why"), rows)
    for note in run.facts.notes:
        print(note)


def verdict(facts, finding):
    """What the run did, what holds it back, and what to do."""
    rate = f"{facts.rate:.0f} samples/s; the trainer waits {facts.wait:.0%} of its time"
    if facts.trainer_rate != float("inf"):
        rate += f" and could take {facts.trainer_rate:.0f} samples/s if data were always there"
    if finding.name == "healthy":
        return f"healthy: {rate}. Nothing stands out."
    if finding.gain <= 1.0:
        return f"{finding.name}: {rate}. {_sentence(finding.evidence)} To do: {finding.advice}."
    return (f"{finding.name}: {rate}. {_sentence(finding.evidence)} To do: {finding.advice}. "
            f"Expect {finding.gain * facts.rate:.0f} samples/s.")  # fmt: skip


def _sentence(text):
    return text[0].upper() + text[1:] + "."
