"""Pipeline: a source of samples and the stages they go through, built as a chain of methods.

    pipe = drapps.read("photos").decode().resize(256).center_crop(224)

A pipeline is immutable: each method returns a new one, so pipelines can share a common beginning.  The op methods are
made from the library's table.
"""

import json
import operator
import os
import reprlib
from typing import NamedTuple

from drapps import _core
from drapps.argument_hints import METHODS, named_arguments
from drapps.arguments import LOADER, check
from drapps.counted import counted
from drapps.optable import TABLE, Op, call_text, graph_json, make_functions
from drapps.sched import check_environment, weights_text
from drapps.selection import Selecting


class Node(NamedTuple):
    """A native op on some fields.  The id keys its randomness."""

    id: int
    op: Op
    fields: tuple
    out: tuple

    def to_json(self):
        node = {**self.op.to_json(), "id": self.id}
        if self.fields:
            node["fields"] = list(self.fields)
        if self.out:
            node["outputs"] = list(self.out)
        return node


class PythonStage(NamedTuple):
    """A Python function in the chain: "map" changes a sample, "filter" decides whether it is kept."""

    kind: str
    function: object
    field: str | None


def check_field(kind, field, known):
    """Raise if a Python stage names a field that does not exist."""
    if field not in known:
        raise _core.NotFoundError(f"{kind}: field must be one of {', '.join(known)}, got {field!r}")


