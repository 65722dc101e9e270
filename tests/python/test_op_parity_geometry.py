"""Geometric and numeric ops equal torchvision on PIL images (on tensors where there is no PIL form), replayed with what
was drawn.  TOLERANCE is the promise per op; docs/parity.md shows it to users."""

import json
import math
import re
import subprocess

import numpy as np
import pytest
import torch
from PIL import Image

import op_runner

torchvision = op_runner.import_torchvision()
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

# Largest difference allowed, in units of the result (uint8 steps, or float values).
TOLERANCE = {
    "center_crop": 0,
    "crop": 0,
    "cutmix": 0,
    "mixup": 0,
    "normalize": 0,
    "pad": 0,
    "random_affine": 0,
    "random_crop": 0,
    "random_erasing": 0,
    "random_horizontal_flip": 0,
    "random_resized_crop": 0,
    "random_rotation": 0,
    "random_vertical_flip": 0,
    "resize": 0,
    "to_dtype": 0,
}

INTERPOLATIONS = ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]
TURN_FILTERS = ["nearest", "bilinear", "bicubic"]
SIZES = [(37, 53), (64, 64), (90, 41), (1, 7), (5, 1), (251, 333)]
TORCH = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "uint8": torch.uint8}


@pytest.fixture(scope="module")
def ops():
    runner = op_runner.OpRunner()
    yield runner
    runner.close()


def image(height, width, channels, seed=0):
    """Smooth parts, noise and flat parts in one picture."""
    rng = np.random.default_rng(seed + 1000 * height + width)
    y, x = np.mgrid[0:height, 0:width]
    smooth = 127 + 120 * np.sin(x / 7 + y / 11)[..., None] * np.ones(channels)
    noise = rng.integers(0, 256, (height, width, channels))
    pick = rng.integers(0, 3, (height, width, 1)) if height * width < 4000 else (x // 9 + y // 9)[..., None] % 3
    return np.where(pick == 0, smooth, np.where(pick == 1, noise, 200)).astype(np.uint8)


def pil(array):
    return Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)


def pixels(picture):
    array = np.asarray(picture)
    return array[..., None] if array.ndim == 2 else array


def check(op, got, want, what=""):
    assert got.shape == want.shape and got.dtype == want.dtype, (op, got.shape, got.dtype, want.shape, what)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0)
    assert difference <= TOLERANCE[op], f"{op} {what}: differs by {difference}"


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_resize(ops, channels, interpolation):
    cases = [({"size": 24}, [24], None), ({"size": [31, 17]}, [31, 17], None), ({"size": [80, 99]}, [80, 99], None),
             ({"size": 20, "max_size": 30}, [20], 30), ({"size": None, "max_size": 44}, None, 44)]
    for height, width in [(37, 53), (64, 64), (90, 41)]:
        array = image(height, width, channels)
        for params, size, most in cases:
            _, got = ops.run("resize", array, **params, interpolation=interpolation)
            want = F.resize(pil(array), size, interpolation=interpolation, max_size=most)
            check("resize", got, pixels(want), (height, width, params))


