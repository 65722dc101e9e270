"""Validate: random settings on the real engine and in the simulator, with a profile that was made before.

The settings are drawn by a seed: workers, readers, prefetch, a CPU limit, other programs' threads, delayed reads, and
the consumer's step with its part on a CPU.  The simulator's predictions are made before the engine runs.  Step
responses change a setting in the middle of a run.
"""

import math
import os
import random
import time
from contextlib import suppress
from typing import Any, NamedTuple

from drapps import _core
from drapps.sim.engine_run import EngineRun, Setting, rate_of, sleep_error
from drapps.sim.simulation import Simulation

WARM_S = 0.7  # of a run, before it is measured
BEFORE_S, AFTER_S = 2.0, 5.0  # of a step response
WINDOW_S, NEAR = 0.6, 0.15  # a rate over this time that stays this near to the last one has settled
MAPE_AIM, SPEARMAN_AIM, SETTLE_AIM = 0.15, 0.9, 0.3


class Case(NamedTuple):
    """A setting, and its rates."""

    setting: Setting
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return abs(self.predicted / self.measured - 1) if self.measured else math.inf


class Response(NamedTuple):
    """A change of a setting in the middle of a run: rates after it, and seconds until these settle."""

    before: Setting
    after: Setting
    predicted: float
    measured: float
    predicted_settle: float
    measured_settle: float

    @property
    def near(self) -> bool:
        """Whether the predicted time is within 30 % of the measured one, or within one window."""
        return abs(self.predicted_settle - self.measured_settle) <= max(SETTLE_AIM * self.measured_settle, WINDOW_S)


class Validation(NamedTuple):
    """How well the simulator predicts a machine."""

    cases: list[Case]
    responses: list[Response]
    others: float  # CPUs that other programs used, as a mean; not those that the settings ask for

    @property
    def mape(self) -> float:
        """Mean absolute error of the predicted rates, relative."""
        return sum(case.error for case in self.cases) / len(self.cases)

    @property
    def spearman(self) -> float:
        """Rank correlation of predicted and measured rates."""
        return _correlation(
            _ranks([case.predicted for case in self.cases]), _ranks([case.measured for case in self.cases])
        )

    @property
    def settled(self) -> float:
        """Share of the step responses whose settling time was predicted."""
        return sum(r.near for r in self.responses) / len(self.responses) if self.responses else math.nan

    @property
    def good(self) -> bool:
        """Whether rates are predicted well enough to train policies for this machine in the simulator."""
        return self.mape <= MAPE_AIM and self.spearman >= SPEARMAN_AIM

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "mape": self.mape,
            "spearman": self.spearman,
            "settled": self.settled if self.responses else None,
            "good": self.good,
            "others": self.others,
            "cases": [{**c.setting._asdict(), "predicted": c.predicted, "measured": c.measured} for c in self.cases],
            "responses": [
                {**r._asdict(), "before": r.before._asdict(), "after": r.after._asdict()} for r in self.responses
            ],
        }


# --- settings ---


def draw_settings(n, profile, seed):
    """Return n random settings around what the machine can make."""
    dice = random.Random(f"settings {seed}")
    return [_draw(dice, profile) for _ in range(n)]


def _draw(dice, profile):
    cpus, cpu = int(profile.set["cpus"]), profile.set["cpu"]
    batch = profile.set["batch"]
    share = math.exp(dice.uniform(math.log(0.3), math.log(3)))  # of what all CPUs can make
    step = batch * cpu / cpus / share
    on_cpu = dice.choice([0, 0, 0.3, 0.7]) * min(step, 0.5)
    return Setting(
        workers=dice.randint(1, 2 * cpus),
        readers=dice.choice([0, 0, 0, 1, 2, 4]),
        prefetch=dice.choice([1, 2, 2, 3, 4, 8]),
        step=step,
        step_cpu=on_cpu,
        tenants=dice.choice([0, 0, 0, 1, cpus]),
        read_delay=dice.choice([0, 0, 0, cpu, 4 * cpu]),
        cpu_limit=dice.choice([0, 0, 0, round(0.5 * cpus, 2)]),
    )


# --- the simulator ---


def simulation_of(profile, setting, overhead):
    """Return a simulation of a setting.  overhead: seconds by which a sleep is longer than asked for."""
    step = max(setting.step, setting.step_cpu) + (overhead if setting.step > setting.step_cpu else 0)
    values = {
        **profile.set,
        "samples": profile.facts.get("samples_used", 1000),  # all in the page cache
        "page_cache": 1e15,
        "memory": 1e15,
        "warm": 1,
        "demand": 0,
        "accels": 1,
        "accel_speed": 1,
        "accel_each": 0,
        "step_each": max(step, 1e-6) / profile.set["batch"],
        "step_cv": 0,
        "train_cpu": min(setting.step_cpu / step, 1) if step else 0,
        "train_threads": 1,
        "workers": setting.workers,
        "readers": setting.readers,
        "prefetch": setting.prefetch,
        "tenants": setting.tenants,
        "cached_read": profile.set["cached_read"] + setting.read_delay,
        "noise": 0,
    }
    sim = Simulation(scenario="plain", set=values, seed=1)
    sim.set("cpu_ceiling", setting.cpu_limit)
    return sim


