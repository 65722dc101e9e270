"""stats(), policy, set() and get(): the same names for every kind of loader, at any moment."""

import json
import pathlib
import re

import numpy
import pytest
import torch
from loadersets import Numbers
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.stat_keys import KEYS


class Stream(data.IterableDataset):
    """12 numbers."""

    def __iter__(self):
        return iter(range(12))


def same(sample):
    return sample


def pipe():
    return drapps.from_arrays(x=numpy.arange(12))


KINDS = {
    "pipeline": lambda **more: pipe().loader(batch_size=4, workers=1, **more),
    "pipeline in the caller": lambda **more: pipe().loader(batch_size=4, workers=0, **more),
    "chain": lambda **more: pipe().map(same).loader(batch_size=4, workers=1, **more),
    "chain in the caller": lambda **more: pipe().map(same).loader(batch_size=4, workers=0, **more),
    "natively": lambda **more: DataLoader(data.TensorDataset(torch.arange(12)), 4, num_workers=1, **more),
    "workers": lambda **more: DataLoader(Numbers(12), 4, num_workers=1, **more),
    "workers not given": lambda **more: DataLoader(Numbers(12), 4, **more),
    "caller": lambda **more: DataLoader(Numbers(12), 4, num_workers=0, **more),
    "stream": lambda **more: DataLoader(Stream(), 4, num_workers=1, **more),
}


def of_the_page():
    """What the table of docs/stats.md lists."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "stats.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def check(loader):
    stats = loader.stats()
    assert set(stats) == set(KEYS) == of_the_page()
    assert set(stats["knobs"]) == {knob.name for knob in drapps.knobs()}
    assert (stats["workers"], stats["prefetch"]) == (stats["knobs"]["workers"], stats["knobs"]["prefetch"])
    assert type(stats["workers"]) is int and stats["workers"] == loader.get("workers")
    assert stats["policy"] == loader.policy
    return stats


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_keys_before_within_and_after_a_pass(kind):
    with KINDS[kind](policy="rules") as loader:
        before = check(loader)
        iterator = iter(loader)
        next(iterator)
        check(loader)
        assert len(list(iterator)) == 2
        after = check(loader)
    counts = {key: after[key] for key in ("samples", "delivered_samples", "batches", "bad_samples", "deaths", "epochs")}
    assert counts == {"samples": 12, "delivered_samples": 12, "batches": 3, "bad_samples": 0, "deaths": 0, "epochs": 1}
    assert after["wait_ns"] > before["wait_ns"] == 0 and loader.policy == after["policy"] == "rules"


def test_c_has_them_too():
    with KINDS["pipeline"]() as loader:
        assert set(json.loads(loader._core.stats())) == set(KEYS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "caller" not in kind])
def test_a_knob_that_is_set_is_told_at_once(kind):
    with KINDS[kind]() as loader:
        loader.set("prefetch", 3)
        stats = check(loader)
        assert stats["prefetch"] == loader.get("prefetch") == 3


def test_the_policy_has_its_name_where_none_is_given():
    assert {kind: KINDS[kind]().policy for kind in KINDS} == dict.fromkeys(KINDS, "analytic")
