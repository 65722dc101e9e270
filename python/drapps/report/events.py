"""What is rare in a run: an epoch that begins, a bad sample, a worker that died, a knob turned by the user."""

from collections import defaultdict

from drapps.report.markup import section, table
from drapps.report.text import clock_text
from drapps.trace import Passes

MOST, LONGEST = 300, 200  # events on a page, characters of one
TOLD_WITHIN = 0.1  # seconds between a decision and the event that tells of its change


def told(run, most=MOST):
    """[(time, what), ...] without what decisions say and what the trace has about itself; the first `most`."""
    by_policy = turns_by_policy(run)
    passes = Passes(run.events)
    events = [event for event in run.events if event.get("event") not in ("missing", "end", "ops", "pass")]
    return [(event["t"], _text(_numbered(event, passes))) for event in events if not _is_turn(event, by_policy)][:most]


def _numbered(event, passes):
    """With the number of its pass, and what was told of that beside."""
    told = passes.told(event["epoch"], event["t"]) if "epoch" in event else {}
    if not told:
        return event
    if event["event"] != "start":
        return {**event, "epoch": told["pass"]}
    known = {key: told[key] for key in ("base", "samples") if key in told}
    rest = {key: value for key, value in event.items() if key not in ("t", "event", "epoch", "base", "samples")}
    return {"t": event["t"], "event": "start", "epoch": told["pass"], **known, **rest}


def turns_by_user(run):
    """[(time, knob, value), ...]: "set" events that no decision asked for."""
    by_policy = turns_by_policy(run)
    turns = [event for event in run.events if event.get("event") == "set" and _is_number(event.get("value"))]
    return [(e["t"], str(e.get("knob")), e["value"]) for e in turns if not _is_turn(e, by_policy)]


def turns_by_policy(run):
    """{(knob, value): [times]} of all decisions."""
    turns = defaultdict(list)
    for decision in run.decisions:
        for knob, (_, after) in decision.changes.items():
            turns[knob, after].append(decision.time)
    return turns


def _is_turn(event, turns):
    """Whether an event is a knob that a decision turned just before: a loader tells of every turn."""
    if event.get("event") != "set" or not _is_number(event.get("value")):
        return False
    times = turns.get((str(event.get("knob")), event["value"]), [])
    return any(abs(event["t"] - time) < TOLD_WITHIN for time in times)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(event):
    facts = [_fact(key, value) for key, value in event.items() if key not in ("t", "event") and (key, value) != ("base", 0)]
    return ", ".join([str(event.get("event")), *facts])[:LONGEST]


def _fact(key, value):
    """`base` is what was delivered before a pass was resumed."""
    return f"resumed after {value}" if key == "base" else f"{key} {value}"


def event_table(run):
    """The section; nothing where nothing happened."""
    rows = [(clock_text(time - run.begin), text) for time, text in told(run)]
    return section("Events", table(("time", "what"), rows, "times"), "events") if rows else ""
