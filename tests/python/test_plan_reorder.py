"""Reordering: every pair of the table gives the same bytes in both orders on random data; nothing else is exchanged."""

import itertools
import random

import numpy
import pytest
from test_cuts import ANYWHERE, GIVEN

import drapps
from drapps.optable import TABLE, Op
from drapps.plan import reorder
from drapps.plan.measured_epochs import hash_epoch
from drapps.plan.reorder import PAIRS, commute, orders_of

VALUES = {
    "crop": {"top": 3, "left": 2, "height": 18, "width": 22},
    "center_crop": {"size": [18, 30]},
    "color_jitter": {"brightness": 0.4, "saturation": 0.5, "hue": 0.1},
    "random_solarize": {"threshold": 100, "p": 0.5},
    "random_posterize": {"bits": 3, "p": 0.5},
    "random_crop": {"size": [15, 17]},
    "normalize_intensity": {"mean": 2.5, "std": 3.25},
    "normalize": {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]},
    "random_brightness": {"p": 0.7},
    "random_grayscale": {"p": 0.5},
    "random_photometric_distort": {"p": 0.7},
    "grayscale": {"num_output_channels": 3},
}
VOLUME_OPS = {"normalize_intensity", "random_brightness", "random_flip_volume"}
NAMES = sorted({(x, y) for one, other in PAIRS for x, y in itertools.product(one, other) if x != y})


def op_of(name, histogram=False):
    params = dict(VALUES.get(name, {}))
    if name == "color_jitter" and histogram:
        params["contrast"] = 0.5
    return Op(name, params)


def sets(seed):
    """Random images, with a mask and boxes, of three sizes; random volumes with labels."""
    rng = numpy.random.default_rng(seed)
    for height, width in ((20, 24), (33, 19), (21, 57)):
        image = rng.integers(0, 256, (12, height, width, 3), "uint8")
        corners = numpy.sort(rng.uniform(0, min(height, width), (12, 2, 2, 2)), axis=2).reshape(12, 2, 4)
        yield drapps.from_arrays(image=image, mask=image[..., :1].copy(), boxes=corners.astype("float32"))


def volumes(seed):
    rng = numpy.random.default_rng(seed)
    value = rng.normal(size=(12, 1, 7, 9, 8)).astype("float32")
    yield drapps.from_arrays(
        volume=value, seg=(value > 0).astype("uint8"), kinds={"volume": "volume", "seg": "volume_mask"}
    )


def batches(pipe):
    with pipe.loader(batch_size=5, shuffle=True, seed=3, output="raw", layout="NHWC") as loader:
        found = hash_epoch(loader)
    assert found.samples == len(pipe)
    return found.digest


@pytest.mark.parametrize("first, second", NAMES)
def test_every_pair_of_the_table_commutes(first, second):
    histogram = first in reorder.HISTOGRAM and second in reorder.FLIPS
    tried = 0
    for pipe in volumes(5) if {first, second} & VOLUME_OPS else sets(4):
        for flavour in (False, True) if histogram and first == "color_jitter" else (False,):
            ops = [op_of(first, flavour), op_of(second)]
            chain = pipe.op(ops[0]).op(ops[1])
            if {first, second} == {"random_brightness", "to_dtype"}:  # takes float32 alone
                continue
            try:
                want = batches(chain)
            except drapps.Error:  # such an op does not take such data: an image that is too small, volumes
                continue
            assert commute(*chain.stages)
            assert batches(reorder.reordered(chain, [1, 0])) == want
            tried += 1
    mixed = (first in VOLUME_OPS) != (second in VOLUME_OPS) and "to_dtype" not in (first, second)
    assert tried or mixed, "no data set fits the pair"


def test_the_other_pairs_are_left_alone():
    """Of all pairs of ops only those of the table are exchanged, and only as their conditions say."""
    pipe = drapps.from_arrays(image=numpy.zeros((2, 40, 40, 3), "uint8"))
    given = {**GIVEN, "fields": None}
    for first, second in itertools.permutations(ANYWHERE, 2):
        ops = [
            Op(n, {p["name"]: given[p["name"]] for p in TABLE[n]["params"] if p.get("required") and p["name"] in given})
            for n in (first, second)
            if "transforms" not in [p["name"] for p in TABLE[n]["params"]]
        ]
        if len(ops) == 2 and (first, second) not in NAMES and (second, first) not in NAMES:
            assert not commute(*pipe.op(ops[0]).op(ops[1]).stages), (first, second)


