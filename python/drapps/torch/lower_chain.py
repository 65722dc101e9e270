"""Lowers a chain of transforms: its longest native beginning runs natively, the rest in Python.

Groups (RandomApply, RandomChoice, ...) are native as a whole or not at all; only Compose and Sequential are cut.  A row
of a group calls lower_one for its members, so that they pass the same checks.
"""

import importlib
from typing import NamedTuple

from torch import nn

from drapps import ops
from drapps.optable import TABLE
from drapps.torch.lower_exact_code import check_transform, held_transforms
from drapps.torch.lower_rows import IMAGE, NotNative, find_row, is_v2, make, plain, row

ROW_MODULES = ("lower_image_rows", "lower_augment_rows")
SEQUENCES = (list, tuple, nn.ModuleList)


class Chain(NamedTuple):
    """The result of lowering a transform."""

    ops: tuple  # native, in their order
    form: object  # of the image after them
    rest: tuple  # transforms to call in Python after them
    lines: tuple  # what runs where, in words


def load_rows():
    """Fill the table of rows.  Called late: most rows import torchvision, which may not be installed."""
    for module in ROW_MODULES:
        importlib.import_module(f"drapps.torch.{module}")


def lower_chain(transform, form, *later):
    """Lower the longest native beginning of a transform (None: no transform) and of those that follow it."""
    made, rest, lines, seen = [], [], [], []
    for member in (member for one in (transform, *later) for member in flatten(one, joint=bool(form.targets))):
        if rest:
            rest.append(member)
            lines.append(f"{name_of(member)}: Python, stands after Python code")
            continue
        try:
            if any(member is other for other in seen):
                raise NotNative("the same object stands in the chain before")
            more, form = lower_one(member, form)
        except NotNative as reason:
            rest.append(member)
            lines.append(f"{name_of(member)}: Python, {reason}")
            continue
        seen.append(member)
        made += more
        lines.append(f"{name_of(member)}: native" + (f" ({', '.join(op.name for op in more)})" if more else ""))
    return Chain(tuple(made), form, tuple(rest), tuple(lines))


def lower_one(transform, form):
    """Return (ops, form after them) of one transform; raise NotNative with the reason if it has no native form."""
    row = find_row(transform)
    check_transform(transform)
    if form.kind == IMAGE and not is_v2(transform) and "nn" not in row.versions:
        raise NotNative("a v1 transform makes a plain tensor of a tv_tensors.Image")
    if form.targets and not is_v2(transform):
        raise NotNative("takes an image alone, and gets its target, too")
    try:
        made, after = row.make(transform, form)
    except AttributeError as error:
        raise NotNative(f"is not as torchvision made it: {error}") from None
    if form.pure and any("moves" in TABLE[op.name]["flags"] for op in made):
        raise NotNative("moves pixels after ToPureTensor, where boxes and masks stay")
    return made, after


def flatten(transform, around=(), joint=False):
    """The members of nested Compose, Sequential and plain wrappers, one after the other.

    around: what it stands in.  joint: it is called with image and target."""
    if transform is None and not around:
        return
    try:
        row = find_row(transform)
        check_transform(transform)
        inside = (
            members(transform) if row.name in ("Compose", "Sequential") and (is_v2(transform) or not joint) else None
        )
    except NotNative:
        inside = held_transforms(transform, joint)
    if inside is None or any(transform is other for other in around):
        yield transform
        return
    for member in inside:
        yield from flatten(member, (*around, transform), joint)


def members(transform):
    """The transforms that a group holds."""
    if isinstance(transform, nn.Sequential):
        return list(transform)
    if type(transform.transforms) not in SEQUENCES:
        raise NotNative(f"its transforms are a {type(transform.transforms).__name__}")
    return list(transform.transforms)


def advice(chain):
    """What to move so that more runs natively, in words; empty where nothing would help."""
    first, *later = chain.rest
    why = next((line for line in chain.lines if ": Python, " in line), "")
    if "runs natively" in why or not any(map(_has_row, later)):  # the former: that line has better advice
        return ""
    return (f"; what stands before the first Python code runs natively: if {name_of(first)} may stand further back, "
            "move it there")  # fmt: skip


def _has_row(transform):
    try:
        return bool(find_row(transform))
    except NotNative:
        return False


def name_of(transform):
    """A transform or function in a line of text."""
    return getattr(transform, "__qualname__", None) or type(transform).__name__


# --- transforms that hold others ---


def _lower_member(member, form):
    try:
        made, after = lower_one(member, form)
        if any(op.name == "clamp_bounding_boxes" for op in made):
            raise NotNative("acts on boxes and not on images, which a group does not natively")
    except NotNative as reason:
        raise NotNative(f"holds {type(member).__name__}: {reason}") from None
    return made, after


def _lower_members(transform, form):
    """[(ops, form after)] of each member, each for the same image."""
    return [_lower_member(member, form) for member in members(transform)]


def _in_turn(transform, form):
    """(ops, form after) of the members one after the other."""
    made = []
    for member in members(transform):
        more, form = _lower_member(member, form)
        made += more
    return made, form


def _as_one(made):
    """One op that does what several do; a flip that never happens stands for none."""
    if len(made) == 1:
        return made[0]
    return make(ops.random_apply, made, p=1) if made else make(ops.random_horizontal_flip, p=0)


def _same_form(lowered, form):
    if any(after != form for _, after in lowered):
        raise NotNative("what comes out would depend on what is drawn")


@row("RandomApply")
def random_apply(transform, form):
    """All or none: so the members must not change what kind of image it is."""
    made, after = _in_turn(transform, form)
    _same_form([(made, after)], form)
    return ([make(ops.random_apply, made, p=plain(transform.p, "p"))] if made else []), form


@row("RandomChoice")
def random_choice(transform, form):
    """One of them; each may change the image in the same way."""
    lowered = _lower_members(transform, form)
    _same_form(lowered, lowered[0][1])
    weights = plain(transform.p, "p")
    if weights is not None and len(set(weights)) == 1:
        weights = None
    return [make(ops.random_choice, [_as_one(made) for made, _ in lowered], p=weights)], lowered[0][1]


@row("RandomOrder")
def random_order(transform, form):
    """All of them."""
    lowered = _lower_members(transform, form)
    _same_form(lowered, form)
    return [make(ops.random_order, [_as_one(made) for made, _ in lowered])], form


@row("Compose")
def compose(transform, form):
    """One after the other, inside of another group."""
    return _in_turn(transform, form)


row("Sequential", ("nn",))(compose)
