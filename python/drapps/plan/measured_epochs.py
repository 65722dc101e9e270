"""One epoch of a loader: its speed and what the machine did meanwhile, or what its batches are, as a hash."""

import hashlib
import os
import time
from contextlib import suppress
from typing import NamedTuple

import numpy

from drapps import _core

SEED = 20240229  # of all epochs, so that all strategies have the same order and draws
HASHED_EPOCH = 1  # all others are epoch 0


class Epoch(NamedTuple):
    """How fast an epoch was.  The time begins with its first batch: threads and processes had started then."""

    samples: int
    seconds: float
    rate: float
    whole: bool  # False: it was given up, as it was clearly too slow
    resources: dict


class Batches(NamedTuple):
    """What an epoch gave: a hash of each batch, and one of all."""

    digest: str
    each: list
    samples: int
    bad: list  # a BadSample for each that the loader could not read


def open_loader(pipe, options, **more):
    """The loader that all strategies are measured with."""
    return pipe.loader(**{"shuffle": True, "seed": SEED, "policy": "fixed", "output": "raw", **options, **more})


def run_epoch(loader, expected, limit=0.0, watch=None, least_seconds=0.0):
    """Iterates one epoch and drops its batches; more epochs, until they took least_seconds together.

    expected: samples of an epoch.  limit: samples/s; an epoch that is clearly slower is given up.  watch: a Host of
    drapps.profile, for the resources.
    """
    mark, before = watch.mark() if watch else None, own_counters()
    patience = expected / limit if limit else float("inf")
    samples = counted = 0
    seconds = between = 0.0
    whole = True
    while not samples or (whole and seconds < least_seconds):
        n, after_first, whole_seconds, since_first = _iterate(loader, patience)
        whole = n >= expected
        samples, counted = samples + n, counted + after_first
        seconds, between = seconds + whole_seconds, between + since_first
        if not n:
            break
    if counted <= 0 or between <= 0:  # one batch alone
        counted, between = samples, max(seconds, 1e-9)
    resources = {**(watch.since(mark) if watch else {}), **difference(before, own_counters())}
    return Epoch(samples, seconds, counted / between, whole, resources)


def _iterate(loader, patience):
    """(samples, those after the first batch, seconds, seconds from the first batch on) of one epoch."""
    loader.set_epoch(0)
    samples, first, begun = 0, 0, time.monotonic()
    at_first = last = begun
    for batch in loader.batches():
        last = time.monotonic()
        if not samples:
            first, at_first = len(batch.ids), last
        samples += len(batch.ids)
        if last - begun > patience:
            break
    return samples, samples - first, last - begun, last - at_first


def hash_epoch(loader):
    """The Batches of an epoch that is not the one in which a store is filled: what a function has drawn, though it is
    marked as deterministic, would be the same there with and without the store."""
    whole, each, samples = hashlib.blake2b(digest_size=16), [], 0
    loader.set_epoch(HASHED_EPOCH)
    for batch in loader.batches():
        one = batch_digest(batch)
        whole.update(one)
        each.append(one.hex())
        samples += len(batch.ids)
    return Batches(whole.hexdigest(), each, samples, loader.bad_samples())


def batch_digest(batch):
    """16 bytes of a batch's fields: names, types, shapes and contents."""
    h = hashlib.blake2b(digest_size=16)
    for name, value in sorted(batch.fields.items()):
        rows = value if isinstance(value, list) else [value]
        h.update(f"{name}:{type(value) is list}:{len(rows)};".encode())
        for row in rows:
            _add(h, row)
    return h.digest()


def _add(h, value):
    if isinstance(value, (str, bytes)):
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        h.update(f"{type(value).__name__}:{len(data)};".encode())
        h.update(data)
        return
    h.update(f"{value.dtype}:{tuple(value.shape)};".encode())
    h.update(value if isinstance(value, _core.Array) else numpy.ascontiguousarray(value).data)


# --- what the process used ---


def own_counters():
    """CPU time, bytes from and to devices, context switches of this process, of children only where they have ended."""
    times = os.times()
    counters = {"cpu_user": times.user + times.children_user, "cpu_system": times.system + times.children_system}
    with suppress(OSError, ValueError, KeyError), open("/proc/self/io", encoding="ascii") as file:
        facts = dict(line.split(": ") for line in file.read().splitlines())
        counters.update(read_bytes=int(facts["read_bytes"]), written_bytes=int(facts["write_bytes"]))
    with suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as file:
        counters["switches"] = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return counters


def difference(before, after):
    """How much counters grew."""
    return {name: after[name] - before[name] for name in after if name in before}
