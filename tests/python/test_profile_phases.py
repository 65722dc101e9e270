"""drapps profile: phases that cannot be of one load are measured again, or said to be of different ones."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from drapps.profile import diagnose, session
from drapps.profile.session import Plan, Session, others_changed

SAMPLES = 4
QUIET = {"cpu_own": 1.0, "cpu_foreign": 0.0, "cpu_steal": 0.0, "cpu_seconds": 1.0, "delayed": 0.0, "throttled": 0.0,
         "disk_busy": 0.0, "disk_latency": 0.0, "device_bytes": 0}  # fmt: skip


class Run:
    """A program, its machine and its clock.  steps: seconds of the consumer for a batch, phase after phase; others:
    CPUs that other programs use, likewise; the last of each goes on."""

    def __init__(self, monkeypatch, steps, others=(0.0,)):
        self.now, self.steps, self.others, self.marks = 0.0, list(steps), list(others), 0
        monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: self.now))
        host = SimpleNamespace(cpus=lambda: (2.0, 2.0), mark=lambda: None, since=self.since)
        self.session = Session(SimpleNamespace(host=host, plan=Plan(1, 1, 1, 1, 1), opened={}, torchs={}, stop=False,
                                               resting=nullcontext))  # fmt: skip
        self.session.use(object())

    def since(self, mark):
        return {**QUIET, "cpu_foreign": self.others.pop(0) if len(self.others) > 1 else self.others[0]}

    def batches(self, wait):
        while True:
            self.now += wait
            yield np.zeros((SAMPLES, 2))

    def facts(self, wait=0.0):
        """Goes through all phases."""
        batches, phase = self.batches(wait), self.session._phase
        for _ in range(100000):
            self.session.take(batches)
            if self.session.finished:
                return self.session.result()
            if self.session._phase is not phase:
                phase = self.session._phase
                self.steps = self.steps[1:] or self.steps
            self.now += self.steps[0]
        raise AssertionError("never ends")


def test_phases_that_agree_are_measured_once(monkeypatch):
    facts = Run(monkeypatch, [0.01, 0.01, 0.01]).facts(wait=0.03)
    assert facts.rate == pytest.approx(100) and facts.free_rate == pytest.approx(400) and facts.notes == []


def test_a_consumer_that_is_slower_with_batches_at_hand_is_measured_again(monkeypatch):
    steps = [0.01, 0.01, 0.05, 0.02, 0.02]  # warm up, as is, free: five times slower; both again
    facts = Run(monkeypatch, steps).facts(wait=0.02)
    assert facts.rate == pytest.approx(100) and facts.free_rate == pytest.approx(200)
    assert (
        len(facts.notes) == 1 and "measured twice" in facts.notes[0] and "took 133 samples/s, then 80" in facts.notes[0]
    )


def test_a_load_that_keeps_changing_is_said(monkeypatch):
    facts = Run(monkeypatch, [0.01, 0.01, 0.05, 0.01, 0.05]).facts(wait=0.01)
    assert facts.free_rate is None and facts.consumer_rate == pytest.approx(400)  # by its steps
    assert len(facts.notes) == 1 and "changed in each measurement" in facts.notes[0]
    assert all(finding.gain * facts.rate <= facts.consumer_rate for finding in diagnose(facts))


def test_a_neighbour_that_comes_is_noticed(monkeypatch):
    facts = Run(monkeypatch, [0.01], others=[0.0, 0.0, 0.9, 0.0]).facts()
    assert facts.cpu_foreign == 0.0 and "other programs used 0.00 CPUs, then 0.90" in facts.notes[0]


@pytest.mark.parametrize("before, after, changed", [
    ((1.0, 0.1), (1.0, 0.3), False),  # a little
    ((1.0, 0.1), (1.0, 0.9), True),
    ((1.0, 0.9), (1.0, 0.1), True),
    ((1.4, 0.6), (0.5, 1.5), False),  # they take what we leave
    ((0.5, 1.5), (1.4, 0.6), False),
    ((1.4, 0.1), (0.9, 1.1), True),  # more than we left
])  # fmt: skip
def test_what_others_take_when_we_leave_it(before, after, changed):
    first, second = ({"cpu_own": own, "cpu_foreign": foreign, "cpu_steal": None} for own, foreign in (before, after))
    assert bool(others_changed(first, second, 0.3)) == changed
