"""Pools for the tests: how they are made and run, and what may not be left of them."""

import gc
import os
from multiprocessing import forkserver, resource_tracker

import pytest
import torch
from drapps.procpool.dataset_pool import DatasetPool
from torch.utils.data import default_collate


def children():
    """Processes of pools in this process group, by name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, _, group, *_ = rest.split()
        if name.startswith("drapps-") and state not in "ZX" and int(group) == os.getpgrp():
            found[int(pid)] = name
    return found


def left():
    """Descriptors and mappings of this process that belong to pools, and their processes."""
    gc.collect()
    links = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            pass
    with open("/proc/self/maps") as file:
        maps = [line for line in file if "memfd:drapps" in line]
    return len(links), [link for link in links if "memfd:drapps" in link], maps, children()


@pytest.fixture(scope="module", autouse=True)
def helpers_of_multiprocessing():
    """They start with the first process that needs them, and stay."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = left()
    yield
    after = left()
    assert after[1:3] == before[1:3] == ([], [])
    assert after[0] <= before[0] and not set(after[3]) - set(before[3])
    assert os.waitpid(-1, os.WNOHANG) == (0, 0)  # no zombie among the children, of which the helpers always live


def prepared(dataset, collate_fn=default_collate, **settings):
    return DatasetPool(dataset, collate_fn, **{"workers": 2, "base_seed": 5, **settings})


def make(*args, **settings):
    pool = prepared(*args, **settings)
    pool.start()
    return pool


def run(pool, batches, ahead=8):
    """Posts the batches with a few of them ahead, and takes all results."""
    results, posted = [], 0
    while len(results) < len(batches):
        while posted < len(batches) and posted - len(results) < ahead:
            assert pool.post(posted, batches[posted])
            posted += 1
            if posted == len(batches):
                pool.post_end()
        result = pool.next(30)
        assert result is not None, f"no result after 30 s; {pool.stats()}"
        results.append(result)
    return results


def batches_of(n, size):
    return [list(range(i, min(i + size, n))) for i in range(0, n, size)]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b
