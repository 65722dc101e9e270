"""States of a DataLoader: what is in them, and when one may be loaded.

The words are those of torchdata's StatefulDataLoader where it has them (_num_yielded, _iterator_finished), because
trainers look for these.
"""

from itertools import zip_longest

import torch
from torch.utils import data

from drapps import _core
from drapps.state_checks import flag, get, is_wholes, mapping, whole, wholes, wrong
from drapps.torch import draws
from drapps.torch.identity import data_of, fingerprint_of, length_of, transforms_of
from drapps.torch.samplers import Origin, RandomSampler, RankBatchSampler

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
    if not isinstance(state, dict) or type(state.get("drapps")) is not int or state["drapps"] != VERSION:
        raise _core.ArgumentError(f'not a state of a drapps.DataLoader: "drapps" must be {VERSION}')
    check_types(state)
    for key, theirs in state["made_with"].items():
        if key not in MAY_DIFFER and mine.get(key) != theirs:
            raise _core.ArgumentError(_difference(key, theirs, mine.get(key)))
    _check_place(loader, state)
    if state["done"] and loader.in_order and not state["made_with"].get("in_order"):  # else threads had them in hands
        raise _core.ArgumentError("the state was saved with in_order=False and batches open; the loader has True")


def _check_place(loader, state):
    """Raises where a pass has fewer batches than were delivered; where only the sampler knows how many, nothing."""
    if loader._iterable and any(state["origin"]):
        wrong("origin", "[0, 0, []] for an iterable data set", state["origin"])
    saved = state["made_with"]["world_size"]
    if loader._iterable and saved != loader.world_size:
        wrong("made_with.world_size", f"{loader.world_size} for an iterable data set, which divides itself among ranks",
              saved)  # fmt: skip
    if loader._iterable or "replay" in state or state["made_with"]["world_size"] != loader.world_size:
        return
    counted = all(type(sampler) in COUNTED for sampler in draws.chain(loader._index_sampler))
    place, most = state["_num_yielded"] + state["ahead"], len(loader) if counted else 0
    if counted and not any(state["origin"]) and place > most:
        wrong("_num_yielded + ahead", f"at most {most}, the batches of a pass", place)


# Exactly these have as many indices as they say.
COUNTED = (data.SequentialSampler, data.BatchSampler, RandomSampler, RankBatchSampler)

DATA_STATES = ({"set", "iterator"}, {"workers", "turn"})  # what inline.py and stream_iter.py keep of a data set


def check_types(state):
    """Raises the first field that is missing or is not what a state has there."""
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
    _check_draws(mapping(state, "draws"))
    for name in ("sampler", "dataset"):
        if name not in state:
            raise _core.ArgumentError(f"state: {name} is missing")
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


def _check_draws(kept):
    generators = kept.get("generators")
    if not isinstance(generators, (list, tuple)) or not all(_is_seed(g) or _is_generator(g) for g in generators):
        wrong("draws.generators", "a list of seeds and of states of torch.Generator", generators)
    if get(kept, "global", "draws.") is not None and not _is_generator(kept["global"]):
        wrong("draws.global", "a state of torch's generator or None", kept["global"])
    if type(get(kept, "asks", "draws.")) is not int or kept["asks"] not in (1, 2):
        wrong("draws.asks", "1 or 2", kept["asks"])
    if len(wholes(kept, "kept_seeds", inside="draws.", optional=True) or (0, 0)) != 2:
        wrong("draws.kept_seeds", "two ints or None", kept["kept_seeds"])


def _is_seed(value):
    """What Generator.manual_seed takes."""
    return type(value) is int and -(2**63) <= value < 2**64


def _is_generator(value):
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8 and value.dim() == 1


def _check_replay(replay):
    """A recorded pass (replay.py)."""
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


def _difference(key, theirs, mine):
    """What to say of it, and what to do where it is meant."""
    if key in ("data", "transforms") and type(theirs) is not type(mine):
        return f'state: made_with.{key} must be {mine!r} or removed, got {theirs!r}'
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
    if not states:
        raise _core.ArgumentError("load_state_dict needs a state or a list of all ranks' states, got an empty list")
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
