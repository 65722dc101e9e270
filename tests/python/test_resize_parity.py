"""Resizing equals Pillow's Image.resize of the cropped image, bit for bit.

The program tests/golden/resize_check does the resizing, at each CPU level.  DRAPPS_SEED repeats a run.
"""

import os
import random
import struct
import subprocess

import numpy
import pytest
from golden import find_program
from PIL import Image, features

FILTERS = {f.name: f for f in Image.Resampling if f.name in "NEAREST LANCZOS BILINEAR BICUBIC BOX HAMMING".split()}
MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # CMYK: four plain channels, which Pillow does not premultiply
SEED = int(os.environ.get("DRAPPS_SEED", "1"))


class Resizer:
    """A running resize_check."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, pixels, box, size, filter, level, rule=0):
        height, width, channels = pixels.shape
        left, top, right, bottom = box
        head = (level, filter, rule, channels, width, height, left, top, right - left, bottom - top, *size, 0)
        self.process.stdin.write(struct.pack("=13i", *head) + pixels.tobytes())
        self.process.stdin.flush()
        data = self.process.stdout.read(size[0] * size[1] * channels)
        return numpy.frombuffer(data, numpy.uint8).reshape(size[1], size[0], channels)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


@pytest.fixture(scope="module")
def levels():
    return range(int(subprocess.check_output([find_program("resize_check"), "--level"])) + 1)


@pytest.fixture(scope="module")
def resizer():
    resizer = Resizer(find_program("resize_check"))
    yield resizer
    resizer.close()


def image(draw, width, height, channels):
    """Noise, or stripes of black and white, where the filters overshoot most."""
    if draw.random() < 0.7:
        data = draw.randbytes(width * height * channels)
        return numpy.frombuffer(data, numpy.uint8).reshape(height, width, channels)
    y, x = numpy.mgrid[:height, :width]
    stripes = ((x // draw.randint(1, 5) + y // draw.randint(1, 5)) % 2 * 255).astype(numpy.uint8)
    return numpy.repeat(stripes[:, :, None], channels, axis=2)


def pillow(pixels, box, size, filter):
    mode = MODES[pixels.shape[2]]
    whole = Image.frombytes(mode, (pixels.shape[1], pixels.shape[0]), pixels.tobytes())
    result = numpy.asarray(whole.crop(box).resize(size, filter))
    return result.reshape(size[1], size[0], pixels.shape[2])


def check(resizer, levels, pixels, box, size, filter):
    want = pillow(pixels, box, size, filter)
    for level in levels:
        got = resizer(pixels, box, size, filter, level)
        n_wrong = int((got != want).sum())
        assert n_wrong == 0, f"{n_wrong} values differ: {pixels.shape} {box} -> {size} {filter.name} level {level}"


def side(draw, most):
    return draw.choice((1, 2, 3)) if draw.random() < 0.1 else draw.randint(1, most)


@pytest.mark.parametrize("channels", MODES)
@pytest.mark.parametrize("filter", FILTERS.values(), ids=lambda f: f.name.lower())
def test_random_boxes(resizer, levels, filter, channels):
    draw = random.Random(f"{SEED} {filter} {channels}")
    for _ in range(120):
        width, height = side(draw, 160), side(draw, 160)
        left, top = draw.randrange(width), draw.randrange(height)
        box = (left, top, draw.randint(left + 1, width), draw.randint(top + 1, height))
        size = (side(draw, 200), side(draw, 200))
        if draw.random() < 0.1:
            size = (box[2] - box[0], size[1])
        if draw.random() < 0.1:
            size = (size[0], box[3] - box[1])
        check(resizer, levels, image(draw, width, height, channels), box, size, filter)


@pytest.mark.parametrize("filter", FILTERS.values(), ids=lambda f: f.name.lower())
def test_training_crops(resizer, levels, filter):
    """RandomResizedCrop(224) as training draws it: sides of a third to three times 224."""
    draw = random.Random(f"{SEED} crops {filter}")
    pixels = image(draw, 700, 690, 3)
    for _ in range(25):
        w, h = draw.randint(70, 680), draw.randint(70, 680)
        left, top = draw.randint(0, 700 - w), draw.randint(0, 690 - h)
        check(resizer, levels, pixels, (left, top, left + w, top + h), (224, 224), filter)


def test_order_of_passes(resizer, levels):
    """Pillow 13 does the vertical pass first where the height loses more than twice what the width does."""
    if tuple(map(int, features.version("pil").split(".")[:1])) < (13,):
        pytest.skip("Pillow before 13 always does the horizontal pass first")
    draw = random.Random(f"{SEED} order")
    for w, h, out_w, out_h in [(60, 90, 40, 50), (60, 90, 40, 49), (60, 90, 40, 51), (60, 90, 90, 89), (60, 90, 90, 91),
                               (90, 60, 80, 40), (90, 60, 80, 39), (33, 99, 11, 33), (7, 400, 6, 398), (7, 400, 6, 397),
                               (2, 500, 50, 300), (1, 500, 1, 300), (900, 901, 899, 900), (901, 900, 900, 897)]:
        check(resizer, levels, image(draw, w, h, 3), (0, 0, w, h), (out_w, out_h), Image.Resampling.BILINEAR)
