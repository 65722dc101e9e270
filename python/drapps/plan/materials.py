"""Making a material of a strategy: the one place that knows how samples are stored.

A material is made of some samples, to be measured, or of all, to be used.
"""

import os
import tarfile
import time
from typing import NamedTuple

from drapps.cached import is_marked
from drapps.kept_prefix import kept_ops
from drapps.optable import TABLE
from drapps.pipeline import Node, Pipeline
from drapps.plan.measured_epochs import open_loader, own_counters
from drapps.plan.page_cache import below
from drapps.plan.reorder import reordered
from drapps.plan.strategies import FILES, STORE


class Made(NamedTuple):
    """A material that is there."""

    pipe: Pipeline  # gives the samples of the pipeline that it was made from
    options: dict  # of loaders
    files: list  # what it is read from
    bytes: int  # of these
    sizes: list  # bytes of each sample; []: not known one by one
    seconds: float  # that it took to make
    cpu_seconds: float


def make(material, pipe, source, folder, options, progress=None):
    """The Made of a pipeline.

    source: the files that its samples are read from.  folder: a path that does not exist, where it may be stored.
    options: of loaders, for what is made by one.  progress: called now and then, and may raise.
    """
    pipe = reordered(pipe, material.order) if material.order else pipe
    if material.layout == FILES:
        return as_it_is(pipe, source)
    begun, cpu = time.monotonic(), _cpu_seconds()
    if material.layout == STORE:
        with open_loader(pipe, options, cache=folder) as loader:
            for _ in loader.batches():
                if progress:
                    progress()
        used, more = pipe, {"cache": folder}
    else:
        pipe.pack(
            folder,
            upto=material.stages,
            codec=material.codec or None,
            workers=options.get("workers") or None,
            progress=progress and (lambda stats: progress()),
        )
        used, more = pipe.use(folder), {}
    seconds, cpu = time.monotonic() - begun, _cpu_seconds() - cpu
    files = below(folder)
    sizes = sample_sizes([path for path, _ in files if path.endswith(".tar")])
    return Made(used, more, [path for path, _ in files], sum(size for _, size in files), sizes, seconds, cpu)


def as_it_is(pipe, files):
    """The samples as they are."""
    sizes = [os.stat(path).st_size for path in files]
    return Made(pipe, {}, files, sum(sizes), sizes if len(sizes) == len(pipe) else [], 0.0, 0.0)


def sample_sizes(shards):
    """Bytes of each sample in some tars: its members, which have names that begin alike."""
    sizes = {}
    for path in sorted(shards):
        with tarfile.open(path) as tar:
            for member in tar:
                name = (path, member.name.rpartition("/")[0], os.path.basename(member.name).partition(".")[0])
                sizes[name] = sizes.get(name, 0) + tarfile.BLOCKSIZE * (1 + -(-member.size // tarfile.BLOCKSIZE))
    return list(sizes.values())


def subset(pipe, places):
    """The pipeline of the samples at these places alone, with ids from 0 on, as they have when they are stored."""
    import numpy

    return Pipeline(pipe.dataset.select(numpy.asarray(places, dtype=numpy.int64)).renumbered(), pipe.stages)


def store_cut(pipe, edges):
    """The number of stages whose results loader(cache=...) keeps; None: it keeps nothing."""
    legal = [edge for edge in edges if edge.legal]
    if pipe.has_python:
        marked = [
            i + 1 for i, stage in enumerate(pipe.stages) if not isinstance(stage, Node) and is_marked(stage.function)
        ]
        ops = kept_ops(pipe.dataset, pipe.stages)
        return max((cut for cut in marked if cut <= legal[-1].stages), default=ops) or None
    cut = legal[-1].stages
    while cut and (not edges[cut].legal or "pointwise_u8" in TABLE[pipe.stages[cut - 1].op.name]["flags"]):
        cut -= 1
    return cut or None


def _cpu_seconds():
    counters = own_counters()
    return counters["cpu_user"] + counters["cpu_system"]
