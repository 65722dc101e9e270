"""Every row of the table of transforms against torchvision: equal for settings that leave nothing to chance, on each
kind of image that it is lowered for."""

import re

import numpy
import pytest
import torch

import op_runner

from lower_sets import assert_same, lowered, picture, run, to_pil, v1, v2

from drapps.torch.lower_rows import ROWS

BEFORE = {
    "PIL": [],
    "bytes": [v2.PILToTensor()],
    "image": [v2.ToImage()],
    "floats": [v1.ToTensor()],
    "float image": [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)],
}
ON_PIL = ("PIL",)
ON_BYTES = ("PIL", "bytes", "image")
ON_FLOATS = ("floats", "float image")
ON_ALL = (*ON_BYTES, *ON_FLOATS)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

# {row: (kinds of images it is lowered on, settings, largest difference, share of values that may differ)}
EQUAL = 0, 0.0
BICUBIC = v2.InterpolationMode.BICUBIC
CASES = {
    "CenterCrop": (ON_ALL, [dict(size=20), dict(size=(40, 12)), dict(size=[33, 35])], *EQUAL),
    "ColorJitter": (ON_PIL, [dict(brightness=(1.5, 1.5)), dict(contrast=(0.5, 0.5)), dict(saturation=(1.75, 1.75)),
                             dict(hue=(0.25, 0.25)), dict()], *EQUAL),
    "ConvertImageDtype": (("bytes", "image", *ON_FLOATS), [dict(dtype=torch.float32), dict(dtype=torch.float16),
                                                           dict(dtype=torch.bfloat16)], *EQUAL),
    "GaussianBlur": (ON_BYTES, [dict(kernel_size=5, sigma=1.5), dict(kernel_size=(3, 7), sigma=(0.5, 0.5))], 1, 0.0005),
    "Grayscale": (ON_PIL, [dict(), dict(num_output_channels=3)], *EQUAL),
    "Identity": (ON_ALL, [dict()], *EQUAL),
    "ImageClassification": (ON_PIL, [dict(crop_size=20, resize_size=24)], *EQUAL),
    "Normalize": (ON_FLOATS, [dict(mean=MEAN, std=STD), dict(mean=[0.5], std=[0.25], inplace=True)], *EQUAL),
    "Pad": (ON_ALL, [dict(padding=3), dict(padding=(2, 5), fill=7), dict(padding=[1, 2, 3, 4])], *EQUAL),
    "PILToTensor": (ON_PIL, [dict()], *EQUAL),
    "RandAugment": (ON_PIL, [dict(num_ops=0)], *EQUAL),
    "RandomAdjustSharpness": (ON_PIL, [dict(sharpness_factor=2, p=1), dict(sharpness_factor=0.5, p=1)], *EQUAL),
    "RandomAffine": (ON_PIL, [dict(degrees=(30, 30)), dict(degrees=0, scale=(1.25, 1.25), shear=(5, 5, 3, 3), fill=9),
                              dict(degrees=(-45, -45), interpolation=v2.InterpolationMode.BILINEAR, center=(3, 4),
                                   fill=(1, 2, 3))], *EQUAL),
    "RandomAutocontrast": (ON_PIL, [dict(p=1)], *EQUAL),
    "RandomCrop": (ON_ALL, [dict(size=32), dict(size=(36, 40), padding=(4, 2)), dict(size=38, padding=3, fill=5)],
                   *EQUAL),
    "RandomEqualize": (ON_BYTES, [dict(p=1)], *EQUAL),
    "RandomErasing": (("bytes", "image", *ON_FLOATS), [dict(p=0), dict(p=1, scale=(1, 1), ratio=(1, 1))], *EQUAL),
    "RandomGrayscale": (ON_PIL, [dict(p=1), dict(p=0)], *EQUAL),
    "RandomHorizontalFlip": (ON_ALL, [dict(p=1), dict(p=0)], *EQUAL),
    "RandomInvert": (ON_BYTES, [dict(p=1)], *EQUAL),
    "RandomPhotometricDistort": (ON_PIL, [dict(p=0)], *EQUAL),
    "RandomPosterize": (ON_BYTES, [dict(bits=3, p=1), dict(bits=1, p=1)], *EQUAL),
    "RandomResizedCrop": (ON_PIL, [dict(size=24, scale=(1, 1), ratio=(1, 1)),
                                   dict(size=(40, 17), scale=(1, 1), ratio=(1, 1), interpolation=BICUBIC),
                                   dict(size=50, scale=(1, 1), ratio=(1, 1), antialias=False)], *EQUAL),
    "RandomRotation": (ON_PIL, [dict(degrees=(30, 30)), dict(degrees=(-50, -50), expand=True, fill=(3, 2, 1)),
                                dict(degrees=(90, 90), interpolation=BICUBIC, center=(1, 2))], *EQUAL),
    "RandomSolarize": (ON_BYTES, [dict(threshold=100, p=1), dict(threshold=17.5, p=1)], *EQUAL),
    "RandomVerticalFlip": (ON_ALL, [dict(p=1), dict(p=0)], *EQUAL),
    "Resize": (ON_PIL, [dict(size=20), dict(size=(17, 50)), dict(size=[24], max_size=30),
                        dict(size=40, antialias=False),
                        *(dict(size=19, interpolation=mode) for mode in v2.InterpolationMode)], *EQUAL),
    "RandomZoomOut": (ON_BYTES, [dict(p=0), dict(p=1, side_range=(1, 1), fill=(1, 2, 3))], *EQUAL),
    "RGB": (ON_ALL, [dict()], *EQUAL),
    "ToDtype": (ON_ALL, [dict(dtype=torch.float32, scale=True), dict(dtype=torch.float32),
                         dict(dtype=torch.float16, scale=True), dict(dtype=torch.bfloat16, scale=True)], *EQUAL),
    "ToImage": (ON_ALL, [dict()], *EQUAL),
    "ToPILImage": (("bytes", "image"), [dict(), dict(mode="RGB")], *EQUAL),
    "ToPureTensor": (ON_ALL, [dict()], *EQUAL),
    "ToTensor": (ON_PIL, [dict()], *EQUAL),
}  # fmt: skip
# What is native on tensors only as v2 computes, with settings of their own.
BYTES = ("bytes", "image")
SAMPLED = [dict(interpolation=mode, antialias=smooth) for mode in v2.InterpolationMode
           if mode.value in ("nearest", "nearest-exact", "bilinear", "bicubic") for smooth in (True, False)]
