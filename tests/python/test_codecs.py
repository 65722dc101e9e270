"""Pixels of the image codecs against Pillow, bit for bit.

The C programs decode_dump and image_zoo do the work (golden.py finds them).  DRAPPS_IMAGE_DIRS may name folders of
further images, separated by colons.
"""

import os
import random
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
from PIL import features  # noqa: E402

from codec_dump import MODES, DecodeError, differing_rects, dump, pillow, random_rects  # noqa: E402
from golden import find_program  # noqa: E402

@pytest.fixture(scope="session")
def zoo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    subprocess.run([find_program("image_zoo"), str(folder)], check=True)
    files = sorted(folder.iterdir())
    assert len(files) > 150
    return files


def test_versions():
    """Not a comparison of versions: it prints them, since pixels may differ between libraries of different ones."""
    ours = subprocess.run([find_program("decode_dump"), "--codecs"], capture_output=True, text=True, check=True).stdout
    print(f"\nPillow {Image.__version__} with libjpeg-turbo {features.version('libjpeg_turbo')}, "
          f"libwebp {features.version('webp')}; drapps with {', '.join(ours.split(chr(10))[:-1])}")
    assert "libjpeg-turbo" in ours


@pytest.mark.parametrize("orient", [False, True], ids=["stored", "turned"])
@pytest.mark.parametrize("mode", list(MODES))
def test_every_kind_equals_pillow(zoo, mode, orient):
    differing = []
    for path in zoo:
        want = pillow(path, mode, orient)
        (got,), line = dump(path, mode, orient)
        if got.shape != want.shape or not np.array_equal(got, want):
            differing.append(f"{path.name}: {line}")
    assert not differing


def test_unchanged_keeps_channels_and_depth(zoo):
    """As stored: uint16 for 16 bits, palettes expanded, CMYK as Pillow's mode of that name."""
    shape = {0: 1, 2: 3, 4: 2, 6: 4}
    for path in zoo:
        (got,), _ = dump(path, "unchanged")
        if path.suffix == ".jpg":
            with Image.open(path) as image:
                want = np.asarray(image)
            assert np.array_equal(got, want.reshape(*want.shape[:2], -1)), path.name
        elif path.suffix == ".png":
            color = int(path.name[4])
            palette = 4 if "trns" in path.name else 3
            assert got.shape[2] == shape.get(color, palette), path.name
            assert got.dtype == (np.uint16 if "16bit" in path.name else np.uint8), path.name
        else:
            assert np.array_equal(got, pillow(path, "rgba" if got.shape[2] == 4 else "rgb")), path.name


def test_unchanged_deep_png_has_all_bits(zoo):
    """The high byte of deep colour is what Pillow's 8-bit modes keep; grey is Pillow's I;16 itself."""
    deep = [p for p in zoo if "16bit" in p.name]
    assert deep
    for path in deep:
        (got,), _ = dump(path, "unchanged")
        assert (got & 255).any()
        if got.shape[2] == 1:
            with Image.open(path) as image:
                assert np.array_equal(got[..., 0], np.asarray(image)), path.name
        elif got.shape[2] >= 3:
            assert np.array_equal(got[..., :3] >> 8, pillow(path, "rgb")), path.name


def test_rectangles_equal_pillow(zoo):
    rng = random.Random(7)
    for path in zoo:
        for orient in (False, True):
            want = pillow(path, "rgb", orient)
            rects = list(random_rects(rng, want.shape[1], want.shape[0], 6))
            assert not differing_rects(path, want, rects, orient=orient), path.name


def test_scaled_decoding_has_the_size_it_says(zoo):
    for path in zoo:
        if path.suffix == ".jpg":
            for scale in (2, 4, 8):
                (got,), _ = dump(path, scale=scale)
                assert got.shape == (-(-47 // scale), -(-61 // scale), 3)


def test_truncated_files_are_errors_where_pillow_raises(zoo, tmp_path):
    """Both decoders see the same prefixes.  PNG is left out of the strict half: Pillow also checks what follows the
    last row, which does not change a pixel."""
    rng = random.Random(3)
    for path in rng.sample([p for p in zoo if p.suffix != ".png"], 40):
        data = path.read_bytes()
        for cut in sorted(rng.sample(range(4, len(data)), 6)):
            short = tmp_path / ("short" + path.suffix)
            short.write_bytes(data[:cut])
            try:
                want = pillow(short)
            except Exception:  # noqa: BLE001  # Pillow raises many kinds
                want = None
            try:
                (got,), _ = dump(short)
            except DecodeError as error:
                assert want is None, f"{path.name} cut at {cut}: {error}"
            else:
                assert want is not None and np.array_equal(got, want), f"{path.name} cut at {cut}"


def chunk(name, data, crc=None):
    crc = zlib.crc32(name + data) if crc is None else crc
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)


def small_png(color, palette=b"", extra=b"", data_crc=None, end=True):
    """16 x 16 pixels, 8 bit; color 2: RGB, 3: palette."""
    rows = (b"\0" + bytes(range(16)) * (3 if color == 2 else 1)) * 16
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, color, 0, 0, 0))
    body = palette + extra + chunk(b"IDAT", zlib.compress(rows), data_crc)
    return b"\x89PNG\r\n\x1a\n" + head + body + (chunk(b"IEND", b"") if end else b"")


