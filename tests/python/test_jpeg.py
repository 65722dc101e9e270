"""drapps.decode_jpeg: Pillow's pixels, whole and cropped, and errors that name values."""

import io
import sys
import threading

import numpy
import pytest
from imagesets import picture
from PIL import Image

import drapps
from drapps import cli


def noisy(width, height, seed=0):
    """A picture with edges and noise, so that every coefficient occurs."""
    rng = numpy.random.default_rng(seed)
    smooth = numpy.asarray(picture(seed, height, width), numpy.int16)
    return Image.fromarray((smooth + rng.integers(-40, 40, smooth.shape)).clip(0, 255).astype(numpy.uint8))


def encode(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def by_pillow(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


KINDS = {
    "4:4:4": encode(noisy(95, 70, 1), subsampling=0, quality=92),
    "4:2:2": encode(noisy(95, 70, 2), subsampling=1, quality=85),
    "4:2:0": encode(noisy(131, 83, 3), subsampling=2, quality=75),
    "optimised": encode(noisy(131, 83, 4), optimize=True, quality=60),
    "restart": encode(noisy(131, 83, 5), restart_marker_rows=1),
    "progressive": encode(noisy(131, 83, 6), progressive=True),
    "grey": encode(noisy(61, 33, 7).convert("L")),
    "CMYK": encode(noisy(61, 33, 8).convert("CMYK")),
    "1x1": encode(noisy(1, 1, 9)),
    "1x40": encode(noisy(1, 40, 10)),
    "40x1": encode(noisy(40, 1, 11)),
    "wide": encode(noisy(700, 16, 12), quality=95),
}


def boxes(data, n, seed=0):
    """n rectangles inside an image, among them its corners and single pixels."""
    height, width = by_pillow(data).shape[:2]
    rng = numpy.random.default_rng(seed)
    yield 0, 0, 1, 1
    yield width - 1, height - 1, 1, 1
    for _ in range(n):
        w, h = rng.integers(1, width, endpoint=True), rng.integers(1, height, endpoint=True)
        yield rng.integers(width - w, endpoint=True), rng.integers(height - h, endpoint=True), w, h


@pytest.mark.parametrize("decoder", ["auto", "libjpeg"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_images(kind, decoder):
    pixels = drapps.decode_jpeg(KINDS[kind], decoder=decoder)
    want = by_pillow(KINDS[kind])
    assert pixels.dtype == numpy.uint8 and pixels.shape == want.shape
    assert (pixels != want).sum() == 0
    pixels[0, 0, 0] ^= 1  # it is the caller's


@pytest.mark.parametrize("decoder", ["auto", "libjpeg"])
@pytest.mark.parametrize("kind", KINDS)
def test_crops_with_and_without_index(kind, decoder):
    data, want, index = KINDS[kind], by_pillow(KINDS[kind]), drapps.JpegIndex()
    for x, y, w, h in boxes(data, 20):
        for points in (None, index):
            part = drapps.decode_jpeg(data, (x, y, w, h), decoder=decoder, index=points)
            assert numpy.array_equal(part, want[y : y + h, x : x + w]), (x, y, w, h)


def test_grey_has_three_equal_channels():
    pixels = drapps.decode_jpeg(KINDS["grey"])
    assert (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all()


def test_kinds_of_bytes():
    data, want = KINDS["4:2:0"], by_pillow(KINDS["4:2:0"])
    array = numpy.frombuffer(data, numpy.uint8)
    twice = numpy.repeat(array, 2)[::2]  # not dense
    for given in (bytearray(data), memoryview(data), array, twice):
        assert numpy.array_equal(drapps.decode_jpeg(given), want), type(given)


def test_torch_tensor():
    torch = pytest.importorskip("torch")
    data = torch.frombuffer(bytearray(KINDS["4:2:0"]), dtype=torch.uint8)
    assert numpy.array_equal(drapps.decode_jpeg(data, (3, 4, 50, 20)), by_pillow(KINDS["4:2:0"])[4:24, 3:53])


@pytest.mark.parametrize(
    "data, words",
    [
        ("picture.jpg", "str"),
        (None, "NoneType"),
        (7, "int"),
        (numpy.zeros(9, numpy.float32), "'f'"),
        (numpy.zeros((3, 3), numpy.uint8), "(3, 3)"),
    ],
    ids=str,
)
def test_wrong_types_of_data(data, words):
    with pytest.raises(TypeError) as caught:
        drapps.decode_jpeg(data)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "crop, words",
    [
        ((0, 0, 132, 10), "0,0 132 x 10 is not inside the image of 131 x 83 pixels"),
        ((100, 80, 31, 4), "100,80 31 x 4 is not inside the image of 131 x 83"),
        ((-1, 0, 5, 5), "-1,0"),
        ((131, 0, 1, 1), "131,0"),
        ((0, 0, 0, 5), "(0, 0, 0, 5)"),
        ((0, 0, 5, -1), "(0, 0, 5, -1)"),
        ((0, 0, 70000, 1), "70000"),
        ((0, 0, 60000, 60000), "178956970"),
        ((0, 0, 2**70, 1), str(2**70)),
        ((1, 2, 3), "four ints: x, y, width, height, got (1, 2, 3)"),
        ((1, 2, 3, 4, 5), "four ints"),
    ],
    ids=str,
)
def test_wrong_crops(crop, words):
    for index in (None, drapps.JpegIndex()):
        with pytest.raises(drapps.ArgumentError) as caught:
            drapps.decode_jpeg(KINDS["4:2:0"], crop, index=index)
        assert words in str(caught.value)


@pytest.mark.parametrize("crop", [5, "abcd", (0, 0, 1.5, 2), (None,) * 4], ids=str)
def test_crops_of_wrong_types(crop):
    with pytest.raises(TypeError, match="crop must be four ints"):
        drapps.decode_jpeg(KINDS["4:2:0"], crop)


def test_crop_of_numpy_integers():
    crop = numpy.array([1, 2, 3, 4])
    assert drapps.decode_jpeg(KINDS["4:2:0"], crop).shape == (4, 3, 3)


def test_wrong_decoder_and_index():
    with pytest.raises(drapps.ArgumentError, match="decoder must be 'auto' or 'libjpeg', got 'nvjpeg'"):
        drapps.decode_jpeg(KINDS["4:2:0"], decoder="nvjpeg")
    with pytest.raises(TypeError, match="JpegIndex"):
        drapps.decode_jpeg(KINDS["4:2:0"], index=5)


@pytest.mark.parametrize("decoder", ["auto", "libjpeg"])
def test_what_is_no_jpeg(decoder):
    cases = [(b"", "0 bytes"), (b"\x01\x02\x03", "01 02 03"), (b"%PDF-1.4", "PDF"), (b"BM......", "bmp"),
             (b"\xff\xd8\xff", "")]
    for data, words in cases:
        with pytest.raises(drapps.Error) as caught:
            drapps.decode_jpeg(data, decoder=decoder)
        assert words in str(caught.value)
    file = io.BytesIO()
    picture(1).save(file, "PNG")
    with pytest.raises(drapps.Error, match="(?i)png"):
        drapps.decode_jpeg(file.getvalue(), decoder=decoder)


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "grey"])
def test_truncated_files_are_refused_where_pillow_does(kind):
    data = KINDS[kind]
    for end in range(2, len(data) - 2, max(len(data) // 25, 1)):
        with pytest.raises(OSError):
            by_pillow(data[:end])
        with pytest.raises(drapps.FormatError):
            drapps.decode_jpeg(data[:end])


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "restart", "optimised", "grey"])
def test_damaged_files(kind):
    """Changed bytes: both decoders give the same pixels, or both refuse; with an index too."""
    rng = numpy.random.default_rng(3)
    whole = decoded = 0
    for _ in range(60):
        data = bytearray(KINDS[kind])
        for place in rng.integers(len(data) // 3, len(data), 2):
            data[place] ^= 1 << rng.integers(8)
        data, results = bytes(data), []
        index = drapps.JpegIndex()
        for options in ({"decoder": "libjpeg"}, {}, {"index": index}, {"index": index}):
            try:
                results.append(drapps.decode_jpeg(data, **options))
            except drapps.Error:
                results.append(None)
        whole += 1
        decoded += results[0] is not None
        for other in results[1:]:
            assert (results[0] is None) == (other is None) and numpy.array_equal(results[0], other)
    assert whole == 60 and decoded > 10


def test_index_of_another_file():
    index = drapps.JpegIndex()
    assert index.nbytes == 0
    drapps.decode_jpeg(KINDS["4:4:4"], index=index)
    with pytest.raises(drapps.ArgumentError, match=f"{len(KINDS['4:4:4'])} bytes.*{len(KINDS['4:2:0'])}"):
        drapps.decode_jpeg(KINDS["4:2:0"], index=index)
    assert numpy.array_equal(drapps.decode_jpeg(KINDS["4:4:4"], index=index), by_pillow(KINDS["4:4:4"]))


def test_index_is_small():
    index = drapps.JpegIndex()
    data = encode(noisy(640, 480), quality=95)
    drapps.decode_jpeg(data, index=index)
    assert 0 <= index.nbytes < len(data) // 50
    assert (index.nbytes > 0) == (drapps.jpeg_header(data).decoder == "drapps")


def test_header():
    header = drapps.jpeg_header(KINDS["4:2:0"])
    assert header[:3] == (131, 83, "YCbCr 4:2:0")
    assert drapps.jpeg_header(KINDS["4:2:0"], decoder="libjpeg").decoder.startswith("libjpeg-turbo")
    assert drapps.jpeg_header(KINDS["progressive"]).decoder.startswith("libjpeg-turbo")


def test_threads():
    """Several threads at once, with decoders that pass from one to another and an index in common."""
    data, index, wrong = list(KINDS.values()), drapps.JpegIndex(), []
    wanted = [by_pillow(each) for each in data]

    def work(seed):
        rng = numpy.random.default_rng(seed)
        for _ in range(150):
            i = rng.integers(len(data))
            if not numpy.array_equal(drapps.decode_jpeg(data[i]), wanted[i]):
                wrong.append(i)
            part = drapps.decode_jpeg(KINDS["4:2:0"], (5, 40, 100, 30), index=index)
            if not numpy.array_equal(part, by_pillow(KINDS["4:2:0"])[40:70, 5:105]):
                wrong.append("crop")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture
def no_switching():
    """Threads change only where the GIL is released."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def test_other_threads_run_meanwhile(no_switching):
    data, gate, ran = encode(noisy(1500, 1000)), threading.Lock(), []

    def wait():
        with gate:
            ran.append(True)

    gate.acquire()
    thread = threading.Thread(target=wait)
    thread.start()
    gate.release()
    for _ in range(50):  # a busy machine may let the other thread wait through one decode
        if not ran:
            drapps.decode_jpeg(data)
    assert ran
    thread.join()


def test_the_op_takes_the_decoder(folder):
    results = []
    for decoder in ("auto", "libjpeg"):
        pipe = drapps.read(folder).decode(decoder=decoder).resize((32, 32))
        with pipe.loader(batch_size=8, output="numpy") as loader:
            results.append(numpy.concatenate([batch["image"].copy() for batch in loader.batches()]))
    assert numpy.array_equal(*results)
    with pytest.raises(drapps.ArgumentError, match="nvjpeg"):
        drapps.read(folder).decode(decoder="nvjpeg")


def test_explain_and_info_say_what_decodes(folder, capsys):
    pipe = drapps.read(folder).decode()
    library = next(row["library"] for row in drapps.info()["codecs"] if row["name"] == "jpeg")
    assert f"JPEG by {library}" in pipe.explain()
    own = drapps.jpeg_header(KINDS["4:2:0"]).decoder == "drapps"
    assert library.startswith("drapps baseline decoder (") == own and "libjpeg-turbo" in library
    assert "JPEG by libjpeg-turbo" in drapps.read(folder).decode(decoder="libjpeg").explain()
    assert cli.main(["info"]) == 0
    assert library in capsys.readouterr().out
