"""The planner's arithmetic: scores computed by hand, races on made-up rates, intervals, shares of memory."""

import math
import random
import statistics

import numpy
import pytest

import drapps
from drapps.plan import expected, extrapolate
from drapps.plan.intervals import Interval, pooled_noise, rate_interval, t_quantile, total_interval
from drapps.plan.outcome import Plan, Row
from drapps.plan.plan_text import AS_IT_IS, choice_text, doubt_text, legend
from drapps.plan.racing import Race
from drapps.plan.scoring import Metrics, Prices, Weights, best, check_objective, pareto_front
from drapps.plan.stage_costs import CutCost
from drapps.plan.strategies import Form, Material, Strategy

# --- scores ---

# throughput, preparation in seconds, storage in bytes
METRICS = {"raw": Metrics(100, 0, 50e9), "decoded": Metrics(400, 300, 250e9), "resized": Metrics(350, 200, 10e9)}


@pytest.mark.parametrize(
    "weights, winner, score",
    [
        ((0, 0, 1), "decoded", 1.0),  # the highest throughput
        ((1, 0, 1), "resized", (1 - 200 / 300) + 250 / 300),  # raw 1 + 0, decoded 0 + 1, resized 1/3 + 5/6
        ((0, 1, 0), "resized", 1.0),  # the least storage
        ((1, 0, 0), "raw", 1.0),
        ((0, 1, 1), "resized", 1 + 250 / 300),
        ((2, 0, 1), "raw", 2.0),  # 2 + 0; resized 2/3 + 5/6
    ],
)
def test_weights_as_computed_by_hand(weights, winner, score):
    name, scores = best(Weights(*weights), METRICS)
    assert name == winner and scores[name] == pytest.approx(score)


def test_prices_as_computed_by_hand():
    """2 CPUs at 0.04, 0.02 a GB and month for 3 months, 2 for the GPU; 90 epochs of 1e6 samples."""
    prices = Prices(cpu_hour=0.04, gb_month=0.02, gpu_hour=2.0, epochs=90, months=3, cpus=2, samples=1_000_000)
    money = prices.money(METRICS["resized"])
    assert money["preprocessing"] == pytest.approx(200 / 3600 * 0.08)
    assert money["storage"] == pytest.approx(10 * 0.02 * 3)
    assert money["training"] == pytest.approx(90e6 / 350 / 3600 * 2.08)
    name, scores = best(prices, METRICS)
    assert name == "decoded" and scores["resized"] == pytest.approx(-sum(money.values()))
    assert best(prices._replace(gb_month=2.0), METRICS)[0] == "resized"


def test_of_equals_the_one_that_stores_less():
    same = {"large": Metrics(5, 1, 9), "small": Metrics(5, 3, 2), "small and soon": Metrics(5, 1, 2)}
    assert best(Weights(), same)[0] == "small and soon"
    assert best(Weights(), {}) == (None, {})


def test_pareto_front_against_brute_force():
    rng = random.Random(3)
    for _ in range(50):
        metrics = {i: Metrics(rng.randrange(5), rng.randrange(5), rng.randrange(5)) for i in range(12)}
        beaten = {
            a
            for a in metrics
            for b in metrics.values()
            if b.throughput >= metrics[a].throughput
            and b.preparation <= metrics[a].preparation
            and b.storage <= metrics[a].storage
            and b != metrics[a]
        }
        assert set(pareto_front(metrics)) == set(metrics) - beaten


@pytest.mark.parametrize(
    "objective, said",
    [
        (Weights(0, 0, 0), "one must be above 0"),
        (Weights(-1, 0, 1), "preprocessing must be a number from 0 on, got -1"),
        (Prices(cpu_hour=math.nan), "cpu_hour must be a number from 0 on, got nan"),
        (Prices(epochs="90"), "epochs must be"),
    ],
)
def test_wrong_weights_and_prices(objective, said):
    with pytest.raises(drapps.ArgumentError, match=said):
        check_objective(objective)


# --- intervals ---


