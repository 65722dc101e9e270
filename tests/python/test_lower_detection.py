"""CocoDetection and VOCDetection under drapps.DataLoader: images, boxes, masks and labels are torchvision's."""

import json
import os
import pathlib
from collections import defaultdict

import cocosets
import pytest
import torch
from op_runner import import_torchvision

from drapps import DataLoader

import_torchvision()
pytest.importorskip("pycocotools")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools
from PIL import Image  # noqa: E402
from torch.utils.data import ConcatDataset, Subset  # noqa: E402
from torchvision import datasets, tv_tensors  # noqa: E402
from torchvision.datasets import wrap_dataset_for_transforms_v2  # noqa: E402
from torchvision.transforms import Compose, v2  # noqa: E402

KEYS = ("image_id", "boxes", "masks", "labels")


def zipped(batch):
    return tuple(zip(*batch))


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """[(annotation file, folder of images)]: one made here, and COCO's own where DRAPPS_TEST_COCO names it."""
    folder = tmp_path_factory.mktemp("coco")
    found = [(cocosets.make_coco(folder, n=20), folder)]
    if real := os.environ.get("DRAPPS_TEST_COCO"):
        found.append((next(pathlib.Path(real).glob("*.json")), pathlib.Path(real) / "images"))
    return found


@pytest.fixture(scope="module")
def coco(sets):
    return sets[0]


def make(where, transforms, keys=KEYS, **options):
    path, folder = where
    dataset = datasets.CocoDetection(folder, path, transforms=transforms, **options)
    return wrap_dataset_for_transforms_v2(dataset, target_keys=keys)


def tensors(*transforms):
    return v2.Compose([v2.ToImage(), *transforms, v2.ToDtype(torch.float32, scale=True)])


def loader_of(dataset, **options):
    return DataLoader(dataset, **{"batch_size": 4, "num_workers": 2, "collate_fn": zipped, **options})


def why(dataset, **options):
    """Why it is not native."""
    loader = loader_of(dataset, **options)
    assert not loader._is_native()
    return loader.explain()


def assert_same(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want)
        for name in ("canvas_size", "format"):
            assert getattr(got, name, None) == getattr(want, name, None)
    elif isinstance(want, dict):
        assert set(got) == set(want)  # torchvision's order is that of a set
        for key in want:
            assert_same(got[key], want[key])
    else:
        assert got == want


def assert_native(dataset, **options):
    """All samples natively, as the data set itself gives them."""
    loader = loader_of(dataset, **options)
    assert loader._is_native(), loader.explain()
    index = 0
    for images, targets in loader:
        assert type(images) is type(targets) is tuple
        for image, target in zip(images, targets, strict=True):
            wanted_image, wanted_target = dataset[index]
            assert_same(image, wanted_image)
            assert_same(target, wanted_target)
            index += 1
    assert index == len(dataset)


