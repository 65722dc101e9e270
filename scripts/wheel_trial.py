"""Tries an installed wheel: reads a folder of files of every kind and checks that every shared library that the
extension uses, except the C library's own, comes out of the wheel and not from the system."""

import importlib.util
import sys
from pathlib import Path

for name in ("torch", "PIL"):
    assert importlib.util.find_spec(name) is None, f"{name} is here; this is to be tried without"

import numpy as np

before = set(Path("/proc/self/maps").read_text().split())

import drapps

CODEC_LIBRARIES = ("libjpeg", "libpng", "libwebp", "libgif", "libtiff", "libdeflate", "libjbig", "libLerc",
                   "libjansson", "libxxhash", "liblz4", "libzstd", "libsnappy", "libsharpyuv")


def loaded_since(before):
    return {word for word in Path("/proc/self/maps").read_text().split() if ".so" in word and word not in before}


def main():
    pipe = drapps.read(sys.argv[1]).decode().resize(64).center_crop(48).normalize(mean=[0.5] * 3, std=[0.25] * 3)
    images, labels = zip(*pipe.loader(batch_size=5))
    assert [part.shape for part in images] == [(5, 3, 48, 48), (5, 3, 48, 48), (2, 3, 48, 48)], images
    assert all(isinstance(part, np.ndarray) and part.dtype == np.float32 for part in images)
    assert sorted(np.concatenate(labels).tolist()) == [0] * 6 + [1] * 6
    assert drapps.read([f"{sys.argv[1]}/../frame.gif"]).decode()[0]["image"].shape == (81, 79, 3)
    bundled = [name for name in loaded_since(before) if "drapps.libs" in name]
    strays = [name for name in loaded_since(before)
              if Path(name).name.startswith(CODEC_LIBRARIES) and name not in bundled]
    assert bundled, "no library of the wheel was loaded"
    assert not strays, f"libraries of the system were used: {strays}"
    print("wheel: 13 images read;", len(bundled), "libraries, all from the wheel")


main()
