"""preview: a page that shows what a pipeline does: each sample as it leaves beside its original."""

import html

import numpy

from drapps import _core
from drapps.optable import graph_json
from drapps.pipeline import Node
from drapps.png import data_uri
from drapps.whole import write_whole

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
    batch = _first_batch(pipe, min(n, len(pipe)), seed, epoch)
    originals, restore = Originals(pipe), _unnormalize(pipe)
    figures = []
    for i, sample_id in enumerate(batch.ids if batch else ()):
        drawn = {} if pipe.has_python else batch.draws(i)
        figures.append(_figure(pipe.dataset.key(sample_id), drawn, _shown(originals.image(sample_id, seed, epoch)),
                               _shown(restore(batch["image"][i]))))  # fmt: skip
    title = html.escape(f"{len(figures)} samples of {pipe.dataset.name}")
    page = PAGE.format(
        title=title, epoch=epoch, seed=seed, pipeline=html.escape(repr(pipe)), figures="\n".join(figures)
    )
    write_whole(path, page.encode())


def _first_batch(pipe, n, seed, epoch):
    """The first n samples of an epoch in the data set's order; sizes may differ, and bad ones are left out."""
    options = {"workers": 0, "outputs": "image", "collate": {"image": "list"}, "layout": "NHWC", "output": "numpy",
               "on_bad_sample": "skip", "keep_draws": not pipe.has_python}  # fmt: skip
    with pipe.loader(batch_size=n, seed=seed, **options) as loader:
        loader.set_epoch(epoch)
        return next(loader.batches(), None)


class Originals:
    """Samples as they are before any op but the decoding, by id."""

    def __init__(self, pipe):
        nodes = []
        for stage in pipe.stages:
            if not isinstance(stage, Node) or stage.op.name != "decode":
                break
            nodes.append(stage.to_json())
        self.runner = _core.open_runner(pipe.dataset, _core.graph_from_json(graph_json(nodes)), "image", False)

    def image(self, sample_id, seed, epoch):
        """The original of a sample."""
        ((_, _, dtype, dims, data),) = self.runner.run(seed, epoch, sample_id, 0)
        return numpy.frombuffer(data, dtype).reshape(dims)


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
    if image.ndim not in (2, 3):
        raise _core.ArgumentError(f"preview: an image has the shape {image.shape}; is a .decode() missing?")
    image = image[:, :, None] if image.ndim == 2 else image
    step = -(-max(image.shape[:2]) // SHOWN_PIXELS)
    image = image[::step, ::step]
    if image.dtype == numpy.uint16:
        image = image >> 8
    elif image.dtype != numpy.uint8:
        image = numpy.rint(numpy.clip(image.astype(numpy.float32), 0, 1) * 255)
    return numpy.ascontiguousarray(image.astype(numpy.uint8))


def _figure(key, drawn, before, after):
    images = "".join(f'<img src="{data_uri(*image.shape, image.tobytes())}" alt="">' for image in (before, after))
    draws = "".join(f"<br>{html.escape(_draw_text(draw))}" for draw in drawn.values())
    return f"<figure><div>{images}</div><figcaption><b>{html.escape(key)}</b>{draws}</figcaption></figure>"


def _draw_text(draw):
    """random_horizontal_flip: mirror=True"""
    values = ", ".join(f"{name}={_value_text(value)}" for name, value in draw.items() if name != "op")
    return f"{draw['op']}: {values}"


def _value_text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
