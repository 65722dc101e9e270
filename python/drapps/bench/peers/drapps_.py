"""drapps by its Python API, with its defaults except for the seek points; torch tensors without a copy."""

import itertools
import os

import drapps

from .. import workload
from ..peer import Peer

EPOCHS_JOINED = 200


class Drapps(Peer):
    def version(self):
        return f"drapps {drapps.__version__}"

    def _pipeline(self, joined=False, decoder="auto"):
        source = drapps.read(self.files.root, extensions=workload.EXTENSIONS)
        if joined:  # one long epoch, as for the peers that pause between epochs
            source = drapps.mix([source], length=EPOCHS_JOINED * len(source))
        pipe = source.decode(decoder=decoder).random_resized_crop(workload.SIZE).random_horizontal_flip()
        return pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)

    def batches(self, settings):
        settings = dict(settings)
        pipe = self._pipeline(settings.pop("joined", False), settings.pop("decoder", "auto"))
        loader = pipe.loader(batch_size=workload.BATCH, shuffle=True, seed=0, **settings)
        for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
            images = batch["image"] if isinstance(batch, dict) else batch[0]  # a flat folder has no labels
            yield images.numpy() if hasattr(images, "numpy") else images

    def draw(self, settings):
        """Return the crops of the second epoch of the bench's loader, and their pixels."""
        import numpy as np

        pipe = self._pipeline()
        index = {os.path.relpath(path, self.files.root): i for i, path in enumerate(self.files.paths)}
        crop, flip = (self._node(pipe, op) for op in ("random_resized_crop", "random_horizontal_flip"))
        boxes, samples = [], []
        loader = pipe.loader(batch_size=workload.BATCH, shuffle=True, seed=0, keep_draws=True, output="numpy",
                             **settings)
        for _ in loader.batches():
            pass  # seek points (if kept) are learnt here and used in the epoch that is compared
        for batch in loader.batches():
            for k, sample_id in enumerate(batch.ids):
                drawn = batch.draws(k)
                box = [drawn[crop][key] for key in ("left", "top", "width", "height")]
                boxes.append({"index": index[pipe.dataset.key(sample_id)], "box": box,
                              "flip": bool(drawn[flip]["mirror"])})
                samples.append(np.array(batch["image"][k]))
        return boxes, samples

    @staticmethod
    def _node(pipe, op):
        return next(stage.id for stage in pipe.stages if stage.op.name == op)


PEER = Drapps
