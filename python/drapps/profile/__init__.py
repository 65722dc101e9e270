"""Why the consumer waits for its data, and the expected gain of each remedy.

    facts = from the run of a script or of a loop (run_script.py), or from a trace (trace_facts.py)
    diagnose(facts) -> findings, the verdict first

facts.py has what is measured, rules.py the conclusions.
"""

from drapps.profile.facts import Facts
from drapps.profile.rules import RULES, Finding, diagnose
from drapps.profile.trace_facts import facts_of_trace

__all__ = ["RULES", "Facts", "Finding", "diagnose", "facts_of_trace"]