def predict(profile, setting, seconds, overhead):
    """Return samples per second, after the same warm-up as on the engine."""
    sim = simulation_of(profile, setting, overhead)
    sim.advance(WARM_S)
    before = sim.result().samples
    sim.advance(max(seconds, 20 * setting.step))
    after = sim.result()
    return (after.samples - before) / (after.seconds - WARM_S)


def predict_response(profile, before, after, overhead):
    """Return (time, samples) marks from the change on."""
    sim = simulation_of(profile, before, overhead)
    sim.advance(BEFORE_S)
    begun, marks = sim.result().samples, []
    for name in ("workers", "readers", "prefetch"):
        sim.set(name, getattr(after, name))
    for k in range(1, round(AFTER_S * 100) + 1):
        sim.advance(0.01)
        marks.append((0.01 * k, sim.result().samples - begun))
    return [(0.0, 0.0), *marks]


# --- measures ---


def settle_time(marks, window=WINDOW_S):
    """Seconds until the rate over the last window stays near the rate of the last two windows."""
    end = marks[-1][0]
    last = _rate_between(marks, end - 2 * window, end)
    if not last:
        return end
    time, settled = end - 2 * window, end - 2 * window
    while time > 0:
        if abs(_rate_between(marks, time, time + window) / last - 1) > NEAR:
            break
        settled = time
        time -= window / 6
    return max(settled, 0.0)


def _rate_between(marks, begin, end):
    return (_count_at(marks, end) - _count_at(marks, begin)) / (end - begin)


def _count_at(marks, time):
    """Samples at a time, as if they came evenly between two marks."""
    before = (0.0, 0.0)
    for mark in marks:
        if mark[0] >= time:
            part = (time - before[0]) / (mark[0] - before[0]) if mark[0] > before[0] else 1
            return before[1] + part * (mark[1] - before[1])
        before = mark
    return before[1]


def _ranks(values):
    """Ranks from 0; equal values share their mean."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    i = 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in range(i, j + 1):
            ranks[order[k]] = (i + j) / 2
        i = j + 1
    return ranks


def _correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    below = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return top / below if below else 0.0


# --- all of it ---


def validate(make, profile, *, settings=32, responses=10, seconds=4.0, seed=0, tell=lambda text: None):
    """Return the Validation of a profile.  make(): opens the pipeline."""
    if settings < 2:
        raise _core.ArgumentError(f"settings must be at least 2, got {settings}")
    overhead = profile.facts.get("sleep_error", sleep_error())
    drawn = draw_settings(settings, profile, seed)
    changes = _draw_changes(responses, profile, seed)
    predicted = [predict(profile, one, seconds, overhead) for one in drawn]  # before the first run
    expected = [predict_response(profile, *change, overhead) for change in changes]
    n, batch = int(profile.facts["samples_used"]), int(profile.set["batch"])
    machine, cases = _Others(), []
    for k, (setting, rate) in enumerate(zip(drawn, predicted)):
        tell(f"setting {k + 1} of {settings}")
        with EngineRun(make, n, batch, setting, seed) as run:
            run.consume(WARM_S)
            cases.append(Case(setting, rate, rate_of(run.consume(seconds))))
    found = []
    for k, ((before, after), marks) in enumerate(zip(changes, expected)):
        tell(f"step response {k + 1} of {responses}")
        found.append(_measure_response(make, n, batch, before, after, marks, seed))
    return Validation(cases, found, machine.cpus())


class _Others:
    """CPUs that programs use which are not ours."""

    def __init__(self):
        self._begun = self._look()

    def _look(self):
        return time.monotonic(), _busy_seconds(), sum(os.times()[:4])

    def cpus(self):
        """Return the mean since the beginning."""
        passed, busy, ours = (now - then for now, then in zip(self._look(), self._begun))
        return max(busy - ours, 0.0) / passed if passed else 0.0


def _busy_seconds():
    """CPU time of the whole machine; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError), open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
        return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _draw_changes(n, profile, seed):
    """Pairs of settings that differ in workers, readers or prefetch alone."""
    dice = random.Random(f"changes {seed}")
    pairs = []
    for _ in range(n):
        before = _draw(dice, profile)._replace(tenants=0, cpu_limit=0)
        other = _draw(dice, profile)
        after = before._replace(workers=other.workers, prefetch=max(other.prefetch, 2))
        pairs.append((before, after._replace(readers=other.readers if before.read_delay else before.readers)))
    return pairs


def _measure_response(make, n, batch, before, after, expected, seed):
    with EngineRun(make, n, batch, before, seed) as run:
        run.consume(BEFORE_S)
        run.change(after)
        marks = run.consume(AFTER_S)
    half = AFTER_S / 2
    return Response(
        before, after,
        _rate_between(expected, half, AFTER_S), _rate_between(marks, half, AFTER_S),
        settle_time(expected), settle_time(marks),
    )  # fmt: skip
