"""The section about the run and its trace: host, data, settings, what is missing."""

import json

from drapps.monitor import sensors
from drapps.perfetto import PIPELINE, group_of
from drapps.report.markup import section, titled
from drapps.sched import LIMITS, knobs
from drapps.report.text import clock_text, count_text, escape, time_text

LONGEST = 20_000  # characters of a graph or of settings on a page
LEFT_OUT = ("tables", "ops")  # facts of the file format; facts that another section shows


def about(run):
    """Return the section."""
    rows = [("recorded", _recorded(run)), ("gaps", _gaps(run)), ("sensors not there", ", ".join(_absent(run)))]
    rows += [("not recorded", _missing(run)), ("end", _end(run))]
    rows += [(key, _text(value)) for key, value in sorted(run.meta.items()) if key not in LEFT_OUT]
    body = "".join(f"<tr><th>{escape(key)}<td><pre>{escape(text[:LONGEST])}</pre>" for key, text in rows if text)
    return section("About this run", f'<div class="scroll"><table class="facts"><tbody>{body}</tbody></table></div>')


WORDS = {
    "guard": "reverts a change after which the run became worse, and overrules the policy then",
    "reward": "how good the time before a decision was, by the weights: more is better",
    "lane": "samples that are predicted to be slow have their own workers, so that others do not wait behind them",
    "step": "the consumer's own time between two batches; the rest of its time is waiting",
}


def words():
    """Return the section that explains the words of the page: limits, settings, others."""
    parts = titled("Limited by", _list(LIMITS)) + titled("Settings", _list({knob.name: knob.doc for knob in knobs()}))
    parts += titled("Others", _list(WORDS))
    return section("Words", f"<details><summary>What they mean here</summary>{parts}</details>")


def _list(meanings):
    rows = "".join(f"<dt>{escape(word)}<dd>{escape(meaning)}" for word, meaning in meanings.items())
    return f'<dl class="glossary">{rows}</dl>'


def _recorded(run):
    spans = sum(map(len, run.spans.values()))
    counts = {"snapshot": len(run.snapshots), "flow record": len(run.flows), "decision": len(run.decisions)}
    counts |= {"span": spans, "event": len(run.events)}
    return ", ".join(f"{count_text(n)} {what}{'s' * (n != 1)}" for what, n in counts.items())


def _missing(run):
    told = {"lost": "records dropped because the buffer was full", "left_out": "spans not sampled"}
    return ", ".join(f"{count_text(n)} {told.get(what, what)}" for what, n in run.trace.missing.items() if n)


def _end(run):
    """Return how the trace ends, unless it was closed."""
    ends = {
        "closed": "",
        "limit": "the trace reached its largest size",
        None: "the process was killed, or is still writing",
    }
    return ends.get(run.trace.ended, str(run.trace.ended))


def _gaps(run):
    return ", ".join(f"at {clock_text(a - run.begin)} for {time_text(b - a)}" for a, b in run.gaps[:10])


def _absent(run):
    """Return the sensors of the machine that no snapshot has; those of the pipeline depend on its kind."""
    if not run.snapshots:
        return []
    seen = {name for snapshot in run.snapshots for name in snapshot}
    names = [sensor.name for sensor in sensors() if group_of(sensor.name) != PIPELINE]
    return [name for name in names if name not in seen]


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