def test_resize_output_sizes(ops):
    rng = np.random.default_rng(5)
    for _ in range(40):
        height, width = map(int, rng.integers(1, 200, 2))
        size = int(rng.integers(1, 60))
        array = np.zeros((height, width, 1), np.uint8)
        _, got = ops.run("resize", array, size=size, interpolation="nearest")
        assert got.shape[:2] == tuple(F.resize(pil(array), [size], interpolation="nearest").size[::-1])


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_random_resized_crop(ops, channels, interpolation):
    for seed, (height, width) in enumerate(SIZES * 3):
        array = image(height, width, channels)
        params = {"size": [28, 33], "interpolation": interpolation}
        box, got = ops.run("random_resized_crop", array, **params, seed=seed)
        want = F.resized_crop(pil(array), **box, size=[28, 33], interpolation=interpolation)
        check("random_resized_crop", got, pixels(want), (height, width, box))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_crops(ops, channels):
    for height, width in SIZES:
        array = image(height, width, channels)
        for size in (8, [30, 12], [200, 9], [7, 200], [91, 54]):
            _, got = ops.run("center_crop", array, size=size)
            check("center_crop", got, pixels(F.center_crop(pil(array), size)), (height, width, size))
        for box in ((3, 4, 20, 10), (-5, 2, 30, 30), (10, -7, 100, 100), (500, 500, 4, 4)):
            _, got = ops.run("crop", array, **dict(zip(("top", "left", "height", "width"), box)))
            check("crop", got, pixels(F.crop(pil(array), *box)), (height, width, box))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pad(ops, channels, mode):
    for height, width in SIZES:
        array = image(height, width, channels)
        for padding in (3, [5, 2], [1, 2, 3, 4], [60, 70, 80, 90], [-2, 3, 4, -1]):
            if min(np.atleast_1d(padding)) < 0 and min(height, width) < 6:
                continue
            for fill in (0, 130.7, list(range(10, 10 + channels))):
                params = {"padding": padding, "padding_mode": mode, "fill": fill}
                _, got = ops.run("pad", array, **params)
                want = F.pad(pil(array), padding, fill=fill, padding_mode=mode)
                check("pad", got, pixels(want), (height, width, params))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_random_crop(ops, mode):
    for seed, (height, width) in enumerate(SIZES):
        array = image(height, width, 3)
        for size, padding in (([20, 16], None), (32, 4), ([40, 30], [3, 8]), ([50, 90], [1, 2, 3, 4])):
            params = {"size": size, "padding": padding, "pad_if_needed": True, "fill": [9, 8, 7], "padding_mode": mode}
            draw, got = ops.run("random_crop", array, **params, seed=seed)
            want = F.pad(pil(array), draw["padding"], fill=[9, 8, 7], padding_mode=mode)
            want = F.crop(want, draw["top"], draw["left"], draw["height"], draw["width"])
            check("random_crop", got, pixels(want), (height, width, params, draw))


@pytest.mark.parametrize("op", ["random_horizontal_flip", "random_vertical_flip"])
def test_flips(ops, op):
    flip = F.horizontal_flip if "horizontal" in op else F.vertical_flip
    for channels in (1, 3, 4):
        for seed, (height, width) in enumerate(SIZES):
            array = image(height, width, channels)
            draw, got = ops.run(op, array, seed=seed)
            check(op, got, pixels(flip(pil(array))) if draw["mirror"] else array, draw)


