"""States with a wrong value: an error that names the field, and the loader goes on as if nothing was asked."""

import copy
import json
import tracemalloc

import numpy as np
import pytest
import torch
from loadersets import Numbers
from torch.utils.data import IterableDataset

import drapps
from drapps import DataLoader

WRONG = [None, True, -1, 1.0, 24.0, "0", "x", [], [0], {}, [None], {"a": 1}, 10**9]
ANY = {"sampler", "dataset", "indices"}  # of the user's own
OPTIONAL = {*ANY, "seed", "order_seed", "base_seed", "kept_seeds", "global", "times", "first", "generators"}


def fields_of(state, path=()):
    """The paths of all values in a state, those that hold others too."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        yield (*path, key)
        if isinstance(value, (dict, list, tuple)) and key not in ANY:
            yield from fields_of(value, (*path, key))


def with_value(state, path, value):
    """A copy with another value there."""
    if not path:
        return value
    if isinstance(state, tuple):
        return tuple(with_value(list(state), path, value))
    changed = copy.copy(state)
    changed[path[0]] = with_value(state[path[0]], path[1:], value)
    return changed


def same(a, b):
    return type(a) is type(b) and json.dumps(a, default=str) == json.dumps(b, default=str)


def at(state, path):
    for key in path:
        state = state[key]
    return state


def native(in_order=True):
    data = np.arange(30, dtype=np.int64)
    return drapps.from_arrays(x=data).loader(batch_size=4, outputs="x", output="numpy", in_order=in_order, workers=1)


def chain():
    data = np.arange(30, dtype=np.int64)
    return drapps.from_arrays(x=data).map(lambda s: s).loader(batch_size=4, outputs="x", output="numpy", workers=0)


def numbers(**options):
    return DataLoader(Numbers(30), 4, num_workers=0, shuffle=True, seed=3, **options)


def replaying():
    loader = numbers(record=True)
    list(loader)
    loader.replay(loader.order())
    return loader


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(30))


def stream():
    return DataLoader(Stream(), 4, num_workers=0)


LOADERS = {"native": native, "out of order": lambda: native(False), "chain": chain, "DataLoader": numbers,
           "a repeated pass": replaying, "iterable": stream}  # fmt: skip


def flat(batch):
    values = batch["x"] if isinstance(batch, dict) else batch
    return np.asarray(values).tolist()


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_a_wrong_value_is_named_and_loses_nothing(make):
    loader = make()
    epoch = iter(loader)
    next(epoch), next(epoch)
    state = loader.state_dict()
    loader.load_state_dict(state)
    rest = [flat(batch) for batch in loader]
    loader.load_state_dict(state)
    tried = 0
    for path in list(fields_of(state)):
        if path[0] == "replay" and len(path) > 1 and path[1] in state:  # the state's own goes before it
            continue
        if {"indices", "sampler"} & {*path}:  # the sampler's own: what it makes of them is its business
            continue
        for value in WRONG:
            wrong = with_value(state, path, value)
            if same(at(state, path), value):
                continue
            tried += 1
            try:
                loader.load_state_dict(wrong)
            except drapps.Error as error:
                name = next(key for key in reversed(path) if isinstance(key, str))
                inside = isinstance(value, dict)  # then what is missing in it is named
                assert name in str(error) or inside, (path, value, str(error))
            else:  # it may be another place of this pass, and no nonsense
                was = at(state, path)
                lists = isinstance(value, list) and isinstance(was, tuple)  # as JSON makes them
                assert type(value) is type(was) or lists or OPTIONAL & {*path}, (path, value)
                assert sum(1 for _ in loader) <= 8, (path, value)
                loader.load_state_dict(state)
    assert tried > 100
    assert [flat(batch) for batch in loader] == rest


@pytest.mark.parametrize("make", [native, chain, numbers], ids=["native", "chain", "DataLoader"])
def test_a_pass_that_runs_goes_on_after_a_wrong_state(make):
    loader = make()
    want = [flat(batch) for batch in loader]
    loader = make()
    epoch = iter(loader)
    got = [flat(next(epoch))]
    for wrong in (None, {}, [], {**loader.state_dict(), "epoch": "0"}, {**loader.state_dict(), "epoch": 0.0}):
        with pytest.raises(drapps.Error):
            loader.load_state_dict(wrong)
    assert got + [flat(batch) for batch in epoch] == want


@pytest.mark.parametrize("value, said", [(24.0, "24.0"), ("24", '"24"'), (None, "null"), (31, "31"), (-4, "-4")])
def test_a_position_that_is_no_int(value, said):
    loader = native()
    next(iter(loader))
    state = loader.state_dict()
    state["loader"]["position"] = value
    with pytest.raises(drapps.FormatError) as raised:
        loader.load_state_dict(state)
    assert str(raised.value) == f"state: position must be an int from 0 to 30, got {said}"


@pytest.mark.parametrize(("change", "said"), [
    ({"_num_yielded": 10**9}, "_num_yielded [+] ahead must be at most 8, the batches of a pass"),
    ({"_num_yielded": 2**70}, "_num_yielded must be at most"),
    ({"base_seed": None}, "base_seed must be an int where batches were delivered"),
    ({"draws": {"generators": [], "asks": 1, "kept_seeds": None}}, "draws.global is missing"),
    ({"draws": {"generators": [], "global": None, "kept_seeds": None}}, "draws.asks is missing"),
    ({"draws": {"generators": [2**70], "global": None, "asks": 1, "kept_seeds": None}}, "draws.generators must be"),
    ({"draws": {"generators": [], "global": None, "asks": 1, "kept_seeds": [0]}}, "draws.kept_seeds must be two ints"),
])  # fmt: skip
def test_a_state_of_no_pass_there_is(change, said):
    loader = numbers()
    epoch = iter(loader)
    next(epoch), next(epoch)
    with pytest.raises(drapps.ArgumentError, match=said):
        loader.load_state_dict({**loader.state_dict(), **change})


def test_a_stream_is_gone_on_with_in_little_memory():
    """What its sampler gave of a million batches was kept."""
    loader = stream()
    next(iter(loader))
    loader.load_state_dict({**loader.state_dict(), "_num_yielded": 1_000_000})
    tracemalloc.start()
    assert list(loader) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_floats_are_no_ints():
    loader = numbers()
    next(iter(loader))
    with pytest.raises(drapps.ArgumentError, match=r"state: _num_yielded must be a non-negative int, got 1\.0"):
        loader.load_state_dict({**loader.state_dict(), "_num_yielded": 1.0})


def test_states_of_generators_are_kept():
    loader = DataLoader(Numbers(30), 4, num_workers=0, sampler=torch.utils.data.RandomSampler(range(30)))
    next(iter(loader))
    state = loader.state_dict()
    loader.load_state_dict(state)
    state["draws"]["global"] = state["draws"]["global"].double()
    with pytest.raises(drapps.ArgumentError, match=r"draws\.global must be a state of torch's generator or None"):
        loader.load_state_dict(state)
