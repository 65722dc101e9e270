"""Building pipelines: sources, the method chain, ops as objects, text forms, errors where they are made."""

import json
import re

import numpy
import pytest
from imagesets import N_IMAGES, gather, picture, train

import drapps


def test_read_folder(folder):
    pipe = drapps.read(folder)
    assert len(pipe) == N_IMAGES
    assert pipe.classes == ("ant", "bee", "cat")
    assert pipe.dataset.key(0) == "ant/000.jpg"
    assert {field[0] for field in pipe.dataset.fields} >= {"image", "label"}


def test_read_nothing(tmp_path):
    with pytest.raises(drapps.FileMissingError, match="nowhere"):
        drapps.read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        drapps.read(tmp_path / "nowhere")


@pytest.mark.parametrize("path", [None, 3])
def test_read_says_what_a_path_is(path):
    with pytest.raises(drapps.ArgumentError, match=f"^read: path must be a path or a list of files, got {path}$"):
        drapps.read(path)


def test_read_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(drapps.FileMissingError, match=f"imagenet/train.*; the current folder is {tmp_path}$"):
        drapps.read("imagenet/train")
    with pytest.raises(drapps.FileMissingError, match="give a list, as of glob.glob$"):
        drapps.read(tmp_path / "*.nii.gz")


@pytest.mark.parametrize("name, value, said", [
    ("num_workers", 2, "give workers=2"), ("drop_last", True, 'give last="drop"'), ("collate_fn", list, "collate="),
    ("persistent_workers", True, "workers stay"), ("nonsense", 1, "no argument 'nonsense'$"),
    ("batchsize", 1, "did you mean 'batch_size'"), ("shufle", 1, "did you mean 'shuffle'")])  # fmt: skip
def test_arguments_of_torch_are_named(folder, name, value, said):
    with pytest.raises(TypeError, match=f"^Pipeline.loader.. has no argument '{name}'") as raised:
        drapps.read(folder).decode().loader(batch_size=2, **{name: value})
    assert re.search(said, str(raised.value))


def test_methods_of_others_are_named(folder):
    pipe = drapps.read(folder).decode()
    with pytest.raises(AttributeError, match="no attribute 'to_tensor'; it is not needed"):
        pipe.to_tensor()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        pipe.nonsense()
    assert not hasattr(pipe, "__array__")


def test_a_rank_alone_names_what_is_missing(folder):
    with pytest.raises(drapps.ArgumentError, match="^rank must be below world_size = 1, got 1: give world_size=, too"):
        drapps.read(folder).decode().loader(rank=1)


@pytest.mark.parametrize("op", ["random_resized_crop", "random_erasing"])
def test_ranges_are_from_least_to_most(folder, op):
    size = {"size": 8} if op == "random_resized_crop" else {}
    for name in ("scale", "ratio"):
        with pytest.raises(drapps.ArgumentError, match=rf"{op}: {name} must be \(least, most\), got \(1, 0.1\)"):
            getattr(drapps.read(folder).decode(), op)(**size, **{name: (1, 0.1)})


def test_read_names_the_reader_of_coco_and_of_volumes(tmp_path):
    (tmp_path / "instances.json").write_text("{}")
    with pytest.raises(drapps.UnsupportedError, match=r"use drapps.read_coco\(annotations, root\)"):
        drapps.read(tmp_path / "instances.json")
    (tmp_path / "scans" / "a").mkdir(parents=True)
    with pytest.raises(drapps.FileMissingError) as plain:
        drapps.read(tmp_path / "scans")
    assert "volume" not in str(plain.value)
    (tmp_path / "scans" / "a" / "brain.nii.gz").write_bytes(b"")
    with pytest.raises(drapps.FileMissingError, match=r"list of files: .*brain.nii.gz', ...\]\).decode_volume\(\)"):
        drapps.read(tmp_path / "scans")


def test_errors_say_what_to_put_where(folder):
    pipe = drapps.read(folder)
    for wrong, hint in (
        (pipe.resize(8), "put decode before it"),
        (pipe.decode().normalize((0.5,) * 3, (0.5,) * 3).color_jitter(0.1), "put it before normalize and to_dtype"),
        (pipe.decode().center_crop(8).mixup(num_classes=3), "put normalize or to_dtype before it"),
    ):
        with pytest.raises(drapps.ArgumentError, match=hint):
            wrong.loader(batch_size=2)


