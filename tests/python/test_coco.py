"""COCO's masks and key points against pycocotools, and through every op that moves pixels against torchvision."""

import json
import os
import pathlib

import cocosets
import numpy
import pytest
import torch
from op_runner import import_torchvision

import drapps
from drapps.optable import TABLE

torchvision = import_torchvision()
mask_api = pytest.importorskip("pycocotools.mask")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    return cocosets.make_coco(folder, n=40, keypoints=5), folder


def pycocotools_mask(shape, height, width):
    if isinstance(shape, list):
        return mask_api.decode(mask_api.merge(mask_api.frPyObjects(shape, height, width)))
    return mask_api.decode(shape if isinstance(shape["counts"], str) else mask_api.frPyObjects(shape, height, width))


def notes_of(path, empty=False):
    """[(image, its annotations)] in the order of read_coco."""
    content = json.loads(pathlib.Path(path).read_text())
    notes = {image["id"]: [] for image in content["images"]}
    for note in content["annotations"]:
        if not note.get("iscrowd"):
            notes[note["image_id"]].append(note)
    return [(image, notes[image["id"]]) for image in content["images"] if empty or notes[image["id"]]]


def one_image(folder, shapes, height=37, width=53):
    from PIL import Image

    Image.new("RGB", (width, height)).save(folder / "one.png")
    notes = [
        {"id": i, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": shape}
        for i, shape in enumerate(shapes)
    ]
    path = folder / "one.json"
    images = [{"id": 1, "file_name": "one.png", "height": height, "width": width}]
    path.write_text(json.dumps({"images": images, "annotations": notes}))
    return drapps.read_coco(path, folder, masks=True).decode()


def masks_of(pipe):
    (batch,) = pipe.loader(1, outputs="masks", output="numpy")
    return batch["masks"][0]


# --- decoding ---


def test_masks_are_those_of_pycocotools(coco):
    pipe = drapps.read_coco(*coco, masks=True)
    for (image, notes), batch in zip(notes_of(coco[0]), pipe.loader(1, outputs="masks", output="numpy"), strict=True):
        want = [pycocotools_mask(note["segmentation"], image["height"], image["width"]) for note in notes]
        numpy.testing.assert_array_equal(batch["masks"][0], want)


def test_odd_polygons(tmp_path):
    """Corners on and beyond the edges, twice the same point, crossing edges, lines without area, more digits."""
    random = numpy.random.default_rng(5)
    shapes = [[[5, 5, 5, 5, 20, 5, 20, 5, 20, 20]], [[0, 0, 53, 0, 53, 37, 0, 37]], [[-9, -9, 70, -9, 70, 50, -9, 50]],
              [[3, 3, 30, 3, 3, 3]], [[10, 4, 10, 30, 10, 4]], [[9, 9, 12, 5, 9, 9, 30, 30]],
              [[2.5, 2.5, 40.5, 30.5, 40.5, 2.5, 2.5, 30.5], [0, 0, 9, 0, 9, 9], [4, 4, 8, 8]]]  # fmt: skip
    shapes += [
        [[round(float(v), d) for v in random.uniform(-10, 60, 2 * n)]] for d in (0, 1, 2, 9) for n in (3, 4, 7, 30)
    ]
    shapes += [[[float(v) for v in random.integers(-20, 120, 2 * n) / 2] for _ in range(3)] for n in (3, 5, 20)]
    got = masks_of(one_image(tmp_path, shapes))
    for i, shape in enumerate(shapes):
        numpy.testing.assert_array_equal(got[i], pycocotools_mask(shape, 37, 53), str(shape))
    assert got.max() == 1 and (got.reshape(len(shapes), -1).max(1) == 0).sum() < 5


def test_run_lengths(tmp_path):
    random = numpy.random.default_rng(6)
    planes = [random.uniform(size=(37, 53)) < p for p in (0, 0.02, 0.5, 0.98, 1)]
    planes += [numpy.repeat(numpy.repeat(random.uniform(size=(4, 6)) < 0.5, 10, 0), 9, 1)[:37, :53]]
    shapes, want = [], []
    for plane in planes:
        packed = mask_api.encode(numpy.asfortranarray(plane, "uint8"))
        shapes.append({"counts": packed["counts"].decode(), "size": [37, 53]})
        flat = plane.T.ravel()
        ends = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], flat, [False]])))
        counts = numpy.diff(numpy.concatenate([[0], ends, [flat.size]]))
        shapes.append({"size": [37, 53], "counts": [int(v) for v in counts]})
        want += [plane, plane]
    assert any("\\" in shape["counts"] for shape in shapes), "no text with a backslash, which JSON escapes"
    numpy.testing.assert_array_equal(masks_of(one_image(tmp_path, shapes)), want)