class Pipeline(Selecting):
    """A source of samples and the stages they go through; made by drapps.read, from_arrays and mix."""

    __slots__ = ("_dataset", "_runner", "_stages")

    def __init__(self, dataset, stages=()):
        self._dataset = dataset
        self._stages = tuple(stages)
        self._runner = None  # runs the samples of pipe[i]; made at the first use

    def __getattr__(self, name):
        """What there is not: the message says what other libraries' methods are called here."""
        hint = f"; {METHODS[name]}" if name in METHODS else ""
        raise AttributeError(f"a drapps.Pipeline has no attribute {name!r}{hint}", name=name, obj=self)

    # --- building ---

    def op(self, op, *, field=None, fields=None, out=None):
        """Add an op made by drapps.ops.  The methods named as ops do the same.

        field or fields: the fields to work on; several fields share one random choice.  Default: all fields of the
        kinds that the op supports, so that masks, boxes and key points are transformed with their image, and a label
        volume with its volume; with out=: the field "image".  out: names for the results (default: in place).

        >>> pipe.op(drapps.ops.random_horizontal_flip(p=0.1)) == pipe.random_horizontal_flip(p=0.1)
        True
        """
        if field is not None and fields is not None:
            raise _core.ArgumentError(f"{op.name}: give field or fields, not both")
        fields = fields if field is None else field
        if fields is None and out is None:  # an op that makes one field from another by default
            fields, out = TABLE[op.name]["reads"], TABLE[op.name]["makes"]
        node = Node(self._next_id(), op, _names(fields), _names(out))
        _core.graph_from_json(graph_json([node.to_json()]))
        return Pipeline(self._dataset, (*self._stages, node))

    def map(self, function, field=None, deterministic=False):
        """Add a Python function that gets the sample as a dict of NumPy arrays, numbers and texts, and returns a dict.

        field: the function gets and returns only this field.  Functions run in forked worker processes (see loader), so
        a lambda is fine.  Before each call the global generators of Python, NumPy and torch are seeded for the sample,
        so random choices do not depend on the workers.

        deterministic: the result depends only on the arguments, so loader(cache=...) may cache it; the same as passing
        drapps.deterministic(function).

        >>> darker = pipe.map(lambda image: image // 2, field="image")
        """
        if deterministic:
            from drapps.cached import deterministic as keep

            function = keep(function)
        return self._add_python("map", function, field)

    def filter(self, function, field=None):
        """Add a Python function that returns whether to keep a sample.  Batches are filled from the following samples.

        >>> some = pipe.filter(lambda label: label == 0, field="label")
        """
        return self._add_python("filter", function, field)

    def _add_python(self, kind, function, field):
        if not callable(function):
            raise _core.ArgumentError(f"{kind}: function must be callable, got {function!r}")
        known = self._known_fields()
        if field is not None and known is not None:
            check_field(kind, field, known)
        return Pipeline(self._dataset, (*self._stages, PythonStage(kind, function, field)))

    def _known_fields(self):
        """Return the names of the fields after the stages; None if a function that maps whole samples decides them."""
        functions = [stage for stage in self._stages if isinstance(stage, PythonStage)]
        if any(stage.kind == "map" and stage.field is None for stage in functions):
            return None
        made = (name for stage in self._stages if isinstance(stage, Node) for name in stage.out)
        return list(dict.fromkeys([*(row[0] for row in self._dataset.fields), *made]))

    def _next_id(self):
        return max((stage.id for stage in self._stages if isinstance(stage, Node)), default=0) + 1

    # --- text forms ---

    def to_json(self):
        """Return the canonical JSON of the ops: equal pipelines have equal text.

        >>> pipe.from_json(pipe.to_json()) == pipe
        True
        """
        return self._graph("to_json").json()

    def from_json(self, text):
        """Return this source with the ops of to_json.  Node ids are kept, and with them the random choices."""
        if not isinstance(text, str) or "\0" in text:
            raise _core.ArgumentError(f"text must be the JSON of a graph, got {reprlib.repr(text)}")
        nodes = json.loads(_core.graph_from_json(text).json())["nodes"]
        return Pipeline(self._dataset, [_node_from_json(i, node) for i, node in enumerate(nodes)])

    def explain(self):
        """Describe what would run: fields, ops with the shape after each, fusion, outputs.

        >>> print(pipe.explain())  # doctest: +ELLIPSIS
        fields of a sample:
        ...
        """
        return self._graph("explain").explain(self._dataset)

    def _graph(self, caller):
        if self.has_python:
            raise _core.ArgumentError(f"{caller}: the chain has Python functions, which have no native form; the "
                                      "loader's explain() tells of them")  # fmt: skip
        return _core.graph_from_json(graph_json([node.to_json() for node in self._stages]))

    # --- facts ---

    @property
    def dataset(self):
        """The data set: name, format, size, fields, classes, key(id)."""
        return self._dataset

    @property
    def stages(self):
        """The stages, in order."""
        return self._stages

    @property
    def classes(self):
        """The names of the classes, if labels come from folders."""
        return self._dataset.classes

    @property
    def has_python(self):
        """True if the chain has Python functions."""
        return any(isinstance(stage, PythonStage) for stage in self._stages)

    def __len__(self):
        """Return the number of samples of an epoch, before any filter."""
        return self._dataset.places

    def __eq__(self, other):
        if not isinstance(other, Pipeline) or self._dataset is not other._dataset:
            return False
        return self._same_stages(other)

    def __hash__(self):
        return hash((id(self._dataset), len(self._stages)))

    def __repr__(self):
        return f"drapps.read({self._dataset.name!r})" + "".join(_stage_text(stage) for stage in self._stages)

    def __reduce__(self):
        raise TypeError("a drapps.Pipeline cannot be pickled: its data set is open in this process; send the path, and "
                        "build the pipeline where it is used")  # fmt: skip

    # --- use ---

    @named_arguments
    def loader(
        self, batch_size=1, *,
        shuffle=False, seed=0, in_order=True, last="partial", rank=0, world_size=1, pushed_order=False,
        keep_batches=False,
        on_bad_sample="raise", max_bad=None, equal_batches=False,
        outputs=None, collate=None, layout="NCHW", output="auto", keep_draws=False,
        workers=None, prefetch=None, memory_limit=None, cpu_limit=None,
        cache=None, cache_limit=None, cache_memory=None, cache_at=None, adaptive_compression=True, seek_index="auto",
        offload="auto", ranges="auto", policy=None, weights=None, resource_monitor=None, lanes=True,
        trace=None, trace_spans=0, reference=None,
    ):  # fmt: skip
        """Return a loader: an iterable of batches, one epoch per iter().

        None means that drapps decides.  Only the first three groups affect the content of batches.  docs/options.md
        compares these arguments with those of DataLoader and C.

        Order:

        batch_size: samples per batch on this rank.
        shuffle, seed: a new order in each epoch that depends only on the seed; runs with the same seed have the same
            order.
        in_order: False: deliver samples as they become ready; each is still delivered exactly once.
        last: the last batch, if samples do not fill it: "partial": a smaller batch; "drop": no batch; "pad": filled
            from the start of the order.
        rank, world_size: the share of this process.  rank="auto": from torch.distributed if it is initialised, else
            from the variables RANK and WORLD_SIZE.
        pushed_order: Loader.push names the samples of each batch; shuffle, rank and last do not apply.
        keep_batches: with pushed_order and in_order=False, samples that were pushed together stay together.

        Bad samples:

        on_bad_sample: a sample that cannot be read ends the epoch ("raise"), is left out ("skip"), or is replaced by
            another ("replace").
        max_bad: "skip" and "replace" fail after this many bad samples in an epoch; None: 1000.
        equal_batches: with "skip", an epoch has as many batches as without bad samples, so that all ranks make the same
            number of steps: an empty batch gets one sample, chosen as by "replace".  Always on if world_size is more
            than 1, except for chains with a filter.

        Delivery:

        outputs: fields to deliver; None: image and label if present, and the annotations of the image (mask, boxes and
            their labels, masks, key points); without an image all fields.
        collate: {field: rule} with the rules stack, pad, ragged, list; the field "*" stands for all other arrays whose
            shape depends on the sample (not in chains with Python functions).  None: stack, and list for boxes and
            other annotations whose number varies by sample.
        layout: "NCHW" or "NHWC", for images.
        output: "torch", "numpy", "raw" (drapps arrays), or "auto": torch where it is imported, else NumPy.
        keep_draws: keep the random choices of each sample: Batch.draws.

        Limits:

        workers: threads; 0: everything runs in the caller; None: as many as the container allows.  With Python
            functions in the chain: processes; a process that dies is replaced and its samples are made again.
        prefetch: the prefetch window: batches in flight, 1 to 64, as far as memory_limit allows.  None: 2, or for small
            batches enough for 12 samples per worker; with Python functions in the chain 2 per worker.
        memory_limit: bytes for batches and working memory; the policy may fill seven tenths of the part for batches.
            None: a quarter of the container's memory, which is not filled.
        cpu_limit: CPUs that the workers may use together, 0.01 to 512; None: this process's share of the container's
            CPUs.

        Cache:

        cache: store the results of the ops before the first random one, and start from them in later epochs and runs:
            in this folder, or, with "auto", in the user's cache folder if that was measured to pay.  With Python
            functions in the chain: the results of functions marked as deterministic.
        cache_limit: bytes on disk; None: half of what is free there.
        cache_memory: bytes of a cache in memory, in front of the one on disk or (cache=None) without it; shared by all
            loaders and ranks of the machine that keep the same samples; at least 1 MiB.  None: none.
        cache_at: the op whose output is kept: its name, or its number in the chain, from 0 on.  None: the last op
            before the first random one that is worth it.
        adaptive_compression: stored results are compressed by whichever codec is measured to suit data and machine
            best, or by none; False: always by LZ4.
        seek_index: where the rows of JPEGs begin, learnt when a file is first decoded, so that later epochs decode only
            what a crop needs: kept in memory and in an index file ("auto"), in memory alone ("memory"), or not at all
            ("off").  Overridden by the variable DRAPPS_SEEK_INDEX.
        ranges: read only the bytes of a JPEG that its crop needs, once its seek points are known: from remote sources,
            and from local files if that is measured to be faster ("auto"), whenever possible ("on"), or never ("off").
            Overridden by the variable DRAPPS_RANGES.

        Data on a server:

        offload: which ops a drapps server runs, for a set that it serves (drapps.read("drapps://host/set")): "auto": if
            the network is measured to be the bottleneck, for the samples for which it pays; "off": none; "all",
            "resize": all ops that a server can run, or those up to the one that makes images of one size; "fastflow",
            "sophon", "sophon+": policies of docs/offload.md; n: the first n ops.  Batches are the same in any case.

        Tuning:

        policy: sets workers, prefetch and the other knobs (drapps.knobs()) while the loader runs: a name of
            drapps.policies(); None: "analytic"; "fixed": no changes.  Values given here or by Loader.set are not
            changed.  Overridden by the variable DRAPPS_POLICY ("off": no changes).
        weights: the aims of the policy: "step" (default: the consumer never waits, with little CPU), "draadp"
            (throughput, latency, balance, energy), "drapps" (throughput, latency, waiting, balance), or {name: number}
            or "name=number,..." to change single weights.  {"22:00-06:00": {name: number}}: by the time of day.
        resource_monitor: the drapps.Monitor that the policy reads; several loaders may share one.  None: one that all
            loaders of the process share.
        lanes: samples that are predicted to be slow never occupy all workers.

        Tracing and debugging:

        trace: write a trace to this file, for drapps.trace.read and `drapps trace`.  None: to the file that the
            variable DRAPPS_TRACE names, if it is set.
        trace_spans: spans of samples written per second, always including the slowest; 0: 2000; float("inf"): all,
            which allows to repeat an epoch that ran out of order.
        reference: run in the slow reference mode, with the same bytes as result; None: as the variable
            DRAPPS_REFERENCE says.

        >>> for images, labels in pipe.loader(batch_size=4, shuffle=True, seed=1, output="numpy"):
        ...     print(images.shape, labels.dtype)
        (4, 3, 32, 32) int64
        (2, 3, 32, 32) int64
        """
        given = locals()
        check(LOADER, {name: given[name] for name in LOADER})
        check_environment()
        options = dict(
            batch_size=batch_size, shuffle=shuffle, seed=seed, workers=-1 if workers is None else workers,
            prefetch=prefetch or 0, in_order=in_order, last=last, on_bad_sample=on_bad_sample,
            memory_limit=memory_limit or 0, outputs=_joined(outputs), collate=_collate(collate), layout=layout,
            keep_draws=keep_draws, reference=_reference(reference), trace=_file(trace), trace_spans=trace_spans,
            seek_index=seek_index, ranges=ranges, cache=_file(cache), cache_limit=cache_limit or 0,
            cache_memory=cache_memory or 0, policy=policy,
            resource_monitor=resource_monitor, cpu_limit=cpu_limit or 0, weights=weights_text(weights),
            adaptive_compression=adaptive_compression, equal_batches=equal_batches, offload=str(offload),
        )  # fmt: skip
        options["rank"], options["world_size"] = _rank(rank, world_size)
        if max_bad is not None:
            options["max_bad"] = max_bad
        if not self.has_python:
            from drapps.loader import Loader

            options.update(pushed_order=pushed_order, keep_batches=keep_batches, lanes=lanes,
                           cache_at=None if cache_at is None else str(cache_at))  # fmt: skip
            return Loader(self._dataset, self._graph("loader"), output=output, **options)
        if pushed_order:
            raise _core.ArgumentError("pushed_order must be False for chains with Python functions")
        if cache_at is not None:
            raise _core.ArgumentError("cache_at must be None for chains with Python functions: mark the function by "
                                      "deterministic=True")  # fmt: skip
        from drapps.pyloader import PythonLoader

        return PythonLoader(self, output=output, lanes=lanes, **options)

    def preview(self, path=None, n=16, seed=0, epoch=0, classes=None):
        """Show n samples after the pipeline beside their originals, with class names, boxes, masks and key points.

        path: a self-contained HTML file to write.  None: return an object that a notebook displays.
        classes: names of the labels, as a list or {number: name}; None: Pipeline.classes.

        >>> pipe.preview("out.html", n=4)
        >>> pipe.preview(n=4)  # doctest: +ELLIPSIS
        <drapps preview of 4 samples of ...>
        """
        from drapps.preview import make_preview

        shown = make_preview(self, n, seed, epoch, classes)
        if path is None:
            return shown
        shown.write(path)

    def plan(
        self, budget=300.0, *, weights=None, prices=None, batch_size=64, workers=None, work=None, memory=None,
        rounds=None, samples=None, seed=0, drop_caches=False,
    ):  # fmt: skip
        """Measures what of the pipeline to do once and in which form to keep it: a drapps.plan.Plan; see docs/plan.md.

        budget: seconds to measure for.
        weights: (preprocessing, storage, throughput); None: (0, 0, 1), the highest throughput.
        prices: in place of weights, a dict with cpu_hour, gb_month, gpu_hour, epochs, months and cpus.
        batch_size, workers: those of training.
        work: the folder where strategies are tried; None: the system's folder for temporary files.
        memory: bytes for samples in memory; None: half of what is free.
        rounds: most rounds of measurements; None: 5, and up to 20 while the best two cannot be told apart.
        samples: most samples to measure with; None: by the budget.
        seed: seed of the choice of samples.
        drop_caches: drop the system's whole page cache before cold epochs; for root alone.

        >>> found = pipe.plan(budget=2.0)
        >>> found.chosen is not None
        True
        """
        from drapps.plan import Prices, Weights, plan

        if weights is not None and prices is not None:
            raise _core.ArgumentError("plan: give weights or prices, not both")
        objective = Prices(**prices) if prices is not None else Weights(*(weights or ()))
        options = {"batch_size": batch_size, **({} if workers is None else {"workers": workers})}
        return plan(self, budget=budget, objective=objective, options=options, work=work, memory=memory, rounds=rounds,
                    samples=samples, seed=seed, drop_caches=drop_caches)  # fmt: skip

    def profile_stages(self, step=0.0, batches=50, *, batch_size=64, seconds=10.0, **options):
        """Measure accelerator, reading and preprocessing one by one, and say which of them limits training: a
        drapps.profile.StageRates.

        step: what the accelerator takes for a batch: seconds, or a function that is given a batch.
        batches: of each of the three, at most.
        seconds: after which each of them ends.
        options: of Pipeline.loader.

        >>> found = pipe.profile_stages(step=10.0, batches=2, batch_size=2)
        >>> found.bound
        'accelerator-bound'
        """
        from drapps.profile import measure_stages

        return measure_stages(self, step, batches, seconds, batch_size=batch_size, **options)

    def reordered(self, order):
        """The same pipeline with its stages in another order; an error where that might change a byte.

        order: the numbers of the stages, from 0.  Nodes keep their ids, so that the same is drawn.

        >>> drapps.read(folder).decode().random_horizontal_flip().grayscale().reordered([0, 2, 1])  # doctest: +ELLIPSIS
        drapps.read('...').decode().grayscale().random_horizontal_flip()
        """
        from drapps.plan.reorder import reordered

        return reordered(self, order)

    # --- packed sets ---

    def pack(
        self, folder, *, upto=None, codec=None, name="shard", shard_bytes=512 << 20, shard_samples=None, workers=None,
        append=False, seek_points=True, on_bad_sample="raise", check_space=True, check_images=True, progress=None,
    ):  # fmt: skip
        """Pack the samples into tar shards, which drapps, WebDataset and tar read; return what was done.

        docs/shards.md describes packed sets.  An interrupted packing continues when it is called again with the same
        arguments.

        upto: the ops that run before storing, once for all epochs: a number of ops, or the name of the last one; 0:
            none, files are stored as they are.  None: as many as draw nothing and are worth it, but none if they would
            store decoded images of full size, which take more than their files.
        codec: of arrays and texts: a codec of `drapps codec list`, {field: codec}, or "auto"; None: none.  Encoded
            images stay as they are.
        name: shards are called NAME-000000.tar, ...
        shard_bytes, shard_samples: the most bytes and samples of a shard.
        workers: threads; None: as many as the container allows.
        append: add to an existing set: new shards, and a new generation of the manifest.
        seek_points: learn where the rows of JPEGs begin, so that crops are fast from the first epoch on.
        on_bad_sample: a sample that cannot be decoded, or made, ends the packing ("raise"), or is stored and named
            ("keep"): its files as they are, or, where ops run, as a bad sample.
        check_space: refuse to begin where the disk has too little room.
        check_images: decode images that are stored as they are, so that damaged ones are noticed.
        progress: called now and then with a dict: samples, samples_total, bytes, estimated_bytes, ...

        >>> drapps.read(folder).pack("packed").samples
        6
        >>> len(drapps.read("packed"))
        6
        """
        from drapps.packing import pack

        return pack(self, folder, upto=upto, codec=codec, name=name, shard_bytes=shard_bytes,
                    shard_samples=shard_samples, workers=workers, append=append, seek_points=seek_points,
                    on_bad_sample=on_bad_sample, check_space=check_space, check_images=check_images,
                    progress=progress)  # fmt: skip

    def use(self, folder, *, check_source=True):
        """This pipeline over a set that pack() made of it: what was run before storing is left out, the rest draws what
        it drew.  Fails where the set was made of other data or by other ops, and where a file changed since.

        check_source: ask for size and time of every file, and read those where they differ; False: trust the names.

        >>> augmented = pipe.random_horizontal_flip()
        >>> augmented.pack("decoded").shards  # decode and resize run now, the flip in each epoch
        1
        >>> augmented.use("decoded")
        drapps.read('decoded').random_horizontal_flip()
        """
        from drapps.packing import use

        return use(self, folder, check_source)


