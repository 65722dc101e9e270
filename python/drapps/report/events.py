"""The events of a run: an epoch that begins, a bad sample, a worker that died, a knob set by the user."""

from collections import defaultdict

from drapps.report.markup import section, table
from drapps.report.text import clock_text
from drapps.trace import Passes

MOST, LONGEST = 300, 200  # largest number of events on a page, and of characters of an event
FACTS = ("missing", "end", "ops", "pass", "codec", "ranges", "offloaded")  # not listed
REPORTED_WITHIN = 0.1  # seconds between a decision and the "set" event of its change


def listed(run, most=MOST):
    """Return the first `most` of [(time, text), ...], without changes by the policy and facts about
    the trace itself."""
    by_policy = changes_by_policy(run)
    passes = Passes(run.events)
    events = [event for event in run.events if event.get("event") not in FACTS]
    return [
        (event["t"], _text(_numbered(event, passes))) for event in events if not _is_policy_change(event, by_policy)
    ][:most]


def _numbered(event, passes):
    """Return an event with the number of its pass and the facts of its "pass" event."""
    begun = passes.event_of(event["epoch"], event["t"]) if "epoch" in event else {}
    if not begun:
        return event
    if event["event"] != "start":
        return {**event, "epoch": begun["pass"]}
    known = {key: begun[key] for key in ("base", "samples") if key in begun}
    rest = {key: value for key, value in event.items() if key not in ("t", "event", "epoch", "base", "samples")}
    return {"t": event["t"], "event": "start", "epoch": begun["pass"], **known, **rest}


def changes_by_user(run):
    """Return [(time, knob, value), ...] of the "set" events that no decision caused."""
    by_policy = changes_by_policy(run)
    turns = [event for event in run.events if event.get("event") == "set" and _is_number(event.get("value"))]
    return [(e["t"], str(e.get("knob")), e["value"]) for e in turns if not _is_policy_change(e, by_policy)]


def changes_by_policy(run):
    """Return {(knob, value): [times]} of all decisions."""
    turns = defaultdict(list)
    for decision in run.decisions:
        for knob, (_, after) in decision.changes.items():
            turns[knob, after].append(decision.time)
    return turns


def _is_policy_change(event, turns):
    """Return whether an event reports a knob that a decision changed just before: a loader reports every change."""
    if event.get("event") != "set" or not _is_number(event.get("value")):
        return False
    times = turns.get((str(event.get("knob")), event["value"]), [])
    return any(abs(event["t"] - time) < REPORTED_WITHIN for time in times)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(event):
    facts = [
        _fact(key, value) for key, value in event.items() if key not in ("t", "event") and (key, value) != ("base", 0)
    ]
    return ", ".join([str(event.get("event")), *facts])[:LONGEST]


def _fact(key, value):
    """Return a fact as text; `base` is the number of samples delivered before a pass was resumed."""
    return f"resumed after {value}" if key == "base" else f"{key} {value}"


def event_table(run):
    """Return the section; "" without events."""
    rows = [(clock_text(time - run.begin), text) for time, text in listed(run)]
    return section("Events", table(("time", "what"), rows, "times"), "events") if rows else ""
