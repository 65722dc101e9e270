"""A chain of transforms: as many as possible natively from its beginning, the rest in Python."""

import importlib
from typing import NamedTuple

from torch import nn

from drapps.optable import TABLE
from drapps.torch.lower_genuine import check_transform
from drapps.torch.lower_rows import IMAGE, NotNative, find_row, is_v2
from drapps.torch.lower_wrappers import held_transforms

FAMILIES = ("convert", "geometry", "color", "augment", "boxes", "groups", "presets", "timm")
SEQUENCES = (list, tuple, nn.ModuleList)


class Chain(NamedTuple):
    """What became of a transform."""

    ops: tuple  # native, in their order
    form: object  # of the image after them
    rest: tuple  # transforms to call in Python after them
    lines: tuple  # what runs where, in words


def load_rows():
    """Fills the table.  Done late: the rows need torchvision, which a program may not have."""
    for family in FAMILIES:
        importlib.import_module(f"drapps.torch.lower_{family}")


def lower_chain(transform, form, *later):
    """The longest native beginning of a transform (None: there is nothing to do), and of others that follow it."""
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
    """(ops, form after them) of one transform; NotNative says why not."""
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
        inside = members(transform) if row.name in ("Compose", "Sequential") and (is_v2(transform) or not joint) else None
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
