"""Which neighbouring ops may change places without changing a byte, and which orders are worth trying.

What is in this table holds for every image and volume, not just for those that were tried;
tests/python/test_plan_reorder.py
runs all pairs on random data.  A node keeps its id when it moves, so that the same is drawn.

    pixelwise    what becomes of a pixel depends on that pixel (and on what was drawn) alone
    moving       each pixel of the result is one of the image, from another place; what is drawn depends on its size
    alone zero-padding moving, but zeros are added where the image is too small: with ops that leave zeros zero
    histogram    depends on which values there are, not on where: with flips, which keep all pixels
"""

from drapps import _core
from drapps.optable import TABLE
from drapps.pipeline import Node, Pipeline


def _no_padding(params):
    return params.get("padding") is None and not params.get("pad_if_needed")


def _no_contrast(params):
    return not params.get("contrast")


def _as_pillow(params):
    return params.get("backend", "pil") == "pil"


def _always(params):
    return True


PIXELWISE = {
    "to_dtype": _always,
    "normalize": _always,
    "grayscale": _always,
    "random_grayscale": _always,
    "random_invert": _always,
    "random_posterize": _always,
    "random_solarize": _always,
    "color_jitter": _no_contrast,
    "normalize_intensity": _always,
    "random_brightness": _always,
}
ZERO_STAYS = {"to_dtype": _always, "grayscale": _always, "random_grayscale": _always}
FLIPS = {"random_horizontal_flip": _always, "random_vertical_flip": _always, "random_flip_volume": _always}
MOVING = {**FLIPS, "random_crop": _no_padding}
ZERO_PADDING = {"center_crop": _always, "crop": _always}
HISTOGRAM = {
    "random_autocontrast": _as_pillow,
    "random_equalize": _always,
    "color_jitter": _as_pillow,
    "random_photometric_distort": _as_pillow,
}
PAIRS = ((PIXELWISE, MOVING), (ZERO_STAYS, ZERO_PADDING), (HISTOGRAM, FLIPS), (FLIPS, FLIPS))
SHRINKING = ("random_crop", "center_crop", "crop")  # touch few of an image's bytes, and leave few


def commute(a, b):
    """Whether two stages, one right after the other, give the same bytes in both orders."""
    if not (isinstance(a, Node) and isinstance(b, Node)) or a.out or b.out:
        return False
    if a.op.name == b.op.name:
        return False
    return any(_is(x, one) and _is(y, other) for one, other in PAIRS for x, y in ((a, b), (b, a)))


def _is(stage, row):
    condition = row.get(stage.op.name)
    return condition is not None and condition(stage.op.params)


def is_random(stage):
    """Whether a native op draws."""
    return "random" in TABLE[stage.op.name]["flags"]


def orders_of(stages):
    """Orders worth trying, as lists of the stages' numbers: {"fewer bytes": ..., "longer prefix": ...}; none that
    changes nothing."""
    given = list(range(len(stages)))
    shrunk = _bubbled(given, stages, _shrinks_first)
    grown = _bubbled(_bubbled(given, stages, _settled_first), stages, _shrinks_alike)
    found = {"fewer bytes": shrunk, "longer prefix": grown}
    return {
        why: order
        for i, (why, order) in enumerate(found.items())
        if order != given and order not in list(found.values())[:i]
    }


def _shrinks_first(a, b):
    """A crop moves before what would work on pixels that it drops."""
    return b.op.name in SHRINKING and a.op.name not in SHRINKING


def _settled_first(a, b):
    """What draws nothing moves before what does: more can be done once."""
    return is_random(a) and not is_random(b)


def _shrinks_alike(a, b):
    return _shrinks_first(a, b) and is_random(a) == is_random(b)


def _bubbled(order, stages, better):
    """The order after all exchanges of neighbours that commute and are better the other way round."""
    order, changed = list(order), True
    while changed:
        changed = False
        for i in range(len(order) - 1):
            a, b = stages[order[i]], stages[order[i + 1]]
            if commute(a, b) and better(a, b):
                order[i], order[i + 1], changed = order[i + 1], order[i], True
    return order


def reordered(pipe, order):
    """The pipeline with its stages in another order, which gives the same bytes; raises where that is not certain."""
    order, stages = list(order), pipe.stages
    if sorted(order) != list(range(len(stages))):
        raise _core.ArgumentError(
            f"reordered: order must have each of the numbers 0 to {len(stages) - 1} once, got {order}"
        )
    for at, i in enumerate(order):
        for j in order[at + 1 :]:
            if j < i and not commute(stages[j], stages[i]):
                raise _core.ArgumentError(
                    f"reordered: {_name(stages[i])} may not move before {_name(stages[j])}: not "
                    "certain to give the same bytes"
                )
    return Pipeline(pipe.dataset, [stages[i] for i in order])


def _name(stage):
    from drapps.plan.cuts import stage_name

    return stage_name(stage)