@pytest.mark.parametrize("shape, message", [
    ([[1, 2, 3, 4, 5, 6, 7]], "odd number of coordinates"),
    ([[1, 2, 3, 4]], "fewer than three points"),
    ([[1, 2, 3, 4, 5, 1e300]], "beyond 1e6"),
    ([[1, 2, 3, 4, 5, None]], "a number is missing"),
    ({"size": [37, 53], "counts": [5, 6]}, "end before the last pixel"),
    ({"size": [37, 53], "counts": [5, 37 * 53]}, "beyond the last pixel"),
    ({"size": [37, 53], "counts": [5, -5, 37 * 53]}, "negative"),
    ({"size": [36, 53], "counts": [36 * 53]}, "another size"),
    ({"size": [37, 53], "counts": "\x7f"}, "wrong letter"),
    ({"size": [37, 53], "counts": "ooooooooooo"}, "too long"),
])  # fmt: skip
def test_wrong_shapes_are_named(tmp_path, shape, message):
    with pytest.raises(drapps.Error, match=f"decode_masks: segmentation: object 1: .*{message}"):
        masks_of(one_image(tmp_path, [[[1, 1, 9, 1, 9, 9]], shape]))


def test_mistakes_in_the_file_are_named(tmp_path):
    for shape in ([], "text", 5):
        with pytest.raises(drapps.Error, match='annotation 0: "segmentation" must be polygons or run lengths, got'):
            one_image(tmp_path, [shape])
    path = cocosets.make_coco(tmp_path, n=3, keypoints=2)
    content = json.loads(path.read_text())
    content["annotations"][1]["keypoints"].append(1)
    path.write_text(json.dumps(content))
    with pytest.raises(drapps.Error, match='annotation 2: "keypoints" must be x, y, visibility'):
        drapps.read_coco(path, tmp_path, keypoints=True)
    content["annotations"][1]["keypoints"] += [1, 1]
    path.write_text(json.dumps(content))
    with pytest.raises(drapps.Error, match=r'"keypoints" must have the same number of values, got \[6, 9\]'):
        drapps.read_coco(path, tmp_path, keypoints=True)


def test_a_file_beyond_the_memory_is_not_read(tmp_path):
    huge = tmp_path / "instances.json"
    huge.touch()
    os.truncate(huge, 2**42)  # sparse: it takes nothing on the disk
    with pytest.raises(drapps.LimitError, match="instances.json: annotations of 4398046511104 bytes; the memory"):
        drapps.read_coco(huge, tmp_path)


def test_a_mask_of_another_size_than_its_image_is_refused(coco, tmp_path):
    content = json.loads(coco[0].read_text())
    for image in content["images"]:
        image["height"] -= 1
        image["width"] += 1
    path = tmp_path / "wrong.json"
    content["annotations"] = [note for note in content["annotations"] if isinstance(note["segmentation"], list)]
    path.write_text(json.dumps(content))
    pipe = drapps.read_coco(path, coco[1], masks=True).decode().random_resized_crop((20, 20))
    with pytest.raises(drapps.Error, match='"masks" has .* pixels, "image" has .* must be equal'):
        list(pipe.loader(4))
    arrays = {"image": numpy.zeros((4, 60, 60, 3), "uint8"), "mask": numpy.zeros((4, 20, 20), "uint8")}
    with pytest.raises(drapps.Error, match='"mask" has 20x20 pixels, "image" has 60x60'):
        list(drapps.from_arrays(arrays).random_resized_crop((8, 8)).loader(2))


# --- moving ---


def box_of(drawn):
    return [drawn[key] for key in ("top", "left", "height", "width")]


def zoom(x, drawn, size):
    if not drawn["applied"]:
        return x
    right, bottom = drawn["width"] - size[1] - drawn["left"], drawn["height"] - size[0] - drawn["top"]
    return F.pad(x, [drawn["left"], drawn["top"], right, bottom])


def affine(x, drawn, size, **options):
    return F.affine(x, angle=drawn["angle"], translate=[drawn["translate_x"], drawn["translate_y"]],
                    scale=drawn["scale"],
                    shear=[drawn["shear_x"], drawn["shear_y"]], fill=None, **options)  # fmt: skip


