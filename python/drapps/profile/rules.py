"""What limits a run, by a table of rules on its facts.

A rule returns None, or the evidence, a remedy, and the rate to expect from it.  That rate never exceeds the consumer's
own rate, measured with batches that were already there: the bound of all remedies together.
"""

import math
from typing import NamedTuple

from drapps.profile.facts import first

WORTH = 1.15  # smaller gains are indistinguishable from noise: the run is healthy
SPARE = 3.0  # a loader that is this many times faster than the consumer does not limit the run
SMALL_FILE = 64 << 10
SLOW_REQUEST = 5e-3  # slowest read of a sound disk
MERE_DELAY = 2e-4  # shorter waits for a read need no remedy
ALL_OPS = "decoding and augmenting"
EASIER = {"decode": 0.33, "read": 0.33, ALL_OPS: 0.33}  # the part of an op that a remedy can save; of other ops a half


class Finding(NamedTuple):
    """One cause that limits the run."""

    name: str
    share: float  # share of the consumer's time
    evidence: str
    advice: str
    gain: float  # rate after the remedy / rate now
    without: float  # the gain if the cause were removed completely, if that is more than the remedy does

    def as_dict(self):
        return self._asdict()


class Outcome(NamedTuple):
    """The result of a rule."""

    rate: float  # expected rate
    evidence: str
    advice: str
    without: float | None = None  # rate if the cause were removed completely; None: the expected rate


def diagnose(facts):
    """Return the findings, largest gain first; the first is the verdict.

    A healthy run, or one limited by the consumer, has that as its only finding.  No findings: too little was measured,
    or nothing explains why the consumer waits.
    """
    if not facts.rate:
        return []
    if facts.headroom < WORTH:
        return [_no_remedy(facts)]
    outcomes = [(name, rule(facts)) for name, rule in RULES.items()]
    found = [(outcome.rate, _finding(name, outcome, facts)) for name, outcome in outcomes if outcome]
    # Equal gains by the consumer's bound: the larger remedy first.
    found.sort(key=lambda pair: (-round(pair[1].gain, 1), -pair[0]))
    findings = [finding for _, finding in found if finding.gain > 1.0]
    worth = [finding for finding in findings if finding.gain >= WORTH]
    balanced = _keeps_up(facts) and facts.headroom < WORTH**2  # the product of two noisy measurements
    return worth or ([_balanced(facts)] if balanced else findings[:1])


def _finding(name, outcome, facts):
    gain, without = (
        min(rate, facts.consumer_rate) / facts.rate for rate in (outcome.rate, first(outcome.without, outcome.rate))
    )
    return Finding(name, max(0.0, 1 - 1 / gain) if gain > 0 else 0.0, outcome.evidence, outcome.advice, gain, without)


def _no_remedy(facts):
    """Return the finding of a run that is limited by the consumer, or in which both are about equally fast."""
    spare = first(facts.drain_rate, _capacity(facts, _any(facts.waiting))) / facts.rate
    waits = f"the consumer waits {facts.wait:.0%} of its time"
    if SPARE <= spare < float("inf"):
        evidence = f"{waits}; the loader could deliver {spare:.1f} times as many samples"
        advice = "a faster model step, larger batches or a faster accelerator; the loader needs fewer CPUs"
        return Finding("slow_consumer", 1 - facts.wait, evidence, advice, 1.0, spare)
    return Finding("healthy", 0.0, f"{waits}; {_bound(facts)}", "nothing to do", 1.0, 1.0)


def _balanced(facts):
    """Return the finding of a run in which loader and consumer are about equally fast and do not overlap completely."""
    alone = _with_consumer(facts, facts.drain_rate, 0.0) / facts.consumer_rate
    evidence = (f"the consumer waits {facts.wait:.0%} of its time, though the loader alone makes {alone:.2f} times "
                f"what it can take; {_bound(facts)}")  # fmt: skip
    advice = "nothing to do; longer epochs (each begins without a batch) or more prefetch may help a little"
    return Finding("healthy", 0.0, evidence, advice, 1.0, 1.0)


def _bound(facts):
    return f"if data were always there, it would be {facts.headroom:.2f} times as fast"


# --- gains of remedies ---


def _own_cpus(facts):
    """Return the CPUs that are available beside other programs: the idle ones, or the share that
    runnable threads got."""
    free = facts.cpus - _any(facts.cpu_foreign) - _any(facts.cpu_steal)
    return max(free, facts.cpus * (1 - _any(facts.delayed)))


