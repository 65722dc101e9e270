"""States of a DataLoader: what identifies its data set, and which states it may load.

The keys are those of torchdata's StatefulDataLoader where it has them (_num_yielded, _iterator_finished), because
trainers look for these.  passes/pass_state.py has the checks that need no torch.
"""

from itertools import zip_longest

import torch
from torch.utils import data

from drapps import _core
from drapps.passes.order import sampler_chain
from drapps.passes.pass_state import check_pass, get, mapping, state_of_rank, wholes, wrong
from drapps.torch.identity import data_of, fingerprint_of, length_of, transforms_of
from drapps.torch.samplers import RandomSampler, RankBatchSampler

VERSION = 1


def made_with(loader):
    """What must be the same when a state is loaded.  A million files take a second, so it is made once a pass."""
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
    """Raises on a state that this loader cannot load.  mine: the loader's made_with; only keys of the state are compared."""
    if not isinstance(state, dict) or type(state.get("drapps")) is not int or state["drapps"] != VERSION:
        raise _core.ArgumentError(f'not a state of a drapps.DataLoader: "drapps" must be {VERSION}')
    check_pass(state)
    _check_draws(mapping(state, "draws"))
    for key, theirs in state["made_with"].items():
        if key not in MAY_DIFFER and mine.get(key) != theirs:
            raise _core.ArgumentError(_difference(key, theirs, mine.get(key)))
    _check_place(loader, state)
    if state["done"] and loader.in_order and not state["made_with"].get("in_order"):  # else threads held them
        raise _core.ArgumentError("the state was saved with in_order=False and batches open; the loader has True")


def _check_place(loader, state):
    """Raises where a pass has fewer batches than were delivered, if their number is known."""
    if loader._iterable and any(state["origin"]):
        wrong("origin", "[0, 0, []] for an iterable data set", state["origin"])
    saved = state["made_with"]["world_size"]
    if loader._iterable and saved != loader.world_size:
        wrong("made_with.world_size", f"{loader.world_size} for an iterable data set, which divides itself among ranks",
              saved)  # fmt: skip
    if loader._iterable or "replay" in state or state["made_with"]["world_size"] != loader.world_size:
        return
    counted = all(type(sampler) in COUNTED for sampler in sampler_chain(loader._index_sampler))
    place, most = state["_num_yielded"] + state["ahead"], len(loader) if counted else 0
    if counted and not any(state["origin"]) and place > most:
        wrong("_num_yielded + ahead", f"at most {most}, the batches of a pass", place)


# Exactly these have as many indices as they say.
COUNTED = (data.SequentialSampler, data.BatchSampler, RandomSampler, RankBatchSampler)



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


def _difference(key, theirs, mine):
    """The message for a difference, and how to load the state all the same."""
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


def resume_point(loader, states):
    """The state from which this rank continues: its own, or one made of those of all ranks of a run of another size."""
    states = states if isinstance(states, (list, tuple)) else [states]
    if not states:
        raise _core.ArgumentError("load_state_dict needs a state or a list of all ranks' states, got an empty list")
    compared = made_with(loader)
    for state in states:
        check(loader, compared, state)
    return state_of_rank(states, loader.rank, loader.world_size, loader.batch_size)