V2_CASES = {
    **{name: (BYTES, CASES[name][1], *EQUAL) for name in ("ColorJitter", "Grayscale", "RandomAdjustSharpness",
                                                          "RandomAutocontrast", "RandomGrayscale",
                                                          "RandomPhotometricDistort")},
    "RandomResizedCrop": (BYTES, [dict(size=(40, 17), scale=(1, 1), ratio=(1, 1), **how) for how in SAMPLED], *EQUAL),
    "Resize": (BYTES, [dict(size=19, antialias=None), *(dict(size=size, **how) for how in SAMPLED
                                                        for size in (20, (17, 50)))], *EQUAL),
}  # fmt: skip
GROUPS = {"Compose", "Sequential", "RandomApply", "RandomChoice", "RandomOrder"}  # test_groups
POLICIES = {"AutoAugment", "TrivialAugmentWide", "AugMix"}  # test_policies
TIMM = {"MaybePILToTensor", "MaybeToTensor", "RandomResizedCropAndInterpolation"}  # test_lower_timm.py
# test_lower_detection.py
DETECTION = {"ClampBoundingBoxes", "ConvertBoundingBoxFormat", "RandomIoUCrop", "SanitizeBoundingBoxes"}
HOMES = {"v1": v1, "v2": v2, "nn": torch.nn, "presets": v1._presets}


def torchs(row):
    """The versions of a row that are not timm's, whose tests are in test_lower_timm.py."""
    return [version for version in row.versions if not version.startswith("timm")]


