"""drapps plan: which ops of a pipeline are worth running once, in which form to store the results, and the cost.

    cuts.py         edges: where samples may be stored
    strategies.py   what could be done
    planner.py      tries it with some samples, in the order and as often as racing.py says
    materials.py    makes what is tried: the one place that knows how samples are stored
    scoring.py      chooses: weights or prices
    outcome.py      the result; plan_page.py: as a page of HTML

As PRESTO does (Isenko et al., SIGMOD 2022), but within a budget of time.
"""

from drapps.plan.outcome import Plan
from drapps.plan.planner import Planner
from drapps.plan.scoring import Prices, Weights

__all__ = ["Plan", "Prices", "Weights", "plan"]


def plan(
    pipe,
    *,
    budget=300.0,
    objective=None,
    options=None,
    work=None,
    memory=None,
    drop_caches=False,
    rounds=None,
    samples=None,
    seed=0,
    tell=None,
):
    """The Plan of a pipeline; docs/plan.md says what the arguments mean."""
    return Planner(
        pipe,
        budget=budget,
        objective=objective or Weights(),
        options=options or {},
        work=work,
        memory=memory,
        drop_caches=drop_caches,
        rounds=rounds,
        samples=samples,
        seed=seed,
        tell=tell or (lambda text: None),
    ).run()