@pytest.mark.parametrize(
    "freedom, value", [(3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_students_t(freedom, value):
    assert t_quantile(freedom) == pytest.approx(value, rel=0.011)


def test_an_interval_of_rates_holds_the_true_rate_as_often_as_it_says():
    rng, inside, runs = random.Random(7), 0, 400
    for _ in range(runs):
        values = [100 * math.exp(rng.gauss(0, 0.1)) for _ in range(4)]
        bounds = rate_interval(values, pooled_noise([values]))
        inside += bounds.low <= 100 <= bounds.high
    assert 0.91 < inside / runs < 1


def test_a_total_is_known_when_all_was_seen():
    assert total_interval([3, 4, 5], 3) == (12, 12, 12)
    assert total_interval([], 5) == (0, 0, 0)
    bounds = total_interval([3, 4, 5], 100)
    assert bounds.low < 400 == bounds.mid < bounds.high


def test_totals_from_samples_hold_the_truth():
    rng = numpy.random.default_rng(2)
    sizes = rng.lognormal(11, 0.5, 5000)
    found = [total_interval(list(rng.choice(sizes, 200, replace=False)), 5000) for _ in range(200)]
    assert statistics.fmean(b.low <= sizes.sum() <= b.high for b in found) > 0.9


# --- races ---


class Machine:
    """Made-up strategies: their rates, noise, what a measurement takes; time goes on as they are measured."""

    def __init__(self, rates, noise=0.05, seed=0, work=1000.0, refused=()):
        self.rates, self.noise, self.random, self.work = rates, noise, random.Random(seed), work
        self.time, self.taken, self.refused = 0.0, [], refused

    def measure(self, name, limit):
        if name in self.refused:
            return None
        self.taken.append(name)
        self.time += self.seconds(name)
        return self.rates[name] * math.exp(self.random.gauss(0, self.noise))

    def seconds(self, name):
        return self.work / self.rates[name]

    def race(self, budget, order=None, **more):
        return Race(order or list(self.rates), self.measure, self.seconds, lambda: budget - self.time, **more)


def winner(race):
    return max(race.running(), key=lambda entry: race.rates()[entry.name].mid).name


def test_a_race_finds_the_best_within_the_budget():
    right = 0
    for seed in range(40):
        rng = random.Random(seed)
        rates = {f"s{i}": rng.uniform(50, 500) for i in range(20)}
        machine = Machine(rates, noise=0.03, seed=seed)
        whole = 5 * sum(map(machine.seconds, rates))
        race = machine.race(budget=whole / 3)
        outcome = race.run()
        assert machine.time <= whole / 3
        right += rates[winner(race)] > 0.95 * max(rates.values())
        assert outcome.rounds >= 1
    assert right >= 38


def test_clearly_worse_ones_are_measured_once():
    machine = Machine({"best": 1000.0, "near": 970.0, **{f"bad{i}": 100.0 + i for i in range(6)}}, noise=0.01)
    race = machine.race(budget=1e9, order=["near", *[f"bad{i}" for i in range(6)], "best"])
    race.run()
    assert all(machine.taken.count(f"bad{i}") == 1 for i in range(6))
    assert machine.taken.count("best") > 1
    assert race.entries["bad0"].why_out == "clearly worse than near"


def test_what_does_not_fit_is_left_out_and_something_cheaper_may_come():
    machine = Machine({"first": 100.0, "dear": 1.0, "cheap": 200.0}, work=100.0)
    race = machine.race(budget=40.0)
    race.run()
    assert "not measured: needs 1e+02 s" in race.entries["dear"].why_out
    assert race.entries["cheap"].measured and "dear" not in machine.taken


def test_what_was_left_out_is_measured_where_the_race_ends_early():
    machine = Machine({"first": 500.0, "bad": 10.0, "best": 2000.0})
    machine.seconds = lambda name: {"first": 10.0, "bad": 50.0, "best": 25.0}[name]
    race = machine.race(budget=100.0)
    outcome = race.run()
    # The first round leaves a quarter of the budget and "best" out; "bad" is out after one measurement.
    assert machine.taken[:3] == ["first", "bad", "best"]
    assert winner(race) == "best" and outcome.why == "the others are clearly worse"


def test_the_first_is_measured_whatever_the_budget():
    race = Machine({"first": 1.0, "second": 2.0}, work=100.0).race(budget=0.1)
    assert race.run().entries["first"].measured and not race.entries["second"].measured


def test_refused_ones_leave_the_race():
    machine = Machine({"a": 10.0, "b": 1000.0, "c": 12.0}, refused=("b",))
    race = machine.race(budget=1e9)
    race.run()
    assert not race.entries["b"].measured and race.entries["b"].why_out == "refused" and winner(race) == "c"


def test_a_race_of_nothing_and_of_one():
    assert Machine({}).race(budget=5.0).run().entries == {}
    machine = Machine({"only": 5.0})
    race = machine.race(budget=1e9)
    assert race.run().why == "the others are clearly worse" and machine.taken == ["only"]


def test_ctrl_c_keeps_what_was_measured():
    machine = Machine({"a": 10.0, "b": 20.0, "c": 30.0})
    plain = machine.measure

    def measure(name, limit):
        if name == "c":
            raise KeyboardInterrupt
        return plain(name, limit)

    machine.measure = measure
    race = machine.race(budget=1e9)
    outcome = race.run()
    assert race.interrupted and outcome.why == "interrupted"
    assert [entry.measured for entry in race.entries.values()] == [True, True, False]


def test_weights_decide_the_race():
    """With storage alone, throughput does not matter: one measurement each."""
    sizes = {"a": 3.0, "b": 1.0, "c": 2.0}
    machine = Machine({"a": 100.0, "b": 20.0, "c": 50.0})

    def utilities(rates, middle):
        return Weights(0, 1, 0).scores({name: Metrics(rate, 0, sizes[name]) for name, rate in rates.items()})

    race = machine.race(budget=1e9, utilities=utilities)
    race.run()
    assert [entry.name for entry in race.running()] == ["b"] and sorted(machine.taken) == ["a", "b", "c"]


def test_weights_on_throughput_race_as_throughput_does():
    """Scores lie between 0 and 1; that must not make neighbours look further apart than their rates are."""
    rates = {"a": 100.0, "b": 90.0, "c": 40.0, "d": 95.0}
    plain, weighed = Machine(rates, seed=3), Machine(rates, seed=3)

    def utilities(rates, middle):
        metrics, scale = ({name: Metrics(rate, 0, 0) for name, rate in one.items()} for one in (rates, middle))
        return Weights().scores(metrics, scale)

    plain.race(budget=1e9).run()
    weighed.race(budget=1e9, utilities=utilities).run()
    assert plain.taken == weighed.taken and plain.taken.count("b") > 1


# --- the whole data set ---


def test_lru_finds_what_a_simulation_finds():
    """A cache with room for a share of the samples, epochs in random order."""
    rng, n = random.Random(1), 400
    for share in (0.25, 0.5, 0.9):
        cache, found = {}, 0
        for epoch in range(12):
            for i in rng.sample(range(n), n):
                found += epoch >= 4 and i in cache
                cache.pop(i, None)
                cache[i] = True
                if len(cache) > share * n:
                    del cache[next(iter(cache))]
        bounds = extrapolate.hits(share, 1.0)
        assert bounds.mid == pytest.approx(found / (8 * n), abs=0.03)
        assert bounds.high == share


def test_shares_of_memory():
    assert extrapolate.hits(10, 10) == (1, 1, 1) and extrapolate.hits(0, 10).high == 0
    assert extrapolate.mixed(0.5, 100, 50) == pytest.approx(1 / (0.5 / 100 + 0.5 / 50))
    assert extrapolate.mixed(1, 100, 0) == 100 and extrapolate.mixed(0.5, 100, 0) == 0
    assert extrapolate.mixed_interval(Interval(0, 0, 1), Interval(90, 100, 110), Interval(40, 50, 60)) == (40, 50, 110)


def test_time_and_bytes_grow_with_the_data_set():
    whole = extrapolate.preparation(2.0, 100, 5000, (0.1, 4))
    assert whole.mid == 100 and whole.low == pytest.approx(100 / math.exp(0.1 * t_quantile(4)))
    assert extrapolate.preparation(0.0, 100, 5000, (0.1, 4)) == (0, 0, 0)


def test_a_race_goes_on_while_the_best_two_cannot_be_told_apart():
    alike = Machine({"a": 100.0, "b": 101.0, "c": 99.0}, noise=0.2, seed=1)
    assert alike.race(budget=1e9).run().rounds == 20
    assert Machine({"a": 100.0, "b": 101.0}, noise=0.2, seed=1).race(budget=1e9, rounds=3).run().rounds == 3
    apart = Machine({"a": 100.0, "b": 160.0}, noise=0.15, seed=1)
    assert apart.race(budget=1e9).run().rounds < 20


# --- what a plan says of itself ---


def plan_of(*rates, objective=None):
    """A plan over strategies with these intervals; the first is the pipeline as it is, the best is chosen."""
    rows = []
    for i, (low, mid, high) in enumerate(rates):
        strategy = AS_IT_IS if not i else Strategy(Material(i, "shards", label=f"cut {i}"), "page cache")
        rate, none = Interval(low, mid, high), Interval(0.0, 0.0, 0.0)
        metrics, warm = Metrics(mid, float(i), 1e6), rate.times(0.9)
        rows.append(Row(strategy, metrics, rate, none, none, rate, warm, none, 0, (mid,), 0.0, "", "", 1.0))
    chosen = max(rows, key=lambda row: row.rate.mid).strategy
    return Plan(None, {}, [], rows, {}, {}, chosen, objective or Weights(), [], [], {}, False)


def test_a_choice_that_may_be_chance_is_called_so():
    wide = plan_of((50.0, 100.0, 300.0), (80.0, 160.0, 400.0), (10.0, 20.0, 30.0))
    assert "may be no more than those of the pipeline as it is (100)" in choice_text(wide)
    assert doubt_text(wide).startswith("not certain: 1 of the 2 others")
    clear = plan_of((90.0, 100.0, 110.0), (150.0, 160.0, 170.0), (10.0, 20.0, 30.0))
    assert "1.60 times as many" in choice_text(clear) and not doubt_text(clear)
    storage = plan_of((50.0, 100.0, 300.0), (80.0, 160.0, 400.0), objective=Weights(1, 0, 0))
    assert not doubt_text(storage._replace(chosen=AS_IT_IS))  # throughput does not count
    assert "warm is below cold in 2 rows" in legend(clear._replace(rows=clear.rows[:2]))[1]


def test_what_others_used_is_said(folder, tmp_path, monkeypatch):
    from drapps.profile.host import Host

    monkeypatch.setattr(Host, "since", lambda self, mark: {"cpu_foreign": 100.0, "cpu_steal": 0.0})
    found = drapps.read(folder).decode().resize(16).plan(budget=3.0, work=tmp_path / "made" / "deep", rounds=1)
    assert any("other programs used 1e+02 of" in note for note in found.notes)
    monkeypatch.setattr(Host, "since", lambda self, mark: {"cpu_foreign": 0.0, "cpu_steal": None})
    found = drapps.read(folder).decode().resize(16).plan(budget=3.0, work=tmp_path / "made" / "deep", rounds=1)
    assert not any("other programs" in note for note in found.notes)


# --- what is expected ---


def cost(seconds, size):
    return CutCost(seconds, [size], Form(True, 1))


def test_what_is_made_for_a_cut_alone_may_take_longer_than_the_whole():
    # A decoder makes all pixels of a cut behind it, and few for a resize.
    costs = {0: cost(0.001, 1e6), 1: cost(0.050, 28e6), 2: cost(0.035, 3e5), 4: cost(0.040, 6e5)}
    assert expected.seconds_left(costs, 0) == pytest.approx(0.039)
    assert expected.seconds_left(costs, 1) == expected.seconds_left(costs, 2) == pytest.approx(0.005)
    assert expected.seconds_left(costs, 4) == 0
    rates = [expected.rate(expected.load(costs, cut, costs[cut].bytes[0], "", 1.0), 2) for cut in (0, 1, 2)]
    assert rates[0] < rates[1] < rates[2]  # fewer bytes, of two that leave as much to do


def test_a_codec_is_expected_to_cost_and_to_gain_nothing():
    costs = {0: cost(0.001, 1e6), 1: cost(0.01, 1e7), 2: cost(0.02, 1e6)}
    plain, packed = (expected.rate(expected.load(costs, 1, 1e7, codec, 1.0), 2) for codec in ("", "zstd:6"))
    assert packed < plain
    slow = [expected.rate(expected.load(costs, 1, 1e7, codec, 0.0), 2) for codec in ("", "zstd:6")]
    assert slow[0] == slow[1] == pytest.approx(30)  # the disk decides
    assert expected.storing_seconds(costs[1], "zstd:6", 2) > expected.storing_seconds(costs[1], "lz4", 2)
    assert expected.storing_seconds(costs[1], "", 2) == pytest.approx(1e7 / 300e6)
