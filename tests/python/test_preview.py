"""preview: a page that stands alone and shows the true pixels."""

import base64
import io
import re

import numpy
import pytest
from imagesets import write_folder
from PIL import Image

import drapps
from drapps.png import encode_png


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
