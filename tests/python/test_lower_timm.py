"""timm's data set, transforms, collate function and worker_init_fn, as its create_loader puts them together."""

import functools
import logging
import random

import numpy
import pytest
import torch
from PIL import Image
from torch.utils import data

from imagesets import picture, write_folder
from lower_sets import assert_same, identity, lowered, run, to_pil, v1
from lower_sets import picture as array_picture

import timm.data
from timm.data import loader as timms
from timm.data.mixup import FastCollateMixup
from timm.data.random_erasing import RandomErasing
from timm.data.transforms import MaybePILToTensor, MaybeToTensor, RandomResizedCropAndInterpolation

from drapps import DataLoader
from drapps.torch.workers import harmless
from drapps.torch.lower import lower
from drapps.torch.lower_collate import lower_collate


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("timm") / "set", n=9)


@pytest.fixture
def with_drapps(monkeypatch):
    monkeypatch.setattr(torch.utils.data, "DataLoader", DataLoader)


def made(images, **options):
    """What create_loader gives timm's train.py: a PrefetchLoader, whose loader is looked at."""
    dataset = timm.data.create_dataset("", str(images))
    return timm.data.create_loader(dataset, (3, 24, 24), 4, num_workers=2, device=torch.device("cpu"),
                                   persistent_workers=False, **options)  # fmt: skip


@pytest.mark.usefixtures("with_drapps")
@pytest.mark.parametrize("options", [{}, {"interpolation": "bicubic", "crop_pct": 0.9}, {"use_prefetcher": False}])
def test_evaluation_is_timms(images, options):
    loader = made(images, **options)
    inner = loader.loader if options.get("use_prefetcher", True) else loader
    assert "by 2 threads, natively" in inner.explain(), inner.explain()
    theirs = data.DataLoader(inner.dataset, 4, collate_fn=inner.collate_fn, num_workers=1)
    for mine, other in zip(inner, theirs, strict=True):
        assert type(mine) is type(other) and mine[0].is_contiguous() == other[0].is_contiguous()
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(mine, other))
    assert len(list(loader)) == 3


@pytest.mark.usefixtures("with_drapps")
def test_training_runs_natively(images):
    loader = made(images, is_training=True, interpolation="random", re_prob=0.3)
    text = loader.loader.explain()
    assert "by 2 threads, natively" in text and "random_choice" in text and "fast_collate: native" in text, text
    batches = list(loader.loader)
    assert len(batches) == 2 and all(batch[0].dtype == torch.uint8 and type(batch) is tuple for batch in batches)


@pytest.mark.usefixtures("with_drapps")
@pytest.mark.parametrize("options", [{"auto_augment": "rand-m9-mstd0.5"}, {"train_crop_mode": "rkrc"}])
def test_what_has_no_native_form_stays(images, options):
    loader = made(images, is_training=True, **options)
    assert "in 2 worker processes" in loader.loader.explain() and len(list(loader)) == 2


@pytest.mark.usefixtures("with_drapps")
def test_training_without_its_prefetcher(images):
    """The loader erases then, and not the PrefetchLoader."""
    loader = made(images, is_training=True, use_prefetcher=False, re_prob=0.3, re_mode="pixel")
    assert "by 2 threads, natively" in loader.explain() and "(random_erasing)" in loader.explain(), loader.explain()
    assert [len(images) for images, _ in loader] == [4, 4]


# --- rows ---


@pytest.mark.parametrize("transform", [
    MaybePILToTensor(), MaybeToTensor(),
    *(RandomResizedCropAndInterpolation(size, (1, 1), (1, 1), mode)
      for size in (20, (17, 40)) for mode in ("bilinear", "bicubic", "lanczos")),
])  # fmt: skip
def test_rows(transform):
    chain = lowered(transform)
    assert not chain.rest, chain.lines
    assert_same(run(chain, array_picture()), transform(to_pil(array_picture())))


def test_the_way_to_interpolate_is_drawn():
    chain = lowered(RandomResizedCropAndInterpolation(17, (1, 1), (1, 1), "random"))
    array = array_picture()
    ways = [numpy.array(RandomResizedCropAndInterpolation(17, (1, 1), (1, 1), mode)(to_pil(array)))
            for mode in ("bilinear", "bicubic")]  # fmt: skip
    crops = [numpy.array(run(chain, array)) for _ in range(200)]
    found = [next(i for i, way in enumerate(ways) if numpy.array_equal(way, crop)) for crop in crops]
    assert 60 < sum(found) < 140  # 5.6 standard deviations


