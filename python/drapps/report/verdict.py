"""What limits a run, and what to do about it: findings with figures."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import NamedTuple

from drapps.report.figures import spread
from drapps.report.run import Run
from drapps.report.text import count_text, percent, time_text
from drapps.sched import LIMITS

LITTLE = 0.05  # share of the time: shorter waiting of the consumer is ignored
BUSY = 0.85  # share of the CPUs in use from which they are the limit
SLOW = 4  # times the median from which a sample is slow
CROWDED = 0.2  # share of the CPUs used by other programs from which any sample may be interrupted for long

ADVICE = {
    "consumer": "Faster loading would gain nothing. The loader can use fewer CPUs: set cpu_limit, or raise the weight "
                "of host cost (weights=\"host=...\").",
    "cpu": "Make samples cheaper: keep what comes before the first random op (cache=\"auto\"), store images no larger "
           "than training needs, move Python functions to native ops; or give the loader more CPUs (cpu_limit).",
    "workers": "Let the policy choose the number of workers (leave out workers=), or raise it.",
    "blocked": "More workers help where what they wait for can serve several at a time: leave num_workers to the "
               "policy, or raise it. Code that waits for a lock is not helped by more workers. If it waits for reads: "
               "bring the data closer (local disk, page cache).",
    "storage": "Bring the data closer (local disk; the page cache, which tar shards fill faster than small files), or "
               "keep samples (cache=\"auto\"). More reads at a time help where storage is far rather than slow: leave "
               "readers to the policy.",
    "memory": "Raise memory_limit, or make batches smaller: a smaller batch_size, uint8 instead of float32 until the "
              "accelerator has them.",
    "prefetch": "Raise prefetch (or leave it to the policy) and memory_limit; in_order=False where the order of "
                "batches does not matter.",
    "quota": "Raise the quota (cpu.max), or make samples cheaper as for busy CPUs. More workers make it worse.",
    "others": "Move them or this run elsewhere, or give the workers a higher priority. More workers gain little.",
    "unknown": "Trace a longer run: the first decision needs some seconds.",
}  # fmt: skip


def advice_on(run, bound):
    """Return (what limits the run, what to do)."""
    what = LIMITS.get(bound, bound)
    if bound == "blocked" and (place := waits_in(run)):
        what = f"Python code waits in {place}"
    return what, ADVICE.get(bound, "")


def waits_in(run):
    """Return the function in which code of the workers waits most; "" if unknown."""
    places = [event.get("where") for event in run.events if event.get("event") == "waits"]
    return str(places[-1]) if places and places[-1] else ""


class Finding(NamedTuple):
    """A finding about a run."""

    name: str  # a bound of the scheduler, or another short word
    share: float | None  # share of the run's time
    evidence: str
    advice: str


class Limit(NamedTuple):
    """How long something limited a run."""

    seconds: float
    wait: float  # seconds that the consumer waited in this time


def spells(run, bound=None):
    """Return (begin, end) of the times in which a bound held, or (begin, end, bound) of all, with neighbours merged.

    A decision describes the time since the previous one; the last decision also the rest of the run.
    """
    joined, since = [], run.begin
    for i, decision in enumerate(run.decisions):
        until = max(since, run.end if i == len(run.decisions) - 1 else decision.time)
        if joined and joined[-1][2] == decision.bound:
            joined[-1] = (joined[-1][0], until, decision.bound)
        else:
            joined.append((since, until, decision.bound))
        since = until
    return joined if bound is None else [(a, b) for a, b, name in joined if name == bound]


def limits(run):
    """Return {bound: Limit}."""
    found = defaultdict(lambda: Limit(0.0, 0.0))
    for begin, end, bound in spells(run):
        wait = run.total_at("wait", end) - run.total_at("wait", begin)
        found[bound] = Limit(found[bound].seconds + end - begin, found[bound].wait + wait)
    return dict(found)


def headline(run):
    """Return (what limits the run, a sentence)."""
    share, bound = run.figures.wait_share, main_bound(run)
    if share is None:
        return "unknown", "The trace does not say how long the consumer waited."
    if bound == "consumer":
        return bound, f"Loading keeps up: the consumer waited {percent(share)} of the time."
    return bound, f"The consumer waited {percent(share)} of the time: {advice_on(run, bound)[0]}."


def main_bound(run):
    """Return what the consumer waited for most; "consumer" if it hardly waited."""
    if run.figures.wait_share is None:
        return "unknown"
    if run.figures.wait_share < LITTLE:
        return "consumer"
    known = {b: limit for b, limit in limits(run).items() if b not in ("consumer", "unknown")}
    if any(limit.wait > 0 for limit in known.values()):
        return max(known, key=lambda b: known[b].wait)
    return judge_by_sensors(run, run.figures)


def judge_by_sensors(run, figures):
    """Return the limit of a trace in which no decision names one."""
    level = {name: use.mean for name, use in figures.level.items() if use}
    if level.get("throttled", 0) > 0.1:
        return "quota"
    if _memory_is_full(run):
        return "memory"
    if level.get("cpu_total", 0) > BUSY:
        return "others" if level.get("cpu_foreign", 0) > level.get("cpu_own", 0) else "cpu"
    if figures.read_ms is not None and figures.work_ms is not None:
        return "storage" if figures.read_ms > figures.work_ms else "workers"
    return "unknown"


def diagnose(trace):
    """Return the findings about a trace (or Run), most important first."""
    run = trace if isinstance(trace, Run) else Run(trace, "")
    return [_limit_finding(run), *_other_limits(run), *_slow_samples(run), *_losses(run.figures)]


def _limit_finding(run):
    bound = main_bound(run)
    found = limits(run).get(bound)
    share = found.seconds / run.seconds if found and run.seconds else None
    evidence = [*_waiting(run, found, bound), *_evidence(run, bound)]
    if not found and bound not in ("consumer", "unknown"):
        evidence.append("judged by sensors, as no decision names a limit")
    return Finding(bound, share, "; ".join(evidence), _advice(run, bound))


def _waiting(run, found, bound):
    share = run.figures.wait_share
    if share is None:
        yield "how long the consumer waited is not known"
    elif found and bound != "consumer" and run.figures.wait_s:
        yield f"{percent(found.wait / run.figures.wait_s)} of the consumer's waiting was in this time"
    else:
        yield f"the consumer waited {percent(share)} of the time"


def _advice(run, bound):
    advice, figures = advice_on(run, bound)[1], run.figures
    if bound in ("consumer", "unknown") or not figures.samples_per_s or figures.wait_share > 0.99:
        return advice
    best = figures.samples_per_s / (1 - figures.wait_share)
    now = count_text(figures.samples_per_s)
    return f"{advice} Without waiting, the consumer would take {count_text(best)} samples/s, now {now}."


def _evidence(run, bound):
    """Return the evidence of the sensors while a bound held."""
    use = {name: _mean_during(run, bound, run.sensor(name)) for name in ("cpu_own", "cpu_foreign", "throttled")}
    busy, figures = _mean_during(run, bound, run.level("cpu_total")), run.figures
    if bound in ("cpu", "workers", "others", "quota", "consumer") and use["cpu_own"] is not None:
        yield f"{use['cpu_own']:.2f} CPUs used by this run"
    if bound in ("cpu", "others") and use["cpu_foreign"] is not None:
        yield f"{use['cpu_foreign']:.2f} by others"
    if bound in ("cpu", "workers", "others") and busy is not None:
        yield f"{percent(busy)} of all CPUs busy"
    if bound == "quota" and use["throttled"] is not None:
        yield f"held back {percent(use['throttled'])} of the time"
    if bound == "blocked" and figures.blocked_ms is not None:
        cpu, wait = (time_text((ms or 0) / 1000) for ms in (figures.cpu_ms_per_sample, figures.blocked_ms))
        yield f"over the run a sample takes {cpu} of CPU and its code waits {wait}"
    if bound in ("storage", "workers", "cpu") and figures.read_ms is not None and figures.work_ms is not None:
        yield _sample_time(run, figures)
    if bound == "memory" and _memory_is_full(run):
        yield "bytes in flight reach their limit"


def _sample_time(run, figures):
    read, work = time_text(figures.read_ms / 1000), time_text(figures.work_ms / 1000)
    if run.meta.get("kind") == "processes":
        return f"over the run a worker is at a sample for {work}, reads included"
    return f"over the run a sample takes {read} to read and {work} to make"


def _mean_during(run, bound, values):
    """Return the mean of a sensor while a bound held; over the whole run if no decision names the bound."""
    spans = list(spells(run, bound)) or [(run.begin, run.end)]
    clock, seen = run.snapshot_clock, []
    for begin, end in spans:
        seen += [v for v in values[bisect_left(clock, begin) : bisect_right(clock, end)] if v is not None]
    return sum(seen) / len(seen) if seen else None


def _other_limits(run):
    """Return the other bounds under which the consumer waited noticeably."""
    main = main_bound(run)
    for bound, found in sorted(limits(run).items(), key=lambda item: -item[1].wait):
        if bound in (main, "consumer", "unknown") or not run.seconds or found.wait < LITTLE * run.seconds:
            continue
        name, advice = advice_on(run, bound)
        evidence = f"for {time_text(found.seconds)} {name}; the consumer waited {time_text(found.wait)} of that"
        yield Finding(bound, found.seconds / run.seconds, evidence, advice)


def often_interrupted(run):
    """Return whether samples may have taken long for lack of a CPU, and the trace cannot tell."""
    others = run.figures.level.get("cpu_foreign")
    return not run.tells_cpu and (main_bound(run) in ("others", "quota") or bool(others and others.mean > CROWDED))


def _slow_samples(run):
    """Return a finding if few samples take much of the work: by CPU time if known, else only if workers are seldom
    interrupted."""
    times = run.busy_times
    facts = spread(times)
    if not facts or facts.n < 20 or facts.p50 <= 0 or often_interrupted(run):
        return
    slow = times[bisect_right(times, SLOW * facts.p50) :]
    share = sum(slow) / sum(times)
    if share > 0.2:
        evidence = (f"{percent(len(slow) / len(times))} of the samples take more than {SLOW} times the median of "
                    f"{time_text(facts.p50)}, and {percent(share)} of the work")  # fmt: skip
        advice = "They are listed by name below: are they larger than training needs?"
        yield Finding("slow samples", None, evidence, advice)


def _losses(figures):
    if figures.bad:
        yield Finding("bad samples", None, f"{count_text(figures.bad)} were left out or replaced",
                      "The events below name them.")  # fmt: skip
    if figures.deaths:
        yield Finding("dead workers", None, f"{count_text(figures.deaths)} workers died and were replaced",
                      "Look for the kernel's out-of-memory messages, and for crashes in C extensions.")  # fmt: skip


def _memory_is_full(run):
    """Return whether bytes in flight were at their limit for half of the time."""
    pairs = [(b, m) for b, m in zip(run.gauge("bytes"), run.gauge("bytes_limit")) if b is not None and m]
    return bool(pairs) and sum(b > 0.95 * m for b, m in pairs) > len(pairs) / 2
