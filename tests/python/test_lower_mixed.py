"""Samples one by one: native up to the first Python code, which gets what torchvision would have handed to it."""

import pickle
import threading
import zlib

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st
from PIL import Image, ImageOps

from imagesets import picture as photo
from lower_sets import D, assert_same, cifar, identity, lowered, mnist, picture, run, svhn, to_pil, v1, v2

from drapps.torch.lower import lower


class Seen:
    """A transform of a user that keeps what it was given."""

    def __call__(self, image):
        self.image = image
        return image


BEGINNINGS = {
    "decoded": [],
    "PIL": [v1.Resize(20)],
    "grey": [v1.Grayscale(), v1.Resize(20)],
    "floats": [v1.Resize(20), v1.ToTensor(), v1.Normalize([0.5], [0.25])],
    "bytes": [v2.Resize(20), v2.PILToTensor()],
    "image": [v2.Resize(20), v2.ToImage()],
    "float image": [v2.Resize(20), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)],
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_python_gets_what_torchvision_hands_over(folder, name):
    seen = Seen()
    dataset = D.ImageFolder(folder, v1.Compose([*BEGINNINGS[name], seen]))
    mixed = lower(dataset, True).dataset
    assert mixed is not dataset
    for i in (0, 7, -1):
        _, label = mixed[i]
        got = seen.image
        assert label == dataset[i][1]
        assert_same(got, seen.image)
        if isinstance(got, torch.Tensor):
            assert got.stride() == seen.image.stride()
        else:
            assert got.info == seen.image.info


@pytest.mark.parametrize("make", [cifar, mnist, svhn])
def test_arrays(make):
    dataset = make(transform=v1.Compose([v1.Pad(3), identity, v1.ToTensor()]))
    mixed = lower(dataset, True).dataset
    assert mixed is not dataset
    for i in (0, 9, -1):
        (image, label), (want, number) = mixed[i], dataset[i]
        assert_same(image, want)
        assert label == number and type(label) is type(number)
    with pytest.raises(IndexError):
        mixed[10]


def test_nothing_to_gain():
    dataset = cifar(transform=identity)
    assert lower(dataset, True).dataset is dataset


