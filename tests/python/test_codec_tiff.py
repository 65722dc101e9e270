"""TIFF files against Pillow, bit for bit: those that it writes, and files made tag by tag."""

import io
import os
import random
import subprocess

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

from codec_dump import MODES, assert_as_pillow, assert_refused, differing_cuts, dump, outcome, pillow  # noqa: E402
from golden import find_program  # noqa: E402
from tiff_file import BYTE, DEFLATE, LZW, NONE, PACKBITS, SHORT, Tiff  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _codec():
    codecs = subprocess.run([find_program("decode_dump"), "--codecs"], capture_output=True, text=True, check=True)
    if "tiff:" not in codecs.stdout:
        pytest.skip("built without libtiff")


def write(tmp_path, tiff, seed=1):
    path = tmp_path / "x.tif"
    path.write_bytes(tiff if isinstance(tiff, bytes) else tiff.bytes(random.Random(seed)))
    return path


def colors(bits, seed=3):
    rng = random.Random(seed)
    return [rng.randrange(65536) for _ in range(3 << bits)]


def picture(mode, size=(45, 37)):
    rng = np.random.default_rng(2)
    smooth = np.add.outer(np.arange(size[1]), 2 * np.arange(size[0]))[..., None] + rng.integers(0, 50, (*size[::-1], 4))
    if mode.startswith("I;16"):
        return Image.fromarray((smooth[..., 0] * 150).astype(">u2" if mode == "I;16B" else "<u2"))
    return Image.fromarray((smooth % 256).astype(np.uint8)).convert(mode)


