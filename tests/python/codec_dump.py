"""Pixels as the C program decode_dump gives them, and as Pillow does."""

import random
import subprocess
import warnings

import numpy as np
from PIL import Image, ImageOps

from golden import find_program

MODES = {"rgb": "RGB", "gray": "L", "rgba": "RGBA"}


class DecodeError(Exception):
    pass


def dump(path, mode="rgb", orient=False, scale=1, rects=()):
    """The rectangles of an image (or the whole of it) as decode_dump gives them, and its first line."""
    numbers = [str(int(v)) for rect in rects for v in rect]
    run = subprocess.run(
        [find_program("decode_dump"), str(path), mode, str(int(orient)), str(scale), *numbers], capture_output=True
    )
    if run.returncode:
        raise DecodeError(run.stderr.decode(errors="replace").strip())
    line, data = run.stdout.split(b"\n", 1)
    width, height, channels, dtype = line.split()[:4]
    shapes = [(int(h), int(w), int(channels)) for _, _, w, h in rects] or [(int(height), int(width), int(channels))]
    flat = np.frombuffer(data, dtype=dtype.decode())
    ends = np.cumsum([np.prod(s) for s in shapes])
    assert flat.size == ends[-1]
    return [part.reshape(s) for part, s in zip(np.split(flat, ends[:-1]), shapes)], line.decode()


def pillow(path, mode="rgb", orient=False):
    """Opened as torchvision does it: by its name Pillow would map some TIFF files into memory and turn them wrongly."""
    with open(path, "rb") as file, Image.open(file) as image:
        image.load()
        if orient:
            image = ImageOps.exif_transpose(image)
        pixels = np.asarray(image.convert(MODES[mode]))
    return pixels.reshape(*pixels.shape[:2], -1)


def random_rects(rng, width, height, n):
    for _ in range(n):
        w, h = rng.randint(1, width), rng.randint(1, height)
        if rng.random() < 0.2:
            w = rng.randint(1, min(width, 9))
        yield rng.randint(0, width - w), rng.randint(0, height - h), w, h


def differing_rects(path, want, rects, **how):
    parts, _ = dump(path, rects=rects, **how)
    return [r for r, got in zip(rects, parts) if not np.array_equal(got, want[r[1] : r[1] + r[3], r[0] : r[0] + r[2]])]


def outcome(function, *args):
    """What it returns, or None where it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception:  # noqa: BLE001  # Pillow raises many kinds
        return None


def assert_as_pillow(path, seed=0):
    """Whole in each mode, with and without turning, and six rectangles."""
    for mode in MODES:
        for orient in (False, True):
            want = pillow(path, mode, orient)
            (got,), line = dump(path, mode, orient)
            assert got.shape == want.shape and np.array_equal(got, want), f"{path.name} {mode}: {line}"
    want = pillow(path)
    rects = list(random_rects(random.Random(seed), want.shape[1], want.shape[0], 6))
    assert not differing_rects(path, want, rects), path.name


def assert_refused(path, words):
    """drapps names the reason; what Pillow does with the file does not matter."""
    try:
        _, line = dump(path)
    except DecodeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{path.name} was decoded: {line}")


def differing_cuts(path, n=12, seed=0):
    """Beginnings of a file that only one of both opens, or of which they make different pixels."""
    data, short, rng = path.read_bytes(), path.with_name("short" + path.suffix), random.Random(seed)
    found = []
    for cut in sorted({len(data) - 1, len(data) - 2, *(rng.randrange(4, len(data)) for _ in range(n))}):
        short.write_bytes(data[:cut])
        want = outcome(pillow, short)
        got = outcome(lambda: dump(short)[0][0])
        if (want is None) != (got is None) or (want is not None and not np.array_equal(got, want)):
            found.append((cut, "opened" if got is not None else "refused"))
    short.unlink()
    return found
