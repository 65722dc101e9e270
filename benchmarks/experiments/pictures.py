"""Generated image files for experiments, and files that are not in the page cache."""

import os
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from benchmarks.experiments.disturb import beside

CLASSES, EACH, WIDTH, HEIGHT = 8, 64, 500, 375  # of make_images
DIFFERENT = 24  # different pictures; files repeat them


def picture(rng, side, quality=90):
    """Return a JPEG of coloured blobs with some noise, as bytes."""
    import numpy
    from PIL import Image

    rough = rng.integers(0, 256, (max(2, side // 16), max(2, side // 16), 3), dtype=numpy.uint8)
    pixels = numpy.asarray(Image.fromarray(rough).resize((side, side), Image.Resampling.BICUBIC), dtype=numpy.int16)
    noise = rng.integers(-12, 13, (side, side, 1), dtype=numpy.int16)
    out = BytesIO()
    Image.fromarray((pixels + noise).clip(0, 255).astype(numpy.uint8)).save(out, "JPEG", quality=quality)
    return out.getvalue()


def write_pictures(folder, n, side, seed, quality=90, first=0):
    """Write n files of pictures whose sides are within a quarter of `side`."""
    import numpy

    rng = numpy.random.default_rng(seed)
    drawn = [picture(rng, int(side * rng.uniform(0.85, 1.15)), quality) for _ in range(min(n, DIFFERENT))]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for i in range(n):
        with open(f"{folder}/{first + i:06}.jpg", "wb") as file:
            file.write(drawn[i % len(drawn)])


def forget(folder):
    """Drop files from the page cache, as if memory were too small for them.  Unwritten pages stay."""
    for entry in os.scandir(folder):
        handle = os.open(entry.path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


@contextmanager
def forgotten(folder, every=2.0):
    """Drop the files of a folder repeatedly inside the with block, to imitate a data set larger than memory."""
    os.sync()
    forget(folder)

    def again(end):
        while not end.wait(every):
            forget(folder)

    with beside(again):
        yield


def make_images(folder, classes=CLASSES, each=EACH, size=(WIDTH, HEIGHT), seed=0):
    """Fill folder/images with `each` JPEG files in each of `classes` folders; return its path.

    Blurred shapes with noise: they take as long to decode as photographs of their size.
    """
    import numpy as np
    from PIL import Image

    rng, root = np.random.default_rng(seed), os.path.join(folder, "images")
    for label in range(classes):
        os.makedirs(os.path.join(root, f"class{label}"))
        for k in range(each):
            coarse = rng.integers(0, 255, (12, 16, 3), np.uint8)  # shapes,
            picture = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.int16)
            picture = picture + rng.normal(0, 12, picture.shape) + 4 * label  # and texture, which costs bits
            image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
            image.save(os.path.join(root, f"class{label}", f"{k:04d}.jpg"), quality=90)
    return root
