"""The report: figures of traces whose figures are known, words, and that no trace breaks the page or gets into it."""

import json
import math
import re

import numpy
import pytest
import tracesets
from tracesets import Flow, Reading, decision, span, trace

import drapps
from drapps import cli
from drapps.report import write_report
from drapps.report.charts import distribution, pareto_front, round_steps
from drapps.report.decisions import MOST_ROWS, shown
from drapps.report.energy import WORLD_GRID, energy
from drapps.report.events import listed
from drapps.report.figures import integral, quantile, spread, use
from drapps.report.markup import BOUNDS
from drapps.report.page import make_page
from drapps.report.panels import knob_lines, knobs_at_rest, timeline
from drapps.report.run import Run
from drapps.report.text import escape
from drapps.report.downsample import POINTS, downsample, short
from drapps.report.verdict import diagnose, headline, limits, spells
from drapps.sched import LIMITS

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def page_of(*traces, grid=WORLD_GRID):
    return make_page([Run(t, f"run{i}.drtrace") for i, t in enumerate(traces)], grid)


def test_a_run_has_the_costs_of_its_ops(pipe, tmp_path):
    with pipe.loader(batch_size=4, workers=1, output="numpy", trace=tmp_path / "run.drtrace") as loader:
        list(loader)
    page = page_of(drapps.trace.read(tmp_path / "run.drtrace"))
    ops = page[page.index("Ops, each by itself") :]
    assert "decode" in ops[: ops.index("</table>")]
    assert "profile" not in str(listed(Run(drapps.trace.read(tmp_path / "run.drtrace"), "run")))


# --- figures ---


def test_quantiles_are_numpys():
    rng = numpy.random.default_rng(4)
    for n in (1, 2, 3, 10, 101):
        values = sorted(rng.exponential(size=n).tolist())
        for q in (0, 0.5, 0.95, 0.99, 1):
            assert quantile(values, q) == pytest.approx(numpy.quantile(values, q))


def test_spread():
    facts = spread([float(i) for i in range(101)])
    assert facts == (101, 50, 50, 95, 99, 100)
    assert spread([]) is None


def test_integral_is_by_time():
    assert integral([0, 1, 3], [2, 2, 4]) == (2 + 6, 3)
    assert integral([0, 1, 2], [1, None, 1]) == (2, 2)  # a missing value is bridged
    assert integral([0, 5], [1, 1], longest=2) == (2, 2)
    assert use([0, 1, 1.5], [1.0, 1.0, 3.0]).mean == pytest.approx(2 / 1.5)


def test_figures_of_a_steady_run():
    figures = Run(tracesets.steady(seconds=10, rate=100, wait=0.25), "").figures
    assert figures.seconds == pytest.approx(10)
    assert figures.samples_per_s == pytest.approx(100) and figures.batches == pytest.approx(100)
    assert figures.wait_share == pytest.approx(0.25) and figures.accelerator == pytest.approx(0.75)
    assert figures.cpu_ms_per_sample == pytest.approx(9)
    assert (figures.read_ms, figures.work_ms) == (pytest.approx(2), pytest.approx(8))
    assert figures.use["cpu_own"].mean == pytest.approx(0.9) and figures.use["mem_used"].peak == 3e9


def test_throughput_in_bytes():
    """100 samples a second in batches of 10, which have 2 MB; 0.5 MB of files are read for each of these."""
    run = Run(tracesets.steady(rate=100), "")
    assert (run.figures.read_per_s, run.figures.made_per_s) == (None, None)
    for flow in run.flows:
        flow.values.update(batch_bytes=2e6, batch_samples=10.0, bytes_read=5e4 * flow.values["samples"])
    del run.figures
    assert run.figures.made_per_s == pytest.approx(20e6) and run.figures.read_per_s == pytest.approx(5e6)
    page = page_of(run.trace)
    assert "20.0 MB/s of batches" in page and "5.0 MB/s of encoded data were read" in page