def test_read_list_of_files(folder):
    files = sorted(folder.glob("*/*.jpg"))[:5]
    pipe = drapps.read(files, labels=[4, 3, 2, 1, 0])
    (images, labels, ids), = gather(pipe.decode().resize((16, 16)).loader(batch_size=8, output="numpy"))
    assert images.shape == (5, 3, 16, 16)
    assert labels.tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(drapps.ArgumentError, match="labels must be 5, one for each file, got 2"):
        drapps.read(files, labels=[1, 2])


def test_chain_is_immutable(folder):
    first = drapps.read(folder).decode()
    a, b = first.resize(20), first.resize(30)
    assert len(first.stages) == 1 and a != b
    assert a == first.resize(20)
    assert repr(a).endswith(".decode().resize(size=20)")


def test_json_round_trip(pipe):
    text = pipe.to_json()
    assert [node["op"] for node in json.loads(text)["nodes"]] == [
        "decode", "random_resized_crop", "random_horizontal_flip", "normalize"]  # fmt: skip
    again = pipe.from_json(text)
    assert again == pipe and again.to_json() == text


WRONG = (3, None, True, "x", "a\0b", [3], [None], {"x": 1}, "\ud800", -1, 1e300)


@pytest.mark.parametrize("member", ["fields", "outputs", "id", "op", "params", "version"])
def test_json_of_others_is_read_or_refused(pipe, member):
    """Nothing but an error of drapps, whatever a member holds."""
    graph, refused = json.loads(pipe.to_json()), 0
    for wrong in WRONG:
        node = {**graph["nodes"][1], member: wrong}
        try:
            again = pipe.from_json(json.dumps({**graph, "nodes": [graph["nodes"][0], node]}))
            assert again.from_json(again.to_json()) == again
        except drapps.Error:
            refused += 1
    assert refused >= len(WRONG) // 2


@pytest.mark.parametrize("text", [None, 3, b"{}", "\0", '{"version": 1, "nodes": []}\0', "", "[" * 100_000])
def test_what_is_no_json_is_refused(pipe, text):
    with pytest.raises(drapps.Error):
        pipe.from_json(text)


def test_ids_survive_json(folder):
    """The id keys what is drawn: a part of a chain draws what it drew in the whole."""
    pipe = drapps.read(folder).decode().random_horizontal_flip().random_resized_crop(16)
    nodes = json.loads(pipe.to_json())
    nodes["nodes"] = [node for node in nodes["nodes"] if node["op"] != "random_horizontal_flip"]
    part = drapps.read(folder).from_json(json.dumps(nodes))
    assert [stage.id for stage in part.stages] == [1, 3]
    assert part.random_vertical_flip().stages[-1].id == 4


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda p: p.random_resized_crop(-1), "random_resized_crop: size"),
        (lambda p: p.random_horizontal_flip(p=2), "must be 0 to 1"),
        (lambda p: p.random_horizontal_flip("often"), "must be a number"),
        (lambda p: p.random_horizontal_flip(p=object()), "a setting must be"),
        (lambda p: p.random_horizontal_flip(field="a", fields="b"), "not both"),
        (lambda p: p.map(3), "map: function must be callable, got 3"),
    ],
)
def test_mistakes_are_told_where_they_are_made(folder, build, text):
    with pytest.raises(drapps.ArgumentError, match=text):
        build(drapps.read(folder).decode())


def test_unknown_argument_is_a_type_error(folder):
    with pytest.raises(TypeError, match="probability"):
        drapps.read(folder).random_horizontal_flip(probability=1)


def test_ops_as_objects(folder):
    op = drapps.ops.random_horizontal_flip(p=0.25)
    assert op == drapps.ops.random_horizontal_flip(0.25) and op != drapps.ops.random_horizontal_flip()
    assert repr(op) == "drapps.ops.random_horizontal_flip(p=0.25)"
    pipe = drapps.read(folder).decode()
    assert pipe.op(op) == pipe.random_horizontal_flip(0.25)
    nested = pipe.random_apply([drapps.ops.color_jitter(brightness=0.4), op], p=0.3)
    assert "color_jitter" in nested.to_json()
    assert eval(repr(nested).replace(repr(str(folder)), "folder"), {"drapps": drapps, "folder": folder}).to_json() == (
        nested.to_json())  # fmt: skip


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_batch_ops(folder, name):
    pipe = getattr(drapps.read(folder).decode().random_resized_crop(24).to_dtype("float32"), name)(num_classes=3)
    for images, labels in pipe.loader(batch_size=6, output="numpy"):
        assert labels.shape == (len(images), 3) and labels.dtype == numpy.float32
        assert abs(labels.sum(axis=1) - 1).max() < 1e-5


