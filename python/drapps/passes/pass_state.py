"""States of passes: the checks of their values, and how ranks of another number share out what is left.

A state comes from a file, so that every value is checked before any is used.  Whole numbers must be ints: a float, even
a whole one, is an error, because a format that changes types may have changed other values, too.
"""

import logging

from drapps import _core
from drapps.passes.order import Origin

log = logging.getLogger("drapps")

INT64 = 2**63 - 1  # no count, and nothing that is drawn as a seed, is larger


def wrong(name, must, got):
    """Raises an error that names the field, what it must be and what it is."""
    text = repr(got)
    raise _core.ArgumentError(f"state: {name} must be {must}, got {text if len(text) <= 100 else text[:100] + '...'}")


def whole(state, name, least=0, optional=False, inside=""):
    """Returns an int of at most 64 bits, not below `least` (None: any)."""
    value = get(state, name, inside)
    if optional and value is None:
        return None
    if type(value) is int and abs(value) > INT64:
        wrong(inside + name, f"at most {INT64}", value)
    if type(value) is not int or (least is not None and value < least):
        kind = {None: "an int", 0: "a non-negative int"}.get(least, f"an int from {least} on")
        wrong(inside + name, kind + " or None" * optional, value)
    return value


def flag(state, name, inside=""):
    """Returns a bool."""
    value = get(state, name, inside)
    if type(value) is not bool:
        wrong(inside + name, "True or False", value)
    return value


def mapping(state, name, inside=""):
    """Returns a dict."""
    value = get(state, name, inside)
    if not isinstance(value, dict):
        wrong(inside + name, "a dict", value)
    return value


def wholes(state, name, inside="", optional=False):
    """Returns a list or tuple of non-negative ints."""
    value = get(state, name, inside)
    if optional and value is None:
        return None
    if not is_wholes(value):
        wrong(inside + name, "a list of non-negative ints" + " or None" * optional, value)
    return value


def is_wholes(value):
    """Whether it is a list or tuple of non-negative ints."""
    return isinstance(value, (list, tuple)) and all(type(item) is int and 0 <= item <= INT64 for item in value)


def get(state, name, inside=""):
    """Returns a field that must be there."""
    if name not in state:
        raise _core.ArgumentError(f"state: {inside}{name} is missing")
    return state[name]


# --- the state of a pass ---

# What a front end keeps of a data set: in the caller, and in worker processes.
DATA_STATES = ({"set", "iterator"}, {"workers", "turn"})


def check_pass(state):
    """Raises on the first field of a pass that is missing or has a wrong value."""
    made_with = mapping(state, "made_with")
    whole(made_with, "world_size", least=1, inside="made_with.")
    flag(made_with, "in_order", inside="made_with.")
    for name in ("_num_yielded", "epoch"):
        whole(state, name)
    for name in ("_iterator_finished", "drawn"):
        flag(state, name)
    if "native" in state:
        flag(state, "native")
    for name in ("base_seed", "order_seed"):
        whole(state, name, optional=True)
    _check_done(mapping(state, "done"))
    _check_origin(state)
    least = state["origin"][1] - state["_num_yielded"]
    if whole(state, "ahead", least=None) < least:
        wrong("ahead", f"an int from {least} on, where the origin is at batch {state['origin'][1]}", state["ahead"])
    if state["base_seed"] is None and (state["_num_yielded"] or state["ahead"] or state["done"]):
        wrong("base_seed", "an int where batches were delivered", None)
    for name in ("sampler", "dataset"):
        get(state, name)
    kept = state["dataset"]
    if kept is not None and not (isinstance(kept, dict) and any(keys <= set(kept) for keys in DATA_STATES)):
        wrong("dataset", "what a data set's state_dict() gave, or None", kept)
    if state.get("first") is not None and not isinstance(state["first"], (list, tuple)):
        wrong("first", "a list or None", state["first"])
    if "replay" in state:
        _check_replay(mapping(state, "replay"))