def test_crops_are_drawn_as_timm_draws_them():
    """Places and sizes of crops out of a picture whose values are places."""
    y, x = numpy.mgrid[0:200, 0:240]
    array = numpy.stack([x, y, 0 * x], -1).astype(numpy.uint8)
    transform = RandomResizedCropAndInterpolation(8, interpolation="bilinear")
    chain = lowered(transform)
    random.seed(1)
    torch.manual_seed(1)
    mine = numpy.stack([_corners(numpy.array(run(chain, array))) for _ in range(1500)])
    theirs = numpy.stack([_corners(numpy.array(transform(Image.fromarray(array)))) for _ in range(1500)])
    error = numpy.sqrt((mine.var(0) + theirs.var(0)) / 1500)
    assert (abs(mine.mean(0) - theirs.mean(0)) < 5 * error).all()


def _corners(crop):
    left, top = crop[0, 0, :2].astype(float)
    right, bottom = crop[-1, -1, :2].astype(float)
    return left, top, right - left, bottom - top


def test_erased_parts_are_drawn_as_timm_draws_them():
    """How often, where, and how large."""
    ones = numpy.full((40, 60, 3), 255, numpy.uint8)
    transform = v1.Compose([v1.ToTensor(), RandomErasing(0.7, device="cpu")])
    chain = lowered(transform)
    assert not chain.rest, chain.lines
    random.seed(2)
    torch.manual_seed(2)
    mine = numpy.stack([_hole(run(chain, ones)) for _ in range(1500)])
    theirs = numpy.stack([_hole(transform(Image.fromarray(ones))) for _ in range(1500)])
    error = numpy.sqrt((mine.var(0) + theirs.var(0)) / 1500)
    assert (abs(mine.mean(0) - theirs.mean(0)) < 5 * error).all()


def _hole(image):
    assert set(image.unique().tolist()) <= {0.0, 1.0} and bool((image == image[:1]).all())
    rows, columns = numpy.nonzero(image[0].numpy() == 0)
    if not len(rows):
        return 0, 0, 0, 0, 0
    return 1, rows.min(), columns.min(), numpy.ptp(rows) + 1, numpy.ptp(columns) + 1


def test_erasing_with_noise():
    transform = v1.Compose([v1.ToTensor(), RandomErasing(1, 0.2, 0.2, mode="pixel", device="cpu")])
    chain = lowered(transform)
    assert not chain.rest, chain.lines
    ones = numpy.full((40, 60, 3), 255, numpy.uint8)
    noise = torch.cat([image[image != 1] for image in (run(chain, ones) for _ in range(50))])
    assert abs(noise.mean()) < 0.03 and abs(noise.std() - 1) < 0.03 and noise.unique().numel() > 0.9 * noise.numel()


@pytest.mark.parametrize("settings, reason", [
    ({"max_count": 3}, "several rectangles"), ({"min_count": 2}, "several rectangles"), ({}, "on the device cuda"),
    ({"mode": "rand", "device": "cpu"}, "one colour"), ({"probability": 2, "device": "cpu"}, "random_erasing: "),
])  # fmt: skip
def test_other_ways_to_erase(settings, reason):
    chain = lowered(v1.Compose([v1.ToTensor(), RandomErasing(**settings)]))
    assert reason in chain.lines[1] and len(chain.rest) == 1


@pytest.mark.parametrize("mode, native", [("const", True), ("pixel", False)])
def test_erasing_bytes(mode, native):
    chain = lowered(v1.Compose([v1.PILToTensor(), RandomErasing(1, mode=mode, device="cpu")]))
    assert bool(chain.rest) is not native


class MyCrop(RandomResizedCropAndInterpolation):
    pass


def test_a_subclass():
    assert "a subclass of timm's RandomResizedCropAndInterpolation" in lowered(MyCrop(8)).lines[0]


# --- data sets ---


def test_a_file_that_cannot_be_read_is_left_to_timm(tmp_path, caplog):
    """It takes the next sample, and warns."""
    (tmp_path / "a").mkdir()
    for i in range(4):
        picture(i, 16, 16).save(tmp_path / "a" / f"{i}.png")
    (tmp_path / "a" / "1.png").write_bytes(b"\x89PNG broken")
    dataset = timm.data.ImageDataset(str(tmp_path), transform=MaybePILToTensor())
    loader = DataLoader(dataset, 2, num_workers=1)
    assert "by 1 thread" in loader.explain()
    with caplog.at_level(logging.WARNING):
        mine = list(loader)
    assert "Skipped sample (index 1)" in caplog.text
    for one, other in zip(mine, data.DataLoader(dataset, 2), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other))


