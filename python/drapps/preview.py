"""Pipeline.preview: samples after the pipeline beside their originals, as a page or in a notebook."""

import html
from collections.abc import Mapping
from itertools import takewhile

import numpy

from drapps import _core
from drapps.arguments import PREVIEW, check
from drapps.counted import counted
from drapps.sample_html import STYLE, draw
from drapps.optable import TABLE, graph_json
from drapps.pipeline import Node
from drapps.stages import Sample, from_rows
from drapps.atomic_write import write_atomic

DECODING = ("decode", "decode_masks")
DRAWN = ("mask", "masks", "boxes", "keypoints")  # kinds of fields that are drawn onto the image

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 24px; color: #222; background: #fafafa }}
h1 {{ font-size: 18px }} pre {{ background: #eee; padding: 12px; overflow-x: auto }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""

BODY = """{style}<p>Left: the original. Right: what the pipeline delivers (epoch {epoch}, seed {seed}).</p>
<pre>{pipeline}</pre>
<div class="drapps-preview">
{figures}
</div>"""


class Preview:
    """Samples of a pipeline beside their originals.  A notebook displays it; write(path) makes a page."""

    def __init__(self, title, body, samples):
        self.title = title
        self.samples = samples
        self._body = body

    def write(self, path):
        """Write a self-contained HTML page; return its size in bytes."""
        page = PAGE.format(title=html.escape(self.title), body=self._body).encode()
        write_atomic(path, page)
        return len(page)

    def _repr_html_(self):
        return self._body

    def __repr__(self):
        return f"<drapps preview of {self.title}: a notebook displays it, write(path) makes a page>"


def make_preview(pipe, n=16, seed=0, epoch=0, classes=None):
    """Return a preview of the first samples of an epoch; see Pipeline.preview."""
    check(PREVIEW, {"n": n, "seed": seed, "epoch": epoch, "classes": classes})
    _check_pipe(pipe)
    originals, restore = Originals(pipe, seed, epoch), _unnormalize(pipe)
    name_of = _namer(pipe.classes if classes is None else classes)
    names = originals.names_to_draw(min(n, len(pipe)))
    batch = _first_batch(pipe, min(n, len(pipe)), seed, epoch, names)
    figures = []
    for i, sample_id in enumerate(batch.ids if batch else ()):
        before = originals.sample(sample_id)
        after = {name: batch[name][i] for name in names}
        after["image"] = restore(after["image"])
        images = draw(before.fields, before.kinds, name_of) + draw(after, before.kinds, name_of)
        notes = [_label_text(before.fields.get("label"), name_of)]
        notes += [_draw_text(drawn) for drawn in ({} if pipe.has_python else batch.draws(i)).values()]
        figures.append(_figure(pipe.dataset.key(sample_id), images, [note for note in notes if note]))
    body = BODY.format(
        style=STYLE, epoch=epoch, seed=seed, pipeline=html.escape(repr(pipe)), figures="\n".join(figures)
    )
    return Preview(f"{counted(len(figures), 'sample')} of {pipe.dataset.name}", body, len(figures))


def _check_pipe(pipe):
    if not len(pipe):
        raise _core.ArgumentError(f"preview: {pipe.dataset.name} has no samples")
    for stage in pipe.stages:
        if isinstance(stage, Node) and "batch" in TABLE[stage.op.name]["flags"]:
            raise _core.ArgumentError(f"preview: {stage.op.name} works on whole batches: preview the chain before it")


def _first_batch(pipe, n, seed, epoch, names):
    """Return the first n samples of an epoch in the data set's order.  Sizes may differ; bad samples are left out."""
    options = {"workers": 0, "outputs": names, "collate": dict.fromkeys(names, "list"), "layout": "NHWC",
               "output": "numpy", "on_bad_sample": "skip", "keep_draws": not pipe.has_python}  # fmt: skip
    with pipe.loader(batch_size=n, seed=seed, **options) as loader:
        loader.set_epoch(epoch)
        return next(loader.batches(), None)


class Originals:
    """Samples that are only decoded, by id."""

    def __init__(self, pipe, seed, epoch):
        nodes = list(takewhile(lambda stage: isinstance(stage, Node) and stage.op.name in DECODING, pipe.stages))
        made = [name for node in nodes for name in node.out]
        fields = ",".join(dict.fromkeys([*(field[0] for field in pipe.dataset.fields), *made]))
        self.dataset, self.seed, self.epoch = pipe.dataset, seed, epoch
        self.runner = _core.open_runner(pipe.dataset,
                                        _core.graph_from_json(graph_json([node.to_json() for node in nodes])),
                                        fields, False)  # fmt: skip

    def sample(self, sample_id) -> Sample:
        """Return the original of a sample, with the kinds of its fields."""
        sample = from_rows(sample_id, self.runner.run(self.seed, self.epoch, sample_id, 0))
        if sample.kinds.get("mask") == "image" and sample.fields["mask"].shape[2:] == (1,):  # a decoded file
            sample.kinds["mask"] = "mask"
        return sample

    def names_to_draw(self, n):
        """Return the fields that can be shown, from the first readable sample of n."""
        for position in range(n):
            sample_id, _ = _core.order_sample(self.dataset, self.seed, self.epoch, False, position)
            try:
                kinds = self.sample(sample_id).kinds
            except (_core.Error, OSError):
                continue
            has_boxes = "boxes" in kinds.values()
            drawn = [name for name, kind in kinds.items() if kind in DRAWN]
            of_boxes = [name for name, kind in kinds.items() if has_boxes and "labels" in (name, kind)]
            return ["image", *drawn, *of_boxes]
        return ["image"]


def _unnormalize(pipe):
    """Return a function that undoes the chain's normalize, so that its result can be shown."""
    for stage in pipe.stages:
        if isinstance(stage, Node) and stage.op.name == "normalize":
            mean, std = (numpy.asarray(stage.op.params[key], dtype=numpy.float32) for key in ("mean", "std"))
            return lambda image: image * std + mean
    return lambda image: image


# --- texts ---


def _namer(classes):
    """Return a function from a class number to its name, or to its digits if it has no name."""
    known = classes if isinstance(classes, Mapping) else dict(enumerate(classes))
    return lambda number: str(known.get(number, number))


def _label_text(label, name_of):
    """ant (0), or the number alone."""
    if label is None or isinstance(label, (bytes, numpy.ndarray)):
        return ""
    name = name_of(label)
    return f"label: {label}" if name == str(label) else f"label: {name} ({label})"


def _figure(key, images, notes):
    lines = "".join(f"<br>{html.escape(note)}" for note in notes)
    return (f'<figure><div class="pair">{images}</div>'
            f"<figcaption><b>{html.escape(key)}</b>{lines}</figcaption></figure>")  # fmt: skip


def _draw_text(draw):
    """random_horizontal_flip: mirror=True"""
    values = ", ".join(f"{name}={_value_text(value)}" for name, value in draw.items() if name != "op")
    return f"{draw['op']}: {values}"


def _value_text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