def test_efficiency_and_balance():
    """Components: CPU 0.5, memory 0.3, storage 0.1, and the consumer's step, 0.75, for lack of a GPU."""
    figures = Run(tracesets.steady(wait=0.25), "").figures
    parts = [0.5, 0.3, 0.1, 0.75]
    assert sorted(figures.components.values()) == pytest.approx(sorted(parts))
    assert figures.efficiency == pytest.approx(numpy.mean(parts)) and figures.imbalance == pytest.approx(
        numpy.std(parts)
    )


def test_batch_latency_is_by_spans():
    spans = [span("batch", 10.0, 10.0 + i / 100) for i in range(1, 101)]
    figures = Run(trace(spans=spans), "").figures
    assert figures.latency.p50 == pytest.approx(0.505) and figures.latency.max == pytest.approx(1.0)
    flow = [Flow(0.0, {"latency": 0.0, "batches": 0}), Flow(1.0, {"latency": 3.0, "batches": 6})]
    assert Run(trace(flow=flow), "").figures.latency_mean == 0.5


def test_energy():
    """36 W for 1000 s are 10 Wh."""
    used = energy(Run(tracesets.steady(seconds=1000, interval=1.0), ""), grid=500)
    assert used.kwh == pytest.approx(0.01) and used.gco2 == pytest.approx(5) and used.watts == pytest.approx(36)
    assert used.modelled and not used.gpu
    gpu = [Reading(t, {"power": 10.0, "gpu_power": 90.0}) for t in (0.0, 5.0, 10.0)]
    used = energy(Run(trace(snapshots=gpu), ""))
    assert used.kwh == pytest.approx(1000 / 3.6e6) and used.gpu and not used.modelled and used.grid == WORLD_GRID
    assert energy(Run(trace(), "")) is None


def test_energy_does_not_count_a_gap():
    readings = [Reading(t, {"power": 100.0}) for t in (0.0, 1.0, 10_000.0)]
    assert energy(Run(trace(snapshots=readings), "")).kwh == pytest.approx(100 * 11 / 3.6e6)


def test_rates_and_restarts():
    """A sum that falls was begun anew, and what it is then was added since."""
    flow = [Flow(float(t), {"samples": v}) for t, v in enumerate((0, 10, 20, 5, 15))]
    run = Run(trace(flow=flow), "")
    assert run.total("samples") == [0, 10, 20, 25, 35] and run.grown("samples") == 35
    assert run.rate("samples") == [None, 10, 10, 5, 10]
    assert run.total_at("samples", 1.5) == 15 and run.total_at("samples", 99) == 35 and run.total_at("samples", -1) == 0


# --- thinning ---


def test_thin_keeps_spikes():
    n = 60_000
    clock = [i / 10 for i in range(n)]
    up, down = [1.0] * n, [1.0] * n
    up[31_234], down[777] = 50.0, -3.0
    times, columns = downsample(clock, {"up": up, "down": down})
    assert len(times) <= POINTS and times == sorted(times)
    assert max(columns["up"]) == 50 and min(columns["down"]) == -3
    at = times[columns["up"].index(50.0)]
    assert abs(at - 3123.4) < 6000 / POINTS * 2
    assert len(downsample(clock[:POINTS], {"up": up[:POINTS]})[0]) == POINTS


def test_thin_keeps_sums_that_were():
    n = 10_000
    own = [i % 7 / 7 for i in range(n)]
    columns = {"own": own, "foreign": [1 - v for v in own]}
    _, thinned = downsample(list(range(n)), columns, stacked=("own", "foreign"))
    assert {round(a + b, 9) for a, b in zip(thinned["own"], thinned["foreign"])} == {1.0}


def test_thin_bears_what_is_missing():
    times, columns = downsample([float(i) for i in range(5000)], {"a": [None] * 5000, "b": [None, 1.0] * 2500})
    assert set(columns["a"]) == {None} and set(columns["b"]) == {1.0} and len(times) == len(columns["b"])


def test_short_numbers():
    assert json.dumps([short(v) for v in (1.0, 0.123456, 1234567.0, None, 0.0)]) == "[1, 0.1235, 1235000, null, 0]"


# --- words ---


