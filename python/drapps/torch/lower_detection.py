"""Detection: torchvision's CocoDetection and VOCDetection, wrapped by wrap_dataset_for_transforms_v2.

A sample is (image, target).  Images, boxes, labels and masks come from a native list that is made of the annotations
when the data set is first opened; what else a target holds is read from the data set as each batch is delivered.
Batches are what `tuple(zip(*samples))` makes: detection has images and targets of unequal size.

torchvision keeps boxes whose coordinates are all integers as int64 and truncates them after each op that scales.  Such
samples are marked (INTEGER), and truncate_bounding_boxes follows each of these ops.
"""

import copy
import os
import sys
import weakref
from dataclasses import dataclass

import numpy
import torch

from drapps.coco import open_rows
from drapps.optable import Op
from drapps.pipeline import Pipeline
from drapps.torch.lower_exact_code import value_of
from drapps.torch.lower_datasets import Family, check_decodable, check_object_reads, check_pillow, decode_op, home
from drapps.torch.lower_exact_code import check_class, check_object, inherits, is_of_library
from drapps.torch.lower_rows import IMAGE, PIL, Form, NotNative

WRAPPER = "torchvision.tv_tensors._dataset_wrapper"
INTEGER, COUNT = "boxes_are_integer", "annotations"  # columns: all its boxes are ints; how many annotations there are
SCALES = {"resize", "random_resized_crop"}
TURNS = {"random_affine", "random_rotation"}
NEEDS_BOXES = {"random_iou_crop", "sanitize_bounding_boxes"}
PLAIN = {"__module__", "__doc__", "__parameters__"}  # what a class has that adds nothing; the last is of Generic
NATIVE_KEYS = ("image_id", "boxes", "masks", "labels")  # in the order of torchvision's targets
MOST = 2**24  # integers up to here are float32 numbers


@dataclass(frozen=True)
class Facts:
    """What is known of all samples of a data set."""

    integer: numpy.ndarray
    count: numpy.ndarray
    names: list  # of the image files