FLIP = v2.RandomHorizontalFlip(1)
CHAINS = {
    "flip": tensors(FLIP),
    "upside down": tensors(v2.RandomVerticalFlip(1)),
    "resize": tensors(v2.Resize((70, 90))),
    "resize, PIL": v2.Compose([v2.Resize(64, max_size=120), FLIP, v2.PILToTensor()]),
    "resize twice": tensors(v2.Resize((77, 91)), FLIP, v2.Resize((50, 33))),
    "pad": tensors(v2.Pad((3, 5, 7, 11))),
    "pad, image alone": v2.Compose([v2.Pad(4, fill={tv_tensors.Mask: 0, "others": 9}), v2.ToImage()]),
    "order": tensors(v2.RandomOrder([FLIP]), v2.RandomApply([FLIP], p=1)),
    "clamp": tensors(v2.ClampBoundingBoxes(), v2.ConvertBoundingBoxFormat("XYXY")),
    "pure": v2.Compose([v2.ToImage(), FLIP, v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor(),
                        v2.Normalize([0.5] * 3, [0.2] * 3)]),
    "colour": v2.Compose([v2.Grayscale(3), FLIP, v2.ToImage()]),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_coco_is_torchvisions(sets, chain):
    for where in sets:
        assert_native(make(where, CHAINS[chain]))


@pytest.mark.parametrize("keys", [None, ("boxes",), ("masks",), ("labels", "image_id"), "all"])
def test_keys_of_targets(coco, keys):
    assert_native(make(coco, CHAINS["resize"], keys))


def test_sanitized(coco):
    """Images without annotations, at which torchvision raises, are left out."""
    dataset = make(coco, tensors(v2.Resize((9, 9)), v2.SanitizeBoundingBoxes(min_size=2)))
    annotated = [i for i, image in enumerate(dataset.ids) if dataset.coco.getAnnIds(image)]
    assert len(annotated) < len(dataset)
    assert_native(Subset(dataset, annotated))
    assert "has no annotations, at which sanitize_bounding_boxes raises" in why(dataset)


def test_random_ops_follow(coco):
    """What torchvision's reference for SSD does: drawn anew, so boxes are compared with the masks
    that moved with them."""
    chain = v2.Compose([v2.RandomPhotometricDistort(),
                        v2.RandomZoomOut(fill=defaultdict(lambda: 7, {tv_tensors.Mask: 0})),
                        v2.RandomHorizontalFlip(), v2.RandomResizedCrop((128, 128), scale=(0.9, 1)),
                        v2.ToImage()])  # fmt: skip
    dataset = make(coco, chain)
    loader = loader_of(dataset)
    assert loader._is_native(), loader.explain()
    compared = 0
    for index, target in enumerate(target for _images, targets in loader for target in targets):
        notes = dataset._dataset._load_target(dataset.ids[index])
        for note, box, mask in zip(notes, target.get("boxes", ()), target.get("masks", ()), strict=True):
            rows, columns = torch.nonzero(mask, as_tuple=True)
            if isinstance(note["segmentation"], list) and len(rows) > 30:  # run lengths are not those of the box
                assert columns.min() >= box[0] - 2 and columns.max() <= box[2] + 2
                assert rows.min() >= box[1] - 2 and rows.max() <= box[3] + 2
                compared += 1
    assert compared > 5


class Preset:
    """As torchvision's references have it."""

    def __init__(self):
        self.transforms = tensors(FLIP)

    def __call__(self, img, target):
        return self.transforms(img, target)


class InTurn:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image, target):
        for t in self.transforms:
            image, target = t(image, target)
        return image, target


def test_plain_wrappers(coco):
    assert_native(make(coco, Preset()))
    assert_native(make(coco, InTurn([v2.PILToTensor(), FLIP])))
    assert_native(ConcatDataset([make(coco, Preset()), make(coco, Preset())]), shuffle=False)


# --- integer boxes ---


@pytest.fixture(scope="module")
def integers(tmp_path_factory):
    """Boxes of some images are integers, as COCO has them for crowds."""
    folder = tmp_path_factory.mktemp("integers")
    path = cocosets.make_coco(folder, n=10, seed=3)
    content = json.loads(path.read_text())
    for note in content["annotations"]:
        if note["image_id"] % 2:
            note["bbox"] = [int(v) for v in note["bbox"]]
    path.write_text(json.dumps(content))
    return path, folder


@pytest.mark.parametrize("chain", CHAINS)
def test_integer_boxes(integers, chain):
    dataset = make(integers, CHAINS[chain])
    kinds = {dataset[i][1]["boxes"].dtype for i in range(len(dataset)) if "boxes" in dataset[i][1]}
    assert kinds == {torch.int64, torch.float32}
    assert_native(dataset)


@pytest.mark.parametrize("transform", [v2.RandomAffine(10), v2.RandomApply([v2.Resize((50, 50))])])
def test_integer_boxes_that_are_truncated_otherwise(integers, coco, transform):
    chain = v2.Compose([transform, v2.ToImage()])
    assert "has integer boxes, which torchvision truncates" in why(make(integers, chain, ("boxes",)))
    assert loader_of(make(coco, chain, ("boxes",)))._is_native()


# --- VOC ---


def write_voc(root, n=6, objects=2, side="{}"):
    base = root / "VOCdevkit" / "VOC2012"
    for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (base / name).mkdir(parents=True)
    for i in range(n):
        Image.new("RGB", (60 + 7 * i, 90 - 5 * i), (40 * i, 9, 200)).save(base / f"JPEGImages/{i}.jpg")
        boxes = "".join(
            f"<object><name>{('dog', 'cat', 'person')[k % 3]}</name><bndbox>"
            f"<xmin>{side.format(3 + k)}</xmin><ymin>5</ymin><xmax>{21 + 3 * k + i}</xmax>"
            f"<ymax>{38 + i}</ymax></bndbox></object>" for k in range(objects)
        )
        (base / f"Annotations/{i}.xml").write_text(f"<annotation><filename>{i}.jpg</filename>{boxes}</annotation>")
    (base / "ImageSets/Main/train.txt").write_text("".join(f"{i}\n" for i in range(n)))
    return root