def _check_done(done):
    for number, slots in done.items():
        if not (type(number) is int or (type(number) is str and number.isdecimal())) or int(number) < 0:
            wrong("done", "a dict by numbers of batches", done)
        if slots is not None and not is_wholes(slots):
            wrong(f"done[{number!r}]", "a list of non-negative ints or None", slots)


def _check_origin(state):
    origin = state.get("origin")
    is_origin = isinstance(origin, (list, tuple)) and len(origin) == 3
    if not (is_origin and is_wholes(origin[:2]) and is_wholes(origin[2]) and list(origin[2]) == sorted(origin[2])):
        wrong("origin", "[a non-negative int, a non-negative int, ascending ints]", origin)


def _check_replay(replay):
    """A recorded pass (replay.Record)."""
    whole(replay, "rank", inside="replay.")
    whole(replay, "world_size", least=1, inside="replay.")
    flag(replay, "native", inside="replay.")
    batches = replay.get("batches")
    if not isinstance(batches, (list, tuple)):
        wrong("replay.batches", "a list", batches)
    for i, batch in enumerate(batches):
        _check_batch(batch, f"replay.batches[{i}]")


def _check_batch(batch, name):
    """indices: whatever the sampler gave; a slice, too."""
    if not isinstance(batch, dict) or "indices" not in batch:
        wrong(name, "a dict with indices and places", batch)
    places = batch.get("places")
    is_number = type(places) is int and places >= 0
    if not is_number and not (isinstance(places, (list, tuple)) and places
                              and all(is_wholes(pair) and len(pair) == 2 for pair in places)):  # fmt: skip
        wrong(f"{name}.places", "a non-negative int or a list of pairs of them", places)
    if batch.get("times") is not None:
        wholes(batch, "times", inside=f"{name}.")


def running(state):
    """Whether the pass of the state has batches left, or has just delivered its last one."""
    return state["base_seed"] is not None and not state["_iterator_finished"]


def warn_of_dropped_state(epoch, loaded):
    """Logs that set_epoch(epoch) gave up the rest of a pass, whose state of the epoch `loaded` had been loaded."""
    log.warning("set_epoch(%d) dropped the state that was loaded, which is of epoch %d: epoch %d begins at its first "
                "batch; to continue the state, begin with its epoch", epoch, loaded, epoch)  # fmt: skip


# --- ranks ---


def state_of_rank(states, rank, world_size, batch_size):
    """The state from which a rank continues: its own, or one made of those of all ranks of a run of another size."""
    saved = states[0]["made_with"]["world_size"]
    if saved == world_size:
        return states[rank] if len(states) > 1 else states[0]
    if any(state["done"] for state in states) or any(not state["made_with"]["in_order"] for state in states):
        if len(states) != saved:
            raise _core.ArgumentError(
                f"the state was saved out of order by {saved} ranks, this run has {world_size}: "
                f"load_state_dict needs the list of all {saved} states, it got {len(states)}"
            )
    origin = _origin(states, saved, world_size, batch_size)
    return {
        **states[0],
        "made_with": {**states[0]["made_with"], "world_size": world_size},
        "ahead": origin.number - states[0]["_num_yielded"],
        "done": {},
        "origin": tuple(origin),
    }


def _origin(states, world, new_world, batch):
    """Where ranks of a new number begin: at the first position that the old ones have not delivered.

    Their batches get numbers that no batch had before, because the numbers key random numbers.
    """
    old = Origin(*states[0]["origin"])
    lows = [state["_num_yielded"] + state["ahead"] for state in states]
    done = [(rank, number, None) for rank, low in enumerate(lows) for number in range(min(lows), low)]
    done += [(rank, int(number), slots) for rank, state in enumerate(states) for number, slots in state["done"].items()]
    later = [
        ((number - old.number) * batch + slot) * world + rank
        for rank, number, slots in done
        for slot in (range(batch) if slots is None else slots)
    ]
    first, *later = old.positions([(min(lows) - old.number) * batch * world, *later])
    without = {position for position in (*old.without, *later) if position >= first}
    over = max([*lows, *(number + 1 for _, number, _ in done)]) * world
    return Origin(first, -(-over // new_world), tuple(sorted(without)))