def _capacity(facts, waiting=0.0, cpus=None):
    """Return the samples per second that the workers can make beside the consumer.  cpus: None: the available CPUs."""
    cost = facts.cost_cpu
    if not cost:
        return float("inf")
    if cpus is None:
        cpus = _own_cpus(facts) if facts.cpus else 1
    return min(cpus / (cost + _any(facts.free_cpu)), (facts.workers or 1) / (waiting + cost))


def _with_consumer(facts, measured, waiting):
    """Return the samples per second beside the consumer, which takes its share of the CPUs.

    From the rate of a run without the consumer (`measured`), else from the costs of a sample.
    """
    if not measured:
        return _capacity(facts, _any(waiting))
    return 1 / (1 / measured + _any(facts.free_cpu) / first(facts.cpus, 1))


def _keeps_up(facts):
    """Return whether the loader, measured without the consumer, is as fast as the consumer, within noise.

    Then the consumer does not wait for the loader's work.
    """
    return bool(facts.drain_rate) and facts.consumer_rate < WORTH * _with_consumer(facts, facts.drain_rate, 0.0)


def _pace(facts):
    """Return the share of the time that depends on the loader's work.

    All of it, or, if the loader keeps up, the waiting of the consumer, for example for the first batch of an epoch.
    """
    return 1 - 1 / facts.headroom if _keeps_up(facts) else 1.0


def _spared(facts):
    """Return the share of the time per sample that a run without the largest op saved; None without such a run.

    By CPU time if it is known: other programs affect it less than the rate.
    """
    if facts.drain_cpu and facts.lighter_cpu:
        return max(0.0, 1 - facts.lighter_cpu / facts.drain_cpu)
    return max(0.0, 1 - first(facts.drain_rate, facts.rate) / facts.lighter_rate) if facts.lighter_rate else None


def _reading(facts):
    """Return whether readers (else workers) mostly wait for bytes.  Readers do nothing else, so
    their threshold is higher."""
    enough = 0.8 if facts.readers else 0.5
    return facts.read_share is not None and facts.read_share >= enough and facts.waiting >= MERE_DELAY / 2


def _stays_slow(facts):
    """Return whether reading takes as long when the bytes were read just before: then no device limits it."""
    if facts.remote:
        return True
    again = facts.waiting_again
    return again is not None and again >= MERE_DELAY and again >= 0.4 * facts.waiting


def _from_device(facts):
    return not facts.device_bytes or not facts.bytes or facts.device_bytes >= 0.3 * facts.bytes


def _small(facts):
    return bool(facts.files) and facts.bytes is not None and facts.bytes < SMALL_FILE


def _ms(seconds):
    return f"{seconds * 1e3:.3g} ms"


def _kb(n_bytes):
    return f"{n_bytes / 1024:.3g} KB"


def _waits_for_reads(facts):
    size = f" for {_kb(facts.bytes)}" if facts.bytes else ""
    return f"workers wait {facts.read_share:.0%} of their time for bytes, {_ms(facts.waiting)} a sample{size}"


# --- storage ---


def slow_disk(facts):
    """Reads from a device are slow; reads from memory are fast."""
    if not _reading(facts) or _stays_slow(facts) or not _from_device(facts):
        return None
    if _small(facts) and facts.waiting < SLOW_REQUEST:
        return None
    evidence = _waits_for_reads(facts)
    if facts.bytes:
        evidence += f", {facts.rate * facts.bytes / 1e6:.3g} MB/s in all"
    if facts.disk_busy:
        evidence += f", a disk is busy {facts.disk_busy:.0%} of the time"
    if facts.waiting_again is not None:
        evidence += f"; {_ms(facts.waiting_again)} when they are in memory"
    advice = "a faster disk, data kept in memory (cache=, page cache), smaller files (resized beforehand)"
    return Outcome(_with_consumer(facts, facts.memory_rate, facts.waiting_again), evidence, advice)


def small_files(facts):
    """Each sample is a small file, and opening it costs more than reading its bytes."""
    if not _reading(facts) or not _small(facts) or _stays_slow(facts) or facts.waiting >= SLOW_REQUEST:
        return None
    evidence = f"{_waits_for_reads(facts)}: {facts.rate:.0f} files a second, each opened and read separately"
    advice = ("have them in memory before they are needed: tar shards can be read beforehand in large pieces; "
              "samples that are shuffled are read one by one from shards, too")  # fmt: skip
    return Outcome(_with_consumer(facts, facts.memory_rate, facts.waiting_again), evidence, advice)