def test_target_transform(folder):
    chain = v1.Compose([v1.Resize((8, 8)), v1.ToTensor()])
    dataset = D.ImageFolder(folder, chain, target_transform=lambda label: -label)
    plan = lower(dataset, True)
    assert plan.pipe is None and plan.dataset[5][1] == dataset[5][1] == -(5 // 8)


def test_exif_is_still_there(tmp_path):
    """A transform of a user may turn an image as its EXIF data says."""
    (tmp_path / "a").mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    photo(3).save(tmp_path / "a" / "0.jpg", exif=exif)
    dataset = D.ImageFolder(tmp_path, v1.Compose([v1.Resize(20), ImageOps.exif_transpose, v1.ToTensor()]))
    mixed = lower(dataset, True).dataset
    assert mixed[0][0].shape == (3, 26, 20)
    assert_same(mixed[0][0], dataset[0][0])


def text_after_pixels(path):
    """A PNG file with a text that Pillow finds only when it loads the pixels."""
    to_pil(picture()).save(path)
    data = path.read_bytes()
    body = b"tEXtwhat\0late"
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    path.write_bytes(data[:-12] + chunk + data[-12:])


FILES = {
    "palette.png": lambda path: to_pil(picture()).quantize(20).save(path, transparency=3),
    "dpi.png": lambda path: to_pil(picture()).save(path, dpi=(72, 72)),
    "late.png": text_after_pixels,
    "deep.png": lambda path: Image.fromarray(picture().astype("uint16")[..., 0] * 200).save(path),
    "photo.webp": lambda path: to_pil(picture()).save(path),
    "comment.jpg": lambda path: to_pil(picture()).save(path, comment=b"mine", dpi=(72, 72), progressive=True),
    "dpi.bmp": lambda path: to_pil(picture()).save(path, dpi=(72, 72)),
    "grey.bmp": lambda path: to_pil(picture(channels=1)).save(path),
    "photo.ppm": lambda path: to_pil(picture()).save(path),
    "deep.pgm": lambda path: Image.fromarray(picture().astype("uint16")[..., 0] * 200).save(path),
    "photo.tif": lambda path: to_pil(picture()).save(path, dpi=(72, 72)),
    "cmyk.jpg": lambda path: to_pil(picture()).convert("CMYK").save(path),
    "grey.jpg": lambda path: to_pil(picture(channels=1)).save(path),
}


@pytest.mark.parametrize("name", FILES)
def test_what_pillow_knows_beside_the_pixels(tmp_path, name):
    (tmp_path / "a").mkdir()
    FILES[name](tmp_path / "a" / name)
    seen = Seen()
    dataset = D.ImageFolder(tmp_path, v1.Compose([v1.Resize(20), seen]))
    lower(dataset, True).dataset[0]
    got = seen.image
    dataset[0]
    assert_same(got, seen.image)
    assert got.info == seen.image.info


def test_what_is_not_readable_natively_is_left_to_pillow(tmp_path):
    (tmp_path / "a").mkdir()
    photo(1).save(tmp_path / "a" / "0.tga")
    (tmp_path / "a" / "0.tga").rename(tmp_path / "a" / "0.jpg")
    (tmp_path / "a" / "1.jpg").write_bytes(b"no image")
    dataset = D.ImageFolder(tmp_path, v1.Compose([v1.Resize(8), identity]))
    mixed = lower(dataset, True).dataset
    assert_same(mixed[0][0], dataset[0][0])
    with pytest.raises(Image.UnidentifiedImageError):
        mixed[1]
    (tmp_path / "a" / "1.jpg").unlink()
    with pytest.raises(FileNotFoundError, match="1.jpg"):
        mixed[1]


def test_exceptions_of_the_rest_come_through(folder):
    def fail(image):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        lower(D.ImageFolder(folder, v1.Compose([v1.Resize(8), fail])), True).dataset[0]


def test_draws_follow_torch(folder):
    chain = v1.Compose([v1.RandomCrop(8), identity, v1.ToTensor()])
    mixed = lower(D.ImageFolder(folder, chain), True).dataset

    def draw(seed):
        torch.manual_seed(seed)
        return [mixed[0][0] for _ in range(4)]

    first = draw(1)
    assert all(torch.equal(a, b) for a, b in zip(first, draw(1)))
    assert not all(torch.equal(a, b) for a, b in zip(first, draw(2)))
    assert len({image.numpy().tobytes() for image in first}) > 1


def test_it_answers_for_the_data_set(folder):
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize(8), identity]))
    mixed = lower(dataset, True).dataset
    assert (mixed.classes, mixed.samples, len(mixed)) == (dataset.classes, dataset.samples, len(dataset))
    assert mixed.original is dataset
    assert not hasattr(mixed, "__getitems__") and not hasattr(mixed, "nothing")
    mixed.samples = dataset.samples[:2]
    assert len(dataset) == len(mixed) == 2


def test_a_transform_that_is_replaced_later(folder):
    """As a worker_init_fn may do."""
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize(8), identity]))
    mixed = pickle.loads(pickle.dumps(lower(dataset, True).dataset))
    assert mixed[0][0].size == dataset[0][0].size
    mixed.transform = v1.CenterCrop(5)
    assert mixed[0][0].size == (5, 5)


CHANGES = {
    "a setting": lambda chain: setattr(chain.transforms[1], "p", 0),
    "one more": lambda chain: chain.transforms.append(v1.Grayscale(3)),
    "one less": lambda chain: chain.transforms.pop(0),
    "another": lambda chain: chain.transforms.__setitem__(0, v1.CenterCrop(5)),
    "others in Python": lambda chain: chain.transforms.__setitem__(2, lambda image: image.rotate(90)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_transform_that_is_changed_in_itself(folder, name):
    """As a worker_init_fn may do, which drapps has called by something that looks again."""
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize(8), v1.RandomHorizontalFlip(p=1), identity]))
    plan = lower(dataset, True)
    (mixed,) = plan.mixed
    mixed.look_again()
    assert plan.dataset is mixed and mixed.lowered is dataset.transform
    CHANGES[name](dataset.transform)
    mixed.look_again()
    assert_same(mixed[0][0], dataset[0][0])


