"""drapps.profile: each finding by the facts that stand for it, gains within what the consumer can take."""

import dataclasses
import time
from types import SimpleNamespace

import pytest

from drapps.profile import Facts, diagnose, facts_of_trace
from drapps.profile.rules import NAMES, RULES

# A loader with two workers on two CPUs, 1 ms of CPU for a sample, and a consumer that could take 8000 samples a second.
BASE = dict(
    seconds=4.0, batches=250, samples=8000, wait=0.75, step=0.004, workers=2, prefetch=2, cpus=2, host_cpus=2,
    bytes=100e3, device_bytes=0.0, read=1e-5, work=1e-3, ahead=1000, files=True, cpu_own=1.9, cpu_foreign=0.0,
    cpu_steal=0.0, delayed=0.02, throttled=0.0, free_rate=8000.0, free_cpu=0.0, drain_rate=2000.0, drain_cpu=1e-3,
    alone=1e-3, alone_cpu=1e-3, again=1e-3, again_cpu=1e-3, slow_samples=0.0, slow_load=0.0,
    ops={"decode": 0.5, "resize": 0.3, "store": 0.2},
)  # fmt: skip

CHANGES = {
    "slow_op": dict(ops={"decode": 0.2, "gaussian_blur": 0.8}),
    "slow_samples": dict(slow_samples=0.05, slow_load=0.6, slow_key="huge.jpg"),
    "slow_disk": dict(samples=100, wait=0.99, read=0.08, device_bytes=100e3, alone=0.03, alone_cpu=1e-3),
    "small_files": dict(samples=8000, work=1e-4, drain_cpu=1e-4, read=9e-4, bytes=3000, device_bytes=4096,
                        alone=3e-4, alone_cpu=1e-4, again=1e-4, again_cpu=1e-4),
    "waiting_code": dict(samples=1600, read=None, work=None, drain_rate=None, drain_cpu=None, alone=5e-3, again=5e-3,
                         blocked=4e-3, blocked_in="Slow.__call__ (train.py:12)"),
    "slow_source": dict(samples=700, wait=0.98, read=0.01, alone=0.011, again=0.011, alone_cpu=1e-3, again_cpu=1e-3),
    "starved_cpu": dict(samples=4000, cpu_foreign=1.0, delayed=0.5, work=2e-3),
    "throttled_quota": dict(samples=2000, cpus=0.5, throttled=0.6, work=4e-3, delayed=0.7),
    "oversubscribed_workers": dict(workers=32, delayed=0.8, fewer_rate=3000.0, fewer_workers=1, fewer_delayed=0.05),
    "torch_loader": dict(samples=4000, read=None, work=None, drain_rate=None, drain_cpu=None, swapped_rate=3000.0,
                         swapped_wait=0.2, swapped_native=True),
    "memory_limit": dict(samples=4500, ahead=1, unlimited_rate=2000.0),
    "slow_consumer": dict(samples=8000, wait=0.01, free_rate=2020.0, drain_rate=20000.0),
    "healthy": dict(samples=8000, wait=0.02, free_rate=2050.0, drain_rate=3000.0),
}  # fmt: skip


def facts(**changes):
    return Facts(**{**BASE, **changes})


@pytest.mark.parametrize("name", NAMES)
def test_each_finding(name):
    found = diagnose(facts(**CHANGES[name]))
    assert found[0].name == name
    assert found[0].evidence and found[0].advice


@pytest.mark.parametrize("name", RULES)
def test_a_gain_is_within_what_the_consumer_can_take(name):
    run = facts(**CHANGES[name])
    for finding in diagnose(run):
        assert 1 <= finding.gain <= run.headroom * 1.000001
        assert finding.share == pytest.approx(1 - 1 / finding.gain)
        assert finding.gain <= finding.without <= run.headroom * 1.000001


def test_code_that_waits_is_named():
    found = diagnose(facts(**CHANGES["waiting_code"]))[0]
    assert "Python code waits 4 ms a sample in Slow.__call__ (train.py:12)" in found.evidence
    assert found.advice.startswith("more workers")


def test_workers_that_wait_for_each_other_are_not_told_to_be_more():
    found = diagnose(facts(**{**CHANGES["waiting_code"], "samples": 800}))[0]
    assert found.name == "waiting_code" and "wait for each other" in found.evidence and "do not help" in found.advice


