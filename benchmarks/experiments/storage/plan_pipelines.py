"""The pipelines of `drapps experiment storage planner`: photographs, large ones, volumes, arrays, a Python data set."""

import pathlib
import re
import zlib

import drapps
import numpy as np

from benchmarks.experiments.storage.codec_data import files

PHOTOS = ("*.JPEG", "*.jpeg", "*.jpg")
TEXT_BYTES, TOKENS, VOCABULARY, WIDTH = 4096, 512, 4096, 128
MOST_VOXELS = 1 << 22


def repeated(paths, samples):
    """So many paths; each again where there are too few."""
    return [str(path) for path in (paths * (1 + samples // len(paths)))[:samples]] if paths else []


def _photos(paths, samples):
    paths = repeated(paths, samples)
    return paths and (drapps.read(paths).decode().resize(256)
                      .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
                      .random_crop(224).random_horizontal_flip())  # fmt: skip


def imagenet(root, samples):
    """Photographs of ImageNet's size."""
    return _photos(files(root / "imagenet", *PHOTOS), samples)


def large(root, samples):
    """Large photographs."""
    return _photos(files(root / "photos", *PHOTOS), max(samples // 4, 8))


def volumes(root, samples):
    """NIfTI files of one channel, resampled; without huge ones, which each strategy would store unpacked."""
    def chain(paths):
        return (drapps.read(paths).decode_volume().resample_volume(size=(64, 64, 64))
                .normalize_intensity(mean=100.0, std=300.0).random_flip_volume())  # fmt: skip

    good = []
    for path in files(root / "volumes", "*.nii.gz", "*.nii"):
        try:
            whole = drapps.read([str(path)]).decode_volume()[0]["image"]
            if whole.size > MOST_VOXELS:
                continue
            good += [path] if chain([str(path)])[0]["image"].shape == (1, 64, 64, 64) else []
        except drapps.Error:  # several channels, or damaged
            continue
    paths = repeated(good, max(samples // 4, 8))
    return paths and chain(paths)


def arrays(root, samples):
    """Pixels that are in memory already, as many programs have them."""
    paths = repeated(files(root / "imagenet", *PHOTOS), samples)
    if not paths:
        return None
    pixels = drapps.read(paths).decode().resize((160, 160)).loader(batch_size=len(paths), layout="NHWC", output="numpy")
    with pixels:
        images = next(iter(pixels.batches()))["image"].copy()
    return (drapps.from_arrays(image=images).resize((128, 128))
            .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
            .random_crop(112).random_horizontal_flip())  # fmt: skip


def tokens_of(text):
    """Numbers of the words of a text, in Python."""
    words = re.findall(r"\w+|[^\w\s]", bytes(text).decode("utf-8", "replace").lower())
    found = np.zeros(TOKENS, np.int32)
    ids = [zlib.crc32(word.encode()) % VOCABULARY for word in words[:TOKENS]]
    found[: len(ids)] = ids
    return found


class Embedding:
    """A table of vectors: what makes large arrays of few tokens."""

    def __init__(self):
        self._table = np.random.default_rng(0).standard_normal((VOCABULARY, WIDTH)).astype(np.float32)

    def __call__(self, tokens):
        return self._table[tokens]


def python(root, samples):
    """Texts that are tokenized by a function marked as deterministic, then embedded by one that is not."""
    parts = []
    for path in files(root / "text", "*.txt"):
        text = np.frombuffer(path.read_bytes(), np.uint8)
        parts += [text[at : at + TEXT_BYTES] for at in range(0, len(text) - TEXT_BYTES, TEXT_BYTES)]
    if not parts:
        return None
    pipe = drapps.from_arrays(text=np.stack((parts * (1 + samples // len(parts)))[:samples]))
    return pipe.map(tokens_of, field="text", deterministic=True).map(Embedding(), field="text")


PIPELINES = {"imagenet": imagenet, "large": large, "volumes": volumes, "arrays": arrays, "python": python}


def pipeline(name, root, samples):
    """The pipeline, or None where the folder has no data for it."""
    return PIPELINES[name](pathlib.Path(root), samples) or None