for _name, _function in make_functions(__name__, method=True).items():
    setattr(Pipeline, _name, _function)


# --- sources ---


def read(path, *, format="auto", root=None, extensions=None, path_column=None, label_column=None, mask_column=None,
         labels=None, index=True, timeout=None, credentials=None):  # fmt: skip
    """Return a pipeline over a folder, a file list, tar shards, or a Python list of image files.

    path: a folder with one folder per class, a flat folder, a list (text, CSV or JSON lines), a tar file, a pattern or
        range of tar files ("train-{000..099}.tar"), or a Python list of image files.  Each may be a URL: http://,
        https:// or s3:// (docs/remote.md).  drapps://host[:port]/set: a set on a drapps server (docs/offload.md).
    format: "auto", or a name that `drapps info` lists.
    root: for lists, the folder that relative paths start from.
    extensions: file name extensions to read from a folder, with the dot; default: those of torchvision's ImageFolder,
        which leaves out .gif.  All files of a Python list are read.
    path_column, label_column, mask_column: for lists with columns; a mask is a second file of a sample.
    labels: for a Python list of files, one number per file, or one file per file (a mask, a volume of labels).
    index: save listings and tar indexes, and use saved ones.
    timeout: of remote data: seconds that a request may take, tries included; None: 300.  Local files ignore it.
    credentials: of remote data: a token (drapps, http, https) or "USER:PASSWORD" (http, https), the name of a profile
        or "anonymous" (s3).

    >>> drapps.read(folder).decode().resize(64)  # doctest: +ELLIPSIS
    drapps.read('...').decode().resize(size=64)
    """
    options = {"format": format, "root": root, "path_column": path_column, "label_column": label_column}
    options.update(mask_column=mask_column, use_index=index, timeout=_timeout(timeout), credentials=credentials)
    if extensions is not None:
        options["extensions"] = (extensions,) if isinstance(extensions, str) else tuple(extensions)
    if isinstance(path, (str, bytes, os.PathLike)):
        if labels is not None:
            raise _core.ArgumentError("read: labels go with a Python list of files")
        return Pipeline(_open(path, options))
    if not hasattr(path, "__iter__"):
        raise _core.ArgumentError(f"read: path must be a path or a list of files, got {path!r}")
    return Pipeline(_read_files(list(path), labels, options))