def voc(root, transforms, keys=None):
    return wrap_dataset_for_transforms_v2(datasets.VOCDetection(root, transforms=transforms), target_keys=keys)


@pytest.mark.parametrize("chain", ["flip", "resize", "resize, PIL", "resize twice", "pad", "clamp", "pure"])
@pytest.mark.parametrize("objects", [1, 3])
def test_voc_is_torchvisions(tmp_path, chain, objects):
    assert_native(voc(write_voc(tmp_path, objects=objects), CHAINS[chain]))


def test_voc_that_torchvision_refuses(tmp_path):
    dataset = voc(write_voc(tmp_path, side="{}.5"), CHAINS["flip"])
    assert "0.xml: ValueError: invalid literal for int()" in why(dataset)
    with pytest.raises(ValueError, match="invalid literal"):
        list(loader_of(dataset))
    assert "its targets have annotation" in why(voc(tmp_path, CHAINS["flip"], "all"))


# --- what stays in Python ---


class Cropped(v2.RandomHorizontalFlip):
    pass


class Fewer(datasets.CocoDetection):
    def _load_target(self, id):
        return super()._load_target(id)[:1]


def test_what_is_not_proven_stays_in_python(coco):
    path, folder = coco
    plain = datasets.CocoDetection(folder, path, transform=v2.ToImage())
    fewer = wrap_dataset_for_transforms_v2(Fewer(folder, path, transforms=CHAINS["flip"]))
    assert "wrap_dataset_for_transforms_v2 makes boxes of them" in why(plain)
    assert "reads its items in its own way" in why(fewer)
    assert "transforms= takes image and boxes together" in why(wrap_dataset_for_transforms_v2(plain))
    assert "collate_fn=lambda batch: tuple(zip(*batch)) is native" in why(make(coco, CHAINS["flip"]), collate_fn=None)
    replaced = make(coco, CHAINS["flip"])
    replaced._wrapper = lambda index, sample: sample
    assert "wrapper was replaced" in why(replaced)


@pytest.mark.parametrize("transform, said", [
    (v2.CenterCrop(50), "a pixel off"),
    (v2.Pad(4, fill=7), "fill=7 for masks"),
    (v2.Pad(4, padding_mode="reflect"), "padding_mode='reflect' with boxes"),
    (v2.RandomRotation(9, expand=True), "expand=True"),
    (v2.SanitizeBoundingBoxes(labels_getter=lambda sample: sample[1]["labels"]), "a labels_getter of its own"),
    (v2.ConvertBoundingBoxFormat("CXCYWH"), "format='CXCYWH'"),
    (v2.AutoAugment(), "auto_augment"),
    (v2.ScaleJitter((64, 64)), "has no native form"),
    (v2.Compose([v2.ToImage(), v2.ConvertImageDtype(torch.float32)]), "converts boxes and masks, too"),
    (v2.RandomApply([v2.ClampBoundingBoxes()]), "holds ClampBoundingBoxes: acts on boxes"),
    (torch.nn.Sequential(FLIP), "takes an image alone"),
    (Compose([FLIP]), "takes an image alone"),
    (Cropped(1), "a subclass of torchvision's RandomHorizontalFlip"),
    (v2.Compose([v2.ToImage(), v2.ToPureTensor(), FLIP]), "after ToPureTensor"),
])  # fmt: skip
def test_transforms_that_stay_in_python(coco, transform, said):
    assert said in why(make(coco, v2.Compose([transform, v2.ToImage()])))


def test_boxes_are_asked_for(coco):
    chain = tensors(v2.RandomIoUCrop())
    assert "RandomIoUCrop: Python, needs boxes in the target" in why(make(coco, chain, ("masks",)))


class Around(torch.utils.data.Dataset):
    def __init__(self, dataset, transform):
        self.dataset, self.transform = dataset, transform

    def __getitem__(self, index):
        image, target = self.dataset[index]
        return self.transform(image), target

    def __len__(self):
        return len(self.dataset)


def test_a_data_set_around_it_moves_the_image_alone(coco):
    dataset = Around(make(coco, v2.ToImage()), FLIP)
    assert "transforms the image alone" in why(dataset)
    images, targets = next(iter(loader_of(dataset)))
    assert_same(images[0], dataset[0][0])
    assert_same(targets[0], dataset[0][1])