PILLOWS = [("raw", mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "I;16", "I;16B")]
PILLOWS += [(name, mode) for name in ("tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "lzma", "zstd")
            for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16")]  # fmt: skip
PILLOWS += [(name, "1") for name in ("tiff_ccitt", "group3", "group4")]
PILLOWS += [("jpeg", mode) for mode in ("L", "RGB", "YCbCr", "CMYK")]


@pytest.mark.parametrize("compression, mode", PILLOWS)
def test_written_by_pillow(tmp_path, compression, mode):
    path = tmp_path / "x.tif"
    try:
        picture(mode).save(path, compression=None if compression == "raw" else compression)
    except OSError:
        pytest.skip("this Pillow was built without it")
    if outcome(lambda: dump(path)) is None and compression in ("lzma", "zstd"):
        assert_refused(path, "this libtiff was built without")
        return
    assert_as_pillow(path)


KINDS = {
    **{f"grey, {bits} bit{', white is 0' * (photo == 0)}": Tiff(bits=bits, samples=1, photometric=photo)
       for bits in (1, 2, 4, 8, 16) for photo in (0, 1)},
    **{f"palette, {bits} bit": Tiff(bits=bits, samples=1, photometric=3, colors=colors(bits)) for bits in (1, 2, 4, 8)},
    "palette with alpha": Tiff(samples=2, photometric=3, colors=colors(8), extra=(2,)),
    "palette with an extra sample": Tiff(samples=2, photometric=3, colors=colors(8), extra=(0,)),
    "grey with alpha": Tiff(samples=2, photometric=1, extra=(2,)),
    "grey, signed bytes": Tiff(samples=1, photometric=1, format=2),
    "no photometric tag": Tiff(samples=1, photometric=None),
    **{f"RGB, {bits} bit": Tiff(bits=bits) for bits in (8, 16)},
    **{f"RGBA {extra}, {bits} bit": Tiff(bits=bits, samples=4, extra=extra) for bits in (8, 16)
       for extra in (None, (0,), (1,), (2,))},
    **{f"RGB and {extra}": Tiff(samples=3 + len(extra), extra=extra) for extra in
       ((0, 0), (1, 0), (2, 0), (0, 0, 0), (1, 0, 0), (2, 0, 0))},
    **{f"CMYK and {extra}": Tiff(samples=4 + len(extra or ()), photometric=5, extra=extra) for extra in
       (None, (0,), (0, 0))},
    "CMYK, 16 bit": Tiff(bits=16, samples=4, photometric=5),
    "format said": Tiff(format=1),
    "one strip": Tiff(rows_per_strip=None),
    "one row a strip": Tiff(rows_per_strip=1),
    "huge strips": Tiff(rows_per_strip=2**32 - 1),
    "tiles": Tiff(tile=(16, 16)),
    "a tile larger than the image": Tiff(tile=(64, 32)),
    "tiles of bits": Tiff(bits=1, samples=1, photometric=0, width=70, tile=(16, 16)),
    "tiles of an indexed image": Tiff(bits=4, samples=1, photometric=3, colors=colors(4), tile=(16, 16)),
    "BigTIFF": Tiff(big=True),
    "reversed bits, grey": Tiff(samples=1, photometric=1, fill_order=2),
    "reversed bits, 1 bit": Tiff(bits=1, samples=1, photometric=0, fill_order=2),
    "reversed bits, RGB": Tiff(fill_order=2),
    **{f"orientation {n}": Tiff(orientation=n) for n in range(1, 9)},
    "orientation 6, tiles, bits": Tiff(bits=1, samples=1, photometric=1, width=70, tile=(16, 16), orientation=6),
    "orientation in XMP": Tiff(more={700: (BYTE, list(b'<x tiff:Orientation="8"/>'))}),
    "orientation in both": Tiff(orientation=3, more={700: (BYTE, list(b'<x tiff:Orientation="8"/>'))}),
}  # fmt: skip


def variants(tiff):
    """The same in both byte orders, packed, and in separate planes."""
    for big_endian in (False, True):
        for compression in (NONE, DEFLATE, LZW, PACKBITS):
            for planar in (1, 2):
                yield Tiff(**{**vars(tiff), "big_endian": big_endian, "compression": compression, "planar": planar})


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    """Every variant gives Pillow's pixels or is refused by name; as it stands, little-endian, it is read."""
    n_read = 0
    for i, tiff in enumerate(variants(KINDS[name])):
        path = write(tmp_path, tiff)
        for mode in MODES:
            want, got = outcome(pillow, path, mode), outcome(lambda: dump(path, mode)[0][0])
            if got is None and i > 0:
                assert want is None or tiff.planar == 2, tiff
                continue
            if tiff.big and tiff.big_endian:  # Pillow knows the other order alone
                assert want is None
                continue
            assert want is not None and got is not None, tiff
            assert np.array_equal(got, want), tiff
            n_read += 1
        if i == 0:
            assert_as_pillow(path)
    assert n_read >= 12  # two orders, or two compressions, of the eight in one plane


SEPARATE = [Tiff(), Tiff(samples=4, extra=(2,)), Tiff(samples=4, photometric=5),
            Tiff(bits=16, compression=DEFLATE), Tiff(bits=16, compression=LZW, big_endian=True),
            Tiff(samples=4, extra=(1,), compression=DEFLATE), Tiff(samples=4, extra=(0,), compression=DEFLATE),
            Tiff(tile=(16, 16)), Tiff(tile=(16, 16), compression=PACKBITS, orientation=5)]  # fmt: skip


@pytest.mark.parametrize("tiff", SEPARATE)
def test_separate_planes(tmp_path, tiff):
    tiff.planar = 2
    assert_as_pillow(write(tmp_path, tiff))


@pytest.mark.parametrize("compression", [LZW, DEFLATE])
@pytest.mark.parametrize("bits, samples", [(8, 1), (8, 3), (16, 1), (16, 3)])
def test_predictor(tmp_path, compression, bits, samples):
    for big_endian in (False, True):
        tiff = Tiff(bits=bits, samples=samples, photometric=1 if samples == 1 else 2, compression=compression,
                    predictor=2, big_endian=big_endian)  # fmt: skip
        assert_as_pillow(write(tmp_path, tiff))


class JpegTiff(Tiff):
    """Each strip or tile is a JPEG file."""

    def chunks(self, rng):
        width, height = self.chunk_shape()
        for y in range(0, self.height, height):
            rows = height if self.tile else min(height, self.height - y)
            for _ in range(0, self.width, width):
                image, file = picture("RGB", (width, rows)), io.BytesIO()
                image = image if self.samples == 3 else image.convert("L" if self.samples == 1 else "CMYK")
                image.save(file, "JPEG", quality=rng.randint(20, 95), subsampling=self.subsampling)
                yield file.getvalue()


@pytest.mark.parametrize("shape", [{"rows_per_strip": None}, {"rows_per_strip": 16}, {"tile": (32, 32)}])
@pytest.mark.parametrize("subsampling, factors", [(0, [1, 1]), (1, [2, 1]), (2, [2, 2])])
@pytest.mark.parametrize("size", [(45, 37), (16, 16), (131, 70)])
def test_jpeg_of_all_samplings(tmp_path, size, subsampling, factors, shape):
    for seed in range(3):
        tiff = JpegTiff(*size, photometric=6, compression=7, more={530: (SHORT, factors)}, **shape)
        tiff.subsampling = subsampling
        assert_as_pillow(write(tmp_path, tiff, seed))


def test_jpeg_of_other_colours(tmp_path):
    for samples, photometric in ((1, 1), (1, 0), (4, 5)):
        tiff = JpegTiff(samples=samples, photometric=photometric, compression=7, rows_per_strip=8)
        tiff.subsampling = 0
        assert_as_pillow(write(tmp_path, tiff))


def test_unchanged(tmp_path):
    cases = {"RGB, 16 bit": (3, "uint16"), "grey, 16 bit": (1, "uint16"), "RGBA (2,), 16 bit": (4, "uint16"),
             "palette, 4 bit": (3, "uint8"), "palette with alpha": (4, "uint8"), "grey with alpha": (2, "uint8"),
             "grey, 1 bit, white is 0": (1, "uint8"), "CMYK and None": (4, "uint8")}  # fmt: skip
    for name, (channels, dtype) in cases.items():
        (got,), _ = dump(write(tmp_path, KINDS[name]), "unchanged")
        assert (got.shape[2], got.dtype) == (channels, dtype), name
        if dtype == "uint16" and channels > 1:
            assert np.array_equal(got[..., :3] >> 8, pillow(tmp_path / "x.tif")) and (got & 255).any()
    with Image.open(write(tmp_path, KINDS["CMYK and None"])) as image:
        assert np.array_equal(np.asarray(image), dump(tmp_path / "x.tif", "unchanged")[0][0])
    with Image.open(write(tmp_path, KINDS["grey, 16 bit"])) as image:
        assert np.array_equal(np.asarray(image), dump(tmp_path / "x.tif", "unchanged")[0][0][..., 0])


REFUSED = {
    "float": (Tiff(bits=32, samples=1, photometric=1, format=3), "samples of 32 bits"),
    "32 bit": (Tiff(bits=32, samples=1, photometric=1), "samples of 32 bits"),
    "12 bit": (Tiff(bits=12, samples=1, photometric=1), "samples of 12 bits"),
    "signed 16 bit": (Tiff(bits=16, samples=1, photometric=1, format=2), "format 2"),
    "CIELab": (Tiff(photometric=8), "photometric 8"),
    "YCbCr": (Tiff(photometric=6, more={530: (3, [1, 1])}), "YCbCr that is not JPEG"),
    "16 bit in separate planes": (Tiff(bits=16, planar=2), "separate planes"),
    "inverted, in separate planes": (Tiff(samples=1, photometric=0, planar=2), "separate planes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_though_pillow_reads_it(tmp_path, name):
    tiff, words = REFUSED[name]
    path = write(tmp_path, tiff)
    assert_refused(path, words)
    assert outcome(pillow, path) is not None


BAD = {
    "no width": (Tiff(more={256: (3, [0])}), "TIFF"),
    "seven samples": (Tiff(samples=7, extra=(0, 0, 0, 0)), "extra samples"),
    "unknown compression": (Tiff(compression=34887), "compression 34887"),
    "64-bit samples": (Tiff(bits=64), "64 bits"),
    "palette missing": (Tiff(samples=1, photometric=3), "tag 262"),
    "width twice": (Tiff().bytes(random.Random(1)).replace(b"\x01\1\4\0", b"\0\1\4\0", 1), "damaged TIFF"),
    "wide": (Tiff(more={256: (4, [100000]), 257: (4, [100000])}), "max_side"),
    "large": (Tiff(more={256: (4, [60000]), 257: (4, [60000])}), "max_pixels"),
    "header alone": (b"II*\0\x08\0\0\0", "damaged TIFF"),
    "no directory": (b"II*\0\0\0\0\0" + bytes(40), "damaged TIFF"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged(tmp_path, name):
    tiff, words = BAD[name]
    path = write(tmp_path, tiff)
    assert_refused(path, words)
    assert outcome(pillow, path) is None


def test_huge_tiles_are_not_allocated(tmp_path):
    path = write(tmp_path, Tiff(10, 10, tile=(16, 16), more={322: (4, [65536]), 323: (4, [65536])}))
    assert_refused(path, "max_bytes")


@pytest.mark.parametrize("name", ["RGB, 8 bit", "tiles", "grey, 1 bit"])
def test_cut_off(tmp_path, name):
    """The directory lies at the end of these; libtiff wants all of it."""
    assert [cut for cut, how in differing_cuts(write(tmp_path, KINDS[name]), 30) if how == "opened"] == []


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_cut_off_pixels(tmp_path, compression):
    """The directory lies before the pixels, as Pillow writes it."""
    picture("RGB").save(tmp_path / "x.tif", compression=None if compression == "raw" else compression)
    data = (tmp_path / "x.tif").read_bytes()
    for cut in (len(data) - 1, len(data) - 100, len(data) // 2):
        (tmp_path / "short.tif").write_bytes(data[:cut])
        assert outcome(pillow, tmp_path / "short.tif") is None
        assert_refused(tmp_path / "short.tif", "TIFF")


def test_nothing_is_printed(tmp_path):
    """libtiff writes its complaints to standard error if it is let."""
    data = bytearray(Tiff(compression=DEFLATE).bytes(random.Random(1)))
    data[30:60] = bytes(30)
    path = write(tmp_path, bytes(data))
    run = subprocess.run([find_program("decode_dump"), path, "rgb", "0", "1"], capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr.startswith("ERR_FORMAT: damaged TIFF: strip 0: ")
    assert run.stderr.count("\n") == 1


def test_random_tags(tmp_path):
    """Whatever the tags say: never other pixels than Pillow's."""
    rng = random.Random(int(os.environ.get("DRAPPS_TEST_SEED", 4)))
    n_same = 0
    for _ in range(int(os.environ.get("DRAPPS_TEST_ROUNDS", 300))):
        photo = rng.choice([0, 1, 2, 2, 2, 3, 5, None])
        samples = rng.choice([1, 1, 2, 3, 4, 5, 6]) if rng.random() < 0.3 else {2: 3, 5: 4}.get(photo, 1)
        tiff = Tiff(width=rng.randint(1, 40), height=rng.randint(1, 30), bits=rng.choice([1, 2, 4, 8, 8, 16]),
                    samples=samples, photometric=photo, compression=rng.choice([NONE, NONE, LZW, DEFLATE, PACKBITS]),
                    planar=rng.choice([1, 1, 2]), format=rng.choice([None, None, 1, 2, 4]),
                    fill_order=rng.choice([None, None, 1, 2]), orientation=rng.choice([None, None, 1, 3, 6, 9]),
                    predictor=rng.choice([None, None, 1, 2]), rows_per_strip=rng.choice([None, 1, 4, 100]),
                    tile=rng.choice([None, None, (16, 16), (32, 16)]), big_endian=rng.random() < 0.5)  # fmt: skip
        if rng.random() < 0.4:
            tiff.extra = tuple(rng.choice([0, 0, 1, 2]) for _ in range(rng.randint(1, 3)))
        if photo == 3:
            tiff.colors = colors(tiff.bits) if tiff.bits <= 8 else None
        path = write(tmp_path, tiff)
        for mode in MODES:
            got = outcome(lambda: dump(path, mode)[0][0])
            want = None if got is None else outcome(pillow, path, mode)
            if want is not None:
                assert np.array_equal(got, want), tiff
                n_same += 1
    assert n_same > 60