def _timeout(seconds):
    if seconds is None:
        return 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < 1e9:
        raise _core.ArgumentError(f"read: timeout must be a positive number of seconds or None, got {seconds!r}")
    return float(seconds)


def _extensions(kind):
    """Return the file name extensions of the codecs of a kind ("image", "volume")."""
    return tuple(e for codec in json.loads(_core.codecs_json()) if codec["kind"] == kind for e in codec["extensions"])


def _open(path, options):
    try:
        return _core.open_dataset(path, **options)
    except (_core.FileMissingError, _core.UnsupportedError) as error:
        hint = _other_reader(os.fsdecode(path)) or _where(os.fsdecode(path))
        if not hint:
            raise
        raise type(error)(f"{error}; {hint}") from None


def _other_reader(path):
    """Return a hint how to read a path that read does not support."""
    if path.endswith(".json") and os.path.isfile(path):
        return "for COCO annotations use drapps.read_coco(annotations, root)"
    if path.endswith(_extensions("volume")) and os.path.isfile(path):
        return f"for volumes give a list of files: drapps.read([{path!r}]).decode_volume()"
    if path.lower().endswith(_extensions("image")) and (_is_url(path) or os.path.isfile(path)):
        return f"for images give a list of files: drapps.read([{path!r}]).decode()"
    volumes = _extensions("volume")
    for folder, _, names in os.walk(path):
        found = sorted(name for name in names if name.endswith(volumes))
        if found:
            name = os.path.join(folder, found[0])
            return f"for volumes give a list of files: drapps.read([{name!r}, ...]).decode_volume()"
    return None


