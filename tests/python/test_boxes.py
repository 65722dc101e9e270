"""Boxes follow their image: against torchvision where nothing is random, by finding a painted rectangle again."""

import json

import numpy
import pytest
import torch
from op_runner import import_torchvision
from PIL import Image

import drapps

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

H, W, N = 60, 80, 48
BOTH = "image,boxes"


def noise(shape, seed=0):
    return numpy.random.default_rng(seed).integers(0, 256, shape, "uint8")


def some_boxes(n=N, k=5, seed=1):
    random = numpy.random.default_rng(seed)
    low = random.uniform((0, 0), (W - 20, H - 20), (n, k, 2))
    return numpy.concatenate([low, low + random.uniform(4, 20, (n, k, 2))], -1).astype("float32")


@pytest.fixture
def pipe():
    labels = numpy.tile(numpy.arange(5), (N, 1))
    return drapps.from_arrays(image=noise((N, H, W, 3)), boxes=some_boxes(), labels=labels, kinds={"boxes": "boxes"})


def samples(pipe, **options):
    """(image HWC, boxes, labels, draws of the last node) of each sample."""
    lists = {"image": "list", "boxes": "list", "labels": "list"}
    loader = pipe.loader(batch_size=8, output="numpy", layout="NHWC", keep_draws=True, collate=lists,
                         outputs="image,boxes,labels", **options)  # fmt: skip
    for batch in loader.batches():
        for i in range(batch.samples):
            draws = batch.draws(i)
            last = draws[max(draws)] if draws else None
            yield batch["image"][i], batch["boxes"][i], batch["labels"][i], last


def wrapped(i, canvas=(H, W)):
    return tv_tensors.BoundingBoxes(torch.from_numpy(some_boxes()[i]), format="XYXY", canvas_size=canvas)


def pil(i):
    return Image.fromarray(noise((N, H, W, 3))[i])


def check(got, image, boxes):
    """Pixels and boxes are equal, bit for bit."""
    numpy.testing.assert_array_equal(got[0], numpy.asarray(image))
    numpy.testing.assert_array_equal(got[1], numpy.asarray(boxes))


@pytest.mark.parametrize("size", [(30, 33), 40, (123, 77)])
def test_resize(pipe, size):
    for i, got in enumerate(samples(pipe.resize(size, fields=BOTH))):
        check(got, F.resize(pil(i), size), F.resize(wrapped(i), size))


def test_crops(pipe):
    for i, got in enumerate(samples(pipe.crop(10, 20, 30, 40, fields=BOTH))):
        check(got, F.crop(pil(i), 10, 20, 30, 40), F.crop(wrapped(i), 10, 20, 30, 40))
    for i, got in enumerate(samples(pipe.center_crop((31, 90), fields=BOTH))):
        check(got, F.center_crop(pil(i), (31, 90)), F.center_crop(wrapped(i), (31, 90)))


def test_pad_and_random_crop(pipe):
    sides = [3, 5, 7, 9]
    for i, got in enumerate(samples(pipe.pad(sides, fill=3, fields=BOTH))):
        check(got, F.pad(pil(i), sides, fill=3), F.pad(wrapped(i), sides))
    for i, got in enumerate(samples(pipe.random_crop((40, 90), padding=4, pad_if_needed=True, fields=BOTH))):
        drawn = got[3]
        box = [drawn[key] for key in ("top", "left", "height", "width")]
        check(got, *(F.crop(F.pad(x, drawn["padding"]), *box) for x in (pil(i), wrapped(i))))


def test_flips(pipe):
    for i, got in enumerate(samples(pipe.random_horizontal_flip(p=1, fields=BOTH))):
        check(got, F.hflip(pil(i)), F.hflip(wrapped(i)))
    for i, got in enumerate(samples(pipe.random_vertical_flip(p=1, fields=BOTH))):
        check(got, F.vflip(pil(i)), F.vflip(wrapped(i)))
    mirrored = 0
    for i, got in enumerate(samples(pipe.random_horizontal_flip(fields=BOTH))):
        mirrored += got[3]["mirror"]
        check(got, *((F.hflip(pil(i)), F.hflip(wrapped(i))) if got[3]["mirror"] else (pil(i), wrapped(i))))
    assert 0 < mirrored < N


def test_random_resized_crop(pipe):
    for i, got in enumerate(samples(pipe.random_resized_crop((24, 32), fields=BOTH))):
        box = [got[3][key] for key in ("top", "left", "height", "width")]
        want = [F.resized_crop(x, *box, (24, 32)) for x in (pil(i), wrapped(i))]
        check(got, *want)


