"""Boxes, masks and the rest follow their image by default; what was left behind is refused before the first batch."""

import json

import cocosets
import numpy
import pytest

import drapps


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    return cocosets.make_coco(folder), folder


def test_read_coco_delivers_boxes_and_labels(coco):
    pipe = drapps.read_coco(*coco).decode().resize((32, 48))
    (batch,) = pipe.loader(batch_size=100, output="numpy")
    assert list(batch) == ["image", "boxes", "labels"]
    assert batch["image"].shape == (len(pipe), 3, 32, 48)
    content = json.loads(coco[0].read_text())
    for i, (boxes, labels) in enumerate(zip(batch["boxes"], batch["labels"], strict=True)):
        image = [
            image for image in content["images"] if image["id"] in {n["image_id"] for n in content["annotations"]}
        ][i]
        notes = [note for note in content["annotations"] if note["image_id"] == image["id"]]
        x, y, w, h = numpy.array([note["bbox"] for note in notes]).T
        want = numpy.stack([x, y, x + w, y + h], 1) * (numpy.tile([48 / image["width"], 32 / image["height"]], 2))
        numpy.testing.assert_allclose(boxes, want, rtol=1e-5, atol=1e-4)
        assert labels.tolist() == [note["category_id"] for note in notes]


def test_boxes_follow_without_fields(coco):
    """As if every op named them."""
    both = {"fields": "image,boxes"}
    bare = drapps.read_coco(*coco).decode()
    said = bare.resize((40, 50), **both).random_horizontal_flip(**both).random_crop((30, 30), padding=2, **both)
    left = bare.resize((40, 50)).random_horizontal_flip().random_crop((30, 30), padding=2)
    for a, b in zip(said.loader(4, output="numpy", seed=3), left.loader(4, output="numpy", seed=3), strict=True):
        for one, two in zip(a["boxes"], b["boxes"], strict=True):
            numpy.testing.assert_array_equal(one, two)
        numpy.testing.assert_array_equal(a["image"], b["image"])
    state = said.loader(4, seed=3).state_dict()
    left.loader(4, seed=3).load_state_dict(state)  # the same work: a state fits either


def test_what_was_left_behind_is_refused_at_once(coco):
    bare = drapps.read_coco(*coco).decode().resize((40, 50))
    narrowed = bare.random_horizontal_flip(field="image")
    for mistake in (narrowed.explain, narrowed.loader):
        with pytest.raises(drapps.Error, match='random_horizontal_flip: moves "image" but not "boxes".*"boxes" to its'):
            mistake()
    assert narrowed.loader(outputs="image")
    with pytest.raises(drapps.Error, match="rand_augment: moves .image. but cannot move boxes.*out of outputs"):
        bare.rand_augment().explain()
    with pytest.raises(drapps.Error, match='sanitize_bounding_boxes: drops rows of "boxes" but not "labels"'):
        bare.sanitize_bounding_boxes(fields="image,boxes").loader()
    with pytest.raises(drapps.Error, match="mixup: mixes images but cannot mix boxes"):
        drapps.from_arrays(image=numpy.zeros((4, 8, 8, 3), "uint8"), label=numpy.arange(4),
                           boxes=numpy.zeros((4, 1, 4))).to_dtype(scale=True).mixup(num_classes=4).loader()  # fmt: skip


def test_rules_for_what_is_not_delivered_are_refused(coco):
    pipe = drapps.read_coco(*coco).decode().resize((32, 32))
    with pytest.raises(drapps.Error, match='collate: field "image_id" is not delivered, only image, boxes, labels'):
        pipe.loader(collate={"image_id": "list"})
    with pytest.raises(drapps.Error, match='collate: field "boxes" is not delivered, only image'):
        pipe.map(lambda image: image, field="image").loader(outputs="image", collate={"boxes": "list"})
    batch = next(iter(pipe.loader(2, collate={"boxes": "ragged"}, output="numpy")))
    assert len(batch["boxes"]) == batch["boxes_offsets"][-1]