def _where(path):
    """Return a hint about a path that does not exist."""
    if os.path.exists(path) or "://" in path:
        return None
    if ("*" in path or "?" in path) and not path.endswith(".tar"):
        return "patterns are for tar files; for other files give a list, as of glob.glob"
    return None if os.path.isabs(path) else f"the current folder is {os.getcwd()}"


def _is_url(path):
    return "://" in path and path.partition("://")[0].isalnum()


def _absolute(path):
    path = os.fsdecode(path)
    return path if _is_url(path) else os.path.abspath(path)


def _is_word(label):
    """Whether a label reads like the name of a class and not like that of a file."""
    return not set(os.fsdecode(label)) & {"/", "."}


def _read_files(paths, labels, options):
    """Return a data set of single files, which the library gets as a list in memory."""
    if not paths:
        raise _core.ArgumentError("read: path must be a list of at least one file, got []")
    if labels is not None and len(labels) != len(paths):
        raise _core.ArgumentError(f"read: labels must be {len(paths)}, one for each file, got {len(labels)}")
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8", delete=True) as listing:
        for i, path in enumerate(paths):
            row = {"path": _absolute(path)}
            if labels is not None and isinstance(labels[i], (str, bytes, os.PathLike)):
                row["label_file"] = _absolute(labels[i])
                if i == 0 and _is_word(labels[i]) and not os.path.exists(row["label_file"]):
                    raise _core.ArgumentError(f"read: labels must be numbers, or files such as masks; {labels[i]!r} is "
                                              "no file (names of classes: give their numbers)")  # fmt: skip
            elif labels is not None:
                row["label"] = _label(labels[i])
            listing.write(json.dumps(row, ensure_ascii=False) + "\n")
        listing.flush()
        name = counted(len(paths), "file")
        first = os.fsdecode(paths[0])
        if _is_url(first):  # credentials are for its server
            options = {**options, "root": first.rpartition("/")[0]}
        try:
            return _core.open_dataset(listing.name, **{**options, "format": "list", "use_index": False, "name": name})
        except _core.Error as error:
            raise type(error)(str(error).replace(listing.name, name)) from None