@pytest.mark.parametrize("free_rate", [500.0, 50000.0])
def test_no_gain_beyond_the_waiting_that_was_measured(free_rate):
    """Whatever the phase with batches that were there says: the load may have changed."""
    run = facts(wait=0.2, free_rate=free_rate)
    assert run.rate <= run.consumer_rate <= 1.1 * run.rate / 0.8 + 1e-6


@pytest.mark.parametrize("name", RULES)
def test_a_consumer_that_does_not_wait_has_nothing_to_gain(name):
    run = facts(**CHANGES[name])
    run.free_rate, run.fewer_rate, run.swapped_rate, run.drain_rate = run.rate * 1.05, None, None, run.rate * 1.5
    assert [finding.name for finding in diagnose(run)] == ["healthy"]


def test_a_quota_that_is_used_up():
    used = facts(samples=2000, cpus=0.5, throttled=0.01, cpu_own=0.48, work=4e-3)
    assert diagnose(used)[0].name == "throttled_quota"
    no_quota = facts(throttled=0.5)
    assert "throttled_quota" not in [finding.name for finding in diagnose(no_quota)]


def test_the_largest_gain_is_first():
    found = diagnose(facts(samples=4000, cpu_foreign=1.0, delayed=0.5, ops={"gaussian_blur": 0.6}))
    assert {finding.name for finding in found} == {"starved_cpu", "slow_op"}
    assert found[0].gain >= found[1].gain


@pytest.mark.parametrize("lost", [name for name in BASE if name not in ("seconds", "batches", "samples")])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_known_is_not_needed(name, lost):
    standard = getattr(Facts(), lost)
    assert {finding.name for finding in diagnose(facts(**{**CHANGES[name], lost: standard}))} <= set(NAMES)


# --- other runs of the loader: 2000 samples a second as it is (drain_rate), as in the run ---


def verdict(name, **changes):
    return diagnose(facts(**{**CHANGES[name], **changes}))[0]


def test_the_loader_without_an_op_says_what_the_op_takes():
    by_share = verdict("slow_op")
    measured = verdict("slow_op", lighter_rate=6000.0)
    assert by_share.without == pytest.approx(4.0) and "takes 80%" in by_share.evidence  # the consumer's bound
    assert measured.without == pytest.approx(3.0) and "takes 67%" in measured.evidence
    assert measured.gain == pytest.approx(1.5)
    by_cpu = verdict("slow_op", lighter_rate=9000.0, lighter_cpu=0.4e-3)  # others gave way in that run
    assert by_cpu.without == pytest.approx(2.5)
    computing = verdict("slow_op", lighter_rate=6000.0, free_cpu=0.5e-3)  # half of two CPUs
    assert computing.without == pytest.approx(1 / (1 - 2 / 3 * 0.5))


def test_the_loader_without_slow_samples_says_what_they_take():
    assert verdict("slow_samples").gain == pytest.approx(2.375, rel=0.02)
    assert verdict("slow_samples", usual_rate=7000.0).gain == pytest.approx(3.5)


def test_a_function_that_is_gone_leaves_a_native_chain():
    chain = dict(drain_rate=None, drain_cpu=None, work=None, read=None, ops={"map(slow)": 0.5, "decode": 0.5})
    assert diagnose(facts(**chain))[0].without < diagnose(facts(**chain, lighter_rate=7800.0))[0].without
    assert diagnose(facts(**chain, lighter_rate=7800.0))[0].without == pytest.approx(3.9)


def test_workers_of_a_chain_that_wait_for_a_cpu_are_busy():
    chain = dict(samples=1600, drain_cpu=None, work=None, read=None, ops={"map(slow)": 0.9, "decode": 0.1})
    assert facts(**chain, delayed=0.0).busy == pytest.approx(0.2)
    assert facts(**chain, delayed=0.8).busy == pytest.approx(1.0)
    assert "slow_op" in [finding.name for finding in diagnose(facts(**chain, delayed=0.8))]


def test_an_op_whose_absence_saves_nothing_is_no_finding():
    found = diagnose(facts(ops={"decode": 0.2, "gaussian_blur": 0.8}, lighter_rate=1990.0))
    assert "slow_op" not in [finding.name for finding in found]