def with_decisions(made, *bounds):
    """One decision for each equal part of a run."""
    first, last = made.flow[0].time, made.flow[-1].time
    step = (last - first) / len(bounds)
    made.decisions = [decision(i + 1, first + (i + 1) * step, b) for i, b in enumerate(bounds)]
    return made


def test_limits_are_by_time():
    run = Run(with_decisions(tracesets.steady(wait=0.4), "cpu", "cpu", "storage", "consumer"), "")
    found = limits(run)
    assert found["cpu"].seconds == pytest.approx(5) and found["cpu"].wait == pytest.approx(2)
    assert found["storage"].seconds == pytest.approx(2.5) and len(spells(run)) == 3


@pytest.mark.parametrize(
    "bound, words",
    [
        ("cpu", "CPUs"),
        ("storage", "reads"),
        ("memory", "memory limit"),
        ("quota", "quota"),
        ("others", "other programs"),
        ("workers", "workers"),
        ("prefetch", "ahead"),
    ],
)
def test_headline_names_the_bound(bound, words):
    made = with_decisions(tracesets.steady(wait=0.4), "consumer", bound, bound)
    found, sentence = headline(Run(made, ""))
    assert found == bound and words in sentence and "40\u00a0%" in sentence
    first = diagnose(made)[0]
    assert first.name == bound and first.share == pytest.approx(2 / 3) and "167 samples/s" in first.advice


def test_waits_of_python_code_name_the_function():
    made = changed(with_decisions(tracesets.steady(wait=0.4), "blocked"), delay=0.0)
    made.meta["kind"] = "processes"
    made.events.append({"t": made.flow[0].time, "event": "waits", "where": "Slow.__call__ (train.py:12)"})
    assert headline(Run(made, ""))[1].endswith(": Python code waits in Slow.__call__ (train.py:12).")
    first = diagnose(made)[0]
    assert first.name == "blocked" and "read" not in first.evidence and "More workers help" in first.advice
    assert "its code waits" in first.evidence


def test_headline_of_a_healthy_run():
    found, sentence = headline(Run(with_decisions(tracesets.steady(wait=0.01), "cpu", "consumer"), ""))
    assert found == "consumer" and "keeps up" in sentence


def changed(made, levels=None, **flow):
    for reading in made.snapshots:
        reading.levels.update(levels or {})
    made.flow = [Flow(f.time, {**f.values, **flow}) for f in made.flow]
    return made


@pytest.mark.parametrize(
    "want, made",
    [
        ("quota", changed(tracesets.steady(), {"throttled": 0.5})),
        ("memory", changed(tracesets.steady(), bytes=999e6)),
        ("cpu", changed(tracesets.steady(), {"cpu_total": 0.97, "cpu_own": 0.9})),
        ("others", changed(tracesets.steady(), {"cpu_total": 0.97, "cpu_own": 0.2, "cpu_foreign": 0.77})),
        ("workers", tracesets.steady()),
        ("consumer", tracesets.steady(wait=0.0)),
        ("unknown", trace()),
    ],
)
def test_verdict_without_decisions(want, made):
    for reading in made.snapshots:  # the level is what is looked at, the sensor what is said
        reading.setdefault("throttled", reading.levels.get("throttled", 0.0))
    assert headline(Run(made, ""))[0] == want and diagnose(made)[0].name == want


def test_slow_samples_and_losses_are_found():
    made = changed(tracesets.steady())
    made.spans = [span("work", 0.0, 0.001)] * 95 + [span("work", 0.0, 0.02)] * 5
    last = made.flow[-1]
    made.flow[-1] = Flow(last.time, {**last.values, "bad": 3})
    made.flow[0].values["bad"] = 0
    found = {f.name: f for f in diagnose(made)}
    assert "5.0\u00a0%" in found["slow samples"].evidence and "3 were" in found["bad samples"].evidence


def interrupted(cpu, foreign=0.0):
    """A run whose samples are alike, but for some that took long; cpu: their CPU time, 0 where that is not known."""
    made = changed(tracesets.steady(), {"cpu_foreign": foreign})
    usual = [span("work", 0.0, 0.001, f"usual{i}.jpg", cpu=cpu and 0.001) for i in range(95)]
    made.spans = usual + [span("work", 0.0, 0.145, "clog.jpg", cpu=cpu) for _ in range(5)]
    return made