def _label(value):
    try:
        return operator.index(value)
    except TypeError:
        raise _core.ArgumentError(f"read: labels must be ints or files, got {value!r}") from None


def from_arrays(arrays=None, /, *, kinds=None, **fields):
    """Return a pipeline over arrays in memory, by field name.  The first axis is the samples.  Nothing is copied.

    kinds: {field: kind}: the meaning of the numbers, which decides how ops treat them.  By default, beside an image,
        fields
    with these names and axes have the kind of that name: image, mask (n, height, width[, channels]), boxes (n, boxes,
    4: x0, y0, x1, y1), keypoints (n, ..., 2 or 3: x, y and optionally visibility), masks (n, boxes, height, width),
    labels (n, boxes[, ...]).  All other fields have the kind array.  The kinds volume and volume_mask have the axes
    (n[, channels], depth, height, width).

    >>> import numpy
    >>> pipe = drapps.from_arrays(image=numpy.zeros((10, 8, 8, 3), "uint8"), label=numpy.arange(10))
    >>> len(pipe)
    10
    """
    import numpy

    rows = []
    for name, value in {**(arrays or {}), **fields}.items():
        value = numpy.ascontiguousarray(value)
        kind = (kinds or {}).get(name) or kind_by_name(name, value.shape[1:], {**(arrays or {}), **fields})
        if kind in ("boxes", "keypoints"):
            value = numpy.ascontiguousarray(value, "float32")
        rows.append((name, value, kind))
    return Pipeline(_core.from_arrays(tuple(rows)))


