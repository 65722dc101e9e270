"""Ops with backend="tensor" equal torchvision's v2 on tensors of bytes, replayed with what was drawn."""

import numpy as np
import pytest
import torch

import op_runner
from test_op_parity_geometry import SIZES, image

op_runner.import_torchvision()
from torchvision.transforms.v2 import functional as F  # noqa: E402

pytestmark = pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
                                reason="without AVX2 torch resizes bytes otherwise")  # fmt: skip
INTERPOLATIONS = ["nearest", "nearest-exact", "bilinear", "bicubic"]
LEVELS = ("c", "avx2", "best")


@pytest.fixture(scope="module")
def ops():
    runner = op_runner.OpRunner()
    yield runner
    runner.close()


def tensor(array):
    """As ToImage makes it: channels come first, and are innermost in memory."""
    return torch.from_numpy(array).permute(2, 0, 1)


def check(got, want, what):
    want = want.permute(1, 2, 0).numpy()
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, what)
    apart = int((got != want).sum())
    assert not apart, f"{apart} values differ: {what}"


def sides(rng, most):
    """Any, those of training, and powers of two, whose weights fall halfway between two coefficients."""
    some = int(rng.integers(1, most)), int(rng.choice([1, 2, 3, 7])), int(2 ** rng.integers(1, 10))
    return some[int(rng.choice(3, p=(0.6, 0.1, 0.3)))]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_resize(ops, channels, antialias, interpolation):
    rng = np.random.default_rng(channels)
    style = {"interpolation": interpolation, "antialias": antialias}
    for i in range(40):
        array = image(sides(rng, 300), sides(rng, 300), channels, seed=i)
        size = [sides(rng, 250), sides(rng, 250)]
        if i % 8 == 0:
            size[i // 8 % 2] = array.shape[i // 8 % 2]
        _, got = ops.run("resize", array, size=size, **style, backend="tensor", level=LEVELS[i % 3])
        check(got, F.resize(tensor(array), size, **style), (array.shape, size, style))
        _, got = ops.run("resize", array, size=24, **style, backend="tensor")
        check(got, F.resize(tensor(array), [24], **style), (array.shape, 24, style))


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_random_resized_crop(ops, channels, antialias, interpolation):
    style = {"interpolation": interpolation, "antialias": antialias}
    for seed, (height, width) in enumerate([*SIZES, (500, 375), (640, 480)] * 2):
        array = image(height, width, channels)
        box, got = ops.run("random_resized_crop", array, size=[224, 96], **style, backend="tensor", seed=seed)
        check(got, F.resized_crop(tensor(array), **box, size=[224, 96], **style), (array.shape, box, style))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS[:2])
def test_nearest_of_floats(ops, interpolation):
    array = image(37, 53, 3).astype(np.float32) / 255
    for size in ([20, 31], [80, 99], [37, 10]):
        _, got = ops.run("resize", array, size=size, interpolation=interpolation, backend="tensor")
        check(got, F.resize(tensor(array), size, interpolation=interpolation), size)


def test_masks_take_torchs_neighbours(ops):
    mask = np.random.default_rng(3).integers(0, 9, (41, 33, 1)).astype(np.uint8)
    _, got = ops.run("resize", mask, size=[17, 29], backend="tensor", kind="mask")
    check(got, F.resize_mask(tensor(mask), [17, 29]), "mask")


# --- colours ---


def noise(channels, seed=0, low=0, high=256, size=(61, 47)):
    return np.random.default_rng(seed).integers(low, high, (*size, channels)).astype(np.uint8)


PARTS = {"brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation,
         "hue": F.adjust_hue}  # fmt: skip


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("part", PARTS)
def test_color_jitter(ops, channels, part):
    rng = np.random.default_rng(1)
    for seed in range(30):
        factor = float(rng.uniform(-0.5, 0.5) if part == "hue" else rng.uniform(0, 3))
        array = noise(channels, seed, high=256 if seed % 2 else 90, size=(47, 33) if seed else (420, 610))
        _, got = ops.run("color_jitter", array, **{part: [factor, factor]}, backend="tensor")
        check(got, PARTS[part](tensor(array), factor), (part, factor))


def test_the_parts_in_the_order_drawn(ops):
    ranges = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.9, "hue": 0.3}
    for op, order in (("color_jitter", "order"), ("random_photometric_distort", "parts")):
        for seed in range(12):
            array = noise(3, seed)
            draw, got = ops.run(op, array, **(ranges if op == "color_jitter" else {}), backend="tensor", seed=seed)
            want = tensor(array)
            for part in draw[order]:
                want = list(PARTS.values())[part](want, draw[list(PARTS)[part]])
            if draw.get("permutation"):
                want = F.permute_channels(want, draw["permutation"])
            check(got, want, draw)


def test_every_colour(ops):
    """The luminance of all of them, and a turn of the hue of each."""
    value = np.arange(1 << 24, dtype=np.uint32)
    cube = np.stack([value & 255, value >> 8 & 255, value >> 16], -1).astype(np.uint8).reshape(4096, 4096, 3)
    _, got = ops.run("grayscale", cube, backend="tensor")
    check(got, F.rgb_to_grayscale(tensor(cube)), "grayscale")
    part = np.ascontiguousarray(cube[::8])
    _, got = ops.run("color_jitter", part, hue=[-0.2, -0.2], backend="tensor")
    check(got, F.adjust_hue(tensor(part), -0.2), "hue")


@pytest.mark.parametrize("channels", [1, 3])
def test_tones(ops, channels):
    for seed, (low, high) in enumerate([(0, 256), (20, 200), (7, 9), (5, 6), (100, 131)]):
        array = noise(channels, seed, low, high)
        for factor in (0, 0.5, 1, 1.7, 9):
            _, got = ops.run("random_adjust_sharpness", array, sharpness_factor=factor, p=1, backend="tensor")
            check(got, F.adjust_sharpness(tensor(array), factor), ("sharpness", factor))
        for op, function, params in (("random_autocontrast", F.autocontrast, {"backend": "tensor"}),
                                     ("random_grayscale", lambda t: F.rgb_to_grayscale(t, channels),
                                      {"backend": "tensor"}), ("random_equalize", F.equalize, {}),
                                     ("random_invert", F.invert, {})):  # fmt: skip
            _, got = ops.run(op, array, p=1, **params)
            check(got, function(tensor(array)), (op, low, high))
    tiny = noise(channels, size=(2, 9))
    _, got = ops.run("random_adjust_sharpness", tiny, sharpness_factor=3, p=1, backend="tensor")
    check(got, tensor(tiny), "too small to be sharpened")


def test_what_the_backend_does_not_have(ops):
    for interpolation in ("box", "hamming", "lanczos"):
        with pytest.raises(op_runner.OpError, match="tensor backend must be nearest"):
            ops.run("resize", image(20, 20, 3), size=8, interpolation=interpolation, backend="tensor")