PALETTE = chunk(b"PLTE", bytes(range(48)))


@pytest.mark.parametrize(
    ("data", "ours", "pillows"),
    [
        pytest.param(small_png(2), True, True, id="whole"),
        pytest.param(small_png(3, PALETTE), True, True, id="palette"),
        pytest.param(small_png(3), False, True, id="palette missing"),
        pytest.param(small_png(2, data_crc=0), False, True, id="checksum of the pixels"),
        pytest.param(small_png(2, extra=chunk(b"pHYs", b"\0" * 3)), True, False, id="short metadata"),
        pytest.param(small_png(2, end=False)[:-4], False, True, id="cut off in the checksum of the pixels"),
    ],
)
def test_damaged_png(tmp_path, data, ours, pillows):
    """What docs/parity.md says of damaged files that one of both refuses."""
    path = tmp_path / "x.png"
    path.write_bytes(data)
    opened = []
    for decode in (lambda: dump(path)[0][0], lambda: pillow(path)):
        try:
            opened.append(decode())
        except Exception as error:  # noqa: BLE001  # Pillow raises many kinds
            opened.append(None)
            print(error)
    assert [v is not None for v in opened] == [ours, pillows]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ERR_FORMAT: not an image: 0 bytes"),
        (b"\xff\x0a" + bytes(20), "ERR_UNSUPPORTED: looks like JPEG XL"),
        (b"\xff\xd8\xff\xe0" + bytes(30), "ERR_FORMAT"),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "ERR_FORMAT"),
        (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(30), "ERR_FORMAT"),
    ],
)
def test_errors_name_the_reason(tmp_path, content, words):
    path = tmp_path / "strange.jpg"
    path.write_bytes(content)
    with pytest.raises(DecodeError, match=words):
        dump(path)


def test_extension_does_not_matter(zoo, tmp_path):
    png = next(p for p in zoo if p.suffix == ".png")
    path = tmp_path / "really_a_png.jpg"
    path.write_bytes(png.read_bytes())
    (got,), line = dump(path)
    assert " png " in line and np.array_equal(got, pillow(png))


REFUSES = {".gif", ".tif", ".tiff"}  # some kinds of these are left to others; see docs/parity.md


def further_images():
    folders = [Path(p) for p in os.environ.get("DRAPPS_IMAGE_DIRS", "").split(":") if p]
    ends = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".pbm", ".tif", ".tiff"}
    return sorted(p for folder in folders for p in folder.rglob("*") if p.suffix.lower() in ends)


def test_further_images_equal_pillow():
    """Each image whole, and ten rectangles of it; also turned, if it says how."""
    files = further_images()
    if not files:
        pytest.skip("DRAPPS_IMAGE_DIRS names no images")
    rng = random.Random(11)
    n_differing = n_rects = n_unreadable = n_refused = 0
    for path in files:
        try:
            want = pillow(path)
        except Exception:  # noqa: BLE001
            n_unreadable += 1
            continue
        try:
            dump(path)
        except DecodeError as error:
            if path.suffix.lower() in REFUSES and "ERR_UNSUPPORTED" in str(error):
                n_refused += 1
                continue
        rects = [(0, 0, want.shape[1], want.shape[0]), *random_rects(rng, want.shape[1], want.shape[0], 10)]
        n_rects += len(rects) - 1
        differs = bool(differing_rects(path, want, rects))
        (turned,), line = dump(path, orient=True)
        if line.split()[4] != "1":
            differs |= not np.array_equal(turned, pillow(path, "rgb", True))
        n_differing += differs
    print(f"\n{len(files)} images ({n_unreadable} not for Pillow, {n_refused} not for drapps by design), "
          f"{n_rects} rectangles: {n_differing} differing")
    assert n_differing == 0