def kind_by_name(name, shape, fields):
    """Return the default kind of a field, by its name and the shape of its arrays in each sample."""
    if name in ("image", "mask"):
        return name if len(shape) in (2, 3) else "array"
    fits = {
        "boxes": len(shape) == 2 and shape[-1] == 4,
        "keypoints": len(shape) >= 2 and shape[-1] in (2, 3),
        "masks": len(shape) == 3,
        "labels": len(shape) >= 1 and "boxes" in fields,
    }
    return name if fits.get(name) and "image" in fields else "array"


def mix(pipes, weights=None, length=0):
    """Return a pipeline over several sources with the same fields: source i fills weights[i] / sum of each epoch.

    weights: default: by size.
    length: samples per epoch; 0: the sum of the sources' samples.

    >>> both = drapps.mix([drapps.read(folder), drapps.read(folder)], weights=[3, 1])
    >>> len(both)
    12
    """
    for pipe in pipes:
        if pipe.stages:
            raise _core.ArgumentError("mix: mix the sources first, then add ops")
    weights = [len(pipe) for pipe in pipes] if weights is None else weights
    datasets = tuple(pipe.dataset for pipe in pipes)
    return Pipeline(_core.mix(datasets, tuple(float(w) for w in weights), length))


# --- arguments ---


