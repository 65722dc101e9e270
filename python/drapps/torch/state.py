"""States of a DataLoader: what identifies its data set, and which states it may load.

The keys are those of torchdata's StatefulDataLoader where it has them (_num_yielded, _iterator_finished), because
trainers look for these.  passes/pass_state.py has the checks that need no torch.
"""

from itertools import zip_longest

import torch
from torch.utils import data

from drapps import _core
from drapps.counted import counted
from drapps.passes.order import sampler_chain
from drapps.passes.pass_state import check_pass, get, mapping, running, state_of_rank, whole, wholes, wrong
from drapps.torch.identity import data_of, fingerprint_of, transforms_of
from drapps.torch.samplers import RandomSampler, RankBatchSampler, generators, innermost, length_of

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
        "sampler": None if loader._iterable else _sampler_name(loader),
        "seed": None if loader.seed is None else int(loader.seed) % 2**63,  # as generators are seeded
        "world_size": loader.world_size,
        "data": data_of(loader.dataset),
        "transforms": transforms_of(loader.dataset),
    }


# Loading into a loader where these differ is no mistake by itself.
MAY_DIFFER = {"world_size", "in_order"}
OF_THE_ORDER = {"sampler", "seed"}  # a recorded pass has its order, and needs neither


def _sampler_name(loader):
    """The type of the sampler that decides the order; torch's RandomSampler and drapps' have one name."""
    name = type(innermost(loader)).__name__
    return "indices" if name in ("list", "tuple", "range", "ndarray", "Tensor") else name


def check(loader, mine, state):
    """Raises on a state that this loader cannot load.  mine: the loader's made_with; only keys of
    the state are compared."""
    if not isinstance(state, dict) or type(state.get("drapps")) is not int or state["drapps"] != VERSION:
        raise _core.ArgumentError(f'not a state of a drapps.DataLoader: "drapps" must be {VERSION}')
    check_pass(state)
    _check_draws(mapping(state, "draws"))
    if "seed" in state["made_with"]:
        whole(state["made_with"], "seed", optional=True, inside="made_with.")
    free = MAY_DIFFER | OF_THE_ORDER if "replay" in state else MAY_DIFFER
    for key, theirs in state["made_with"].items():
        without_seed = key == "seed" and theirs is None  # the rest of its order does not depend on the loader's seed
        if key not in free and not without_seed and mine.get(key) != theirs:
            raise _core.ArgumentError(_difference(key, theirs, mine.get(key)))
    _check_order(loader, state)
    _check_place(loader, state)
    if state["done"] and loader.in_order and not state["made_with"].get("in_order"):  # else threads held them
        raise _core.ArgumentError("the state was saved with in_order=False and batches open; the loader has True")


def _check_order(loader, state):
    """Raises where the loader's sampler could not draw the rest of the pass as it began: samples would be repeated."""
    if loader._iterable or "replay" in state or not running(state):
        return
    sampler = innermost(loader)
    if state["order_seed"] is not None and not hasattr(sampler, "replay_seed"):
        raise _core.ArgumentError("the state was saved with shuffle=True (order_seed "
                                  f"{state['order_seed']}), the loader has {_sampler_name(loader)}")  # fmt: skip
    theirs, own = len(state["draws"]["generators"]), len(generators(loader))
    if isinstance(sampler, data.RandomSampler) and state["order_seed"] is None and state["drawn"] and theirs != own:
        raise _core.ArgumentError(f"the state was saved with {counted(theirs, 'generator')}, the loader has {own}: "
                                  "its order cannot be drawn again")  # fmt: skip


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
    place, most = state["_num_yielded"] + state["ahead"], _batches_of_pass(loader)
    if most is not None and not any(state["origin"]) and place > most:
        wrong("_num_yielded + ahead", f"at most {most}, the batches of a pass", place)


def _batches_of_pass(loader):
    """How many batches a pass has; None where the samplers may give others than they say."""
    return len(loader) if all(type(one) in COUNTED for one in sampler_chain(loader._index_sampler)) else None


def has_rest(loader, state):
    """Whether a state is that of a pass that has begun, and has batches left as far as is known."""
    if not running(state) or "replay" in state:
        return running(state)
    begun = state["_num_yielded"] + state["ahead"] > 0 or bool(state["done"])
    most = None if loader._iterable or any(state["origin"]) else _batches_of_pass(loader)
    return begun and (most is None or state["_num_yielded"] + state["ahead"] < most)


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


def _named_sampler(name):
    """The sampler, and the argument that makes it."""
    shuffle = {"RandomSampler": "shuffle=True", "SequentialSampler": "shuffle=False"}.get(name)
    return f"{shuffle} ({name})" if shuffle else f"the sampler {name}"


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
    elif key == "sampler":
        said = f"the state was saved with {_named_sampler(theirs)}, the loader has {_named_sampler(mine)}"
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
