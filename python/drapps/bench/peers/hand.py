"""Written by hand for speed: threads of one process, simplejpeg, OpenCV's area filter, a table for float32.

This is what a skilled user gets from fast libraries in Python.  OpenCV has no antialiased bilinear filter; INTER_AREA
is the closest.
"""

import queue
import random
import threading

import cv2
import numpy as np
import simplejpeg

from .. import workload
from ..peer import Peer, installed

cv2.setNumThreads(0)  # our threads use the cores
TABLES = [np.arange(256, dtype=np.float32) * np.float32(m) + np.float32(a) for m, a in zip(*workload.scale_and_shift())]


def write_sample(path, out, draw):
    """Decode `path` and write the crop of draw(width, height) into out (3, 224, 224)."""
    with open(path, "rb") as f:
        image = simplejpeg.decode_jpeg(f.read(), "RGB")
    (x, y, w, h), flip = draw(image.shape[1], image.shape[0])
    size = workload.SIZE, workload.SIZE
    image = cv2.resize(image[y:y + h, x:x + w], size, interpolation=cv2.INTER_AREA)
    for plane, table, target in zip(cv2.split(cv2.flip(image, 1) if flip else image), TABLES, out):
        cv2.LUT(plane, table, dst=target)


def random_draw(width, height):
    return workload.draw_box(width, height), random.random() < 0.5


class Hand(Peer):
    def version(self):
        return installed("simplejpeg", "opencv-python-headless")

    def _work(self, indices, lock, ready):
        while True:
            with lock:
                batch = [next(indices) for _ in range(workload.BATCH)]
            out = np.empty((workload.BATCH, 3, workload.SIZE, workload.SIZE), np.float32)
            for slot, i in zip(out, batch):
                write_sample(self.files.paths[i], slot, random_draw)
            ready.put(out)

    def batches(self, settings):
        indices, lock, ready = workload.shuffled(self.files), threading.Lock(), queue.Queue(2)
        for _ in range(settings.get("threads", 2)):
            threading.Thread(target=self._work, args=(indices, lock, ready), daemon=True).start()
        while True:
            yield ready.get()

    def pixels(self, boxes):
        for b in boxes:
            out = np.empty((3, workload.SIZE, workload.SIZE), np.float32)
            write_sample(self.files.paths[b["index"]], out, lambda width, height: (b["box"], b["flip"]))
            yield out


PEER = Hand