def test_empty_targets(coco):
    """Without keys there is nothing to zip, and default_collate makes an empty dict of targets."""
    dataset = Subset(make(coco, CHAINS["resize"], ()), [0, 1])
    assert "its targets are empty" in why(dataset, collate_fn=None)
    ((images, targets),) = loader_of(dataset, collate_fn=None)
    assert images.shape == (2, 3, 70, 90) and targets == {}


def test_types_that_torch_makes_of_boxes(coco):
    torch.set_default_dtype(torch.float64)
    try:
        assert "default type is torch.float64" in why(make(coco, CHAINS["flip"]))
    finally:
        torch.set_default_dtype(torch.float32)
    assert_native(make(coco, CHAINS["flip"]))


@pytest.mark.parametrize("changed, said", [
    ({"bbox": [2**24 + 1, 3, 10, 10]}, "which float32 does not"),
    ({"bbox": [2**24, 3, 10, 10]}, "which float32 does not"),
    ({"bbox": [True, 3, 10, 10]}, "True, which is no int or float"),
    ({"bbox": ["1", "3", "10", "10"]}, "'1', which is no int or float"),
    ({"area": None}, "image 100 has no area, at which torchvision raises"),
])  # fmt: skip
def test_annotations_of_other_types(tmp_path, changed, said):
    path = cocosets.make_coco(tmp_path, n=3)
    content = json.loads(path.read_text())
    for note in content["annotations"]:
        note.update(changed)
        for name in [name for name in note if note[name] is None]:
            del note[name]
    path.write_text(json.dumps(content))
    assert said in why(make((path, tmp_path), CHAINS["flip"], ("boxes", "area")))


def test_an_index_that_is_not_pycocotools(coco):
    dataset = make(coco, CHAINS["flip"])
    loader = loader_of(dataset)
    assert loader._is_native()
    load = dataset.coco.loadAnns
    dataset.coco.loadAnns = lambda ids: load(ids)[:1]
    assert "its loadAnns was replaced" in why(dataset)
    assert max(len(target.get("boxes", ())) for _, targets in loader for target in targets) == 1


def test_another_data_set_in_the_wrapper(coco):
    dataset = make(coco, CHAINS["flip"])
    dataset._dataset = make(coco, None)._dataset
    assert "the data set in the wrapper was replaced" in why(dataset)
    dataset = make(coco, CHAINS["flip"])
    dataset._dataset.__getitems__ = lambda indices: []
    assert "reading items was replaced" in why(dataset)


def test_builtins_of_a_functions_own(coco):
    scope = {"__builtins__": {"tuple": tuple, "zip": lambda *samples: samples}}
    exec("def collate(batch): return tuple(zip(*batch))", scope)
    assert "not made natively" in why(make(coco, CHAINS["flip"]), collate_fn=scope["collate"])


def test_timms_collate(coco):
    timm = pytest.importorskip("timm.data.loader")
    chain = v2.Compose([v2.Resize((40, 40)), v2.ToImage()])
    assert "cannot be stacked" in why(make(coco, chain), collate_fn=timm.fast_collate)


# --- trouble ---


def test_an_image_of_another_size_than_its_annotations(tmp_path):
    """torchvision makes masks of the image's size: so does the batch."""
    path = cocosets.make_coco(tmp_path, n=5)
    content = json.loads(path.read_text())
    content["images"][2]["height"] += 9
    for note in content["annotations"]:
        if isinstance(note["segmentation"], dict):
            note["segmentation"] = [[1, 1, 20, 1, 20, 30]]
    path.write_text(json.dumps(content))
    dataset = make((path, tmp_path), CHAINS["flip"])
    assert_native(dataset)
    assert "the data set decides which samples cannot be read" in why(dataset, on_bad_sample="skip")


def test_a_damaged_image(tmp_path):
    path = cocosets.make_coco(tmp_path, n=5)
    (tmp_path / "001.jpg").write_bytes(b"no image")
    dataset = make((path, tmp_path), CHAINS["flip"])
    with pytest.raises(Exception, match="cannot identify image file"):
        list(loader_of(dataset))
    shorter = loader_of(dataset, on_bad_sample="skip")
    assert sum(len(images) for images, _ in shorter) == 4


def test_annotations_that_are_replaced_are_read_again(coco):
    dataset = make(coco, CHAINS["flip"])
    loader = loader_of(dataset)
    list(loader)
    dataset._dataset.ids = dataset._dataset.ids[:3]
    ((images, _),) = list(loader)
    assert len(images) == 3