@pytest.mark.parametrize(
    "cpu, foreign, found",
    [(0.001, 0.5, False), (0.14, 0.5, True), (0.0, 0.0, True), (0.0, 0.5, False)],
)
def test_samples_are_slow_by_cpu_time(cpu, foreign, found):
    """Of a thread that lost its CPU, the sample is not at fault."""
    made = interrupted(cpu, foreign)
    assert ("slow samples" in [f.name for f in diagnose(made)]) == found
    page = page_of(made)
    assert ("Other programs used" in page) == (not cpu and foreign > 0) and ("By CPU time" in page) == bool(cpu)


def test_the_slowest_samples_are_by_cpu_time():
    made = interrupted(0.001)
    made.spans.append(span("work", 0.0, 0.02, "huge.jpg", cpu=0.02))
    page = page_of(made)
    slowest = page[page.index("Slowest samples") :]
    assert slowest.index("huge.jpg") < slowest.index("usual0.jpg") and "clog.jpg" not in slowest


# --- the page ---


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" class="data">(.*?)</script>', page, re.DOTALL).group(1)
    )


def test_page_of_ten_minutes_is_small():
    page = page_of(tracesets.busy(600))
    assert len(page.encode()) < 1_000_000
    data = data_of(page)
    names = [panel["name"] for panel in data["panels"]]
    assert {"wait", "rate", "cpu", "batches", "queues", "io", "pressure", "memory", "power", "reward"} <= set(names)
    for panel in data["panels"]:
        assert {len(line["v"]) for line in panel["lines"]} == {len(data["clocks"][panel["source"]])}
        assert len(data["clocks"][panel["source"]]) <= POINTS
    latency = next(p for p in data["panels"] if p["name"] == "latency")["lines"][0]["v"]
    assert max(v for v in latency if v is not None) > 4  # the one spike
    assert len(data["cpus"]) == 4 and data["knobs"]["workers"][0] == [0.0, 1]


