"""What colour and augmentation ops draw has the distribution that their settings say.

Each check is a test of fit at about one false alarm in a million, and is shown to fail when the distribution is moved a
little: a probability by 0.05, a range by a twentieth.  Draws are keyed by DRAPPS_SEED, so a run repeats exactly.
"""

import collections
import itertools
import math
import os

import pytest

import op_runner

SEED = int(os.environ.get("DRAPPS_SEED", "1"))
N = 20000


@pytest.fixture(scope="module")
def ops():
    runner = op_runner.OpRunner()
    yield runner
    runner.close()


def fits_chance(hits, n, p):
    return abs(hits - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1e-9


def fits_counts(counts, weights):
    """Chi-square over categories, by Wilson and Hilferty's normal approximation."""
    n, total = sum(counts), sum(weights)
    if any(c and not w for c, w in zip(counts, weights)):
        return False
    expected = [(c, n * w / total) for c, w in zip(counts, weights) if w]
    chi2, free = sum((c - e) ** 2 / e for c, e in expected), len(expected) - 1
    return ((chi2 / free) ** (1 / 3) - (1 - 2 / (9 * free))) / math.sqrt(2 / (9 * free)) < 5


def fits_uniform(values, low, high):
    """Kolmogorov and Smirnov's largest distance."""
    ordered, n = sorted(values), len(values)
    places = [min(max((v - low) / (high - low), 0), 1) for v in ordered]
    distance = max(max((i + 1) / n - u, u - i / n) for i, u in enumerate(places))
    return distance * math.sqrt(n) < 2.7


def expect_uniform(values, low, high):
    shift = 0.05 * (high - low)
    assert fits_uniform(values, low, high)
    assert not fits_uniform(values, low - shift, high - shift)


def expect_even(values, places):
    counts = collections.Counter(values)
    assert set(counts) == set(places)
    counts = [counts[p] for p in places]
    assert fits_counts(counts, [1] * len(counts))
    assert not fits_counts(counts, [1.5] + [1] * (len(counts) - 1))


NESTED = [{"op": "color_jitter", "params": {"brightness": 0.5}}, {"op": "random_invert"}, {"op": "grayscale"}]
MAYBE = [
    ("random_adjust_sharpness", dict(sharpness_factor=2), 0.5),
    ("random_apply", dict(transforms=NESTED[:2]), 0.5),
    ("random_autocontrast", {}, 0.5),
    ("random_equalize", {}, 0.5),
    ("random_grayscale", {}, 0.1),
    ("random_invert", {}, 0.5),
    ("random_posterize", dict(bits=4), 0.5),
    ("random_solarize", dict(threshold=100), 0.5),
]


@pytest.mark.parametrize("op,params,default", MAYBE)
def test_chance(ops, op, params, default):
    def hits(**more):
        return sum(d["applied"] for d in ops.draw(op, N, seed=SEED, **params, **more))

    for p in (default, 0.3, 0.8):
        assert fits_chance(hits(p=p), N, p)
        assert not fits_chance(hits(p=p + 0.05), N, p)  # an op that is 0.05 off does not pass
        assert not fits_chance(hits(p=p - 0.05), N, p)
    assert hits() == hits(p=default)
    assert hits(p=0) == 0 and hits(p=1) == N


def test_jitter(ops):
    drawn = ops.draw("color_jitter", N, seed=SEED, brightness=0.4, contrast=[0.2, 3], saturation=2, hue=0.1)
    for name, low, high in (("brightness", 0.6, 1.4), ("contrast", 0.2, 3), ("saturation", 0, 3), ("hue", -0.1, 0.1)):
        expect_uniform([d[name] for d in drawn], low, high)
    expect_even([tuple(d["order"]) for d in drawn], list(itertools.permutations(range(4))))


def test_blur(ops):
    expect_uniform([d["sigma"] for d in ops.draw("gaussian_blur", N, seed=SEED, kernel_size=5)], 0.1, 2.0)
    fixed = ops.draw("gaussian_blur", 20, seed=SEED, kernel_size=5, sigma=1.5)
    assert {d["sigma"] for d in fixed} == {1.5}


def signs(drawn, ops_with_sign):
    """1 for a positive and 0 for a negative magnitude, zeros left out."""
    pairs = [(i, m) for d in drawn for i, m in zip(d["ops"], d["magnitudes"])]
    return [m > 0 for i, m in pairs if i in ops_with_sign and m]


SIGNED = range(1, 10)


def test_rand_augment(ops):
    drawn = ops.draw("rand_augment", N, seed=SEED)
    for place in (0, 1):
        expect_even([d["ops"][place] for d in drawn], range(14))
    expect_even(signs(drawn, SIGNED), [False, True])
    assert {len(d["ops"]) for d in ops.draw("rand_augment", 20, num_ops=7)} == {7}


def test_trivial_augment_wide(ops):
    drawn = ops.draw("trivial_augment_wide", 4 * N, seed=SEED)
    expect_even([d["ops"][0] for d in drawn], range(14))
    expect_even(signs(drawn, SIGNED), [False, True])
    bins = [round(abs(d["magnitudes"][0]) / 135 * 30) for d in drawn if d["ops"][0] == 5]
    counts = collections.Counter(bins)
    assert sorted(counts) == list(range(31)) and fits_counts([counts[i] for i in range(31)], [1] * 31)


def test_auto_augment(ops):
    drawn = ops.draw("auto_augment", N, seed=SEED)
    expect_even([d["pair"] for d in drawn], range(25))
    second = [d for d in drawn if d["pair"] == 4]  # equalize with 0.4, solarize with 0.2
    assert fits_chance(sum(13 in d["ops"] for d in second), len(second), 0.4)
    assert fits_chance(sum(11 in d["ops"] for d in second), len(second), 0.2)
    many = [d for d in ops.draw("auto_augment", 10 * N, seed=SEED) if d["pair"] == 4]
    assert not fits_chance(sum(13 in d["ops"] for d in many), len(many), 0.45)


def test_aug_mix(ops):
    drawn = ops.draw("aug_mix", N, seed=SEED)
    expect_uniform([d["weights"][0] for d in drawn], 0, 1)  # a Beta distribution with 1 and 1
    shares = [d["weights"][2] / (1 - d["weights"][0]) for d in drawn]  # of three chains: 1 and 2
    expect_uniform([1 - (1 - share) ** 2 for share in shares], 0, 1)
    assert all(abs(sum(d["weights"]) - 1) < 1e-6 for d in drawn)
    expect_even([depth for d in drawn for depth in d["depths"]], [1, 2, 3])
    assert all(len(d["ops"]) == sum(d["depths"]) for d in drawn)
    expect_even([d["ops"][0] for d in drawn], [1, 2, 3, 4, 5, 10, 11, 12, 13, 6, 7, 8, 9])
    expect_even(signs(drawn, SIGNED), [False, True])
    few = ops.draw("aug_mix", 2000, seed=SEED, all_ops=False, severity=1, chain_depth=2, mixture_width=4)
    assert {i for d in few for i in d["ops"]} == {1, 2, 3, 4, 5, 10, 11, 12, 13}
    assert {tuple(d["depths"]) for d in few} == {(2, 2, 2, 2)}


def test_aug_mix_weights_follow_alpha(ops):
    """The variance of a Beta distribution with a and a is 1 / (4 (2 a + 1))."""
    for alpha in (0.3, 1.0, 4.0):
        own = [d["weights"][0] for d in ops.draw("aug_mix", N, seed=SEED, alpha=alpha)]
        variance = sum((w - 0.5) ** 2 for w in own) / N
        assert abs(variance * 4 * (2 * alpha + 1) - 1) < 0.05


def test_choice(ops):
    weights = [5, 0, 3]
    chosen = [d["chosen"] for d in ops.draw("random_choice", N, seed=SEED, transforms=NESTED, p=weights)]
    counts = [chosen.count(i) for i in range(3)]
    assert fits_counts(counts, weights) and not fits_counts(counts, [5.4, 0, 2.6])
    expect_even([d["chosen"] for d in ops.draw("random_choice", N, seed=SEED, transforms=NESTED)], range(3))


def test_order(ops):
    drawn = ops.draw("random_order", N, seed=SEED, transforms=NESTED)
    expect_even([tuple(d["order"]) for d in drawn], list(itertools.permutations(range(3))))


def test_nested_ops_draw_apart(ops):
    """Two equal ops in one list have streams of their own."""
    drawn = ops.draw("random_apply", N, seed=SEED, transforms=[NESTED[0], NESTED[0]], p=1)
    pairs = [[t["brightness"] for t in d["transforms"]] for d in drawn]
    for place in (0, 1):
        expect_uniform([p[place] for p in pairs], 0.5, 1.5)
    product = sum((a - 1) * (b - 1) for a, b in pairs) / N * 12  # correlation of two of variance 1/12
    assert abs(product) < 5 / math.sqrt(N)
