"""Writes a few images of each kind into a folder, for trying a wheel where there is no Pillow."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

rng = np.random.default_rng(0)
for i, suffix in enumerate(["jpg", "png", "webp", "bmp", "ppm", "tif"] * 2):
    folder = Path(sys.argv[1]) / ("odd" if i % 2 else "even")
    folder.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (70 + i, 90 - i, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / f"{i}.{suffix}")
Image.fromarray(pixels).save(Path(sys.argv[1]).with_name("frame.gif"))  # of no folder: ImageFolder passes it over
