"""preview: a page that stands alone and shows the true pixels."""

import base64
import io
import re
import sys

import cocosets
import numpy
import pytest
from imagesets import picture, write_folder
from PIL import Image

import drapps
from drapps import cli
from drapps.sample_html import encode_png


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_round_trip(channels):
    pixels = numpy.random.default_rng(channels).integers(0, 256, (7, 5, channels), dtype=numpy.uint8)
    image = Image.open(io.BytesIO(encode_png(7, 5, channels, pixels.tobytes())))
    image.load()
    assert (numpy.asarray(image).reshape(pixels.shape) == pixels).all()


def test_png_of_the_wrong_size():
    with pytest.raises(ValueError, match="3 x 3"):
        encode_png(3, 3, 3, b"12")


def pictures(path):
    text = path.read_text()
    assert "http" not in text and "<script" not in text
    return [Image.open(io.BytesIO(base64.b64decode(code))) for code in re.findall(r"base64,([^\"]+)", text)]


def test_originals_beside_results(folder, pipe, tmp_path):
    pipe.preview(tmp_path / "out.html", n=5)
    images = pictures(tmp_path / "out.html")
    assert len(images) == 10
    assert all(image.size == (32, 32) for image in images[1::2])
    original = Image.open(folder / pipe.dataset.key(0)).convert("RGB")
    assert (numpy.asarray(images[0]) == numpy.asarray(original)).all()


def test_normalised_images_look_right(folder, tmp_path):
    plain = drapps.read(folder).decode().resize((16, 16))
    plain.preview(tmp_path / "a.html", n=3)
    plain.normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD).preview(tmp_path / "b.html", n=3)
    for a, b in zip(pictures(tmp_path / "a.html"), pictures(tmp_path / "b.html")):
        assert abs(numpy.asarray(a).astype(int) - numpy.asarray(b)).max() <= 1


def test_more_than_there_are(folder, tmp_path):
    drapps.read(folder).decode().preview(tmp_path / "out.html", n=1000)
    assert len(pictures(tmp_path / "out.html")) == 46


def test_python_stages_too(folder, tmp_path):
    pipe = drapps.read(folder).decode().resize((16, 16)).map(lambda image: 255 - image, field="image")
    pipe.preview(tmp_path / "out.html", n=2)
    assert len(pictures(tmp_path / "out.html")) == 4


def test_a_filter_keeps_pairs_together(folder, tmp_path):
    pipe = drapps.read(folder).decode().filter(lambda label: label == 1, field="label")
    pipe.preview(tmp_path / "out.html", n=3)
    images = pictures(tmp_path / "out.html")
    assert len(images) == 6
    assert all((numpy.asarray(a) == numpy.asarray(b)).all() for a, b in zip(images[::2], images[1::2]))


def test_bad_samples_are_left_out(tmp_path):
    root = write_folder(tmp_path / "set", n=5)
    (root / "ant" / "000.jpg").write_bytes(b"")
    drapps.read(root).decode().preview(tmp_path / "out.html")
    assert len(pictures(tmp_path / "out.html")) == 8


def test_draws_are_told(pipe, tmp_path):
    pipe.preview(tmp_path / "out.html", n=1)
    text = (tmp_path / "out.html").read_text()
    assert "random_resized_crop: height=" in text and "random_horizontal_flip: mirror=" in text


def test_names_are_escaped(tmp_path):
    root = tmp_path / "<b>set"
    (root / "x & y").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(root / "x & y" / "<i>.png")
    drapps.read(root).decode().preview(tmp_path / "out.html", n=1)
    text = (tmp_path / "out.html").read_text()
    assert "&lt;i&gt;" in text and "<i>" not in text and "<b>set" not in text


def test_images_that_are_not_decoded_are_said(folder, tmp_path):
    with pytest.raises(drapps.ArgumentError, match="decode"):
        drapps.read(folder).preview(tmp_path / "out.html", n=1)


