"""The scheduler's tables in Python, and the guide that must name all of them."""

from pathlib import Path

import pytest

import drapps
from drapps.sched import Decision

GUIDE = Path(__file__).parents[2] / "docs" / "scheduler.md"


def test_tables():
    assert {"workers", "prefetch", "priority"} <= {knob.name for knob in drapps.knobs()}
    assert all(knob.least < knob.most and knob.cooldown_ms > 0 and knob.doc for knob in drapps.knobs())
    assert {flow.kind for flow in drapps.flows()} == {"sum", "gauge"}
    assert [policy.name for policy in drapps.policies()] == ["fixed", "rules", "climb", "stages", "analytic", "mpc"]


def test_guide_names_every_row():
    text = GUIDE.read_text()
    for table in (drapps.knobs(), drapps.policies(), drapps.flows()):
        assert [row.name for row in table if f"`{row.name}`" not in text] == []


def test_decision_of_facts():
    facts = (3, 1_500_000_000, "cpu", {"workers": (2.0, 3.0)}, 0.5, {"idle": 0.1}, {"idle": 1.0}, False, "why")
    decision = Decision.of(facts)
    assert decision.number == 3 and decision.time == 1.5 and decision.changes == {"workers": (2.0, 3.0)}
    assert decision.reason == "why" and not decision.guarded


def test_policies_have_parameters(pipe):
    params = {policy.name: {param.name: param for param in policy.params} for policy in drapps.policies()}
    assert params["analytic"]["margin"].default == 1.15 and not params["fixed"]
    with pipe.loader(batch_size=2, policy="analytic:margin=1.3,wait=0.02") as loader:
        assert loader.policy == "analytic"
    with pytest.raises(drapps.ArgumentError, match="analytic has no parameter 'width', only margin, .*, load"):
        pipe.loader(batch_size=2, policy="analytic:width=3")