def _names(names):
    if names is None:
        return ()
    return tuple(names.replace(" ", "").split(",")) if isinstance(names, str) else tuple(names)


def _joined(names):
    return None if names is None else ",".join(_names(names))


def _collate(rules):
    if rules is None or isinstance(rules, str):
        return rules
    return ",".join(f"{field}={rule}" for field, rule in rules.items())


def _file(value):
    return None if value is None else os.fsdecode(value)


def _reference(reference):
    if reference is None:
        return os.environ.get("DRAPPS_REFERENCE", "0") not in ("", "0")
    return reference


def _rank(rank, world_size):
    if rank and rank != "auto" and world_size == 1:
        raise _core.ArgumentError(f"rank must be below world_size = 1, got {rank}: give world_size=, too")
    if rank != "auto":
        return rank, world_size
    import sys

    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def _node_from_json(i, node):
    op = Op(node["op"], node.get("params", {}))
    return Node(node.get("id", i + 1), op, tuple(node.get("fields", ())), tuple(node.get("outputs", ())))


def _stage_text(stage):
    if isinstance(stage, PythonStage):
        field = f", field={stage.field!r}" if stage.field else ""
        return f".{stage.kind}({getattr(stage.function, '__name__', stage.function)}{field})"
    arguments = [f"{key}={call_text(value)}" for key, value in stage.op.params.items()]
    if stage.fields:
        arguments.append(f"fields={','.join(stage.fields)!r}")
    if stage.out:
        arguments.append(f"out={','.join(stage.out)!r}")
    return f".{stage.op.name}({', '.join(arguments)})"
