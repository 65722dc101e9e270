"""preview: a page that shows what a pipeline does: each sample as it leaves beside its original."""

import html
import os

import numpy

from drapps import _core
from drapps.pipeline import Node, Pipeline
from drapps.png import data_uri

SHOWN_PIXELS = 256  # longest side of an image on the page

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 24px; color: #222; background: #fafafa }}
h1 {{ font-size: 18px }} pre {{ background: #eee; padding: 12px; overflow-x: auto }}
main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: 16px }}
figure {{ margin: 0; padding: 12px; background: #fff; border: 1px solid #ddd; border-radius: 6px }}
figure div {{ display: flex; gap: 8px; align-items: start }}
img {{ max-width: 200px; image-rendering: pixelated }}
figcaption {{ margin-top: 8px; font-size: 12px; overflow-wrap: anywhere; color: #555 }}
</style></head><body>
<h1>{title}</h1>
<p>Left: the original. Right: what the pipeline delivers (epoch {epoch}, seed {seed}).</p>
<pre>{pipeline}</pre>
<main>
{figures}
</main></body></html>
"""


def write_preview(pipe, path, n=32, seed=0, epoch=0):
    """Writes the page; see Pipeline.preview."""
    if n < 1:
        raise _core.ArgumentError(f"preview: n is {n}, must be at least 1")
    n = min(n, len(pipe))
    after, keys = _samples(pipe, n, seed, epoch)
    before, _ = _samples(_original(pipe), n, seed, epoch)
    restore = _unnormalize(pipe)
    figures = [
        _figure(keys[i], _shown(before[i]), _shown(restore(after[i]))) for i in range(min(len(before), len(after)))
    ]
    title = html.escape(f"{len(figures)} samples of {pipe.dataset.name}")
    page = PAGE.format(
        title=title, epoch=epoch, seed=seed, pipeline=html.escape(repr(pipe)), figures="\n".join(figures)
    )
    with open(os.fspath(path), "w", encoding="utf-8") as file:
        file.write(page)


def _samples(pipe, n, seed, epoch):
    """The first n images of an epoch in the data set's order, and their keys.  Sizes may differ: no batch is formed."""
    if n == 0:
        return [], []
    options = {"workers": 0, "outputs": "image", "collate": {"image": "list"}, "layout": "NHWC", "output": "numpy"}
    with pipe.loader(batch_size=n, seed=seed, **options) as loader:
        loader.set_epoch(epoch)
        batch = next(loader.batches())
        return batch["image"], [pipe.dataset.key(i) for i in batch.ids]


def _original(pipe):
    """The pipeline up to its decoding."""
    stages = []
    for stage in pipe.stages:
        if not isinstance(stage, Node) or stage.op.name != "decode":
            break
        stages.append(stage)
    return Pipeline(pipe.dataset, stages)


def _unnormalize(pipe):
    """Undoes a normalize of the chain, so that its result can be looked at."""
    for stage in pipe.stages:
        if isinstance(stage, Node) and stage.op.name == "normalize":
            mean, std = (numpy.asarray(stage.op.params[key], dtype=numpy.float32) for key in ("mean", "std"))
            return lambda image: image * std + mean
    return lambda image: image


def _shown(image):
    """An image as (height, width, channels) of uint8, small enough for a page."""
    image = numpy.asarray(image)
    image = image[:, :, None] if image.ndim == 2 else image
    step = -(-max(image.shape[:2]) // SHOWN_PIXELS)
    image = image[::step, ::step]
    if image.dtype == numpy.uint16:
        image = image >> 8
    elif image.dtype != numpy.uint8:
        image = numpy.rint(numpy.clip(image.astype(numpy.float32), 0, 1) * 255)
    return numpy.ascontiguousarray(image.astype(numpy.uint8))


def _figure(key, before, after):
    images = "".join(f'<img src="{data_uri(*image.shape, image.tobytes())}" alt="">' for image in (before, after))
    return f"<figure><div>{images}</div><figcaption>{html.escape(key)}</figcaption></figure>"
