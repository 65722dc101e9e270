"""States of a DataLoader: what is in them, and when one may be loaded.

The words are those of torchdata's StatefulDataLoader where it has them (_num_yielded, _iterator_finished), because
trainers look for these.
"""

from itertools import zip_longest

from drapps import _core
from drapps.torch.identity import data_of, fingerprint_of, length_of, transforms_of
from drapps.torch.samplers import Origin

VERSION = 1


def made_with(loader):
    """What must be the same when a state is loaded.  Of a million files it takes a second: once a pass."""
    kind = type(loader.dataset)
    return {
        "dataset": f"{kind.__module__}.{kind.__qualname__}",
        "length": length_of(loader.dataset),
        "fingerprint": fingerprint_of(loader.dataset),
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
        "in_order": bool(loader.in_order),
        "iterable_workers": int(loader.num_workers) if loader._iterable else None,
        "world_size": loader.world_size,
        "data": data_of(loader.dataset),
        "transforms": transforms_of(loader.dataset),
    }


# Loading into a loader where these differ is no mistake by itself.
MAY_DIFFER = {"world_size", "in_order"}


def check(loader, mine, state):
    """Raises what is wrong with a state for this loader, which has `mine` to be compared.  Only what is in it is."""
    if not isinstance(state, dict) or state.get("drapps") != VERSION:
        raise _core.ArgumentError(f'not a state of a drapps.DataLoader: "drapps" must be {VERSION}')
    for key, theirs in state["made_with"].items():
        if key not in MAY_DIFFER and mine.get(key) != theirs:
            raise _core.ArgumentError(_difference(key, theirs, mine.get(key)))
    if state["done"] and loader.in_order and not state["made_with"].get("in_order"):  # else threads had them in hands
        raise _core.ArgumentError("the state was saved with in_order=False and batches open; the loader has True")


def _difference(key, theirs, mine):
    """What to say of it, and what to do where it is meant."""
    if key == "data":
        other = [what for what in {**theirs, **mine} if theirs.get(what) != mine.get(what)]
        said = f"the state was saved with another data set of this type and length, told by its {', '.join(other)}"
    elif key == "transforms":
        was, now = next(pair for pair in zip_longest(theirs, mine, fillvalue="none") if pair[0] != pair[1])
        said = f"the state was saved with the transform {was}, the loader has {now}"
    else:
        return f"the state was saved with {key} {theirs!r}, the loader has {mine!r}"
    return f'{said}; to load it all the same, remove state["made_with"]["{key}"]'


def running(state):
    """The pass that the state describes has batches left, or has just delivered its last one."""
    return state["base_seed"] is not None and not state["_iterator_finished"]


# --- ranks ---


def place(loader, states):
    """Where this rank goes on, as one state: from its own, or from those of all ranks of a run of another size."""
    states = states if isinstance(states, (list, tuple)) else [states]
    compared = made_with(loader)
    for state in states:
        check(loader, compared, state)
    saved, mine = states[0]["made_with"]["world_size"], loader.world_size
    if saved == mine:
        return states[loader.rank] if len(states) > 1 else states[0]
    if any(state["done"] for state in states) or any(not state["made_with"]["in_order"] for state in states):
        if len(states) != saved:
            raise _core.ArgumentError(
                f"the state was saved out of order by {saved} ranks, this run has {mine}: "
                f"load_state_dict needs the list of all {saved} states, it got {len(states)}"
            )
    origin = _origin(loader, states, saved)
    return {
        **states[0],
        "made_with": {**states[0]["made_with"], "world_size": mine},
        "ahead": origin.number - states[0]["_num_yielded"],
        "done": {},
        "origin": tuple(origin),
    }


def _origin(loader, states, world):
    """Where the ranks of this run begin: at the first position that those of that world have not delivered.

    Their batches have other numbers than any before, because random numbers follow from them.
    """
    old, batch = Origin(*states[0]["origin"]), loader.batch_size
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
    return Origin(first, -(-over // loader.world_size), tuple(sorted(without)))
