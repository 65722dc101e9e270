"""Colour and augmentation ops equal torchvision on PIL images, replayed with what was drawn.

TOLERANCE says how far a value may be off, and in how many of a million values; docs/parity.md repeats it.
DRAPPS_SEED repeats a run.
"""

import math
import os
import re

import numpy
import pytest
import torch
from PIL import Image

import op_runner

torchvision = op_runner.import_torchvision()
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

SEED = int(os.environ.get("DRAPPS_SEED", "1"))

# op: (largest difference, values per million that differ at all); 0 means none
TOLERANCE = {
    "aug_mix": (255, 2500),  # torch's kernels differ by CPU, and a value that rounds otherwise may pass a threshold
    "auto_augment": (0, 0),
    "color_jitter": (0, 0),
    "gaussian_blur": (1, 200),
    "grayscale": (0, 0),
    "rand_augment": (0, 0),
    "random_adjust_sharpness": (0, 0),
    "random_apply": (0, 0),
    "random_autocontrast": (0, 0),
    "random_choice": (0, 0),
    "random_equalize": (0, 0),
    "random_grayscale": (0, 0),
    "random_invert": (0, 0),
    "random_order": (0, 0),
    "random_posterize": (0, 0),
    "random_solarize": (0, 0),
    "trivial_augment_wide": (0, 0),
}

PRIMITIVES = (
    "Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize "
    "AutoContrast Equalize Invert"
).split()


@pytest.fixture(scope="module")
def ops():
    runner = op_runner.OpRunner()
    yield runner
    runner.close()