def test_zoom_out(pipe):
    applied = 0
    for i, got in enumerate(samples(pipe.random_zoom_out(fill=(9, 8, 7), fields=BOTH))):
        drawn, image, boxes = got[3], pil(i), wrapped(i)
        if drawn["applied"]:
            right, bottom = drawn["width"] - W - drawn["left"], drawn["height"] - H - drawn["top"]
            sides = [drawn["left"], drawn["top"], right, bottom]
            image, boxes = F.pad(image, sides, fill=(9, 8, 7)), F.pad(boxes, sides)
        check(got, image, boxes)
        applied += drawn["applied"]
    assert abs(applied - N / 2) < 5 * (N / 4) ** 0.5


def test_iou_crop_is_what_was_drawn(pipe):
    """The part overlaps with a box as one of the options asks; boxes are torchvision's crop of them."""
    options = [0.1, 0.5]
    cropped = 0
    for i, got in enumerate(samples(pipe.random_iou_crop(sampler_options=options, max_scale=0.8, fields=BOTH))):
        drawn, image, boxes = got[3], pil(i), wrapped(i)
        if drawn["cropped"]:
            box = [drawn[key] for key in ("top", "left", "height", "width")]
            assert 0.5 <= box[3] / box[2] <= 2
            centre = (boxes[:, :2] + boxes[:, 2:]) / 2
            low = torch.tensor([box[1], box[0]])
            inside = ((centre > low) & (centre < low + torch.tensor([box[3], box[2]]))).all(1)
            part = torch.tensor([[*low, box[1] + box[3], box[0] + box[2]]])
            assert torchvision.ops.box_iou(boxes[inside].as_subclass(torch.Tensor), part).max() >= options[0]
            image, boxes = F.crop(image, *box), F.crop(boxes, *box)
            boxes[~inside] = 0
        check(got, image, boxes)
        cropped += drawn["cropped"]
    assert cropped > N / 2


def test_iou_crop_distribution():
    """Widths, places and how often the image stays whole: as torchvision's, for one box in the middle."""
    n = 600
    boxes = numpy.tile(numpy.array([[[20, 15, 60, 45]]], "float32"), (n, 1, 1))
    images, labels = numpy.zeros((n, H, W, 1), "uint8"), numpy.zeros((n, 1), "int64")
    pipe = drapps.from_arrays(image=images, boxes=boxes, labels=labels, kinds={"boxes": "boxes"})
    ours = [drawn for *_, drawn in samples(pipe.random_iou_crop(fields=BOTH))]
    theirs, torch_crop = [], v2.RandomIoUCrop()
    torch.manual_seed(0)
    sample = [torch.zeros(1, H, W), tv_tensors.BoundingBoxes(boxes[0], format="XYXY", canvas_size=(H, W))]
    for _ in range(n):
        theirs.append(torch_crop.make_params(sample))
    whole = [sum(not d["cropped"] for d in ours), sum(not d for d in theirs)]
    assert abs(whole[0] - whole[1]) < 5 * (2 * n * (1 / 7)) ** 0.5
    for key, deviation in (("width", 20), ("height", 15), ("left", 12), ("top", 9)):
        a = numpy.mean([d[key] for d in ours if d["cropped"]])
        b = numpy.mean([d[key] for d in theirs if d])
        assert abs(a - b) < 5 * deviation * (2 / n) ** 0.5, key


def test_photometric_distort(pipe):
    """Pillow's arithmetic, in torchvision's order; each part comes with its probability."""
    counts = numpy.zeros(5)
    parts = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
    names = ("brightness", "contrast", "saturation", "hue")
    for i, got in enumerate(samples(pipe.random_photometric_distort(fields=BOTH))):
        image, drawn = pil(i), got[3]
        for part in drawn["parts"]:
            image = parts[part](image, drawn[names[part]])
            counts[part] += 1
        pixels = numpy.asarray(image)
        if drawn["permutation"]:
            pixels = pixels[..., drawn["permutation"]]
            counts[4] += 1
        check(got, pixels, wrapped(i))
        assert drawn["parts"] in ([p for p in order if p in drawn["parts"]] for order in ([0, 1, 2, 3], [0, 2, 3, 1]))
    assert (abs(counts - N / 2) < 5 * (N / 4) ** 0.5).all()


