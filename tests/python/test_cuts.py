"""A Python function that changes nothing changes no byte, wherever it cuts a chain.

Chains are drawn from the op table, so an op that is added is tested here by itself.
"""

import random

import pytest
from imagesets import gather, same

import drapps
from drapps.optable import TABLE, Op

# Values for settings that have no default.
GIVEN = {
    "bits": 4, "degrees": 20, "height": 18, "kernel_size": 3, "left": 1, "padding": 2, "sharpness_factor": 1.5,
    "size": (20, 24), "threshold": 100, "top": 2, "width": 22,
}  # fmt: skip
NESTED = [Op("random_horizontal_flip", {}), Op("color_jitter", {"brightness": 0.5})]
LAST = {"normalize", "to_dtype"}  # these stand at the end
OTHERS = {"random_balanced_crop", "random_brightness", "random_gaussian_noise", "random_iou_crop",
          "normalize_intensity"}  # of volumes and boxes: test_volumes.py, test_boxes.py  # fmt: skip


def takes_images(name, row):
    return not ({"batch", "decode"} & set(row["flags"]) or name in OTHERS or name.endswith(("_volume", "_boxes")))


ANYWHERE = [name for name, row in TABLE.items() if name not in LAST and takes_images(name, row)]


def op_of(name):
    required = [p["name"] for p in TABLE[name]["params"] if p.get("required")]
    return Op(name, {p: NESTED if p == "transforms" else GIVEN[p] for p in required})


def chain(folder, ops, cuts=()):
    """decode, the ops, one size, float; with an identity in Python before the stages in cuts."""
    pipe = drapps.read(folder)
    stages = [Op("decode", {}), *ops, Op("resize", {"size": (16, 16)}), Op("to_dtype", {"dtype": "float32"})]
    for i, op in enumerate(stages):
        if i in cuts:
            pipe = pipe.map(lambda sample: sample)
        pipe = pipe.op(op)
    return pipe.map(lambda sample: sample) if len(stages) in cuts else pipe


def check(folder, ops, cuts, workers):
    options = {"batch_size": 6, "shuffle": True, "seed": 7, "output": "numpy"}
    with chain(folder, ops).loader(**options) as native:
        with chain(folder, ops, cuts).loader(workers=workers, **options) as cut:
            assert same(gather(native), gather(cut)), (ops, cuts)


@pytest.mark.parametrize("name", ANYWHERE)
def test_each_op(folder, name):
    check(folder, [op_of(name)], cuts={1, 2}, workers=0)


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(folder, seed):
    draw = random.Random(seed)
    ops = [op_of(draw.choice(ANYWHERE)) for _ in range(draw.randint(1, 5))]
    cuts = set(draw.sample(range(len(ops) + 4), draw.randint(1, 3)))
    check(folder, ops, cuts, workers=draw.choice([0, 2]))