def test_page_needs_no_network():
    page = page_of(tracesets.busy(30))
    assert not re.search(r"(?:src|href|action)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy and "unsafe" not in policy and policy.count("sha256-") == 2
    assert not re.search(r"\sstyle\s*=", page)  # the policy would refuse it


def hostile():
    made = tracesets.busy(5)
    made.meta = {
        "host": HOSTILE,
        HOSTILE: HOSTILE,
        "settings": {HOSTILE: [HOSTILE]},
        "ops": [{"op": HOSTILE, "us": 5.0}],
        "data": HOSTILE,
        "samples": HOSTILE,
        "machine": {"host": HOSTILE, "cpus": HOSTILE},
    }
    made.spans += [span("work", made.flow[0].time, made.flow[0].time + 9, HOSTILE, 7)]
    made.decisions += [decision(99, made.flow[-1].time, HOSTILE, {HOSTILE: (1, 2)}, HOSTILE)]
    made.knobs = [(made.flow[0].time, {HOSTILE: 3})]
    made.events += [{"t": made.flow[0].time, "event": HOSTILE, HOSTILE: HOSTILE}]
    return made


def test_page_escapes_everything():
    page = make_page([Run(hostile(), HOSTILE), Run(hostile(), HOSTILE)], 100)
    assert (
        page.count("<script>") == 1
        and page.count('<script type="application/json"') == 2
        and page.count("</script>") == 3
    )
    assert "<img" not in page and "&lt;img src=x" in page
    assert all(re.fullmatch(r"[a-z0-9 -]*", css) for css in re.findall(r'class="([^"]*)"', page))
    assert data_of(page)["knobs"][HOSTILE][0] == [0.0, 1]


def one_of_each():
    return trace(
        {"host": "h"},
        [Reading(5.0, {"cpu_total": 1.0}, {"cpu_total": 0.5}, (0.5,))],
        [Flow(5.0, {"samples": 1.0})],
        [decision(1, 5.0)],
        [span("work", 5.0, 5.1, "a.jpg"), span("batch", 5.0, 5.0)],
        [{"t": 5.0, "event": "start"}],
    )


def clock_jumps():
    made = tracesets.busy(20)
    made.flow = [Flow(f.time + (5000 if i > 100 else 0), f.values) for i, f in enumerate(made.flow)]
    for i, reading in enumerate(made.snapshots):
        reading.time += 5000 if i > 100 else 0
    made.snapshots[50].time -= 3
    made.snapshots[60].time = math.nan
    made.flow[3].values["samples"] = math.inf
    return made


ODD = {
    "empty": trace,
    "one of each": one_of_each,
    "clock jumps": clock_jumps,
    "spans alone": lambda: trace(spans=[span("work", 1.0, 2.0, "a"), span("wait", 1.0, 1.0)]),
    "snapshots without a sensor": lambda: trace(snapshots=[Reading(t, {}) for t in (0.0, 1.0)]),
    "flow without a name": lambda: trace(flow=[Flow(t, {}) for t in (0.0, 1.0)]),
    "nothing moves": lambda: trace(flow=[Flow(t, {"samples": 0.0, "wait": 0.0, "step": 0.0}) for t in (0.0, 1.0)]),
    "no time passes": lambda: trace(flow=[Flow(3.0, {"samples": v, "wait": v}) for v in (0.0, 1.0)]),
    "only waiting": lambda: tracesets.steady(wait=1.0),
    "decisions alone": lambda: trace(decisions=[decision(1, 2.0, "cpu", {"workers": (1, 2)}, "why")]),
    "a span that ends before it begins": lambda: trace(spans=[span("batch", 2.0, 1.0), span("work", 2.0, 1.0)]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_traces_give_a_page(name):
    page = page_of(ODD[name]())
    assert (
        page.rstrip().endswith("</html>")
        and "nan" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL).lower().split()
    )
    assert len(page_of(ODD[name](), tracesets.steady())) > len(page)


def test_each_cpu_is_shown():
    readings = [
        Reading(t, {}, (), cpu) for t, cpu in ((0.0, (1.0, 0.0)), (0.5, (0.5, 0.0)), (9.9, (0.0, 1.0)), (10.0, ()))
    ]
    assert timeline(Run(trace(snapshots=readings), ""), [])["cpus"] == ["z  0", "0  z"]
    assert set(data_of(page_of(tracesets.steady()))["cpus"][0]) == {"w"}  # 0.9 of 35, and no blank between readings


def test_numbers_of_a_distribution_do_not_overlap():
    for least in (1e-6, 3e-5, 4.6e-3, 5e-3, 0.099, 0.5, 2.0):
        for times in (1, 1.5, 2.1, 3, 5, 9, 30, 99, 101, 1e3, 1e5):
            facts = spread([least, least * times])
            chart = distribution([least, least * times], facts, "x")
            labels = re.findall(r'<text class="" x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)">([^<]*)<', chart)
            assert labels
            places = []
            for x, anchor, text in labels:
                width = 6 * len(text)
                left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
                places.append((left, left + width))
            places.sort()
            assert all(a[1] < b[0] for a, b in zip(places, places[1:])), (least, times, labels)


def test_each_limit_has_a_colour_and_a_meaning():
    style = page_of(trace())
    style = style[style.index("<style>") : style.index("</style>")]
    assert set(BOUNDS) == set(LIMITS) and all(f".b-{bound} {{" in style for bound in BOUNDS)
    bounds = set(re.findall(r"\.b-(\w+)", style))
    assert bounds == set(BOUNDS)


def test_words_are_explained():
    page = page_of(with_decisions(tracesets.steady(wait=0.4), "prefetch", "consumer"))
    verdict = page[page.index('class="glossary"') : page.index("Key figures")]
    assert LIMITS["prefetch"] in verdict and LIMITS["consumer"] in verdict and LIMITS["cpu"] not in verdict
    words = page[page.index("<h2>Words") :]
    assert all(meaning in words for meaning in map(escape, LIMITS.values()))
    assert all(knob.name in words for knob in drapps.knobs()) and "<dt>guard<dd>" in words


def test_what_is_looked_at_first_is_large():
    made = tracesets.steady(seconds=100)
    made.spans = [span("batch", 1000.0, 1000.5)]
    page = page_of(made)
    main = page[page.index('class="cards main"') : page.index('<div class="cards">')]
    assert all(
        f"<span>{label}" in main for label in ("throughput", "consumer waits", "batch latency", "CPU of a sample")
    )
    assert main.count("<span>") == 4
    folded = page[page.index("The machine as a whole") :]
    assert "hardware utilisation" in folded and "resource imbalance" in folded
    assert "kWh" not in page[: page.index("CO₂")] and "1 Wh" in page  # 36 W for 100 s


def test_gaps_are_told():
    run = Run(clock_jumps(), "")
    assert any(b - a > 4000 for a, b in run.gaps) and ">gaps<" in make_page([run], 1)


def test_absent_sensors_are_told():
    page = page_of(tracesets.steady())
    assert "sensors not there" in page and "gpu_busy" in page
    assert "cache_hits" not in page and "fill_slow" not in page  # of a pipeline that has none


def test_knobs_turned_by_policy_and_user():
    turns = [decision(1, 2.0, changes={"prefetch": (2, 3)}), decision(2, 6.0, changes={"workers": (5, 4)})]
    by_user = {"t": 3.0, "event": "set", "knob": "workers", "value": 5}
    flow, knobs = [Flow(t, {}) for t in (1.0, 9.0)], [(2.0, {"workers": 2, "prefetch": 3, "readers": 0})]
    run = Run(trace(flow=flow, decisions=turns, events=[by_user], knobs=knobs), "")
    assert knob_lines(run) == {"prefetch": [[0.0, 2], [1.0, 3]], "workers": [[2.0, 5], [5.0, 4]]}  # 2 before: unsaid
    assert knobs_at_rest(run) == {"readers": 0} and "stayed as they were: readers 0." in make_page([run], 1)


def test_what_is_missing_is_told():
    made = tracesets.steady()
    assert "not recorded" not in page_of(made) and "killed" not in page_of(made)
    made.missing, made.ended = {"lost": 3, "left_out": 4000}, None
    page = page_of(made)
    assert "3 records dropped because the buffer was full" in page
    assert "4\u202f000 spans" in page and "was killed" in page


def test_events_are_listed():
    made = tracesets.steady()
    made.events = [
        {"t": 1003.0, "event": "bad_sample", "key": "a.jpg"},
        {"t": 1004.0, "event": "end", "reason": "closed"},
    ]
    page = page_of(made)
    assert "<td>0:03.0<td>bad_sample, key a.jpg" in page and "reason closed" not in page


def test_turns_by_the_policy_are_no_events():
    """A loader tells of every turn of a knob; decisions do it better."""
    made = trace(flow=[Flow(t, {}) for t in (0.0, 9.0)], decisions=[decision(1, 2.0, changes={"workers": (1, 2)})])
    made.events = [
        {"t": t, "event": "set", "knob": "workers", "value": v} for t, v in ((2.0002, 2), (5.0, 2), (6.0, 3))
    ]
    assert [time for time, _ in listed(Run(made, ""))] == [5.0, 6.0]
    assert knob_lines(Run(made, ""))["workers"] == [[0.0, 1], [2.0, 2], [5.0, 2], [6.0, 3]]


def test_where_and_when_is_told():
    page = page_of(tracesets.busy(5))
    assert "2026-11-16 09:46 UTC · testbed, 4 CPUs · photos, 12000 samples" in page


def test_remedies_are_those_of_the_profile():
    made = tracesets.steady(wait=0.5)
    made.meta.update(machine={"cpus": 1.0}, settings={"workers": 4})  # of two CPUs
    for reading in made.snapshots:
        reading["throttled"] = 0.6
    page = page_of(made)
    assert "throttled_quota" in page and "2.00 ×" in page
    assert "drapps profile reckons" not in page_of(tracesets.steady(wait=0.0))


def test_long_runs_keep_the_decisions_that_matter():
    made = tracesets.steady()
    made.decisions = [
        decision(i, 1000 + i / 1000, changes={"workers": (1, 2)} if i % 10 == 9 else {}) for i in range(5000)
    ]
    rows = shown(Run(made, ""))
    assert len(rows) == MOST_ROWS and sum(bool(d.changes) for d in rows) == 500
    assert [d.number for d in rows] == sorted(d.number for d in rows)
    assert len(data_of(page_of(made))["decisions"]) == MOST_ROWS


def test_comparison():
    page = page_of(tracesets.steady(rate=100), tracesets.steady(rate=200), tracesets.busy(10))
    assert "3 runs, side by side" in page and page.count("<circle") == 3 and page.count('<details class="run"') == 3
    assert re.search(r"<th>samples/s<td class=\"n\">100<td class=\"n\">200<td class=\"n best\">", page)


def test_runs_of_other_work_are_not_compared():
    def run_of(**meta):
        made = tracesets.steady(rate=meta.pop("rate", 100))
        made.meta = {"data": "photos", "samples": 10, "settings": {"batch_size": 8, "workers": 2}, **meta}
        return made

    page = page_of(run_of(), run_of(rate=200, settings={"batch_size": 8, "workers": 4}))
    assert 'class="n best"' in page and "Settings that differ: workers 2 / 4." in page
    for other in ({"data": "cats"}, {"graph": [1]}, {"settings": {"batch_size": 9}}, {"machine": {"host": "b"}}):
        page = page_of(run_of(graph=[0], machine={"host": "a"}), run_of(rate=200, **{"graph": [0], **other}))
        assert 'class="n best"' not in page and "None is marked as the best: the runs differ in" in page
        assert "<circle" not in page


def test_pareto_front():
    points = [(0, "a", 100, 5), (1, "b", 90, 6), (2, "c", 200, 7), (3, "d", 50, 1), (4, "e", 200, 9)]
    assert [p[1] for p in pareto_front(points)] == ["d", "a", "c"]
    assert round_steps(3.1) == [1, 2, 3] and round_steps(0.9) == [0.2, 0.4, 0.6, 0.8] and round_steps(800)[-1] == 800


def test_write(tmp_path):
    size = write_report([("x", tracesets.steady())], tmp_path / "r.html", grid=0)
    assert (tmp_path / "r.html").stat().st_size == size


def test_command_refuses_what_it_cannot_read(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "none.drtrace")]) == 1 and "none.drtrace" in capsys.readouterr().err
    assert cli.main(["report", "x", "--grid", "-1"]) == 2 and "--grid" in capsys.readouterr().err


