"""A pipeline in one order of its stages, with its edges and what these are expected to cost."""

from drapps import _core
from drapps.counted import counted
from drapps.plan.cuts import edges_of
from drapps.plan.stage_costs import cut_costs


class View:
    """One order.  why: what it is for; "": it is the given one."""

    def __init__(self, pipe, why, places, seconds):
        self.pipe, self.why = pipe, why
        self.edges = edges_of(pipe)
        self.legal = [edge.stages for edge in self.edges if edge.legal]
        whole = len(pipe.stages)
        self.costs = cut_costs(pipe, {*self.legal, whole}, places, seconds)
        if whole not in self.costs:
            raise _core.BadSampleError(f"{pipe.dataset.name}: none of {counted(len(places), 'sample')} could be made")

    def forms(self):
        """{stages: Form} of the legal edges."""
        return {cut: self.costs[cut].form for cut in self.legal}


def mean(values):
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0
