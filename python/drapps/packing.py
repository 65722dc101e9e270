"""Packed sets: pack a pipeline's samples into shards, and use them in place of the original data (docs/shards.md)."""

import json
import os
from typing import NamedTuple

from drapps import _core
from drapps.arguments import PACK, check
from drapps.counted import counted
from drapps.optable import graph_json
from drapps.pipeline import Node, Pipeline, read

NAMED = 3  # samples in a message
POLL_MS = 100  # how often a packing looks for Ctrl-C and shows its progress


class BadSample(NamedTuple):
    """A sample that cannot be decoded, or could not be made."""

    key: str
    error: str


class Packed(NamedTuple):
    """What Pipeline.pack did."""

    folder: str
    samples: int  # of the data that was packed
    shards: int  # of the whole set
    bytes: int  # written by this call
    resumed_samples: int  # that an interrupted run had packed before
    bad: int  # bad samples that this call stored: as they are, or, where they could not be made, as bad ones
    bad_samples: tuple  # the first 1000 of them, as BadSample
    ops: tuple  # names of the ops that were run before storing
    stored: dict  # {field: in which form}: "files", "uint8 array", "text", "label", with the codec


def pack(pipe, folder, *, upto=None, codec=None, name="shard", shard_bytes=512 << 20, shard_samples=None, workers=None,
         append=False, seek_points=True, on_bad_sample="raise", check_space=True, check_images=True,
         progress=None):  # fmt: skip
    """See Pipeline.pack."""
    given = locals()
    check(PACK, {argument: given[argument] for argument in PACK})
    native = native_stages(pipe)
    n_nodes = _n_nodes(native, pipe.stages, upto)
    graph = _core.graph_from_json(graph_json([node.to_json() for node in native])) if n_nodes else None
    packer = _core.open_pack(
        pipe.dataset, folder, graph=graph, n_nodes=n_nodes, name=name, shard_bytes=shard_bytes,
        shard_samples=shard_samples or 0, workers=workers or 0, append=append, seek_points=seek_points,
        keep_bad=on_bad_sample == "keep", check_space=check_space, codec=_codec(codec), check_images=check_images,
    )  # fmt: skip
    try:
        done = False
        while not done:
            done = packer.run(POLL_MS)
            if progress is not None:
                progress(packer.stats())
        stats = packer.stats()
        bad = tuple(BadSample(*row) for row in packer.bad_samples())
    finally:
        packer.close()
    with open(os.path.join(os.fsdecode(folder), "drapps-set.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    ops = tuple(node["op"] for node in json.loads(manifest["prefix"] or "{}").get("nodes", ()))
    stored = {field["name"]: _form(field) for field in manifest["fields"]}
    return Packed(os.fspath(folder), *(stats[key] for key in ("samples", "shards", "bytes", "resumed_samples", "bad")),
                  bad, ops, stored)  # fmt: skip


def _form(field):
    """How a field of a manifest is stored, in words."""
    kind = {"cls": "label", "key": "key", "npy": f"{field['dtype']} array"}.get(field["stored"])
    form = kind or ("text" if field["kind"] == "text" else "files")
    return f"{form}, {field['codec']}" if field["codec"] else form


def _codec(codec):
    if codec is None:
        return "none"
    return codec if isinstance(codec, str) else ",".join(f"{field}={spec}" for field, spec in codec.items())


def native_stages(pipe):
    """The ops before the first Python function."""
    native = []
    for stage in pipe.stages:
        if not isinstance(stage, Node):
            break
        native.append(stage)
    return native


def _n_nodes(native, stages, upto):
    """How many of the first ops are run: -1 as many as the library finds worth it."""
    if upto is None:
        return -1 if native else 0
    if isinstance(upto, str):
        found = [i + 1 for i, node in enumerate(native) if node.op.name == upto]
        if not found:
            names = ", ".join(node.op.name for node in native) or "no ops"
            raise _core.ArgumentError(f"upto: no op {upto!r} before the first Python function; there are {names}")
        return found[0]
    if upto > len(native):
        text = "op" if len(native) == len(stages) else "op before the first Python function"
        raise _core.ArgumentError(f"upto must be at most {len(native)}, one for each {text}, got {upto}")
    return upto


def manifest_of(dataset):
    """The manifest of a packed set as a dict; None: another data set."""
    text = dataset.manifest
    return None if text is None else json.loads(text)


def use(pipe, folder, check_source=True):
    """See Pipeline.use."""
    packed = read(folder).dataset
    manifest = manifest_of(packed)
    if manifest is None:
        raise _core.ArgumentError(f"use: {os.fsdecode(folder)} is not a packed set, but of the format {packed.format}")
    _check_source(pipe.dataset, packed, manifest)
    if check_source:
        _check_samples(pipe.dataset, packed, manifest)
    lossy = [f"{field['name']} by {field['codec']}" for field in manifest["fields"] if field["lossy"]]
    if lossy:
        raise _core.ArgumentError(
            f"use: {packed.name} does not hold what was packed: it was rounded: {', '.join(lossy)}"
        )
    return Pipeline(packed, pipe.stages[_check_prefix(pipe, packed, manifest) :])


def _check_source(dataset, packed, manifest):
    sources = [(source["fingerprint"], source["samples"]) for source in manifest["sources"]]
    if sources != [(f"{dataset.fingerprint:016x}", dataset.size)]:
        made = ", ".join(f"{source['name']} ({source['samples']} samples)" for source in manifest["sources"])
        raise _core.ArgumentError(
            f"use: {packed.name} was packed from other data than {dataset.name} ({dataset.size} samples), or that has "
            f"changed since: from {made}"
        )


def _check_samples(dataset, packed, manifest):
    """Whether the samples are still those that were packed; a shard at a time, so that Ctrl-C is heard."""
    first = n = 0
    names = []
    for i, shard in enumerate(manifest["shards"]):
        try:
            changed, _, named = packed.compare(i, dataset, first)
        except (_core.FileMissingError, _core.NotFoundError, _core.FormatError) as error:
            raise _core.ArgumentError(
                f"use: whether {dataset.name} has changed since {packed.name} was packed is not known ({error}); pack "
                "it anew, or use it unchecked (check_source=False)"
            ) from None
        first, n = first + shard["samples"], n + changed
        names += [named] if named else []
    if n:
        named = ", ".join(", ".join(names).split(", ")[:NAMED]) + (", ..." if n > NAMED else "")
        raise _core.ArgumentError(
            f"use: {counted(n, 'sample')} of {dataset.name} changed after {packed.name} was packed: {named}; pack it "
            "anew into another folder"
        )


def _check_prefix(pipe, packed, manifest):
    """How many stages the set has behind it."""
    if manifest["prefix"] is None:
        return 0
    n = len(json.loads(manifest["prefix"])["nodes"])
    first = native_stages(pipe)[:n]
    mine = _core.graph_from_json(graph_json([node.to_json() for node in first])).json()
    if mine != manifest["prefix"]:
        raise _core.ArgumentError(
            f"use: {packed.name} was packed after other ops than the pipeline begins with: {manifest['prefix']}, and "
            f"not {mine}"
        )
    return n