def test_clamp_and_sanitize():
    rows = [[-5, -5, 10, 10], [70, 50, 90, 70], [5, 5, 5.5, 30], [1, 1, 4, 4], [90, 1, 99, 9]]
    boxes, labels = numpy.array([rows], "float32"), numpy.arange(5)[None]
    pipe = drapps.from_arrays(image=noise((1, H, W, 3)), boxes=boxes, labels=labels, kinds={"boxes": "boxes"})
    want = tv_tensors.BoundingBoxes(boxes[0], format="XYXY", canvas_size=(H, W))
    for clamp in (False, True):
        chain, now = pipe, want
        if clamp:
            chain, now = chain.clamp_bounding_boxes(fields=BOTH), v2.ClampBoundingBoxes()(now)
        ((_, got, labels, _),) = samples(chain.sanitize_bounding_boxes(min_size=2, fields="image,boxes,labels"))
        result = v2.SanitizeBoundingBoxes(min_size=2)({"boxes": now, "labels": torch.arange(5)})
        numpy.testing.assert_array_equal(got, result["boxes"])
        numpy.testing.assert_array_equal(labels, result["labels"])


def test_sanitize_with_too_few_labels_is_one_bad_sample(tmp_path):
    Image.fromarray(noise((H, W, 3))).save(tmp_path / "a.png")
    rows = [{"path": "a.png", "boxes": [[1, 1, 20, 20]] * (300 if i == 5 else 3), "labels": [1] * 3} for i in range(8)]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pipe = drapps.read(tmp_path / "list.jsonl").decode().sanitize_bounding_boxes(fields="image,boxes,labels")
    assert len(list(samples(pipe, on_bad_sample="skip"))) == 7
    with pytest.raises(drapps.Error, match="sanitize_bounding_boxes: must have 300 rows, one for each box, got 3"):
        list(samples(pipe))


@pytest.mark.parametrize("boxes, shape", [
    (numpy.zeros((4, 0, 4)), {}),  # none
    (numpy.full((4, 1, 4), 900.0), {}),  # none in the image
    (some_boxes(4), {"max_aspect_ratio": 0.02, "min_aspect_ratio": 0.01}),  # no such part
])  # fmt: skip
def test_iou_crop_that_cannot_be_leaves_the_image_whole_at_once(boxes, shape):
    """A thousand million tries each would not end in the test's time."""
    images = noise((4, H, W, 3))
    pipe = drapps.from_arrays(image=images, boxes=boxes.astype("float32"), labels=numpy.zeros((4, 1)),
                              kinds={"boxes": "boxes"})  # fmt: skip
    pipe = pipe.random_iou_crop(sampler_options=[0.5], trials=1000000, fields=BOTH, **shape)
    for (image, got, _, _), want, before in zip(samples(pipe), images, boxes, strict=True):
        numpy.testing.assert_array_equal(image, want)
        numpy.testing.assert_array_equal(got, before.astype("float32"))


def ssd(pipe):
    pipe = pipe.random_photometric_distort().random_zoom_out(fields=BOTH).random_iou_crop(fields=BOTH)
    pipe = pipe.resize((300, 300), fields=BOTH).random_horizontal_flip(fields=BOTH)
    return pipe.sanitize_bounding_boxes(fields="image,boxes,labels")


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    """PNG files of different size with a coloured rectangle each, listed with their boxes in JSON lines."""
    folder = tmp_path_factory.mktemp("painted")
    random = numpy.random.default_rng(3)
    with open(folder / "list.jsonl", "w") as listing:
        for i in range(40):
            h, w = (int(n) for n in random.integers(120, 260, 2))
            image = numpy.full((h, w, 3), 128, "uint8")
            x, y = (int(n) for n in random.integers(5, 50, 2))
            box = [x, y, x + int(random.integers(20, w - 60)), y + int(random.integers(20, h - 60))]
            image[box[1] : box[3], box[0] : box[2]] = 0
            Image.fromarray(image).save(folder / f"{i}.png")
            row = {"path": f"{i}.png", "boxes": [box] if i % 8 else [], "labels": [i] if i % 8 else []}
            listing.write(json.dumps(row) + "\n")
    return folder / "list.jsonl"