# --- what belongs to an image ---


def page(shown, tmp_path):
    """The pictures of a preview."""
    shown.write(tmp_path / "page.html")
    return pictures(tmp_path / "page.html")


def test_notebooks_show_it(pipe, tmp_path):
    shown = pipe.preview(n=2)
    assert shown.samples == 2
    assert "<html" not in shown._repr_html_() and "http" not in shown._repr_html_()
    pipe.preview(tmp_path / "out.html", n=2)
    assert shown._repr_html_() in (tmp_path / "out.html").read_text()


def test_class_names(pipe):
    text = pipe.preview(n=1)._repr_html_()
    assert "label: ant (0)" in text
    assert "label: Formica (0)" in pipe.preview(n=1, classes={0: "Formica"})._repr_html_()


def test_boxes_are_drawn_with_their_names():
    images, boxes = numpy.zeros((1, 40, 50, 3), numpy.uint8), numpy.array([[[10, 5, 30, 25]]], numpy.float32)
    pipe = drapps.from_arrays(image=images, boxes=boxes, labels=numpy.array([[2]]), kinds={"boxes": "boxes"})
    text = pipe.random_horizontal_flip(p=1).preview(classes=["cat", "cow", "x<y"])._repr_html_()
    assert re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', text) == [
        ("40.0", "20.0", "80.0", "80.0"),  # 50 pixels are shown as 200
        ("80.0", "20.0", "80.0", "80.0"),
    ]
    assert text.count(">x&lt;y</text>") == 2


def test_masks_are_drawn(tmp_path):
    masks = numpy.zeros((1, 8, 8, 1), numpy.uint8)
    masks[0, :4], masks[0, 7] = 1, 255  # one class, background, and a row that counts as none
    images = numpy.full((1, 8, 8, 3), 100, numpy.uint8)
    pipe = drapps.from_arrays(image=images, mask=masks, kinds={"image": "image", "mask": "mask"})
    before, after = page(pipe.random_vertical_flip(p=1).preview(), tmp_path)
    marked = (numpy.asarray(before) != 100).any(axis=-1)
    assert marked[:4].all() and not marked[4:].any()
    assert (numpy.asarray(after) == numpy.asarray(before)[::-1]).all()


def test_masks_of_files_are_drawn(tmp_path):
    picture(1, 30, 40).save(tmp_path / "a.png")
    Image.fromarray(numpy.tri(30, 40, dtype=numpy.uint8) * 3).save(tmp_path / "m.png")
    (tmp_path / "list.csv").write_text("path,mask\na.png,m.png\n")
    pipe = drapps.read(tmp_path / "list.csv", format="list").decode().decode(field="mask", mode="L")
    (before, _) = page(pipe.preview(), tmp_path)
    changed = (numpy.asarray(before) != numpy.asarray(picture(1, 30, 40))).any(axis=-1)
    assert changed.sum() > 0.9 * numpy.tri(30, 40).sum() and not changed[0, 1:].any()


# --- size ---


def test_large_images_are_shrunk_to_what_is_shown(tmp_path):
    picture(0, 600, 901).save(tmp_path / "large.png")
    before, after = page(drapps.read(tmp_path).decode().preview(), tmp_path)
    assert before.size == (224, 149) and before.format == "JPEG"
    shrunk = picture(0, 600, 901).resize((224, 149), Image.Resampling.BOX)
    assert abs(numpy.asarray(before).astype(int) - numpy.asarray(shrunk)).mean() < 8


def test_pages_are_small(tmp_path):
    random = numpy.random.default_rng(0)
    for i in range(4):
        noisy = numpy.asarray(picture(i, 500, 500)) // 2 + random.integers(0, 60, (500, 500, 3), dtype=numpy.uint8)
        Image.fromarray(noisy).save(tmp_path / f"{i}.jpg")
    drapps.read(tmp_path).decode().random_resized_crop(224).preview(tmp_path / "out.html")
    assert (tmp_path / "out.html").stat().st_size < 4 * 2 * 60_000


