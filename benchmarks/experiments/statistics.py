"""Mean, standard deviation, confidence interval and equivalence test, with only the standard library."""

import math
import statistics
from typing import NamedTuple


class Summary(NamedTuple):
    """The summary of a list of numbers."""

    n: int
    mean: float
    sd: float
    low: float  # 95 % confidence interval of the mean
    high: float


class Equivalence(NamedTuple):
    """Two one-sided tests of paired ratios against the margins 1 / (1 + margin) and 1 + margin."""

    ratio: float  # geometric mean
    low: float  # its 90 % confidence interval: equivalent at 5 % if it lies within the margins
    high: float
    p: float  # the larger p value of the two tests
    equivalent: bool
    at_least: bool  # not worse by more than the margin


def _beta_fraction(a, b, x):
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 300):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                    -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):  # fmt: skip
            d = 1 + top * d
            c = 1 + top / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return result


def beta_cdf(a, b, x):
    """Return the regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def t_cdf(t, freedom):
    """Return the distribution function of Student's t."""
    tail = beta_cdf(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return 1 - tail if t > 0 else tail


def t_quantile(q, freedom):
    """Return the quantile of Student's t, by bisection."""
    low, high = -1e4, 1e4
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, freedom) < q else (low, middle)
    return (low + high) / 2


def _interval(values, level):
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, 0.0, -math.inf, math.inf
    sd = statistics.stdev(values)
    half = t_quantile((1 + level) / 2, len(values) - 1) * sd / math.sqrt(len(values))
    return mean, sd, mean - half, mean + half


def summary(values):
    """Return n, mean, standard deviation and the 95 % confidence interval of the mean.

    >>> [round(x, 2) for x in summary([1, 2, 3])]
    [3, 2.0, 1.0, -0.48, 4.48]
    """
    return Summary(len(values), *_interval(values, 0.95))


def _one_sided(mean, sd, n, bound):
    """Return the p value of the hypothesis that the mean is at most the bound."""
    if sd == 0:
        return float(mean <= bound)
    return 1 - t_cdf((mean - bound) / (sd / math.sqrt(n)), n - 1)


def equivalence(ratios, margin=0.10):
    """Return the TOST over the logarithms of at least two paired ratios.

    >>> equivalence([1.0, 1.01, 0.99, 1.0]).equivalent
    True
    """
    logs, edge = [math.log(ratio) for ratio in ratios], math.log1p(margin)
    mean, sd, low, high = _interval(logs, 0.90)
    below, above = _one_sided(mean, sd, len(logs), -edge), _one_sided(-mean, sd, len(logs), -edge)
    p = max(below, above)
    return Equivalence(math.exp(mean), math.exp(low), math.exp(high), p, p < 0.05, below < 0.05)