def slow_source(facts):
    """Each read has a delay that depends neither on its size nor on caching: a network, a remote store."""
    if not _reading(facts) or not _stays_slow(facts) or facts.blocked_in:
        return None
    if facts.remote:
        total = f", {facts.rate * facts.bytes / 1e6:.3g} MB/s in all" if facts.bytes else ""
        evidence = f"{_waits_for_reads(facts)}{total}, over a network"
        advice = "a server that runs the first ops (drapps serve, offload=), a faster network, a local copy, cache="
        return Outcome(_capacity(facts), evidence, advice)
    evidence = f"{_waits_for_reads(facts)}, and {_ms(facts.waiting_again)} when they were read just before"
    advice = "more concurrent reads (workers, readers), a local copy of the data, cache="
    return Outcome(_capacity(facts), evidence, advice)


# --- Python code that waits ---


def waiting_code(facts):
    """Python code sleeps or waits for a lock or a network, even for samples whose bytes are in memory."""
    blocked, cost = _any(facts.blocked), _any(facts.cost_cpu)
    if not facts.blocked_in or blocked < MERE_DELAY or blocked < 0.3 * (blocked + cost):
        return None
    evidence = f"Python code waits {_ms(blocked)} a sample in {facts.blocked_in}"
    together = (facts.workers or 1) / (blocked + cost)
    if (facts.workers or 1) > 1 and facts.rate < 0.6 * together and _any(facts.delayed) < 0.3:
        evidence += (f"; {facts.workers} workers make {facts.rate:.0f} samples/s, of {together:.0f} if each waited by "
                     "itself: they wait for each other")  # fmt: skip
        return Outcome(
            together,
            evidence,
            "hold the lock for a shorter time, or share less between workers: more workers do not help",
        )
    rate = min(_capacity(facts), facts.consumer_rate)
    many = f" (about {math.ceil(rate * (blocked + cost))})" if rate < float("inf") else ""
    return Outcome(rate, evidence, f"more workers{many}, if what they wait for can serve several at a time")


# --- CPUs that are not there ---


def throttled_quota(facts):
    """The container's quota stops runnable threads, or is used up while they wait for other programs."""
    if not facts.cpus or not facts.host_cpus or facts.cpus >= facts.host_cpus:
        return None
    if _any(facts.throttled) < 0.1 and _any(facts.cpu_own) < 0.9 * facts.cpus:
        return None
    evidence = (f"the quota of {facts.cpus:.2g} CPUs stopped the process for {_any(facts.throttled):.0%} of the time; "
                f"it uses {_any(facts.cpu_own):.2g} of them")  # fmt: skip
    advice = f"a larger quota (the machine has {facts.host_cpus:.2g} CPUs); work done beforehand (cache=)"
    by_cost = _capacity(facts, facts.waiting_again or 0.0, facts.host_cpus)
    return Outcome(min(by_cost, facts.rate * facts.host_cpus / facts.cpus), evidence, advice)


def starved_cpu(facts):
    """Other programs use the CPUs."""
    taken = _any(facts.cpu_foreign) + _any(facts.cpu_steal)
    delayed = _any(first(facts.fewer_delayed, facts.delayed))  # many workers also delay each other
    if not facts.cpus or taken < 0.2 * facts.cpus or delayed < 0.15:
        return None
    evidence = (f"other programs use {taken:.2g} of {facts.cpus:.2g} CPUs; own threads that could run waited "
                f"{delayed:.0%} of that time for a CPU")  # fmt: skip
    advice = "end or move the other programs, or reserve CPUs for training"
    left = max(0.1 * facts.cpus, facts.cpus - taken)
    more = min(facts.cpus / left, 1 / max(0.1, 1 - delayed))  # others may only have used idle CPUs
    waiting = max(_any(facts.waiting), _any(facts.blocked))  # independent of the number of CPUs
    return Outcome(min(_capacity(facts, waiting, facts.cpus), facts.rate * more), evidence, advice)


def oversubscribed_workers(facts):
    """There are more workers than CPUs, so they delay each other and the consumer."""
    if not facts.fewer_rate or not facts.workers or not facts.cpus or _any(facts.delayed) < 0.3:
        return None
    evidence = (f"{facts.workers} workers on {facts.cpus:.2g} CPUs; own threads waited {facts.delayed:.0%} of their "
                f"runnable time for a CPU; workers={facts.fewer_workers} gave {facts.fewer_rate:.0f} samples/s, not "
                f"{facts.rate:.0f}")  # fmt: skip
    return Outcome(facts.fewer_rate, evidence, f"workers={facts.fewer_workers}, or leave it out: drapps decides")


# --- another loader ---