def test_samples_from_memory_say_what_a_disk_costs():
    measured = verdict("slow_disk", memory_rate=1500.0)
    assert measured.gain == pytest.approx(1500 / 25)
    beside = verdict("slow_disk", memory_rate=1500.0, free_cpu=1e-3)  # of two CPUs
    assert beside.gain == pytest.approx(1 / (1 / 1500 + 0.5e-3) / 25)


def test_other_programs_keep_their_cpus_whatever_is_done_about_reads():
    quiet = verdict("slow_source", cpu_foreign=0.0, delayed=0.5)  # by own threads: nobody else is there
    assert quiet.gain == pytest.approx(2000 / 175)
    assert verdict("slow_source", cpu_foreign=1.9, delayed=0.5).gain == pytest.approx(1000 / 175)
    assert verdict("slow_source", cpu_foreign=0.5, delayed=0.5).gain == pytest.approx(1500 / 175)


def test_a_consumer_without_a_step_gets_what_the_loader_makes():
    assert verdict("slow_consumer").without == pytest.approx(10.0)
    assert verdict("healthy").without == 1.0


def test_while_the_consumer_waits_workers_set_the_pace():
    """Idle for want of order or of an epoch's first batch: a cheaper op shortens that, too."""
    idle = dict(samples=6400, work=1e-3, drain_cpu=1e-3, free_rate=9000.0)  # workers are busy for 80 % of the time
    assert verdict("slow_op", wait=0.7, **idle).without == pytest.approx(1 / (1 - 0.8 * 0.8), rel=0.02)
    assert verdict("slow_op", wait=0.9, **idle).without == pytest.approx(1 / (1 - 0.8 * 0.9), rel=0.03)


# Loader and consumer are about as fast: 1500 samples a second, of 1800 that the consumer could take.
BALANCED = dict(samples=6000, wait=0.14, free_rate=1800.0, drain_cpu=1e-3, ops={"decode": 0.7, "resize": 0.3})


def test_a_loader_that_keeps_up_with_the_consumer_is_healthy():
    (found,) = diagnose(facts(**BALANCED, drain_rate=1900.0))
    assert found.name == "healthy" and found.gain == 1.0
    assert "waits 14%" in found.evidence and "1.06 times" in found.evidence and "1.20 times as fast" in found.evidence
    assert diagnose(facts(**BALANCED, drain_rate=1600.0))[0].name == "healthy"  # by less than what noise is


def test_a_loader_that_does_not_keep_up_is_held_back_by_its_work():
    assert diagnose(facts(**BALANCED, drain_rate=1500.0))[0].name == "slow_op"
    beside = facts(**BALANCED, drain_rate=1900.0, free_cpu=0.5e-3)  # the consumer takes a quarter of the two CPUs
    assert diagnose(beside)[0].name == "slow_op"


def test_a_loader_that_keeps_up_and_is_waited_for_much_is_not_healthy():
    """Epochs of a single batch: a cheaper op shortens what is waited, and nothing else."""
    found = diagnose(facts(**{**BALANCED, "samples": 3000, "wait": 0.6}, drain_rate=1900.0, work=2e-3))
    assert found[0].name == "slow_op" and 1.0 < found[0].gain < 1.25
    assert found[0].without == pytest.approx(1 / (1 - 0.7 * 0.75 * (1 - 750 / 1800)), rel=0.1)


def test_other_causes_are_found_beside_a_loader_that_keeps_up():
    pausing = facts(**BALANCED, drain_rate=1900.0, ahead=1, unlimited_rate=2500.0)
    assert diagnose(pausing)[0].name == "memory_limit"


def test_nothing_measured():
    assert diagnose(Facts()) == []


def test_only_a_run_was_seen():
    run = Facts(seconds=2, batches=10, samples=100, wait=0.9, step=0.02)
    assert run.consumer_rate == 500 and diagnose(run) == []


def test_reads_by_readers_that_keep_up_are_no_bottleneck():
    hidden = facts(read=5e-3, readers=20, again=6e-3, ops={"gaussian_blur": 0.8})
    assert diagnose(hidden)[0].name == "slow_op"
    too_few = facts(samples=1600, read=5e-3, readers=2, again=6e-3)
    assert diagnose(too_few)[0].name == "slow_source"


