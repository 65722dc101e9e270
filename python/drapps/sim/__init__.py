"""A simulator of loaders, for trying and training policies; profiles of machines, and how well it predicts them."""

from drapps.sim.simulation import Decisions, Result, Simulation, fields, machines, models, scenarios, signals, workloads

__all__ = [
    "Decisions",
    "Result",
    "Simulation",
    "fields",
    "machines",
    "models",
    "scenarios",
    "signals",
    "workloads",
]