MOVES = {
    "crop": (lambda p: p.crop(10, -5, 30, 60), lambda x, d, s: F.crop(x, 10, -5, 30, 60)),
    "center_crop": (lambda p: p.center_crop((51, 42)), lambda x, d, s: F.center_crop(x, [51, 42])),
    "pad": (lambda p: p.pad((3, 5, 7, 9), fill=100), lambda x, d, s: F.pad(x, [3, 5, 7, 9])),
    "resize": (lambda p: p.resize((61, 47)), lambda x, d, s: F.resize(x, [61, 47])),
    "resize to the shorter side": (lambda p: p.resize(100, max_size=130),
                                   lambda x, d, s: F.resize(x, [100], max_size=130)),
    "horizontal flip": (lambda p: p.random_horizontal_flip(), lambda x, d, s: F.hflip(x) if d["mirror"] else x),
    "vertical flip": (lambda p: p.random_vertical_flip(), lambda x, d, s: F.vflip(x) if d["mirror"] else x),
    "random_crop": (lambda p: p.random_crop((70, 90), padding=(4, 6), pad_if_needed=True),
                    lambda x, d, s: F.crop(F.pad(x, d["padding"]), *box_of(d))),
    "random_resized_crop": (lambda p: p.random_resized_crop((33, 44)),
                            lambda x, d, s: F.resized_crop(x, *box_of(d), [33, 44])),
    "random_zoom_out": (lambda p: p.random_zoom_out(fill=(9, 8, 7)), zoom),
    "random_iou_crop": (lambda p: p.random_iou_crop(), lambda x, d, s: F.crop(x, *box_of(d)) if d["cropped"] else x),
    "random_rotation": (lambda p: p.random_rotation(180), lambda x, d, s: F.rotate(x, d["angle"])),
    "random_rotation around a corner": (lambda p: p.random_rotation(45, center=(10, 20)),
                                        lambda x, d, s: F.rotate(x, d["angle"], center=[10, 20])),
    "random_affine": (lambda p: p.random_affine(30, translate=(0.2, 0.1), scale=(0.7, 1.4), shear=(-10, 10, -5, 5)),
                      affine),
    "random_affine around a corner": (lambda p: p.random_affine(90, scale=(0.3, 3), center=(30, 9)),
                                      lambda x, d, s: affine(x, d, s, center=[30, 9])),
}  # fmt: skip


def wrapped(image, notes):
    """What torchvision's wrapper makes of the annotations, and key points."""
    size = (image["height"], image["width"])
    boxes = tv_tensors.BoundingBoxes([note["bbox"] for note in notes], format="XYWH", canvas_size=size)
    masks = numpy.stack([pycocotools_mask(note["segmentation"], *size) for note in notes])
    points = torch.tensor([note["keypoints"] for note in notes]).reshape(len(notes), -1, 3)
    return (F.convert_bounding_box_format(boxes, new_format="XYXY"), tv_tensors.Mask(torch.from_numpy(masks)),
            tv_tensors.KeyPoints(points[..., :2], canvas_size=size), points[..., 2])  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_masks_boxes_and_key_points_follow(coco, name):
    """0 masks differ from torchvision's; boxes and key points are within 1e-4."""
    ours, theirs = MOVES[name]
    pipe = ours(drapps.read_coco(*coco, masks=True, keypoints=True).decode())
    loader = pipe.loader(1, output="numpy", keep_draws=True, collate={"image": "list"}, seed=7)
    for (image, notes), batch in zip(notes_of(coco[0]), loader.batches(), strict=True):
        drawn = next(iter(batch.draws(0).values()), None)
        size = (image["height"], image["width"])
        boxes, masks, points, seen = wrapped(image, notes)
        want = [theirs(x, drawn, size) for x in (boxes, masks, points)]
        if name == "random_iou_crop" and drawn["cropped"]:
            want[0][(batch["boxes"][0] == 0).all(1)] = 0
        numpy.testing.assert_allclose(batch["boxes"][0], want[0], atol=1e-4)
        numpy.testing.assert_array_equal(batch["masks"][0], want[1])
        numpy.testing.assert_allclose(batch["keypoints"][0][..., :2], want[2], atol=1e-4, rtol=1e-6)
        numpy.testing.assert_array_equal(batch["keypoints"][0][..., 2], seen)
        assert batch["image"][0].shape[1:] == batch["masks"][0].shape[1:]


