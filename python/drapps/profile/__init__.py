"""Why a trainer waits for its data, and what each remedy would bring.

    facts = run of a script (script.py), of a loop (loop.py), or of a trace (trace_facts.py)
    diagnose(facts) -> findings, the verdict first

What is measured stands in facts.py, what follows from it in rules.py.
"""

from drapps.profile.facts import Facts
from drapps.profile.rules import RULES, Finding, diagnose
from drapps.profile.trace_facts import facts_of_trace

__all__ = ["RULES", "Facts", "Finding", "diagnose", "facts_of_trace"]
