"""tf.data: decode_and_crop_jpeg, antialiased resize, parallel map, prefetch."""

import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

from .. import workload  # noqa: E402
from ..peer import Peer  # noqa: E402

MULTIPLY, ADD = (tf.constant(v, tf.float32) for v in workload.scale_and_shift())
LOG_RATIO = [math.log(r) for r in workload.RATIO]


def draw_box(height, width):
    """Draw a box as torchvision does, in TensorFlow ops: TensorFlow's own sampler draws smaller
    crops, which are less work."""
    height, width = tf.cast(height, tf.float32), tf.cast(width, tf.float32)
    area = height * width * tf.random.uniform([10], *workload.SCALE)
    ratio = tf.exp(tf.random.uniform([10], *LOG_RATIO))
    w, h = tf.round(tf.sqrt(area * ratio)), tf.round(tf.sqrt(area / ratio))
    fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
    first, any_fits = tf.argmax(tf.cast(fits, tf.int32)), tf.reduce_any(fits)
    w = tf.where(any_fits, w[first], tf.minimum(width, tf.round(height * workload.RATIO[1])))
    h = tf.where(any_fits, h[first], tf.minimum(height, tf.round(width / workload.RATIO[0])))
    y = tf.where(any_fits, tf.floor(tf.random.uniform([]) * (height - h + 1)), tf.floor((height - h) / 2))
    x = tf.where(any_fits, tf.floor(tf.random.uniform([]) * (width - w + 1)), tf.floor((width - w) / 2))
    return tf.cast(tf.stack([tf.minimum(y, height - h), tf.minimum(x, width - w), h, w]), tf.int32)


def crop_and_resize(data, window):
    image = tf.io.decode_and_crop_jpeg(data, window, channels=3)
    image = tf.image.resize(image, [workload.SIZE, workload.SIZE], method="bilinear", antialias=True)
    image.set_shape([workload.SIZE, workload.SIZE, 3])
    return image


def finish(image):
    return tf.transpose(image * MULTIPLY + ADD, [2, 0, 1])


def load(path, label):
    data = tf.io.read_file(path)
    shape = tf.image.extract_jpeg_shape(data)
    image = crop_and_resize(data, draw_box(shape[0], shape[1]))
    return finish(tf.image.random_flip_left_right(image)), label


class TfData(Peer):
    def version(self):
        return f"tensorflow {tf.__version__}"

    def batches(self, settings):
        files = list(self.files.paths), tf.constant(self.files.labels, tf.int64)
        data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(self.files)).repeat()
        data = data.map(load, num_parallel_calls=settings.get("calls", tf.data.AUTOTUNE), deterministic=False)
        for images, _ in data.batch(workload.BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE):
            yield images.numpy()

    def pixels(self, boxes):
        for b in boxes:
            x, y, w, h = b["box"]
            image = crop_and_resize(tf.io.read_file(self.files.paths[b["index"]]), tf.constant([y, x, h, w]))
            yield finish(tf.image.flip_left_right(image) if b["flip"] else image).numpy()


PEER = TfData