def torch_loader(facts):
    """drapps.DataLoader in place of torch's was measured to be faster."""
    if not facts.swapped_rate:
        return None
    how = "which makes the batches natively" if facts.swapped_native else "with the same Python code"
    evidence = (f"torch's DataLoader gives {facts.rate:.0f} samples/s; drapps.DataLoader in its place, {how}, gave "
                f"{facts.swapped_rate:.0f}, and the consumer waited {facts.swapped_wait:.0%} of its time")  # fmt: skip
    return Outcome(facts.swapped_rate, evidence, "import DataLoader from drapps instead of torch.utils.data")


# --- memory ---


def memory_limit(facts):
    """Too few batches fit into memory: loader and consumer alternate, and pauses of the consumer are not used."""
    wanted = max(2, facts.prefetch or 2)
    if facts.ahead is None or facts.ahead >= wanted:
        return None
    evidence = (f"the memory limit has room for {facts.ahead:.2g} of {wanted} batches in flight; workers are busy "
                f"{_any(facts.busy):.0%} of the time and the consumer waits {facts.wait:.0%}")  # fmt: skip
    rate = _with_consumer(facts, facts.unlimited_rate, facts.waiting)
    return Outcome(rate, evidence, "a higher memory_limit, or smaller batches")


# --- the work itself ---


def _working_hard(facts):
    """Return whether workers are busy all the time, without slack."""
    if _reading(facts):
        return False
    return first(facts.strained, 1.0) >= 0.5


def slow_samples(facts):
    """A few samples take most of the time."""
    if not facts.slow_samples or _any(facts.slow_load) < 0.4 or facts.slow_samples > 0.34 or not _working_hard(facts):
        return None
    example = f" (as {facts.slow_key})" if facts.slow_key else ""
    evidence = f"{facts.slow_samples:.0%} of the samples take {facts.slow_load:.0%} of the time{example}"
    advice = "make them smaller beforehand, or leave them out; in_order=False delivers others first"
    if facts.usual_rate:
        return Outcome(_with_consumer(facts, facts.usual_rate, 0.0), evidence, advice)
    usual = (1 - facts.slow_load) / (1 - facts.slow_samples)  # mean time of a sample if none were slow
    return Outcome(facts.rate * _saved(facts, 1 - usual), evidence, advice)


def slow_op(facts):
    """One op takes most of a worker's time; if ops were not timed, all of them together."""
    op, share = facts.largest_op if facts.ops else (ALL_OPS, _computing(facts) if facts.work else 0.0)
    if share < 0.3 or not _working_hard(facts):
        return None
    spared, saved = _spared(facts), EASIER.get(op, 0.5)
    gain = _saved if spared is None else _sped_up
    share = first(spared, share)  # ops are timed unfused, but the loader runs them fused
    evidence = f"{op} takes {share:.0%} of the time of a sample"
    if facts.cost_cpu:
        evidence += f", {_ms(share * facts.cost_cpu)}"
    if facts.workers and facts.cpus and facts.workers < facts.cpus:
        evidence += f"; only {facts.workers} of {facts.cpus:.2g} CPUs have a worker"
    without = gain(facts, share)
    advice = (f"a cheaper {op}, or its result kept (cache=); the gain is for {saved:.0%} of it saved, without it "
              f"{min(without, facts.headroom):.2f} times as many samples would come")  # fmt: skip
    return Outcome(facts.rate * gain(facts, saved * share), evidence, advice, facts.rate * without)


def _computing(facts):
    """Return the share of the time per sample in which Python code does not wait."""
    cost = _any(facts.cost_cpu)
    return cost / (cost + facts.blocked) if cost and facts.blocked else 1.0


def _saved(facts, part):
    """Return the gain if `part` of the work per sample is saved.

    Workers limit the rate while they have no slack, and while the consumer waits: for the first batch of an epoch, or
    for one slow sample, there is both slack and waiting.
    """
    working = max(first(facts.strained, 1.0), facts.wait) * (1.0 if facts.readers else 1 - _any(facts.read_share))
    return 1 / (1 - min(0.98, part * working * _pace(facts)))


def _sped_up(facts, part):
    """Return the gain if `part` of the loader's time per sample is saved, as measured by another run; the consumer's
    CPU time stays."""
    consumer = min(1.0, facts.rate * _any(facts.free_cpu) / first(facts.cpus, 1))
    return 1 / (1 - min(0.98, part * (1 - consumer) * _pace(facts)))


def _any(value):
    return value or 0.0


RULES = {
    rule.__name__: rule
    for rule in (torch_loader, throttled_quota, memory_limit, oversubscribed_workers, starved_cpu, waiting_code,
                 slow_source,
                 small_files, slow_disk, slow_samples, slow_op)
}  # fmt: skip
NAMES = (*RULES, "slow_consumer", "healthy")