def test_reads_over_a_network_are_a_slow_source_whatever_takes_them_longer():
    """With many requests at once each takes longer than alone, though the link is the same."""
    busy = facts(samples=1600, read=0.3, readers=64, alone=0.05, again=0.05, remote=True)
    found = diagnose(busy)[0]
    assert found.name == "slow_source" and "40 MB/s in all, over a network" in found.evidence
    assert "drapps serve" in found.advice
    assert not any(one.name == "slow_source" for one in diagnose(dataclasses.replace(busy, remote=False)))


def trace(spans, **sums):
    begun = dict.fromkeys(sums, 0.0)
    flow = [SimpleNamespace(time=t, values=values) for t, values in ((0.0, begun), (4.0, sums))]
    meta = {"machine": {"cpus": 2.0}, "settings": {"workers": 1, "prefetch": 2}, "format": "folder"}
    return SimpleNamespace(meta=meta, flow=flow, snapshots=[{"cpu_own": 1.0}, {"cpu_own": 2.0}, {}], spans=spans,
                           knobs=[(1.0, {"workers": 2.0})])  # fmt: skip


def test_facts_of_a_trace():
    spans = [
        SimpleNamespace(kind="work", begin=1.0, end=1.0 + i / 100, slow=i > 18, key=f"{i}.jpg", cpu=0.0)
        for i in range(20)
    ]
    found = facts_of_trace(trace(spans, samples=1000.0, batches=10.0, wait=3.0, step=1.0, worked=1000.0, read=0.1,
                                 work=6.0, cpu=6.0, bytes_read=1e6, slow=50.0, slow_work=5.0))  # fmt: skip
    assert (found.rate, found.wait, found.consumer_rate, found.workers, found.prefetch) == (250, 0.75, 1000, 2, 2)
    assert (found.bytes, found.work, found.cpu_own, found.cpus, found.files) == (1000, 0.006, 1.5, 2, True)
    assert diagnose(found)[0].name == "slow_samples" and "19.jpg" in diagnose(found)[0].evidence


def test_a_trace_of_python_code_that_waits():
    """4 ms asleep and 1 ms of CPU in each of 2 workers, beside a program that takes most of both CPUs; two passes."""
    passes = [{"samples": 0.0}, {"samples": 500.0}, {"samples": 0.0}, {"samples": 500.0}]
    costs = {"batches": 0.1, "wait": 0.0042, "step": 0.00001, "worked": 1.0, "work": 0.0068, "cpu": 0.001,
             "delay": 0.0018}
    for values in passes:
        values.update({name: cost * values["samples"] for name, cost in costs.items()})
    run = trace([], samples=0.0)
    run.flow = [SimpleNamespace(time=float(t), values=values) for t, values in enumerate(passes)]
    run.snapshots = [{"cpu_own": 0.3, "cpu_foreign": 1.7}]
    run.meta["kind"], run.events = "processes", [{"event": "waits", "where": "Slow.forward (train.py:3)"}]
    found = facts_of_trace(run)
    assert found.samples == 1000 and found.blocked == pytest.approx(0.004) and found.delayed == pytest.approx(1.8 / 2.8)
    remedies = {finding.name: finding for finding in diagnose(found)}
    assert next(iter(remedies)) == "waiting_code" and "Slow.forward" in remedies["waiting_code"].evidence
    assert "more workers (about 4)" in remedies["waiting_code"].advice  # of 5 ms a sample, for what the CPUs can make
    most = 2 / 0.005  # of two workers that have a CPU each: they still sleep
    assert found.rate < remedies["starved_cpu"].gain * found.rate <= 1.001 * most
    assert "slow_op" not in remedies


def test_a_trace_without_flow():
    assert diagnose(facts_of_trace(SimpleNamespace(flow=[]))) == []


def test_a_trace_that_a_loader_wrote(tmp_path, pipe):
    import drapps.trace

    with pipe.loader(batch_size=4, workers=2, trace=tmp_path / "run.drtrace", output="raw") as loader:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for _ in loader:
                time.sleep(0.002)
    found = facts_of_trace(drapps.trace.read(tmp_path / "run.drtrace"))
    assert found.workers == 2 and found.files and found.samples > 0 and found.step >= 0.002 and found.work > 0
    assert {finding.name for finding in diagnose(found)} <= set(NAMES)