@pytest.mark.parametrize("interpolation", TURN_FILTERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_random_rotation(ops, channels, interpolation):
    for seed, (height, width) in enumerate(SIZES):
        array = image(height, width, channels)
        for degrees in (180, [0, 0], [90, 90], [180, 180], [270, 270], [45, 45], [-30, -30], [360, 720]):
            for expand in (False, True):
                for center in (None, [3, 12.5]):
                    params = {"degrees": degrees, "interpolation": interpolation, "expand": expand, "center": center,
                              "fill": [200] if channels == 1 else list(range(100, 100 + channels))}
                    draw, got = ops.run("random_rotation", array, **params, seed=seed)
                    want = F.rotate(pil(array), draw["angle"], interpolation=interpolation, expand=expand,
                                    center=center, fill=params["fill"])
                    check("random_rotation", got, pixels(want), (height, width, params, draw))


@pytest.mark.parametrize("interpolation", TURN_FILTERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_random_affine(ops, channels, interpolation):
    settings = [{"degrees": 30}, {"degrees": 0}, {"degrees": 0, "translate": [0.4, 0.2]},
                {"degrees": [90, 90], "translate": [0.1, 0.1]}, {"degrees": 0, "scale": [0.3, 3]},
                {"degrees": 0, "shear": 20}, {"degrees": 180, "translate": [0.3, 0.3], "scale": [0.5, 2],
                                              "shear": [-30, 30, -20, 20], "center": [4, 7.5]}]
    for seed, (height, width) in enumerate(SIZES * 2):
        array = image(height, width, channels)
        for setting in settings:
            params = {**setting, "interpolation": interpolation, "fill": 77}
            draw, got = ops.run("random_affine", array, **params, seed=seed)
            want = F.affine(pil(array), draw["angle"], [draw["translate_x"], draw["translate_y"]], draw["scale"],
                            [draw["shear_x"], draw["shear_y"]], interpolation=interpolation, fill=77,
                            center=setting.get("center"))
            check("random_affine", got, pixels(want), (height, width, params, draw))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_random_erasing(ops, dtype):
    for seed in range(12):
        array = image(50, 40, 3, seed)
        if dtype == "float32":
            array = array.astype(np.float32) / 255
        for value in (0, [0.25, 100.5, 7]):
            draw, got = ops.run("random_erasing", array, p=0.8, value=value, seed=seed)
            want = array.copy()
            if draw["erase"]:
                tensor = torch.from_numpy(want).permute(2, 0, 1)
                erased = F.erase(tensor, draw["top"], draw["left"], draw["height"], draw["width"],
                                 torch.tensor(value, dtype=torch.float32).reshape(-1, 1, 1))
                want = erased.permute(1, 2, 0).numpy()
            check("random_erasing", got, want, draw)


def test_random_erasing_noise(ops):
    """Noise cannot equal torch's numbers; it must be normal, and only inside the rectangle."""
    array = np.full((200, 200, 3), 5, np.float32)
    draw, got = ops.run("random_erasing", array, p=1, value=None, scale=[0.3, 0.3], seed=3)
    inside = np.zeros((200, 200), bool)
    inside[draw["top"]:draw["top"] + draw["height"], draw["left"]:draw["left"] + draw["width"]] = True
    assert (got[~inside] == 5).all()
    values = np.sort(got[inside].ravel())
    normal = 0.5 * (1 + torch.erf(torch.from_numpy(values.astype(np.float64)) / math.sqrt(2))).numpy()
    steps = np.arange(1, len(values) + 1) / len(values)
    assert np.abs(normal - steps).max() < 1.95 / math.sqrt(len(values))


def as_tensor(array, dtype):
    tensor = torch.from_numpy(array.view(np.int16) if dtype == "bfloat16" else array)
    tensor = tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor
    return tensor.permute(2, 0, 1)


def bits(tensor):
    tensor = tensor.permute(1, 2, 0).contiguous()
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def float_image(dtype, channels=3, low=0.0, high=0.999):
    values = torch.rand((31, 29, channels), generator=torch.Generator().manual_seed(1)) * (high - low) + low
    return bits(values.permute(2, 0, 1).to(TORCH[dtype]))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("to", list(TORCH))
@pytest.mark.parametrize("source", list(TORCH))
def test_to_dtype(ops, source, to, scale):
    array = image(40, 33, 3) if source == "uint8" else float_image(source)
    if source == "float16" and to == "uint8":
        array = np.minimum(array, np.float16(0.99))     # above it, torch's product rounds to 256 and is undefined
    if source == "bfloat16" and to == "uint8":
        array = float_image(source, high=0.98)
    _, got = ops.run("to_dtype", array, dtype=to, scale=scale, element=source)
    want = bits(F.to_dtype(as_tensor(array, source), TORCH[to], scale))
    check("to_dtype", got, want, (source, to, scale))


@pytest.mark.parametrize("dtype", list(TORCH))
def test_normalize(ops, dtype):
    array = image(40, 33, 3) if dtype == "uint8" else float_image(dtype)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    _, got = ops.run("normalize", array, mean=mean, std=std, element=dtype)
    tensor = as_tensor(array, dtype)
    want = F.normalize(F.to_dtype(tensor, torch.float32, True) if dtype == "uint8" else tensor, mean, std)
    check("normalize", got, bits(want), dtype)


def run_batch(folder, op, images, labels, layout, seed):
    job = {"op": op, "params": {"num_classes": 10, "alpha": 0.7}, "seed": seed, "shape": images.shape[1:],
           "layout": layout, "samples": len(images), "labels": str(labels.dtype), "classes": 10}
    np.ascontiguousarray(images).tofile(folder / "images")
    labels.tofile(folder / "labels")
    done = subprocess.run([op_runner.find_program("batch_run"), json.dumps(job), folder / "images", folder / "labels"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    mixed = np.fromfile(folder / "images", np.float32).reshape(images.shape)
    return json.loads(done.stdout), mixed, np.fromfile(folder / "labels", np.float32).reshape(-1, 10)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("kind", ["int64", "float32"])
@pytest.mark.parametrize("op", ["mixup", "cutmix"])
def test_batch_mixing(tmp_path, op, kind, layout):
    rng = np.random.default_rng(2)
    for seed in range(5):
        images = rng.random((6, 3, 18, 25), dtype=np.float32)
        labels = rng.integers(0, 10, 6) if kind == "int64" else rng.random((6, 10), dtype=np.float32)
        planar = layout == "CHW"
        draw, got, weights = run_batch(tmp_path, op, images if planar else images.transpose(0, 2, 3, 1), labels, layout,
                                       seed)
        transform = (v2.MixUp if op == "mixup" else v2.CutMix)(num_classes=10)
        label = torch.from_numpy(labels)
        params = {"labels": label, "batch_size": 6, "lam": draw["lam"], "lam_adjusted": draw["lam"],
                  "box": [draw.get(k) for k in ("x1", "y1", "x2", "y2")]}
        want = transform.transform(torch.from_numpy(images), params).numpy()
        check(op, got if planar else got.transpose(0, 3, 1, 2), want, draw)
        check(op, weights, transform.transform(label, params).numpy(), "labels")


@pytest.mark.parametrize("op, params", [
    ("resize", {"size": [20, 31]}), ("random_resized_crop", {"size": 20}), ("random_rotation", {"degrees": 40}),
    ("random_affine", {"degrees": 40, "shear": 10}), ("pad", {"padding": 3, "fill": 9}),
    ("random_crop", {"size": 80, "pad_if_needed": True, "fill": 9})])
def test_masks_keep_their_values(ops, op, params):
    """Masks are moved, never mixed: only values of the input, and 0 outside."""
    rng = np.random.default_rng(8)
    mask = (rng.integers(0, 5, (40, 50, 1)) * 70000 + 1).astype(np.int32)
    bilinear = {} if op in ("pad", "random_crop") else {"interpolation": "bilinear"}
    _, got = ops.run(op, mask, **params, **bilinear, seed=4, kind="mask")
    assert got.dtype == np.int32
    assert set(np.unique(got)) <= set(np.unique(mask)) | {0}


@pytest.mark.parametrize("op, params", [("normalize", {"mean": 0.5, "std": 0.5}), ("to_dtype", {"scale": True}),
                                        ("random_erasing", {"p": 1})])
def test_masks_pass(ops, op, params):
    mask = image(20, 30, 1)
    _, got = ops.run(op, mask, **params, kind="mask")
    assert got.dtype == np.uint8 and (got == mask).all()


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_c_kernels_give_the_same(ops, interpolation):
    array = image(90, 120, 3)
    params = {"size": 64, "interpolation": interpolation}
    _, best = ops.run("random_resized_crop", array, **params, seed=5)
    _, plain = ops.run("random_resized_crop", array, **params, seed=5, level="c")
    assert (best == plain).all()


def test_the_page_says_the_same():
    page = (op_runner.ROOT / "docs" / "parity.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.M))
    assert {op: int(rows[op]) for op in TOLERANCE} == TOLERANCE
