"""Batches, draws, orders and states are what they were when golden_bytes.json was written: bytes never change in
silence.

Everything here is exact on every machine: no libm, no library that decodes, the same numbers with and without SIMD.  A
change that is meant raises the version of its op and writes the file anew: DRAPPS_REGOLD=1 pytest
tests/python/test_golden_bytes.py
"""

import hashlib
import json
import os
import pathlib

import numpy
import pytest
import torch

import drapps
from drapps.optable import TABLE

PATH = pathlib.Path(__file__).with_name("golden_bytes.json")
GOLDEN = json.loads(PATH.read_text()) if PATH.exists() else {}
N = 12

# Settings where the defaults do nothing or lack something; what does not take single images is elsewhere below.
SETTINGS = {
    "center_crop": {"size": 20}, "color_jitter": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    "crop": {"top": 3, "left": 5, "height": 17, "width": 21}, "gaussian_blur": {"kernel_size": 5},
    "normalize": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}, "pad": {"padding": [3, 1]},
    "random_adjust_sharpness": {"sharpness_factor": 1.7}, "random_affine": {"degrees": 25, "translate": [0.1, 0.2]},
    "random_apply": {"transforms": [drapps.ops.random_invert(p=1)]},
    "random_choice": {"transforms": [drapps.ops.random_invert(p=1), drapps.ops.random_vertical_flip(p=1)]},
    "random_crop": {"size": 24}, "random_order": {"transforms": [drapps.ops.random_invert(), drapps.ops.pad(2)]},
    "random_posterize": {"bits": 3}, "random_resized_crop": {"size": 24}, "random_rotation": {"degrees": 30},
    "random_solarize": {"threshold": 99}, "resize": {"size": [23, 31]}, "to_dtype": {"dtype": "float32", "scale": True},
}  # fmt: skip
INEXACT = {"aug_mix"}  # its float sums are torchvision's, and may differ between machines
OTHER_INPUT = {"decode", "decode_masks", "decode_volume"}
VOLUMES = {"normalize_intensity": {"mean": 3, "std": 2}, "pad_volume": {"size": 14},
           "random_balanced_crop": {"size": 8},
           "random_brightness": {"p": 0.7}, "random_flip_volume": {}, "random_gaussian_noise": {"p": 0.7},
           "resample_volume": {"size": [8, 9, 10]}}  # fmt: skip
BOXES = ("clamp_bounding_boxes", "random_iou_crop", "random_zoom_out", "sanitize_bounding_boxes",
         "truncate_bounding_boxes")
BATCHES = ("cutmix", "mixup")


def noise(*shape):
    """Numbers that no library's generator decides."""
    values = numpy.arange(int(numpy.prod(shape)), dtype=numpy.uint64)
    values = (values ^ (values >> numpy.uint64(7))) * numpy.uint64(0x9E3779B97F4A7C15)
    return (values >> numpy.uint64(51)).astype(numpy.uint8).reshape(shape)


def images():
    smooth = noise(N, 8, 9, 3).repeat(5, axis=1).repeat(4, axis=2)
    return drapps.from_arrays(image=smooth, label=numpy.arange(N))


def volumes():
    return drapps.from_arrays(image=noise(N, 1, 10, 12, 11).astype(numpy.float32), label=noise(N, 1, 10, 12, 11) % 3,
                              kinds={"image": "volume", "label": "volume_mask"})  # fmt: skip


def boxes():
    corners = (noise(N, 5, 2) % 20).astype(numpy.float32) + 0.25
    both = numpy.concatenate([corners, corners + 3 + noise(N, 5, 2) % 14], axis=2)
    return drapps.from_arrays(image=noise(N, 40, 36, 3), boxes=both, labels=numpy.arange(5 * N).reshape(N, 5))


def add(digest, value):
    if isinstance(value, (list, tuple)):
        for one in value:
            add(digest, one)
    else:
        array = numpy.ascontiguousarray(value)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())


def of_loader(pipe, epochs=2, **options):
    digest = hashlib.sha256()
    loader = pipe.loader(**{"batch_size": 5, "shuffle": True, "seed": 7, "output": "numpy", "collate": {"*": "list"},
                            "workers": 2, **options})  # fmt: skip
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for batch in loader.batches():
            add(digest, [numpy.array(batch.ids), *(batch[name] for name in batch)])
    return digest.hexdigest()[:32]


def check(name, found):
    if "DRAPPS_REGOLD" in os.environ:
        GOLDEN[name] = found
        PATH.write_text(json.dumps(dict(sorted(GOLDEN.items())), indent=1) + "\n")
    assert GOLDEN.get(name) == found


def test_every_op_has_a_hash():
    wanted = set(TABLE) - INEXACT - OTHER_INPUT
    assert {name[3:] for name in GOLDEN if name.startswith("op ")} == wanted


@pytest.mark.parametrize("name", [name for name in TABLE if name not in INEXACT | OTHER_INPUT])
def test_op(name):
    if name in VOLUMES:
        pipe = getattr(volumes(), name)(**VOLUMES[name])
    elif name in BOXES:
        pipe = getattr(boxes(), name)()
    elif name in BATCHES:
        pipe = getattr(images().normalize(mean=[0.5], std=[0.5]), name)(num_classes=N)
    else:
        pipe = getattr(images(), name)(**SETTINGS.get(name, {}))
    check(f"op {name}", of_loader(pipe))


CHAIN = (images().random_resized_crop(24).random_horizontal_flip().color_jitter(brightness=0.3)
         .normalize(mean=[0.5] * 3, std=[0.25] * 3))  # fmt: skip


@pytest.mark.parametrize("name, options", [
    ("in order", {"shuffle": False}), ("shuffled", {}), ("seed", {"seed": 8}), ("ranks", {"rank": 1, "world_size": 3}),
    ("drop last", {"last": "drop"}), ("half", {"dtype": "float16"}), ("in the caller", {"workers": 0}),
])  # fmt: skip
def test_loader(name, options):
    half = options.pop("dtype", None)
    check(f"loader {name}", of_loader(CHAIN.to_dtype(half) if half else CHAIN, **options))


def test_state():
    loader = CHAIN.loader(batch_size=5, shuffle=True, seed=7, output="numpy", workers=2)
    next(iter(loader))
    state = json.dumps(loader.state_dict(), sort_keys=True, default=str)
    check("state", hashlib.sha256(state.encode()).hexdigest()[:32])


class Drawing(torch.utils.data.Dataset):
    """What torch, random and NumPy draw for a sample in a worker."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        import random

        return torch.rand(3), random.random(), numpy.random.rand(), index


def test_draws_in_workers():
    digest = hashlib.sha256()
    for batch in drapps.DataLoader(Drawing(), 4, shuffle=True, num_workers=2, seed=3):
        add(digest, batch)
    check("workers", digest.hexdigest()[:32])
