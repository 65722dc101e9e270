"""SPDL: a pipeline of threads; FFmpeg decodes, crops and scales; torch normalises the batch."""

import random

import spdl.io
import torch
from spdl.pipeline import PipelineBuilder

from .. import workload
from ..peer import Peer, installed

MULTIPLY, ADD = (torch.tensor(v).view(1, 3, 1, 1) for v in workload.scale_and_shift())


def decode(path, draw):
    """Return the frame of a crop; draw(width, height) returns the crop and whether to mirror it."""
    with open(path, "rb") as f:
        packets = spdl.io.demux_image(f.read())
    size = (packets.width, packets.height) if hasattr(packets, "width") else packets.image_size
    (x, y, w, h), flip = draw(*size)
    steps = [f"crop={w}:{h}:{x}:{y}:exact=1", f"scale={workload.SIZE}:{workload.SIZE}:flags=bilinear"]
    return spdl.io.decode_packets(packets, filter_desc=",".join(steps + ["hflip"] * flip + ["format=rgb24"]))


def finish(frames):
    """Convert frames to a normalised batch, NCHW."""
    images = spdl.io.to_torch(spdl.io.convert_frames(frames)).permute(0, 3, 1, 2)
    out = torch.empty(images.shape)
    return torch.mul(images, MULTIPLY, out=out).add_(ADD)


class Spdl(Peer):
    def version(self):
        return installed("spdl-core", "spdl-io")

    def _batch(self, indices):
        def draw(width, height):
            return workload.draw_box(width, height), random.random() < 0.5

        return finish([decode(self.files.paths[i], draw) for i in indices])

    def batches(self, settings):
        torch.set_num_threads(1)  # the pipeline's threads use the cores
        threads = settings.get("threads", 2)
        builder = PipelineBuilder().add_source(workload.shuffled(self.files)).aggregate(workload.BATCH)
        pipeline = builder.pipe(self._batch, concurrency=threads).add_sink(2).build(num_threads=threads)
        with pipeline.auto_stop():
            for images in pipeline:
                yield images.numpy()

    def pixels(self, boxes):
        for b in boxes:
            frame = decode(self.files.paths[b["index"]], lambda width, height: (b["box"], b["flip"]))
            yield finish([frame]).numpy()[0]


PEER = Spdl
