"""adapt: do the knobs follow the machine?  Compares policies with searched static settings under scripted disturbances.

For each scenario, the grid of static settings is searched under each condition by itself.  Then the contenders run
through the script in rounds, in random order: the policies, the static settings that are best under some condition,
torch with its best worker count, and tf.data with AUTOTUNE.  Each phase of a policy is compared, round by round, with
the same phase of the static setting that is best under that phase's condition.
"""

import random
from typing import NamedTuple

from benchmarks.experiments import adapt_phases, statistics
from benchmarks.experiments.adapt_phases import Condition, Contender

WORKERS, PREFETCH = (1, 2, 3, 4), (1, 2, 8)
DRAPPS = "drapps"
# Nothing is written beside the data; one long epoch, as for the peers.
COMMON = {"seek_index": "memory", "joined": True}


class Scenario(NamedTuple):
    """A sequence of conditions of equal duration."""

    title: str
    phases: tuple


def scenarios(cpus, step):
    """Return the scenarios by name.  step: seconds for which the slow consumer holds a batch."""
    calm, burned = Condition("calm"), Condition("one CPU taken", burn=1)
    slow, fast = Condition("slow consumer", step=step), Condition("4 x faster consumer", step=step / 4)
    quotas = tuple(Condition(f"quota {share:.0%}", quota=cpus * share) for share in (1.0, 0.25, 0.5, 1.0))
    return {
        "steps": Scenario("one CPU is taken and given back", (calm, burned, calm, burned)),
        "quota": Scenario("a CPU quota that changes", quotas),
        "demand": Scenario("a consumer that changes its pace fourfold", (slow, fast, slow, fast)),
    }


def static(workers, prefetch):
    """Return a contender with static settings."""
    return Contender(f"{workers} workers, prefetch {prefetch}", DRAPPS,
                     {"workers": workers, "prefetch": prefetch, **COMMON})  # fmt: skip


GRID = tuple(static(workers, prefetch) for workers in WORKERS for prefetch in PREFETCH)


def policy(name):
    """Return a contender that adapts from its defaults."""
    return Contender(name, DRAPPS, dict(COMMON), policy=name)


def distinct(conditions):
    """Return each condition once, in the order of the script."""
    return tuple(dict.fromkeys(conditions))


def best_static(rates, scenario):
    """Return {name of a condition: the best contender of the grid}."""
    return {condition.name: max(GRID, key=lambda contender: rates[condition.name, contender.name])
            for condition in distinct(scenario.phases)}  # fmt: skip


class Experiment:
    """The cells of a scenario: search, then rounds."""

    def __init__(self, cells, options, place, say):
        self._cells, self._options, self._place, self._say = cells, options, place, say

    def _run(self, key, contender, conditions, seconds):
        def measure():
            self._say(" · ".join(map(str, key)))
            return adapt_phases.run(contender, conditions, seconds, self._place)

        return self._cells.get(key, measure)

    # --- search ---

    def search(self, name, scenario):
        """Run every setting under each condition by itself; return {(condition's name, contender's
        name): mean rate}."""
        conditions, options, rates = distinct(scenario.phases), self._options, {}
        for k in range(options.search_rounds):
            order = random.Random(f"{options.seed} {name} {k}").sample(GRID, len(GRID))
            for contender in order:
                key = ("search", name, contender.name, k, options.search_seconds)
                for phase in self._run(key, contender, conditions, options.search_seconds)["phases"]:
                    rates.setdefault((phase["condition"], contender.name), []).append(phase["settled"]["samples_per_s"])
        return {key: sum(values) / len(values) for key, values in rates.items()}

    def best_torch(self, name, scenario):
        """Return torch with the worker count that is fastest under the scenario's first condition."""
        rates = {}
        for workers in WORKERS:
            contender = Contender(f"torch, {workers} workers", "torch_pil", {"workers": workers})
            key = ("search", name, contender.name, 0, self._options.search_seconds)
            result = self._run(key, contender, scenario.phases[:1], self._options.search_seconds)
            rates[contender.name] = result["phases"][0]["settled"]["samples_per_s"], contender
        return max(rates.values(), key=lambda entry: entry[0])[1]

    # --- rounds ---

    def contenders(self, name, scenario, best):
        """Return the policies, the best static settings, and the installed peers."""
        static = {contender.name: contender for contender in best.values()}
        found = [policy(p) for p in self._options.policies] + list(static.values())
        if self._options.peers and adapt_phases.can_run(self._place, "torch_pil"):
            found.append(self.best_torch(name, scenario))
        if self._options.peers and adapt_phases.can_run(self._place, "tfdata"):
            found.append(Contender("tf.data, AUTOTUNE", "tfdata", {}))
        return found

    def rounds(self, name, scenario, found):
        """Run the rounds; return {contender's name: [phases of each round]}."""
        options, runs = self._options, {contender.name: [] for contender in found}
        for k in range(options.pairs):
            for contender in random.Random(f"{options.seed} {name} {k}").sample(found, len(found)):
                if contender.peer != DRAPPS and k >= options.peer_pairs:
                    continue
                key = ("round", name, contender.name, k, options.phase)
                result = self._run(key, contender, scenario.phases, options.phase)
                runs[contender.name].append(result["phases"])
        return runs


def compare(runs, name, best):
    """Return a row per phase: the policy's rate, that of the best static setting, and whether they are equivalent."""
    rows = []
    for k, phase in enumerate(runs[name][0]):
        beside = best[phase["condition"]].name
        pairs = [(mine[k], other[k]) for mine, other in zip(runs[name], runs[beside], strict=True)]
        ratios = [a["settled"]["samples_per_s"] / b["settled"]["samples_per_s"] for a, b in pairs]
        settling = [adapt_phases.settling(mine["series"]) for mine, _ in pairs]
        rows.append({
            "phase": k + 1, "condition": phase["condition"], "beside": beside,
            "rate": statistics.summary([mine["settled"]["samples_per_s"] for mine, _ in pairs]),
            "static_rate": statistics.summary([other["settled"]["samples_per_s"] for _, other in pairs]),
            "wait": statistics.summary([mine["settled"]["wait_share"] for mine, _ in pairs]),
            "cpu": statistics.summary([mine["cpu"] for mine, _ in pairs]),
            "equivalence": statistics.equivalence(ratios) if len(ratios) > 1 else None, "ratios": ratios,
            "settling": statistics.summary(settling), "longest_settling": max(settling),
            "lost": statistics.summary([adapt_phases.lost(mine["series"]) for mine, _ in pairs]),
            "static_lost": statistics.summary([adapt_phases.lost(other["series"]) for _, other in pairs]),
        })  # fmt: skip
    return rows
