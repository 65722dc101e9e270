"""The random choices of geometric ops come from torchvision's distributions.

Choices with a known law are compared with it, the others with what torchvision draws for the same image.  Samples are
so many, and the limit so placed (one in 100,000 by chance; the streams are fixed anyway), that a probability moved by
0.05 fails: test_moved_p_is_noticed shows it.
"""

import math

import numpy as np
import pytest
import torch
from PIL import Image

import op_runner

torchvision = op_runner.import_torchvision()
from torchvision.transforms import v2  # noqa: E402

MANY = 20000
CHANCE = 1e-5


@pytest.fixture(scope="module")
def ops():
    runner = op_runner.OpRunner()
    yield runner
    runner.close()


def p_is(events, p):
    """Whether that many true events fit the probability."""
    n = len(events)
    z = (sum(events) - n * p) / math.sqrt(n * p * (1 - p))
    return math.erfc(abs(z) / math.sqrt(2)) > CHANCE


def ks_limit(n, m):
    return math.sqrt(-math.log(CHANCE / 2) / 2 * (n + m) / (n * m))


def same_law(a, b):
    """Kolmogorov-Smirnov for two samples."""
    a, b = np.sort(np.asarray(a, float)), np.sort(np.asarray(b, float))
    both = np.concatenate([a, b])
    gap = np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)
    return np.abs(gap).max() < ks_limit(len(a), len(b))


def is_uniform(values, low, high):
    values = np.sort((np.asarray(values, float) - low) / (high - low))
    steps = np.arange(len(values) + 1) / len(values)
    gap = max(np.abs(values - steps[1:]).max(), np.abs(values - steps[:-1]).max())
    return gap < math.sqrt(-math.log(CHANCE / 2) / 2 / len(values))


def is_even(values, n):
    """Whether whole numbers from 0 to n - 1 are equally frequent: chi-square."""
    counts = np.bincount(np.asarray(values), minlength=n)
    if len(counts) > n:
        return False
    mean = len(values) / n
    chi2 = torch.tensor(float(((counts - mean) ** 2 / mean).sum()), dtype=torch.float64)
    return float(torch.special.gammaincc(torch.tensor((n - 1) / 2, dtype=torch.float64), chi2 / 2)) > CHANCE


def column(draws, name):
    return [draw[name] for draw in draws]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("op", ["random_horizontal_flip", "random_vertical_flip"])
def test_flips(ops, op, p):
    assert p_is(column(ops.draw(op, MANY, p=p), "mirror"), p)


def test_erasing_p(ops):
    # Rectangles that fit any image, so that the ten tries never fail.
    draws = ops.draw("random_erasing", MANY, shape=(100, 100, 3), p=0.3, scale=[0.02, 0.1], ratio=[0.9, 1.1])
    assert p_is(column(draws, "erase"), 0.3)


@pytest.mark.parametrize("op, name, extra", [
    ("random_horizontal_flip", "mirror", {}), ("random_vertical_flip", "mirror", {}),
    ("random_erasing", "erase", {"scale": [0.02, 0.1], "ratio": [0.9, 1.1]})])
@pytest.mark.parametrize("moved", [0.45, 0.55])
def test_moved_p_is_noticed(ops, op, name, extra, moved):
    assert not p_is(column(ops.draw(op, MANY, shape=(100, 100, 3), p=moved, **extra), name), 0.5)


def torchvision_draws(transform, shape, n=MANY):
    torch.manual_seed(1)
    picture = Image.new("RGB", (shape[1], shape[0]))
    return [transform.make_params([picture]) for _ in range(n)]


def box_laws(ours, theirs, shape, names=("top", "left", "height", "width")):
    """The laws of area, ratio and place, each compared."""
    def facts(draws, names):
        top, left, height, width = (np.array(column(draws, name), float) for name in names)
        return {"area": height * width, "ratio": np.log((height + 0.5) / (width + 0.5)),
                "row": top / np.maximum(shape[0] - height, 1), "column": left / np.maximum(shape[1] - width, 1)}

    mine, its = facts(ours, ("top", "left", "height", "width")), facts(theirs, names)
    return {name: same_law(mine[name], its[name]) for name in mine}


@pytest.mark.parametrize("shape", [(240, 320, 3), (500, 100, 3), (30, 900, 3)])
def test_random_resized_crop(ops, shape):
    ours = ops.draw("random_resized_crop", MANY, shape=shape, size=224)
    laws = box_laws(ours, torchvision_draws(v2.RandomResizedCrop(224), shape), shape)
    assert all(laws.values()), laws


@pytest.mark.parametrize("moved, law", [({"scale": [0.13, 1.0]}, "area"), ({"ratio": [0.80, 1.38]}, "ratio")])
def test_moved_crop_is_noticed(ops, moved, law):
    shape = (240, 320, 3)
    ours = ops.draw("random_resized_crop", MANY, shape=shape, size=224, **moved)
    assert not box_laws(ours, torchvision_draws(v2.RandomResizedCrop(224), shape), shape)[law]


def test_crop_without_a_fit_is_central(ops):
    """A strip on which no try can succeed falls back to the middle, as torchvision does."""
    shape, params = (10, 1000, 3), {"scale": [1.0, 1.0], "ratio": [0.75, 1.25]}
    ours = ops.draw("random_resized_crop", 50, shape=shape, size=8, **params)
    theirs = torchvision_draws(v2.RandomResizedCrop(8, **params), shape, 50)
    assert ours == theirs


@pytest.mark.parametrize("shape", [(100, 150, 3), (64, 20, 3)])
def test_random_erasing(ops, shape):
    ours = [d for d in ops.draw("random_erasing", MANY, shape=shape, p=1) if d["erase"]]
    theirs = [d for d in torchvision_draws(v2.RandomErasing(p=1), shape) if d["v"] is not None]
    laws = box_laws(ours, theirs, shape, ("i", "j", "h", "w"))
    assert all(laws.values()), laws
    share = (len(ours) + len(theirs)) / (2 * MANY)  # those for which a rectangle was found
    assert abs(len(ours) - len(theirs)) <= 5 * math.sqrt(2 * MANY * share * (1 - share))


def test_random_crop(ops):
    draws = ops.draw("random_crop", MANY, shape=(40, 50, 3), size=[32, 30], padding=4)
    assert is_even(column(draws, "top"), 40 + 8 - 32 + 1)
    assert is_even(column(draws, "left"), 50 + 8 - 30 + 1)
    assert not is_even(np.array(column(draws, "top")) // 2, 17)


def test_random_rotation(ops):
    angles = column(ops.draw("random_rotation", MANY, degrees=[-20, 70]), "angle")
    assert is_uniform(angles, -20, 70)
    assert not is_uniform(angles, -20, 75)


def test_random_affine(ops):
    draws = ops.draw("random_affine", MANY, shape=(400, 600, 3), degrees=15, translate=[0.1, 0.2], scale=[0.8, 1.3],
                     shear=[-5, 10, -3, 4])
    assert is_uniform(column(draws, "angle"), -15, 15)
    assert is_uniform(column(draws, "scale"), 0.8, 1.3)
    assert is_uniform(column(draws, "shear_x"), -5, 10)
    assert is_uniform(column(draws, "shear_y"), -3, 4)
    theirs = torchvision_draws(v2.RandomAffine(15, (0.1, 0.2)), (400, 600))
    assert same_law(column(draws, "translate_x"), [d["translate"][0] for d in theirs])
    assert same_law(column(draws, "translate_y"), [d["translate"][1] for d in theirs])