def test_of_real_runs(folder, tmp_path, capsys):
    """Two loaders, their traces, one page."""
    paths = [str(tmp_path / f"{workers}.drtrace") for workers in (1, 2)]
    for path in paths:
        with drapps.read(folder).decode().resize(64).center_crop(64).loader(batch_size=4, trace=path) as loader:
            batches = sum(1 for _ in loader)
    assert cli.main(["report", *paths, "-o", str(tmp_path / "both.html")]) == 0
    assert "both.html" in capsys.readouterr().out
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "2 runs, side by side" in page
    assert f'<td>make a batch, from the begin of its first sample<td class="n">{batches}<' in page
    assert "ant/000.jpg" in page and "1.drtrace" in page and "center_crop" in page


def test_runs_of_the_same_name_are_told_apart(pipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = ["before/run.drtrace", "after/run.drtrace"]
    for path in paths:
        (tmp_path / path).parent.mkdir()
        with pipe.loader(batch_size=4, output="numpy", trace=path) as loader:
            list(loader)
    assert cli.main(["report", *paths]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f"{i + 1} {path}<" in page for i, path in enumerate(paths))


def test_timeline_is_plain_json():
    json.dumps(timeline(Run(clock_jumps(), ""), []), allow_nan=False)


def test_a_pass_that_was_resumed_says_so():
    from drapps.report.events import _text

    start = {"t": 0, "event": "start", "epoch": 1, "base": 64, "samples": 5}
    assert _text(start) == "start, epoch 1, resumed after 64, samples 5"
    assert _text({**start, "base": 0}) == "start, epoch 1, samples 5"