def test_without_pillow(tmp_path, monkeypatch):
    picture(0, 300, 200).save(tmp_path / "large.png")
    pipe = drapps.read(tmp_path).decode()
    monkeypatch.setitem(sys.modules, "PIL", None)
    text = pipe.preview()._repr_html_()
    assert text.count("data:image/png") == 2 and "image/jpeg" not in text


# --- the command ---

SCRIPT = """
import drapps
from drapps import cli

source = drapps.read({folder!r})
pipe = source.decode().resize((16, 16))
other = source.decode().resize((24, 24))
if __name__ == "__main__":
    raise SystemExit("the file was run as a program")
"""


def run_preview(*args):
    return cli.main(["preview", *map(str, args)])


def test_masks_of_coco_are_drawn(tmp_path):
    """Their masks are decoded before the image is."""
    pipe = drapps.read_coco(cocosets.make_coco(tmp_path, n=4), tmp_path, masks=True).decode().resize((64, 64))
    body = pipe.preview(n=3)._repr_html_()
    assert body.count("<figure>") == 3 and body.count("<img") == 6


@pytest.mark.parametrize(("arguments", "said"), [
    ({"n": 0}, "n must be a positive int, got 0"),
    ({"n": "x"}, "n must be a positive int, got 'x'"),
    ({"seed": -1}, "seed must be a non-negative int below 2\\*\\*64, got -1"),
    ({"epoch": "x"}, "epoch must be a non-negative int, got 'x'"),
    ({"classes": 3}, "classes must be a list of names, {number: name} or None, got 3"),
])  # fmt: skip
def test_wrong_arguments_are_named(pipe, arguments, said):
    with pytest.raises(drapps.ArgumentError, match=said):
        pipe.preview(**arguments)


def test_what_cannot_be_shown_is_said(pipe):
    with pytest.raises(drapps.ArgumentError, match="preview: .* has no samples"):
        pipe.take(0).preview()
    with pytest.raises(
        drapps.ArgumentError, match="preview: mixup works on whole batches: preview the chain before it"
    ):
        pipe.to_dtype(scale=True).mixup(num_classes=3).preview()


def test_command_of_a_folder(folder, tmp_path, capsys):
    assert run_preview(folder, "-n", 3, "--size", 48, "-o", tmp_path / "out.html") == 0
    assert "3 samples" in capsys.readouterr().out
    assert [image.size for image in pictures(tmp_path / "out.html")[1::2]] == [(48, 48)] * 3


@pytest.mark.parametrize("name, side", [((), 16), (("--name", "other"), 24)])
def test_command_of_a_python_file(folder, tmp_path, name, side):
    (tmp_path / "pipeline.py").write_text(SCRIPT.format(folder=str(folder)))
    assert run_preview(tmp_path / "pipeline.py", "-n", 1, "-o", tmp_path / "out.html", *name) == 0
    assert pictures(tmp_path / "out.html")[1].size == (side, side)


@pytest.mark.parametrize(
    "content, arguments, status, text",
    [
        ("x = 1", [], 2, "has no drapps.Pipeline"),
        ("import drapps\na = drapps.read({folder!r})\nb = a.decode()", [], 2, "choose one by --name: a, b"),
        ("import drapps\na = drapps.read({folder!r})", ["--name", "c"], 2, "has no pipeline 'c'; it has a"),
        ("1 / 0", [], 1, "ZeroDivisionError"),
    ],
)
def test_command_of_a_wrong_python_file(folder, tmp_path, capsys, content, arguments, status, text):
    (tmp_path / "p.py").write_text(content.format(folder=str(folder)))
    assert run_preview(tmp_path / "p.py", "-o", tmp_path / "out.html", *arguments) == status
    told = capsys.readouterr().err
    assert text in told and "runpy" not in told and not (tmp_path / "out.html").exists()