class Detection(Family):
    """What COCO and VOC have in common.  `leaf` is the wrapper, `inner` the data set in it."""

    mixes = False  # boxes follow their image only where the engine makes both
    goes_on = True  # an image that is not as its annotations say is left to torchvision
    reads: tuple[str, ...] = ("__getitem__", "__len__")
    available: frozenset[str] = frozenset()  # keys of a target

    def __init__(self):
        self._facts = weakref.WeakKeyDictionary()

    def matches(self, leaf):
        """Whether it is torchvision's wrapper around torchvision's data set."""
        base = home(self.module, self.base)
        if base is None or not isinstance(leaf, base):
            return False
        wrapper = home(WRAPPER, "VisionDatasetTVTensorWrapper")
        if wrapper is None or not isinstance(leaf, wrapper):
            raise NotNative("its targets are as torchvision reads them; wrap_dataset_for_transforms_v2 makes boxes of "
                            "them, which drapps can move")  # fmt: skip
        inner = vars(leaf).get("_dataset")
        if type(leaf).__bases__ != (wrapper, type(inner)) or set(vars(type(leaf))) - PLAIN:
            raise NotNative(f"{type(leaf).__name__} is not as wrap_dataset_for_transforms_v2 makes it")
        if not inherits(type(inner), base, self.reads):
            raise NotNative(f"{type(inner).__name__} reads its items in its own way")
        check_object(inner)
        check_object_reads(inner)
        check_object_reads(leaf)
        check_class(wrapper, (object,))
        check_class(base, (torch.utils.data.Dataset, object))
        self._check_wrapper(leaf, base)
        if inner.transforms is not None:
            raise NotNative("the data set in the wrapper has transforms of its own")
        if leaf.transform is not None or leaf.target_transform is not None:
            raise NotNative("has transform= or target_transform=; transforms= takes image and boxes together")
        if not self.keys(leaf):
            raise NotNative("its targets are empty")
        if extra := self.keys(leaf) - self.available:
            raise NotNative(f"its targets have {', '.join(sorted(extra))}")
        check_pillow()
        return True

    def _check_wrapper(self, leaf, base):
        module = sys.modules[WRAPPER]
        factory, made = module.WRAPPER_FACTORIES.get(base), vars(leaf)["_wrapper"]
        codes = factory.__code__.co_consts if is_of_library(factory, module) else ()
        if not any(getattr(made, "__code__", None) is code for code in codes):
            raise NotNative("torchvision's wrapper was replaced")
        if "dataset" in made.__code__.co_freevars and value_of(made, "dataset") is not vars(leaf)["_dataset"]:
            raise NotNative("the data set in the wrapper was replaced")

    def keys(self, leaf):
        """The keys of a target."""
        return frozenset(value_of(vars(leaf)["_wrapper"], "target_keys"))

    def transform(self, leaf):
        """Called with image and target."""
        return leaf.transforms

    def first_ops(self, leaf):
        """Masks are decoded where they are wanted."""
        return (*([Op("decode_masks", {})] if "masks" in self.keys(leaf) else ()), decode_op())

    def pipeline(self, native, ops):
        """Integer boxes are truncated after each op that scales."""
        pipe = Pipeline(native)
        for op in ops:
            pipe = pipe.op(op)
            if op.name in SCALES:
                pipe = pipe.truncate_bounding_boxes(fields=("image", "boxes", INTEGER))
        return pipe

    def form(self, leaf):
        """An image in RGB, and a target."""
        return Form(PIL, targets=tuple(sorted(self.keys(leaf))))

    def fields(self, leaf):
        """Those of the target that the engine makes, and what says how to deliver them."""
        keys = self.keys(leaf)
        return ("image", *(key for key in NATIVE_KEYS if key in keys and key != "image_id"), INTEGER, COUNT)

    # --- opening ---

    def rows(self, leaf):
        """For each sample: path, boxes, labels and, where wanted, segmentation; boxes are int or float32 numbers."""
        raise NotImplementedError

    def open(self, leaf):
        """As a list of JSON lines."""
        rows = list(self.rows(leaf))
        check_decodable([row["path"] for row in rows])
        for row in rows:
            row[COUNT] = len(row["boxes"])
            row[INTEGER] = int(bool(row["boxes"]) and all(type(v) is int for box in row["boxes"] for v in box))
        native = open_rows(rows, str(getattr(leaf, "root", "")), ".")
        columns = (numpy.array([row[name] for row in rows], dtype=numpy.int64) for name in (INTEGER, COUNT))
        self._facts[leaf] = Facts(*columns, [row["path"] for row in rows])
        return native

    def check_used(self, leaf, chain, used):
        """NotNative where torchvision raises at one of the samples, or drapps' boxes may differ."""
        facts, nodes = self._facts[leaf], [op.to_json() for op in chain.ops]
        names, nested = set(names_in(nodes)), set(names_in(sub for node in nodes for sub in nested_in(node)))
        bare = used[facts.count[used] == 0]
        if len(bare) and names & NEEDS_BOXES:
            raise NotNative(f"{facts.names[bare[0]]} has no annotations, at which {sorted(names & NEEDS_BOXES)[0]} "
                            "raises an error")  # fmt: skip
        integer = used[facts.integer[used] != 0]
        if len(integer) and (names & TURNS or nested & SCALES):
            raise NotNative(f"{facts.names[integer[0]]} has integer boxes, which torchvision truncates at each step")

    # --- delivering ---

    def finish(self, leaves, starts):
        """A function from a native batch to (images, targets), as tuple(zip(*samples)) has them."""
        from torchvision import tv_tensors

        form, keys = leaves[0].chain.form, self.keys(leaves[0].dataset)
        rest = sorted(keys.difference(NATIVE_KEYS))

        def image(batch, i):
            pixels = batch["image"][i]
            return tv_tensors.Image(pixels) if form.kind == IMAGE else pixels

        def target(batch, i, size):
            leaf, index = self._place(leaves, starts, batch.ids[i])
            others = self.other_keys(leaf.dataset, index, rest if batch[COUNT][i] else ())
            if not batch[COUNT][i]:
                return others
            made = {"image_id": others.pop("image_id")} if "image_id" in others else {}
            if "boxes" in keys:
                boxes = batch["boxes"][i].to(torch.int64) if batch[INTEGER][i] else batch["boxes"][i]
                made["boxes"] = boxes if form.pure else tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=size)
            if "masks" in keys:
                made["masks"] = batch["masks"][i] if form.pure else tv_tensors.Mask(batch["masks"][i])
            if "labels" in keys:
                made["labels"] = batch["labels"][i]
            return made | others

        def finish(batch):
            images = tuple(image(batch, i) for i in range(batch.samples))
            return images, tuple(target(batch, i, tuple(one.shape[-2:])) for i, one in enumerate(images))

        return finish

    @staticmethod
    def _place(leaves, starts, native):
        """(leaf, index in it) of a native id."""
        at = int(numpy.searchsorted(starts, native, side="right")) - 1
        return leaves[at], int(native) - starts[at]

    def other_keys(self, leaf, index, keys):
        """The part of a target that is not made natively: image_id, and lists from the annotations."""
        raise NotImplementedError


def names_in(nodes):
    """The names of ops, as JSON has them, and of those nested in them."""
    for node in nodes:
        yield node["op"]
        yield from names_in(nested_in(node))


def nested_in(node):
    """The ops that an op holds."""
    values = (value for value in node.get("params", {}).values() if isinstance(value, list))
    return [one for value in values for one in value if isinstance(one, dict) and "op" in one]


def _check_numbers(boxes):
    """ValueError where torch would make something else of them than int64 or float32."""
    for value in (value for box in boxes for value in box):
        if type(value) not in (int, float):
            raise ValueError(f"a box has {value!r}, which is no int or float")
        if type(value) is int and abs(value) > MOST:
            raise ValueError(f"a box has {value}, which float32 does not")