def test_attributes_of_parts_are_there(folder):
    """Workers have all that the user gave them."""
    inner = D.ImageFolder(folder, v1.Compose([v1.Resize(8), identity]))
    part = torch.utils.data.Subset(inner, [1, 2])
    both = torch.utils.data.ConcatDataset([part, inner])
    part.names, both.names = ["a"], ["b"]
    rebuilt = lower(both, True).dataset
    assert rebuilt is not both and rebuilt.names == ["b"] and rebuilt.datasets[0].names == ["a"]
    assert both.datasets == [part, inner] and part.dataset is inner
    assert_same(rebuilt[0][0], inner[1][0])
    del rebuilt.datasets[1].classes
    assert not hasattr(inner, "classes")


def test_pickle_and_processes(folder):
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize((8, 8)), identity, v1.ToTensor()]))
    mixed = lower(dataset, True).dataset
    mixed[0]  # a runner is open when it is copied
    assert_same(pickle.loads(pickle.dumps(mixed))[2][0], dataset[2][0])
    loader = torch.utils.data.DataLoader(mixed, batch_size=8, num_workers=2, multiprocessing_context="fork")
    images = torch.cat([images for images, _ in loader])
    assert torch.equal(images, torch.stack([image for image, _ in dataset]))


def test_threads(folder):
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize((8, 8)), identity, v1.ToTensor()]))
    mixed = lower(dataset, True).dataset
    wanted = [image for image, _ in dataset]
    wrong = []

    def work():
        wrong.extend(i for i in range(len(wanted)) if not torch.equal(mixed[i][0], wanted[i]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- any chain ---

STEPS = [
    lambda m: m.Resize(24), lambda m: m.Resize((17, 29)), lambda m: m.Resize(20, max_size=25),
    lambda m: m.CenterCrop(16), lambda m: m.CenterCrop((40, 9)), lambda m: m.Pad((1, 2, 3, 4), fill=7),
    lambda m: m.RandomHorizontalFlip(p=1), lambda m: m.RandomVerticalFlip(p=1), lambda m: m.Grayscale(),
    lambda m: m.Grayscale(3), lambda m: m.RandomInvert(p=1), lambda m: m.RandomPosterize(4, p=1),
    lambda m: m.RandomSolarize(99, p=1), lambda m: m.RandomAutocontrast(p=1), lambda m: m.RandomEqualize(p=1),
    lambda m: m.RandomAdjustSharpness(1.5, p=1), lambda m: m.RandomRotation((30, 30)),
    lambda m: m.ColorJitter(brightness=(1.25, 1.25)), lambda m: m.ToTensor(), lambda m: m.PILToTensor(),
    lambda m: v2.ToImage(), lambda m: v2.ToDtype(torch.float32, scale=True),
    lambda m: m.ConvertImageDtype(torch.float32), lambda m: m.Normalize([0.25], [0.5]), lambda m: m.ToPILImage(),
    lambda m: v2.ToPureTensor(), lambda m: v2.RGB(),
    lambda m: m.RandomApply([m.RandomHorizontalFlip(p=1), m.CenterCrop(20)], p=1), lambda m: identity,
    lambda m: m.Compose([m.CenterCrop(22), m.RandomChoice([m.RandomInvert(p=1)])]), lambda m: v2.Identity(),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from([v1, v2])), min_size=1, max_size=7),
       st.sampled_from([1, 3]), st.integers(0, 3))  # fmt: skip
def test_any_chain(steps, channels, seed):
    """A chain gives what torchvision gives, wherever it is cut."""
    transform = v1.Compose([step(module) for step, module in steps])
    array = picture(23 + seed, 31, channels, seed)
    try:
        wanted = transform(to_pil(array))
    except Exception:
        assume(False)  # torchvision refuses it
    assert_same(run(lowered(transform, channels), array), wanted)