def test_boxes_follow_in_chains_with_functions(coco):
    pipe = drapps.read_coco(*coco).decode().map(lambda image: image // 2, field="image").resize((32, 32))
    plain = drapps.read_coco(*coco).decode().resize((32, 32))
    for a, b in zip(pipe.loader(4, workers=0, output="numpy"), plain.loader(4, output="numpy"), strict=True):
        assert list(a) == ["image", "boxes", "labels"]
        for one, two in zip(a["boxes"], b["boxes"], strict=True):
            numpy.testing.assert_array_equal(one, two)


def same(value):
    return value


LEFT_BEHIND = 'resize: moves "image" but not "boxes", which is delivered'


@pytest.mark.parametrize("add", [lambda pipe: pipe.map(same, field="image"), lambda pipe: pipe.filter(bool)])
def test_what_was_left_behind_before_a_function_is_refused_at_once(coco, add):
    pipe = drapps.read_coco(*coco).decode()
    stale = add(pipe.resize((32, 32), fields="image"))
    with pytest.raises(drapps.Error, match=LEFT_BEHIND):
        stale.loader()
    assert list(next(iter(stale.loader(2, workers=0, outputs="image")))) == ["image"]
    add(pipe.resize((32, 32))).loader()


@pytest.mark.parametrize("workers", [0, 1])
def test_what_was_left_behind_after_a_function_is_refused(coco, workers):
    pipe = drapps.read_coco(*coco).decode().map(same)
    with pytest.raises(drapps.Error, match=LEFT_BEHIND):
        next(iter(pipe.resize((32, 32), fields="image").loader(workers=workers)))
    with pytest.raises(drapps.Error, match="rand_augment: moves .* cannot move boxes"):
        next(iter(pipe.resize((32, 32)).rand_augment().loader(workers=workers)))
    with pytest.raises(drapps.Error, match='drops rows of "boxes" but not "labels"'):
        next(iter(pipe.resize((32, 32)).sanitize_bounding_boxes(fields="boxes").loader(workers=workers)))


def test_a_function_may_move_what_was_left_behind(coco):
    pipe = drapps.read_coco(*coco).decode().resize((32, 32), fields="image")
    for mended in (pipe.map(same), pipe.map(same, field="boxes")):
        assert len(next(iter(mended.loader(2, workers=0)))["boxes"]) == 2


def test_single_samples_and_previews_have_nothing_left_behind(coco):
    pipe = drapps.read_coco(*coco).decode().resize((32, 32), fields="image")
    for look in (lambda: pipe[0], lambda: list(pipe), pipe.preview):
        with pytest.raises(drapps.Error, match=LEFT_BEHIND):
            look()


def test_masks_and_key_points_follow_in_chains_with_functions():
    random = numpy.random.default_rng(2)
    places = random.uniform(0, 40, (4, 2, 5, 3)).round()
    arrays = {"image": random.integers(0, 256, (4, 40, 50, 3), dtype="uint8"), "keypoints": places,
              "boxes": numpy.tile([4.0, 8, 20, 30], (4, 2, 1)), "masks": random.integers(0, 2, (4, 2, 40, 50), "uint8"),
              "mask": random.integers(0, 9, (4, 40, 50, 1), "uint8")}  # fmt: skip
    ops = drapps.ops.random_horizontal_flip(p=1), drapps.ops.crop(5, 7, 30, 40)
    plain, pipe = drapps.from_arrays(arrays), drapps.from_arrays(arrays).map(lambda sample: sample)
    for op in ops:
        plain, pipe = plain.op(op), pipe.op(op)
    (want,), (found,) = (list(p.loader(4, workers=0, output="numpy")) for p in (plain, pipe))
    assert found.keys() == want.keys() == arrays.keys()
    for name in arrays:
        numpy.testing.assert_array_equal(found[name], want[name])
    numpy.testing.assert_array_equal(want["keypoints"][0][..., 0], 49 - places[0, ..., 0] - 7)  # the pixel is mirrored
    numpy.testing.assert_array_equal(want["keypoints"][0][..., 2], places[0, ..., 2])


def test_masks_of_coco_go_through_functions(coco):
    chains = [drapps.read_coco(*coco, masks=True).decode() for _ in range(2)]
    chains[1] = chains[1].map(lambda image: image, field="image")
    want, found = (next(iter(chain.resize((32, 32)).loader(4, workers=0, output="numpy"))) for chain in chains)
    assert [masks.shape[1:] for masks in found["masks"]] == [(32, 32)] * 4
    for a, b in zip(want["masks"], found["masks"], strict=True):
        numpy.testing.assert_array_equal(a, b)


def test_boxes_that_a_function_makes_follow():
    def annotate(sample):
        masks = numpy.zeros((1, 40, 60), "uint8")
        masks[0, 10:20, 30:40] = 1
        return {**sample, "boxes": [[30, 10, 40, 20]], "labels": [7], "masks": masks, "notes": {"any": "object"}}

    pipe = drapps.from_arrays(image=numpy.zeros((2, 40, 60, 3), "uint8")).map(annotate)
    pipe = pipe.map(lambda sample: {name: sample[name] for name in sample if name != "notes"})
    (batch,) = pipe.resize((20, 30)).random_horizontal_flip(p=1).loader(2, workers=0, output="numpy")
    assert list(batch) == ["image", "boxes", "labels", "masks"]
    numpy.testing.assert_array_equal(batch["boxes"][1], [[10, 5, 15, 10]])
    assert batch["masks"][1][0, 5:10, 10:15].all() and batch["masks"][1].sum() == 25


def test_nested_ops_carry_boxes():
    random = numpy.random.default_rng(1)
    corners = random.uniform(0, 30, (40, 3, 2))
    arrays = {"image": random.integers(0, 256, (40, 50, 60, 3), dtype="uint8"),
              "boxes": numpy.concatenate([corners, corners + 15], -1)}  # fmt: skip
    pipe = drapps.from_arrays(arrays)
    ops = [
        drapps.ops.random_horizontal_flip(p=1),
        drapps.ops.color_jitter(brightness=0.5),
        drapps.ops.crop(5, 7, 30, 40),
    ]
    for nested in (pipe.random_apply(ops, p=1), pipe.random_apply([drapps.ops.random_apply(ops, p=1)], p=1)):
        plain = pipe.random_horizontal_flip(p=1).crop(5, 7, 30, 40)
        (a,), (b,) = (list(p.loader(40, collate={"image": "list"}, output="numpy")) for p in (nested, plain))
        numpy.testing.assert_array_equal(a["boxes"], b["boxes"])
    orders = set()
    for batch in (
        pipe.random_order(ops).loader(40, collate={"image": "list"}, keep_draws=True, output="numpy").batches()
    ):
        for i in range(40):
            (drawn,) = batch.draws(i).values()
            flip = [t["op"] for t in drawn["transforms"]].index("random_horizontal_flip")
            crop = [t["op"] for t in drawn["transforms"]].index("crop")
            orders.add(flip < crop)
            x0, y0, x1, y1 = arrays["boxes"][i].astype("float32").T
            if flip < crop:
                x0, x1 = 60 - x1, 60 - x0
            x0, x1 = numpy.clip(x0 - 7, 0, 40), numpy.clip(x1 - 7, 0, 40)
            if flip > crop:
                x0, x1 = 40 - x1, 40 - x0
            want = numpy.stack([x0, numpy.clip(y0 - 5, 0, 30), x1, numpy.clip(y1 - 5, 0, 30)], 1)
            numpy.testing.assert_allclose(batch["boxes"][i], want, atol=1e-4)
    assert orders == {True, False}
    chosen = pipe.random_choice([drapps.ops.random_horizontal_flip(p=1), drapps.ops.random_vertical_flip(p=1)])
    assert chosen.random_iou_crop().explain()  # boxes are still known before images are decoded


@pytest.mark.parametrize("change, message", [
    (lambda c: c["annotations"][1].pop("bbox"), 'annotation 2 has no "bbox"'),
    (lambda c: c["annotations"][1].update(bbox=[1, 2, 3]),
     r'annotation 2: "bbox" must be four numbers, got \[1, 2, 3\]'),
    (lambda c: c["annotations"][1].update(bbox=[1, 2, 3, None]), '"bbox" must be four numbers'),
    (lambda c: c["annotations"][1].update(category_id="cat"), "\"category_id\" must be an int, got 'cat'"),
    (lambda c: c["annotations"][1].update(image_id=5), "annotation 2 names image 5, which the file does not list"),
    (lambda c: c["images"][0].pop("file_name"), 'image 100 has no "file_name"'),
    (lambda c: c.pop("images"), '"images" must be a list'),
])  # fmt: skip
def test_mistakes_in_the_file_are_named(coco, tmp_path, change, message):
    content = json.loads(coco[0].read_text())
    change(content)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(content))
    with pytest.raises(drapps.Error, match=f"^{wrong}: .*{message}"):
        drapps.read_coco(wrong, coco[1])


def test_the_annotation_file_gives_the_name(coco, tmp_path):
    pipe = drapps.read_coco(*coco)
    assert pipe.dataset.name == str(coco[0]) and str(coco[0]) in repr(pipe)
    (tmp_path / "text.json").write_text("[1,")
    with pytest.raises(drapps.Error, match="text.json: not a JSON file"):
        drapps.read_coco(tmp_path / "text.json", tmp_path)
    elsewhere = drapps.read_coco(coco[0], tmp_path).decode().resize((8, 8))
    with pytest.raises(drapps.Error) as caught:
        next(iter(elsewhere.loader()))
    assert ".jsonl" not in str(caught.value) and "000.jpg" in str(caught.value)