def _float32(box):
    """x, y, width, height as torchvision's float32 makes corners of them."""
    x, y, width, height = numpy.asarray(box, dtype=numpy.float32)
    return [float(v) for v in (x, y, x + width, y + height)]


class Coco(Detection):
    """CocoDetection."""

    module, base = "torchvision.datasets.coco", "CocoDetection"
    reads = (*Detection.reads, "_load_image", "_load_target")
    available = frozenset(
        ("segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "boxes", "masks", "labels")
    )

    def matches(self, leaf):
        """With pycocotools' own index, and where torch makes float32 of Python's numbers."""
        if not super().matches(leaf):
            return False
        index = leaf._dataset.coco
        if type(index) is not home("pycocotools.coco", "COCO"):
            raise NotNative(f"its annotations are in a {type(index).__name__}, and not in pycocotools' COCO")
        check_object(index)
        check_class(type(index), (object,))
        if "boxes" in self.keys(leaf) and torch.get_default_dtype() is not torch.float32:
            raise NotNative(f"torch's default type is {torch.get_default_dtype()}")
        return True

    def keep(self, leaf):
        """Ids, and the annotations as the objects that they are in."""
        inner = leaf._dataset
        return inner.root, list(inner.ids), inner.coco.imgs, inner.coco.anns, inner.coco.imgToAnns, self.keys(leaf)

    def still(self, leaf, kept):
        """The same objects.  A change inside of an annotation is not noticed."""
        now = self.keep(leaf)
        return now[:2] == kept[:2] and now[5] == kept[5] and all(a is b for a, b in zip(now[2:5], kept[2:5]))

    def rows(self, leaf):
        """In the order of ids."""
        inner = leaf._dataset
        try:
            return [self._row(inner, one, self.keys(leaf)) for one in inner.ids]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise NotNative(f"its annotations are not COCO's: {type(error).__name__}: {error}") from None

    def _row(self, inner, image_id, keys):
        image, notes = inner.coco.loadImgs(image_id)[0], inner._load_target(image_id)
        for key in keys.difference(NATIVE_KEYS):
            if notes and not any(key in note for note in notes):
                raise ValueError(f"image {image_id} has no {key}, at which torchvision raises an error")
        boxes = [note["bbox"] for note in notes]
        _check_numbers(boxes)
        if all(type(v) is int for box in boxes for v in box):
            boxes = [[x, y, x + width, y + height] for x, y, width, height in boxes]
            _check_numbers(boxes)
        else:
            boxes = [_float32(box) for box in boxes]
        labels = [note["category_id"] for note in notes]
        if not all(type(label) is int for label in labels):
            raise ValueError(f"image {image_id} has a category_id that is not an int")
        row = {"path": os.path.join(inner.root, image["file_name"]), "boxes": boxes, "labels": labels}
        if "masks" in keys:
            row["segmentation"] = {
                "size": [image["height"], image["width"]],
                "objects": [self._outline(n) for n in notes],
            }
        return row

    @staticmethod
    def _outline(note):
        shape = note["segmentation"]
        return {"size": shape["size"], "counts": shape["counts"]} if isinstance(shape, dict) else shape

    def other_keys(self, leaf, index, keys):
        """image_id where it is asked for, or where there is nothing else."""
        inner = leaf._dataset
        image_id = inner.ids[index]
        notes = inner._load_target(image_id)
        wanted = {"image_id": image_id} if "image_id" in self.keys(leaf) or not notes else {}
        return wanted | {key: copy.deepcopy([note[key] for note in notes if key in note]) for key in keys}


class Voc(Detection):
    """VOCDetection: its boxes are integers."""

    module, base = "torchvision.datasets.voc", "VOCDetection"
    reads = (*Detection.reads, "annotations", "parse_voc_xml")
    available = frozenset(("boxes", "labels"))

    def keep(self, leaf):
        """Its files."""
        return list(leaf._dataset.images), list(leaf._dataset.targets), self.keys(leaf)

    def still(self, leaf, kept):
        """The same files; their content is read once."""
        return self.keep(leaf) == kept

    def rows(self, leaf):
        """The annotations are parsed as torchvision does it."""
        inner, module = leaf._dataset, sys.modules[self.module]
        numbers = sys.modules[WRAPPER].VOC_DETECTION_CATEGORY_TO_IDX
        for image, annotation in zip(inner.images, inner.targets, strict=True):
            try:
                objects = inner.parse_voc_xml(module.ET_parse(annotation).getroot())["annotation"]["object"]
                boxes = [[int(one["bndbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")] for one in objects]
                _check_numbers(boxes)
                labels = [numbers[one["name"]] for one in objects]
            except (OSError, KeyError, TypeError, ValueError, SyntaxError) as error:
                raise NotNative(f"{annotation}: {type(error).__name__}: {error}") from None
            if not objects:
                raise NotNative(f"{annotation} has no objects, at which torchvision raises an error")
            yield {"path": image, "boxes": boxes, "labels": labels}

    def other_keys(self, leaf, index, keys):
        """Nothing."""
        return {}