def each_case():
    for cases in (CASES, V2_CASES):
        for name, (kinds, settings, steps, share) in cases.items():
            for version in torchs(ROWS[name]) if cases is CASES else ["v2"]:
                for kind in kinds:
                    if not (version == "v1" and "image" in kind):
                        yield pytest.param(name, version, kind, settings, steps, share, id=f"{name}-{version}-{kind}")


def test_table_is_covered():
    assert set(ROWS) == set(CASES) | GROUPS | POLICIES | TIMM | DETECTION
    assert all(hasattr(HOMES[version], row.name) for row in ROWS.values() for version in torchs(row))


def test_the_page_says_the_same():
    page = (op_runner.ROOT / "docs" / "parity.md").read_text().partition("| transform | on | note |")[2]
    rows = dict(re.findall(r"^\| (\w+) \| ([\w, ]+) \|", page, re.M))
    assert set(rows) == set(ROWS)
    for name, (kinds, *_) in CASES.items():
        kinds = {*kinds, *V2_CASES.get(name, [()])[0]}
        assert rows[name].split(", ") == [kind for kind in ("PIL", "bytes", "floats") if kind in kinds], name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, version, kind, settings, steps, share", list(each_case()))
def test_row(name, version, kind, settings, steps, share):
    for given in settings:
        transform = v1.Compose([*BEFORE[kind], getattr(HOMES[version], name)(**given)])
        chain = lowered(transform)
        assert not chain.rest, chain.lines
        for seed in range(2):
            array = picture(seed=seed)
            assert_same(run(chain, array), transform(to_pil(array)), steps, share)


GREY = ["CenterCrop", "Pad", "Resize", "RandomCrop", "RandomRotation", "RandomHorizontalFlip", "ColorJitter", "RGB",
        "RandomInvert", "RandomEqualize", "RandomAutocontrast", "Grayscale", "RandomAffine", "ToTensor", "PILToTensor",
        "RandomGrayscale", "RandomPosterize", "RandomSolarize", "RandomAdjustSharpness"]  # fmt: skip


@pytest.mark.parametrize("name", GREY)
def test_grey(name):
    """Images of one channel, as MNIST has."""
    for version in ROWS[name].versions:
        given = next(each for each in CASES[name][1] if not isinstance(each.get("fill"), tuple))
        transform = getattr(HOMES[version], name)(**given)
        array = picture(channels=1)
        chain = lowered(transform, channels=1)
        assert not chain.rest, chain.lines
        assert_same(run(chain, array), transform(to_pil(array)))


def test_sizes_that_differ():
    """Not only square images."""
    for height, width in ((30, 57), (57, 30), (9, 100)):
        array = picture(height, width)
        for make in (v1, v2):
            for transform in (make.Resize(20), make.Resize(20, max_size=31), make.CenterCrop(25), make.Pad((1, 5))):
                assert_same(run(lowered(transform), array), transform(to_pil(array)))


@pytest.mark.parametrize("make", [v1, v2])
def test_groups(make):
    array = picture()
    flip, turn = make.RandomHorizontalFlip(p=1), make.RandomVerticalFlip(p=1)
    for transform in (
        make.RandomApply([flip, make.Resize(20)], p=1),
        make.RandomApply(torch.nn.ModuleList([flip, turn]), p=1),
        make.RandomApply([flip], p=0),
        make.RandomChoice([make.Compose([flip, turn])]),
        make.RandomChoice([flip, turn], p=[1, 0]),
        make.RandomOrder([flip, turn, make.Compose([make.CenterCrop(32), flip])]),
        make.Compose([flip, make.Compose([make.Resize(20), make.Compose([turn])])]),
        torch.nn.Sequential(flip, make.Resize(20)),
        make.RandomApply([torch.nn.Sequential(flip, turn)], p=1),
    ):
        chain = lowered(transform)
        assert not chain.rest, chain.lines
        assert_same(run(chain, array), transform(to_pil(array)))


def test_a_choice_of_nothing():
    array = picture()
    chain = lowered(v2.RandomChoice([v2.Identity(), v2.RandomInvert(p=1)]))
    seen = {run(chain, array).tobytes() for _ in range(40)}
    assert seen == {array.tobytes(), (255 - array).tobytes()}


