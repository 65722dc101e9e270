"""Why the consumer waits for its data, and the expected gain of each remedy.

    facts = from the run of a script or of a loop (run_script.py), or from a trace (trace_facts.py)
    diagnose(facts) -> findings, the verdict first

facts.py has what is measured, rules.py the conclusions.  stage_rates.py measures accelerator, reading and preprocessing
one by one.
"""

from drapps.profile.facts import Facts
from drapps.profile.rules import RULES, Finding, diagnose
from drapps.profile.stage_rates import StageRates, measure_stages
from drapps.profile.trace_facts import facts_of_trace

__all__ = ["RULES", "Facts", "Finding", "StageRates", "diagnose", "facts_of_trace", "measure_stages"]