class MyImages(timm.data.ImageDataset):
    def __getitem__(self, index):
        return super().__getitem__(index)


@pytest.mark.parametrize("change, reason", [
    ({"load_bytes": True}, "something else"), ({"input_img_mode": "L"}, "something else"),
    ({"additional_features": []}, "something else"), ({"reader": [1]}, "its reader is a list"),
])  # fmt: skip
def test_other_data_sets(images, change, reason):
    dataset = timm.data.ImageDataset(str(images), transform=timm.data.create_transform(16))
    assert lower(dataset).pipe is not None
    vars(dataset).update(change)
    plan = lower(dataset)
    assert plan.pipe is None and reason in plan.lines[0]


def test_a_data_set_of_its_own(images):
    dataset = MyImages(str(images), transform=timm.data.create_transform(16))
    assert "reads its items in its own way" in lower(dataset).lines[0]


# --- functions ---


def test_fast_collate_needs_bytes(images):
    dataset = timm.data.ImageDataset(str(images), transform=timm.data.create_transform(16))
    plan = lower(dataset, collate=lower_collate(timms.fast_collate))
    assert plan.pipe is None and "needs a tensor of uint8" in plan.lines[-1]


def test_a_patched_fast_collate(monkeypatch):
    monkeypatch.setattr(timms, "fast_collate", identity)
    assert lower_collate(identity) is None


def test_worker_init():
    assert harmless(functools.partial(timms._worker_init, worker_seeding="all"))
    assert not harmless(functools.partial(timms._worker_init, worker_seeding=identity))


# --- mixtures ---


def samples_of(images):
    return timm.data.ImageDataset(str(images), transform=timm.data.create_transform(16, use_prefetcher=True))


@pytest.mark.parametrize("mode", ["batch", "elem", "pair", "half"])
def test_mixtures_are_those_of_worker_processes(images, mode, monkeypatch):
    """Images have nothing random here, so all that can differ is the mixture."""
    mix = FastCollateMixup(0.4, 1.0, prob=0.8, mode=mode, num_classes=3)

    def passes():
        torch.manual_seed(3)
        loader = DataLoader(samples_of(images), 2, num_workers=2, drop_last=True, collate_fn=mix)
        return loader.explain(), [batch for _ in range(4) for batch in loader]

    numbers = numpy.random.get_state()[1].tolist()
    text, mine = passes()
    assert "by 2 threads, natively" in text and "FastCollateMixup: Python, on each batch" in text
    assert numpy.random.get_state()[1].tolist() == numbers
    monkeypatch.setattr("drapps.torch.dataloader.lower_collate", lambda function: None)
    text, theirs = passes()
    assert "worker processes" in text
    for one, other in zip(mine, theirs, strict=True):
        assert type(one) is type(other) is tuple
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))
    mixed = {tuple(row) for _, labels in mine for row in labels.tolist()}
    assert len(mixed) > 3


@pytest.mark.usefixtures("with_drapps")
def test_mixtures_are_switched_off_as_timm_does_it(images):
    loader = made(images, is_training=True, collate_fn=FastCollateMixup(0.4, num_classes=3, label_smoothing=0))
    assert any(0 < labels.min(dim=1).values.max() or labels.max() < 1 for _, labels in loader.loader)
    loader.mixup_enabled = False
    assert all(set(labels.unique().tolist()) == {0, 1} for _, labels in loader.loader)


def test_an_odd_batch_is_timms_error(images):
    loader = DataLoader(samples_of(images), 3, num_workers=1, collate_fn=FastCollateMixup(num_classes=3))
    with pytest.raises(AssertionError, match="Batch size should be even"):
        next(iter(loader))


class MyMixup(FastCollateMixup):
    pass


def held(**attributes):
    mix = FastCollateMixup(num_classes=3)
    vars(mix).update(attributes)
    return mix


@pytest.mark.parametrize("mix", [MyMixup(), held(mix_prob=identity), held(__call__=identity), FastCollateMixup,
                                 held(_params_per_batch=identity)])  # fmt: skip
def test_other_mixtures(mix):
    assert lower_collate(mix) is None


def test_a_patched_mixture(monkeypatch):
    monkeypatch.setattr(timm.data.mixup.Mixup, "_params_per_batch", lambda self: (1.0, False))
    assert lower_collate(FastCollateMixup()) is None


def test_a_mixture_needs_bytes(images):
    dataset = timm.data.ImageDataset(str(images), transform=timm.data.create_transform(16))
    plan = lower(dataset, collate=lower_collate(FastCollateMixup(num_classes=3)))
    assert plan.pipe is None and "needs a tensor of uint8" in plan.lines[-1]