def test_every_op_that_moves_pixels_is_here():
    moving = {op["name"] for op in TABLE.values() if "moves" in op["flags"] and "masks" in op["kinds"]}
    named = {name.split()[0] for name in MOVES if "_" in name or " " not in name}
    assert moving == named - {"horizontal", "vertical"} | {
        "random_horizontal_flip", "random_vertical_flip", "resize"}  # fmt: skip


def test_dropped_boxes_take_their_masks_along(coco):
    pipe = drapps.read_coco(*coco, masks=True, keypoints=True)
    pipe = pipe.decode().random_iou_crop().sanitize_bounding_boxes(min_size=9)
    dropped = 0
    for (_, notes), batch in zip(
        notes_of(coco[0]), pipe.loader(1, output="numpy", collate={"image": "list"}), strict=True
    ):
        n = len(batch["boxes"][0])
        assert len(batch["masks"][0]) == len(batch["keypoints"][0]) == len(batch["labels"][0]) == n
        dropped += len(notes) - n
        for box, mask in zip(batch["boxes"][0], batch["masks"][0], strict=True):
            y, x = numpy.nonzero(mask)
            if len(x) and x.max() + 2 < mask.shape[1]:  # a mask of polygons lies in its box, where that is not of runs
                assert mask.sum() <= mask.size and box[2] > box[0]
    assert dropped


def test_masks_are_the_same_however_they_are_made(coco, tmp_path):
    pipe = drapps.read_coco(*coco, masks=True).decode().resize((50, 60)).random_apply(
        [drapps.ops.random_horizontal_flip(p=1), drapps.ops.random_crop((40, 40))], p=0.5).resize((30, 30))  # fmt: skip
    plain = list(pipe.loader(5, output="numpy", seed=1))
    cache = str(tmp_path / "cache")
    for other in (pipe.loader(5, output="numpy", seed=1, reference=True),
                  pipe.loader(5, output="numpy", seed=1, workers=1),
                  pipe.loader(5, output="numpy", seed=1, cache=cache),
                  pipe.loader(5, output="numpy", seed=1, cache=cache),
                  pipe.map(lambda image: image, field="image").loader(5, output="numpy", seed=1,
                                                                      workers=1)):  # fmt: skip
        for a, b in zip(plain, other, strict=True):
            for one, two in zip(a["masks"], b["masks"], strict=True):
                numpy.testing.assert_array_equal(one, two)


def test_crowds(tmp_path):
    path = cocosets.make_coco(tmp_path, n=4)
    content = json.loads(path.read_text())
    content["annotations"][0]["iscrowd"] = 1
    path.write_text(json.dumps(content))
    n = len(content["annotations"])
    for crowds in (False, True):
        pipe = drapps.read_coco(path, tmp_path, masks=True, crowds=crowds, empty=True)
        (batch,) = pipe.loader(4, output="numpy", outputs="labels,masks" + ",iscrowd" * crowds)
        assert sum(map(len, batch["labels"])) == sum(map(len, batch["masks"])) == n - 1 + crowds
        assert not crowds or numpy.concatenate(batch["iscrowd"]).tolist() == [1] + [0] * (n - 1)


REAL = os.environ.get("DRAPPS_TEST_COCO")


@pytest.mark.skipif(not REAL, reason="DRAPPS_TEST_COCO names no folder with instances.json and images")
@pytest.mark.parametrize("name", MOVES)
def test_real_images(name):
    """By hand: annotations of COCO itself."""
    folder = pathlib.Path(REAL)
    ours, theirs = MOVES[name]
    annotations = next(folder.glob("*instances*.json"))
    pipe = ours(drapps.read_coco(annotations, next(p for p in folder.iterdir() if p.is_dir()), masks=True).decode())
    loader = pipe.loader(1, output="numpy", keep_draws=True, collate={"image": "list"}, seed=3)
    for (image, notes), batch in zip(notes_of(annotations), loader.batches(), strict=True):
        drawn = next(iter(batch.draws(0).values()), None)
        size = (image["height"], image["width"])
        boxes, masks, *_ = wrapped(image, [{**note, "keypoints": [0, 0, 0]} for note in notes])
        want = [theirs(x, drawn, size) for x in (boxes, masks)]
        if name == "random_iou_crop" and drawn["cropped"]:
            want[0][(batch["boxes"][0] == 0).all(1)] = 0
        numpy.testing.assert_allclose(batch["boxes"][0], want[0], atol=1e-4, rtol=1e-6)
        numpy.testing.assert_array_equal(batch["masks"][0], want[1])