@pytest.mark.parametrize(
    "chain, exchanged",
    [
        (lambda p: p.normalize(mean=[0.5], std=[0.5]).random_crop(8), True),
        (lambda p: p.normalize(mean=[0.5], std=[0.5]).random_crop(8, padding=2), False),
        (lambda p: p.normalize(mean=[0.5], std=[0.5]).random_crop(8, pad_if_needed=True), False),
        (lambda p: p.normalize(mean=[0.5], std=[0.5]).center_crop(8), False),  # pads with 0, which is then not 0
        (lambda p: p.to_dtype("float32").center_crop(8), True),
        (lambda p: p.color_jitter(contrast=0.5).random_crop(8), False),
        (lambda p: p.color_jitter(brightness=0.5).random_crop(8), True),
        (lambda p: p.color_jitter(contrast=0.5).random_horizontal_flip(), True),
        (lambda p: p.color_jitter(contrast=0.5, backend="tensor").random_horizontal_flip(), False),
        (lambda p: p.resize(20).random_horizontal_flip(), False),
        (lambda p: p.gaussian_blur(3).random_horizontal_flip(), False),
        (lambda p: p.grayscale().map(len), False),
        (lambda p: p.grayscale(out="grey").random_horizontal_flip(), False),
    ],
)
def test_conditions(chain, exchanged):
    pipe = chain(drapps.from_arrays(image=numpy.zeros((2, 40, 40, 3), "uint8")))
    assert commute(*pipe.stages) == exchanged
    if exchanged:
        assert reorder.reordered(pipe, [1, 0]).stages == pipe.stages[::-1]
    else:
        with pytest.raises(drapps.ArgumentError, match="may not move before"):
            reorder.reordered(pipe, [1, 0])


def test_orders_worth_trying(folder):
    pipe = drapps.read(folder).decode().resize(40)
    normalized = pipe.normalize(mean=[0.5], std=[0.5]).random_crop(32)
    assert orders_of(normalized.stages) == {"fewer bytes": [0, 1, 3, 2]}
    grey_last = pipe.random_crop(32).random_horizontal_flip().grayscale()
    assert orders_of(grey_last.stages) == {"longer prefix": [0, 1, 4, 2, 3]}
    assert orders_of(pipe.random_crop(32).random_horizontal_flip().stages) == {}
    assert orders_of(()) == {}


def test_orders_of_random_chains_give_the_same_batches():
    """Whatever chain: all orders that are proposed give its bytes."""
    names, rng = (
        [
            "grayscale",
            "random_crop",
            "random_horizontal_flip",
            "random_invert",
            "random_equalize",
            "gaussian_blur",
            "random_solarize",
            "random_vertical_flip",
            "color_jitter",
            "pad",
        ],
        random.Random(8),
    )
    proposed = 0
    for _ in range(25):
        image = numpy.random.default_rng(1).integers(0, 256, (9, 40, 44, 3), "uint8")
        pipe = drapps.from_arrays(image=image)
        for name in rng.sample(names, 5):
            pipe = pipe.op(
                Op(
                    name,
                    {
                        **VALUES.get(name, {}),
                        **{
                            k: v
                            for k, v in {"kernel_size": 3, "padding": 2}.items()
                            if (name, k) in (("gaussian_blur", "kernel_size"), ("pad", "padding"))
                        },
                    },
                )
            )
        want = batches(pipe)
        for order in orders_of(pipe.stages).values():
            proposed += 1
            assert batches(reorder.reordered(pipe, order)) == want, (pipe, order)
    assert proposed > 5


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [1.5, 0], ["a", "b"]])
def test_an_order_must_be_a_permutation(order):
    pipe = drapps.from_arrays(image=numpy.zeros((2, 9, 9, 3), "uint8")).grayscale().random_horizontal_flip()
    with pytest.raises((drapps.ArgumentError, TypeError)):
        reorder.reordered(pipe, order)