def test_painted_rectangles_are_found_again(painted):
    """The dark pixels after the whole chain lie where the box says: IoU above 0.9."""
    chain = drapps.read(painted).decode().random_zoom_out(fill=128, fields=BOTH).random_iou_crop(fields=BOTH)
    chain = chain.resize((300, 300), fields=BOTH).random_horizontal_flip(fields=BOTH).random_vertical_flip(fields=BOTH)
    found = 0
    for image, boxes, labels, _ in samples(chain.sanitize_bounding_boxes(min_size=8, fields="boxes,labels"), seed=5):
        assert image.shape == (300, 300, 3) and len(boxes) == len(labels) <= 1
        for box in boxes:
            ys, xs = numpy.nonzero(image[..., 0] < 64)
            seen = torch.tensor([[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]], dtype=torch.float32)
            assert torchvision.ops.box_iou(torch.from_numpy(box[None]), seen) > 0.9
            found += 1
    assert found > 20


def test_ssd_chain_gives_ragged_boxes(painted):
    chain = ssd(drapps.read(painted).decode()).to_dtype(scale=True).normalize(mean=[0.5] * 3, std=[0.25] * 3)
    ragged = {"boxes": "ragged", "labels": "ragged"}
    total = 0
    for batch in chain.loader(batch_size=16, output="numpy", collate=ragged, outputs="image,boxes,labels"):
        assert batch["image"].shape[1:] == (3, 300, 300)
        offsets = batch["boxes_offsets"]
        assert batch["boxes"].shape == (offsets[-1], 4) and batch["labels"].shape == (offsets[-1],)
        assert list(offsets) == list(batch["labels_offsets"]) and len(offsets) == len(batch["image"]) + 1
        total += offsets[-1]
    assert 15 < total <= 35


def test_coco_annotations(tmp_path):
    """Boxes and labels are those of the annotations; crowds and images without boxes are left out."""
    for i in range(3):
        Image.fromarray(noise((20, 30, 3), i)).save(tmp_path / f"{i}.png")
    rows = [(10, [1, 2, 5, 6.5], 7, 0), (10, [0, 0, 30, 20], 3, 0), (10, [0, 0, 9, 9], 3, 1), (12, [3, 4, 5, 6], 3, 0)]
    keys = ("image_id", "bbox", "category_id", "iscrowd")
    text = {
        "images": [{"id": 10 + i, "file_name": f"{i}.png"} for i in range(3)],
        "annotations": [dict(zip(keys, row)) for row in rows],
        "categories": [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(text))
    got = list(samples(drapps.read_coco(tmp_path / "instances.json", tmp_path).decode()))
    assert len(got) == 2
    numpy.testing.assert_array_equal(got[0][0], noise((20, 30, 3), 0))
    numpy.testing.assert_array_equal(got[0][1], numpy.array([[1, 2, 6, 8.5], [0, 0, 30, 20]], "float32"))
    assert got[0][2].tolist() == [7, 3] and got[1][2].tolist() == [3]
    every = list(samples(drapps.read_coco(tmp_path / "instances.json", tmp_path, empty=True).decode()))
    assert [len(boxes) for _, boxes, _, _ in every] == [2, 0, 1]


def test_same_bytes_for_any_workers(painted):
    chain = ssd(drapps.read(painted).decode())
    runs = [list(samples(chain, seed=3, workers=w, reference=r)) for w, r in ((0, True), (1, False), (4, False))]
    for other in runs[1:]:
        for one, two in zip(runs[0], other):
            for a, b in zip(one[:3], two[:3]):
                numpy.testing.assert_array_equal(a, b)


def test_mistakes_are_named(pipe):
    lists = {"boxes": "list", "image": "list"}
    with pytest.raises(drapps.Error, match="image must stand before its boxes"):
        pipe.resize(20, fields="boxes,image").loader(collate=lists)
    with pytest.raises(drapps.Error, match="boxes need their image"):
        pipe.resize(20, field="boxes").loader(outputs="boxes", collate={"boxes": "list"})
    with pytest.raises(drapps.Error, match="needs boxes among its fields"):
        pipe.random_iou_crop(field="image").loader(outputs="image", collate={"image": "list"})
    with pytest.raises(drapps.Error, match="needs boxes among its fields"):
        pipe.random_iou_crop(field="image").explain()
    with pytest.raises(drapps.Error, match="cannot stand inside another op"):
        drapps.ops.random_apply([drapps.ops.random_iou_crop()])
    wrong = drapps.from_arrays(boxes=some_boxes(2), labels=numpy.zeros((2, 3)), kinds={"boxes": "boxes"})
    wrong = wrong.sanitize_bounding_boxes(fields="boxes,labels")
    with pytest.raises(drapps.Error, match="must have 5 rows, one for each box, got 3"):
        next(iter(wrong.loader(collate={"boxes": "list", "labels": "list"})))
