"""The pixels of a loader's own batches are Pillow's: fused, with SIMD, on two workers.

The boxes that were drawn are read from the loader; Pillow crops, resizes and flips by them.
"""

import numpy
import pytest
from imagesets import picture
from PIL import Image

import drapps

SIZE = 48


def variants(root):
    """Images as people have them: sizes, sampling, progressive, grey, PNG with palette and alpha, WebP."""
    for i, (height, width) in enumerate([(60, 80), (33, 47), (200, 31), (17, 300), (128, 128), (1, 1), (7, 500)]):
        for j, options in enumerate([{"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2, "progressive": True}]):
            picture(i, height, width).save(root / f"{i}-{j}.jpg", quality=75 + 5 * j, **options)
    picture(8).convert("L").save(root / "grey.jpg")
    picture(9).convert("CMYK").save(root / "cmyk.jpg")
    picture(10).quantize(16).save(root / "palette.png")
    alpha = picture(11)
    alpha.putalpha(Image.linear_gradient("L").resize(alpha.size))
    alpha.save(root / "alpha.png")
    picture(12).convert("L").save(root / "grey.png")
    picture(13).save(root / "lossy.webp", quality=80)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    root = tmp_path_factory.mktemp("mixed")
    variants(root)
    return root


def by_pillow(path, crop, flip):
    """What torchvision does on a PIL image: crop, resize, mirror."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    box = (crop["left"], crop["top"], crop["left"] + crop["width"], crop["top"] + crop["height"])
    image = image.crop(box).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return numpy.asarray(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip["mirror"] else image)


def augmented(root):
    return drapps.read(root).decode().random_resized_crop(SIZE).random_horizontal_flip()


def compare(pipe, root, expected, **options):
    """Calls expected(pixels of Pillow, pixels of the loader) for each sample of three epochs."""
    options = {"batch_size": 4, "workers": 2, "keep_draws": True, "layout": "NHWC", "output": "numpy", **options}
    with pipe.loader(shuffle=True, seed=11, **options) as loader:
        n = 0
        for _ in range(3):
            for batch in loader.batches():
                for i, sample in enumerate(batch.ids):
                    draws = batch.draws(i)
                    key = pipe.dataset.key(sample)
                    expected(by_pillow(root / key, draws[2], draws[3]), batch["image"][i], key)
                    n += 1
    assert n == 3 * len(pipe) > 0


@pytest.mark.parametrize("reference", [False, True])
def test_integers_are_equal(mixed, reference):
    def expected(want, got, key):
        assert got.dtype == numpy.uint8 and (want == got).all(), key

    compare(augmented(mixed), mixed, expected, reference=reference)


def test_normalised_values_are_torchs(mixed):
    mean, std = (numpy.array(v, numpy.float32) for v in (drapps.IMAGENET_MEAN, drapps.IMAGENET_STD))

    def expected(want, got, key):
        want = (want.astype(numpy.float32) / numpy.float32(255) - mean) / std
        assert got.dtype == numpy.float32 and abs(want - got).max() <= 1e-6, key

    compare(augmented(mixed).normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD), mixed, expected)


def test_whole_images_are_equal(mixed):
    pipe = drapps.read(mixed).decode()
    for batch in pipe.loader(batch_size=4, collate={"image": "list"}, layout="NHWC", output="numpy").batches():
        for i, sample in enumerate(batch.ids):
            key = pipe.dataset.key(sample)
            with Image.open(mixed / key) as image:
                assert (numpy.asarray(image.convert("RGB")) == batch["image"][i]).all(), key