def photo_like(height, width, channels, seed=SEED):
    """Smooth shapes, noise, flat patches and full-range corners: no part of the value range is missing."""
    rng = numpy.random.default_rng((seed, height, width, channels))
    y, x = numpy.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.5, 4, 3)
        wave = numpy.sin(a * x / width * 3 + c) + numpy.cos(b * y / height * 3)
        planes.append(127 + 60 * wave + rng.normal(0, 12, (height, width)))
    image = numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)
    image[: height // 4, : width // 4] = rng.integers(0, 256, channels)
    image[height // 2 :, width // 2 :] = rng.integers(0, 256, (height - height // 2, width - width // 2, channels))
    return image


def narrow(height, width, channels):
    """Few values, as autocontrast and equalize need them."""
    rng = numpy.random.default_rng((SEED, 5))
    return rng.integers(40, 90, (height, width, channels)).astype(numpy.uint8)


IMAGES = {
    "rgb": photo_like(61, 83, 3),
    "grey": photo_like(61, 83, 1),
    "large": photo_like(224, 224, 3),
    "narrow": narrow(40, 33, 3),
    "narrow grey": narrow(40, 33, 1),
    "flat": numpy.full((20, 30, 3), 77, numpy.uint8),
    "tiny": photo_like(2, 5, 3),
    "one": photo_like(1, 1, 3),
    "row": photo_like(1, 300, 3),
}


@pytest.fixture(params=IMAGES)
def image(request):
    return IMAGES[request.param]


def pil(array):
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def array(image):
    values = numpy.asarray(image)
    return values[:, :, None] if values.ndim == 2 else values


def check(op, got, want):
    """Within the op's tolerance."""
    want = array(want)
    assert got.shape == want.shape
    most, per_million = TOLERANCE[op]
    difference = numpy.abs(got.astype(int) - want.astype(int))
    assert difference.max(initial=0) <= most, f"{op}: differs by {difference.max()}"
    allowed = math.ceil(difference.size * per_million / 1e6)
    assert (difference > 0).sum() <= allowed, f"{op}: {(difference > 0).sum()} of {got.size} values differ"


# The ops with a probability: the setting, and what torchvision does when it applies.
MAYBE = {
    "random_adjust_sharpness": [
        (dict(sharpness_factor=f), lambda im, f=f: F.adjust_sharpness(im, f)) for f in (0.0, 0.3, 1.0, 1.7, 4.0)
    ],
    "random_autocontrast": [({}, F.autocontrast)],
    "random_equalize": [({}, F.equalize)],
    "random_grayscale": [({}, lambda im: F.rgb_to_grayscale(im, len(im.getbands())))],
    "random_invert": [({}, F.invert)],
    "random_posterize": [(dict(bits=b), lambda im, b=b: F.posterize(im, b)) for b in range(1, 9)],
    "random_solarize": [
        (dict(threshold=t), lambda im, t=t: F.solarize(im, t)) for t in (0, 1, 99.5, 128, 192.0, 255, 256)
    ],
}


@pytest.mark.parametrize("level", ["c", "best"])
@pytest.mark.parametrize("op", MAYBE)
def test_ops_with_a_probability(ops, op, image, level):
    for params, reference in MAYBE[op]:
        for p in (0.0, 1.0):
            draws, got = ops.run(op, image, level=level, p=p, **params)
            assert draws == {"applied": p == 1.0}
            check(op, got, reference(pil(image)) if p else pil(image))


def test_sharpness_keeps_alpha(ops):
    rgba = photo_like(30, 41, 4)
    _, got = ops.run("random_adjust_sharpness", rgba, sharpness_factor=2.5, p=1)
    check("random_adjust_sharpness", got, F.adjust_sharpness(Image.fromarray(rgba, "RGBA"), 2.5))


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale(ops, image, channels):
    _, got = ops.run("grayscale", image, num_output_channels=channels)
    check("grayscale", got, F.rgb_to_grayscale(pil(image), channels))


def test_grayscale_of_rgba(ops):
    rgba = photo_like(30, 41, 4)
    _, got = ops.run("grayscale", rgba, num_output_channels=3)
    check("grayscale", got, F.rgb_to_grayscale(Image.fromarray(rgba, "RGBA"), 3))


def replay_jitter(image, draws):
    steps = (
        (F.adjust_brightness, "brightness"),
        (F.adjust_contrast, "contrast"),
        (F.adjust_saturation, "saturation"),
        (F.adjust_hue, "hue"),
    )
    for part in draws["order"]:
        function, name = steps[part]
        image = function(image, draws[name])
    return image


JITTERS = [
    dict(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1),
    dict(brightness=[0, 3], contrast=[0, 3], saturation=[0, 3], hue=0.5),
    dict(brightness=0.8),
    dict(contrast=0.8),
    dict(saturation=0.8),
    dict(hue=[-0.5, 0.5]),
    dict(hue=[0, 0], brightness=[1, 1]),
    {},
]


@pytest.mark.parametrize("level", ["c", "best"])
def test_color_jitter(ops, image, level):
    for params in JITTERS:
        for sample in range(12):
            draws, got = ops.run("color_jitter", image, level=level, sample=sample, seed=SEED, **params)
            check("color_jitter", got, replay_jitter(pil(image), draws))


def test_hue_of_every_color(ops):
    values = numpy.arange(256, dtype=numpy.uint8)
    some = numpy.concatenate([values[:8], values[8:248:3], values[248:]])
    grid = numpy.stack(numpy.meshgrid(values, some, some, indexing="ij"), -1).reshape(256, -1, 3)
    draws, got = ops.run("color_jitter", grid, hue=0.5, seed=SEED)
    check("color_jitter", got, replay_jitter(pil(grid), draws))


def test_jitter_settings_are_torchvisions(ops):
    for params in JITTERS:
        reference = v2.ColorJitter(**{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
        parts = ("brightness", "contrast", "saturation", "hue")
        for draws in ops.draw("color_jitter", 50, **params):
            assert sorted(draws["order"]) == [i for i, p in enumerate(parts) if getattr(reference, p) is not None]
            for part in parts:
                if getattr(reference, part) is not None:
                    low, high = getattr(reference, part)
                    assert low <= draws[part] <= high


@pytest.mark.parametrize("kernel_size", [1, 3, 5, 23, [9, 3], [1, 7]])
def test_gaussian_blur(ops, image, kernel_size):
    sizes = kernel_size if isinstance(kernel_size, list) else [kernel_size] * 2
    if image.shape[1] <= sizes[0] // 2 or image.shape[0] <= sizes[1] // 2:
        with pytest.raises(op_runner.OpError, match="kernel_size"):
            ops.run("gaussian_blur", image, kernel_size=kernel_size)
        return
    for sample in range(3):
        draws, got = ops.run("gaussian_blur", image, kernel_size=kernel_size, sigma=[0.1, 5.0], sample=sample)
        check("gaussian_blur", got, F.gaussian_blur(pil(image), sizes, [draws["sigma"]] * 2))


# ---- automatic augmentation ----

PIL_FILTERS = {name: v2.InterpolationMode(name) for name in ("nearest", "bilinear", "bicubic")}


def replay(image, names, magnitudes, interpolation="nearest", fill=None):
    """The drawn primitives through torchvision's own function."""
    base = v2.RandAugment(interpolation=PIL_FILTERS[interpolation], fill=fill)
    for name, magnitude in zip(names, magnitudes):
        image = base._apply_image_or_video_transform(
            image, PRIMITIVES[name], magnitude, interpolation=base.interpolation, fill=base._fill
        )
    return image


AUTO = [
    ("auto_augment", dict(policy="imagenet")),
    ("auto_augment", dict(policy="cifar10")),
    ("auto_augment", dict(policy="svhn", fill=[10, 20, 30], interpolation="bilinear")),
    ("rand_augment", {}),
    ("rand_augment", dict(num_ops=5, magnitude=20, interpolation="bicubic", fill=128)),
    ("trivial_augment_wide", {}),
    ("trivial_augment_wide", dict(interpolation="bilinear", fill=[255])),
]


@pytest.mark.parametrize("op,params", AUTO)
@pytest.mark.parametrize("name", ["rgb", "grey", "large", "narrow", "tiny", "row"])
def test_automatic(ops, op, params, name):
    image = IMAGES[name]
    if image.shape[2] == 1 and isinstance(params.get("fill"), list) and len(params["fill"]) > 1:
        with pytest.raises(op_runner.OpError, match="fill"):
            ops.run(op, image, **params)
        return
    for sample in range(40 if name == "large" else 80):
        draws, got = ops.run(op, image, sample=sample, seed=SEED, **params)
        style = {k: params[k] for k in ("interpolation", "fill") if k in params}
        try:
            check(op, got, replay(pil(image), draws["ops"], draws["magnitudes"], **style))
        except AssertionError as error:
            names = [(PRIMITIVES[i], m) for i, m in zip(draws["ops"], draws["magnitudes"])]
            raise AssertionError(f"{error} after {names}") from None


def replay_mix(image, draws, interpolation="bilinear", fill=None):
    """What v2.AugMix.forward does with a PIL image, after its draws: it works on a tensor."""
    base = v2.AugMix(interpolation=PIL_FILTERS[interpolation], fill=fill)
    batch = F.pil_to_tensor(image)[None]
    weights = torch.tensor(draws["weights"], dtype=torch.float32)
    steps = iter(zip(draws["ops"], draws["magnitudes"]))
    mix = weights[0] * batch
    for depth, weight in zip(draws["depths"], weights[1:]):
        chain = batch
        for _ in range(depth):
            op, magnitude = next(steps)
            chain = base._apply_image_or_video_transform(
                chain, PRIMITIVES[op], magnitude, interpolation=base.interpolation, fill=base._fill
            )
        mix.add_(weight * chain)
    return F.to_pil_image(mix[0].to(torch.uint8))


MIXES = [
    {},
    dict(severity=10, interpolation="nearest"),
    dict(severity=7, fill=[30], chain_depth=4, mixture_width=2),
    dict(all_ops=False, chain_depth=1, mixture_width=1, alpha=0.3),
]


@pytest.mark.parametrize("params", MIXES)
def test_aug_mix(ops, params):
    """All images at once, since the tolerance is a share of many values."""
    style = {k: params[k] for k in ("interpolation", "fill") if k in params}
    for name in ("rgb", "grey", "large", "narrow", "tiny", "row"):
        pairs = []
        for sample in range(40):
            draws, got = ops.run("aug_mix", IMAGES[name], sample=sample, seed=SEED, **params)
            pairs.append((got, array(replay_mix(pil(IMAGES[name]), draws, **style))))
        got, want = (numpy.concatenate(side) for side in zip(*pairs))
        check("aug_mix", got, want)


def test_every_primitive_ran(ops):
    """The replays above mean something: together they contain each primitive."""
    seen = set()
    for op, params in AUTO:
        for draws in ops.draw(op, 80, seed=SEED, **params):
            seen.update(draws["ops"])
    assert seen == set(range(len(PRIMITIVES)))


def reference_of(op, params):
    classes = dict(auto_augment=v2.AutoAugment, rand_augment=v2.RandAugment, trivial_augment_wide=v2.TrivialAugmentWide)
    keys = {k: v for k, v in params.items() if k in ("num_ops", "magnitude", "num_magnitude_bins")}
    if "policy" in params:
        keys["policy"] = v2.AutoAugmentPolicy(params["policy"])
    return classes[op](**keys)


def allowed_magnitudes(reference, name, bins, height, width):
    function, signed = reference._AUGMENTATION_SPACE[name]
    values = function(bins, height, width)
    if values is None:
        return [0.0]
    values = [float(v) for v in values]
    return values + [-v for v in values] if signed else values


@pytest.mark.parametrize("op,params", AUTO)
def test_magnitudes_are_torchvisions(ops, op, params):
    reference = reference_of(op, params)
    bins = 10 if op == "auto_augment" else 31
    for draws in ops.draw(op, 400, shape=(48, 64, 3), **params):
        for i, magnitude in zip(draws["ops"], draws["magnitudes"]):
            allowed = allowed_magnitudes(reference, PRIMITIVES[i], bins, 48, 64)
            assert min(abs(magnitude - a) for a in allowed) < 1e-5


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_policies_are_torchvisions(ops, policy):
    reference = v2.AutoAugment(v2.AutoAugmentPolicy(policy))
    done = {}
    for draws in ops.draw("auto_augment", 20000, policy=policy):
        names = [PRIMITIVES[i] for i in draws["ops"]]
        done.setdefault(draws["pair"], []).append((names, draws["magnitudes"]))
    assert sorted(done) == list(range(len(reference._policies)))
    for pair, runs in done.items():
        (first, p_first, bin_first), (second, p_second, _) = reference._policies[pair]
        both = [m for names, m in runs if names == [first, second]]
        assert all(names in ([], [first], [second], [first, second]) for names, _ in runs)
        assert abs(len(both) / len(runs) - p_first * p_second) < 5 * math.sqrt(0.25 / len(runs))
        if both and bin_first is not None:
            values = allowed_magnitudes(reference, first, 10, 48, 64)
            assert abs(abs(both[0][0]) - values[bin_first]) < 1e-5


def test_automatic_refuses_masks(ops):
    for op in ("auto_augment", "rand_augment", "trivial_augment_wide", "aug_mix"):
        with pytest.raises(op_runner.OpError, match="mask"):
            ops.run(op, IMAGES["grey"], kind="mask")


def test_color_ops_leave_masks_alone(ops):
    mask = IMAGES["grey"]
    for op, params in [("color_jitter", dict(brightness=0.9, hue=0.5)), ("gaussian_blur", dict(kernel_size=5)),
                       ("grayscale", dict(num_output_channels=3))] + [
                           (op, dict(cases[0][0], p=1)) for op, cases in MAYBE.items()]:
        _, got = ops.run(op, mask, kind="mask", **params)
        assert (got == mask).all(), op


# ---- ops that hold ops ----


def replay_nested(image, entry):
    """One entry of "transforms" in the draws."""
    op = entry["op"]
    if op == "color_jitter":
        return replay_jitter(image, entry)
    if op == "grayscale":
        return F.rgb_to_grayscale(image, 3)
    if op == "random_invert":
        return F.invert(image) if entry["applied"] else image
    if op == "rand_augment":
        return replay(image, entry["ops"], entry["magnitudes"])
    assert "transforms" in entry or not entry.get("applied", True), entry
    for inner in entry.get("transforms", []):
        image = replay_nested(image, inner)
    return image


NESTED = [
    {"op": "color_jitter", "params": {"brightness": 0.5, "hue": 0.2}},
    {"op": "random_invert", "params": {"p": 0.5}},
    {"op": "grayscale", "params": {"num_output_channels": 3}},
    {"op": "rand_augment"},
]
DEEP = NESTED[:2] + [{"op": "random_apply", "params": {"transforms": NESTED[1:], "p": 0.5}}]


@pytest.mark.parametrize("op", ["random_apply", "random_choice", "random_order"])
@pytest.mark.parametrize("transforms", [NESTED, NESTED[:1], DEEP])
def test_nested(ops, op, transforms):
    image = IMAGES["rgb"]
    for sample in range(40):
        draws, got = ops.run(op, image, sample=sample, seed=SEED, transforms=transforms)
        check(op, got, replay_nested(pil(image), dict(draws, op=op)))


def test_the_documented_tolerances_are_these():
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+)(?:, in (\d+) of a million values)? \|",
        (op_runner.ROOT / "docs" / "parity.md").read_text(),
        re.MULTILINE,
    )
    documented = {op: (int(most), int(per_million or 0)) for op, most, per_million in rows if op in TOLERANCE}
    assert documented == TOLERANCE
