"""What is rare in a run: an epoch that begins, a bad sample, a worker that died, a knob turned by the user, a mark."""

from drapps.report.markup import section, table
from drapps.report.text import clock_text

MOST, LONGEST = 300, 200  # events on a page, characters of one


def told(run):
    """[(time, what), ...] without what the trace has about itself; the first MOST."""
    events = [event for event in run.events if event.get("event") not in ("missing", "end")]
    return [(event["t"], _text(event)) for event in events[:MOST]]


def _text(event):
    facts = [f"{key} {value}" for key, value in event.items() if key not in ("t", "event")]
    return ", ".join([str(event.get("event")), *facts])[:LONGEST]


def event_table(run):
    """The section; nothing where nothing happened."""
    rows = [(clock_text(time - run.begin), text) for time, text in told(run)]
    return section("Events", table(("time", "what"), rows, "times"), "events") if rows else ""
