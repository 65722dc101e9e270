"""Rows: transforms made of others.  A group is native as a whole or not at all; only Compose and Sequential are cut.

A row of a group calls lower_one for its members, so it sees the same checks as they.
"""

from drapps import ops
from drapps.torch.lower_chain import lower_one, members
from drapps.torch.lower_rows import NotNative, make, plain, row


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
