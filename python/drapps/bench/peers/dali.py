"""NVIDIA DALI on the CPU: crop fused into the decoder, antialiased resize, batches without a copy."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from .. import workload
from ..peer import Peer, installed

DECODE = {"device": "cpu", "output_type": types.RGB, "adjust_orientation": False}


def finish(images, mirror):
    """Resize, flip, float32, normalise, CHW."""
    size = [workload.SIZE, workload.SIZE]
    images = fn.resize(images, size=size, interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=mirror,
                                    mean=[255 * m for m in workload.MEAN], std=[255 * s for s in workload.STD])


@pipeline_def
def train(files):
    jpegs, labels = fn.readers.file(files=list(files.paths), labels=list(files.labels), random_shuffle=True,
                                    initial_fill=len(files), name="Reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=list(workload.SCALE),
                                           random_aspect_ratio=list(workload.RATIO), num_attempts=10, **DECODE)
    return finish(images, fn.random.coin_flip(probability=0.5)), fn.cast(labels, dtype=types.INT64)


@pipeline_def
def given(source):
    jpegs, start, shape, mirror = fn.external_source(
        source, num_outputs=4, batch=False, dtype=[types.UINT8, types.INT32, types.INT32, types.INT32])
    return finish(fn.decoders.image_slice(jpegs, start=start, shape=shape, axes=[0, 1], **DECODE), mirror)


class Dali(Peer):
    def version(self):
        return installed("nvidia-dali-cuda120")

    def batches(self, settings):
        pipe = train(self.files, batch_size=workload.BATCH, num_threads=settings.get("threads", 2), device_id=None,
                     prefetch_queue_depth=settings.get("queue", 2), seed=1)
        pipe.build()
        while True:
            images, _ = pipe.run()
            yield np.asarray(images.as_tensor())

    def pixels(self, boxes):
        def source(info):
            if info.idx_in_epoch >= len(boxes):
                raise StopIteration
            b = boxes[info.idx_in_epoch]
            x, y, w, h = b["box"]
            data = np.fromfile(self.files.paths[b["index"]], np.uint8)
            start, shape = np.array([[y, x], [h, w]], np.int32)
            return data, start, shape, np.array(b["flip"], np.int32)

        pipe = given(source, batch_size=1, num_threads=1, device_id=None, seed=1)
        pipe.build()
        return [np.array(pipe.run()[0].as_tensor())[0] for _ in boxes]


PEER = Dali