def test_nested_ops_draw(folder):
    """Nested ops run and draw as they say."""
    flip = drapps.ops.random_horizontal_flip(p=1)
    pipe = drapps.read(folder).decode().resize((8, 12)).random_apply([flip], p=0.5)
    plain = drapps.read(folder).decode().resize((8, 12))
    options = {"batch_size": 23, "output": "numpy", "keep_draws": True}
    (batch,), (want,) = pipe.loader(**options).batches(), plain.loader(**options).batches()
    applied = [batch.draws(i)[3]["applied"] for i in range(23)]
    assert set(applied) == {True, False}
    for i, flipped in enumerate(applied):
        assert (batch["image"][i] == (want["image"][i][..., ::-1] if flipped else want["image"][i])).all()


def test_settings_in_other_spellings(folder):
    torch = pytest.importorskip("torch")
    pipe = drapps.read(folder).decode()
    assert pipe.to_dtype(torch.float32) == pipe.to_dtype("float32") == pipe.to_dtype(numpy.float32)
    assert pipe.resize(numpy.array([20, 30])) == pipe.resize((20, 30)) == pipe.resize([20, 30])


def test_explain_says_shapes(pipe):
    text = pipe.explain()
    assert "random_resized_crop" in text and "32" in text


def test_wrong_field_is_found_before_running(folder):
    with pytest.raises(drapps.Error, match="nothing_here"):
        drapps.read(folder).decode(field="nothing_here").loader()


def test_two_views(folder):
    pipe = drapps.read(folder).decode()
    pipe = pipe.random_resized_crop(24, out="a").random_resized_crop(24, out="b")
    batch = next(iter(pipe.loader(batch_size=4, outputs="a,b,label", output="numpy")))
    assert list(batch) == ["a", "b", "label"]
    assert batch["a"].shape == batch["b"].shape == (4, 3, 24, 24)
    assert (batch["a"] != batch["b"]).any()


def test_image_and_mask_share_a_draw():
    images = numpy.stack([numpy.asarray(picture(i)) for i in range(12)])
    pipe = drapps.from_arrays(image=images, mask=images[..., 0].copy())
    pipe = pipe.random_horizontal_flip(fields="image,mask")
    flipped = set()
    for batch in pipe.loader(batch_size=4, outputs="image,mask", layout="NHWC", output="numpy").batches():
        for i, sample in enumerate(batch.ids):
            image, mask = batch["image"][i], batch["mask"][i].reshape(48, 64)
            assert (image[..., 0] == mask).all()
            flipped.add(bool((image != images[sample]).any()))
    assert flipped == {True, False}


# --- arrays and mixtures ---


def test_from_arrays_keeps_memory_alive():
    images = numpy.random.default_rng(1).integers(0, 256, (10, 6, 5, 3), dtype=numpy.uint8)
    pipe = drapps.from_arrays({"image": images.copy()}, label=numpy.arange(10, dtype=numpy.int64))
    (got, labels, _), = gather(pipe.loader(batch_size=10, layout="NHWC", output="numpy"))
    assert (got == images).all() and labels.tolist() == list(range(10))


def test_from_arrays_of_unequal_length():
    with pytest.raises(drapps.ArgumentError):
        drapps.from_arrays(a=numpy.zeros(3), b=numpy.zeros(4))


def test_from_arrays_with_an_unknown_type():
    with pytest.raises(TypeError, match="x: dtype must be one that drapps knows"):
        drapps.from_arrays(x=numpy.zeros(3, dtype=complex))


def test_mix_keeps_the_shares():
    a = drapps.from_arrays(x=numpy.zeros(30, dtype=numpy.int64))
    b = drapps.from_arrays(x=numpy.ones(30, dtype=numpy.int64))
    both = drapps.mix([a, b], weights=[3, 1], length=40)
    assert len(both) == 40
    values = numpy.concatenate([batch["x"] for batch in both.loader(batch_size=7, shuffle=True, output="numpy")])
    assert (values == 1).sum() == 10 and len(values) == 40
    with pytest.raises(drapps.ArgumentError, match="mix the sources first"):
        drapps.mix([train(a), b], weights=[1, 1])