@pytest.mark.parametrize("make", [v1, v2])
def test_policies(make):
    """Draws cannot be forced: images keep their shape, and something happens to them."""
    array = picture()
    for transform in (make.AutoAugment(), make.AutoAugment(make.AutoAugmentPolicy.CIFAR10, fill=(1, 2, 3)),
                      make.AutoAugment(make.AutoAugmentPolicy.SVHN), make.RandAugment(), make.TrivialAugmentWide(),
                      make.AugMix(), make.RandAugment(4, 20, interpolation=v2.InterpolationMode.BILINEAR)):  # fmt: skip
        chain = lowered(transform)
        assert not chain.rest, chain.lines
        results = [numpy.asarray(run(chain, array)) for _ in range(8)]
        assert all(result.shape == array.shape and result.dtype == array.dtype for result in results)
        assert len({result.tobytes() for result in results}) > 1


@pytest.mark.parametrize("make", [v1, v2])
@pytest.mark.parametrize("value", [0.5, (0.25, 0.5, 0.75), "random"])
def test_erasing(make, value):
    """A square of a quarter of the image is overwritten, nothing else."""
    transform = v1.Compose([v1.ToTensor(), make.RandomErasing(p=1, scale=(0.25, 0.25), ratio=(1, 1), value=value)])
    chain = lowered(transform)
    assert not chain.rest, chain.lines
    array = picture()
    plain = v1.ToTensor()(to_pil(array))
    result = run(chain, array)
    changed = (result != plain).any(0)
    rows, columns = changed.any(1).nonzero(), changed.any(0).nonzero()
    assert rows[-1] - rows[0] < 16 and columns[-1] - columns[0] < 16
    inside = result[:, rows[0] : rows[0] + 16, columns[0] : columns[0] + 16]
    if value == "random":
        assert 0.8 < inside.std() < 1.2
    else:
        want = torch.tensor(value).reshape(-1, 1, 1).expand(3, 16, 16)
        assert (inside == want).double().mean() > 0.85  # rows[0] may be one late where a value was there already


def test_places_of_crops_are_drawn():
    """A crop without forced place: every result is a part of the image, and they differ."""
    array = picture()
    chain = lowered(v2.Compose([v2.RandomCrop(8), v2.PILToTensor()]))
    parts = {array[y : y + 8, x : x + 8].transpose(2, 0, 1).tobytes() for y in range(25) for x in range(25)}
    results = {run(chain, array).numpy().tobytes() for _ in range(20)}
    assert results <= parts and len(results) > 5


NOT_ON_TENSORS = ["RandomRotation", "RandomAffine", "RandAugment"]


def assert_left(transform, reason):
    """The last of a chain is Python's, for that reason."""
    chain = lowered(transform)
    assert len(chain.rest) == 1 and reason in chain.lines[-1], chain.lines
    array = picture()
    assert_same(run(chain, array), transform(to_pil(array)))


@pytest.mark.parametrize("name", NOT_ON_TENSORS)
def test_tensors_are_left_to_torchvision(name):
    """Where its tensor code gives other numbers than its PIL code; with the advice where to put it."""
    for version in ROWS[name].versions:
        transform = v1.Compose([v1.PILToTensor(), getattr(HOMES[version], name)(**CASES[name][1][0])])
        assert_left(transform, "on tensors torchvision computes otherwise; before PILToTensor it runs natively")


@pytest.mark.parametrize("name", V2_CASES)
def test_tensors_are_left_to_torchvision_but_for_v2_on_bytes(name, monkeypatch):
    given = V2_CASES[name][1][-1]
    later = getattr(v2, name)(**given)
    assert_left(v1.Compose([v1.ToTensor(), later]), "native for bytes only; before ToTensor it runs natively")
    if "v1" in ROWS[name].versions:
        early = getattr(v1, name)(**given)
        assert_left(
            v1.Compose([v1.PILToTensor(), early]), "v1 computes otherwise on tensors; v2's runs natively; before"
        )
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert_left(v2.Compose([v2.ToImage(), later]), "without AVX2 torch computes otherwise; before ToImage")
