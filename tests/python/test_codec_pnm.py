"""PBM, PGM and PPM against Pillow, bit for bit."""

import random

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")

from codec_dump import assert_as_pillow, assert_refused, differing_cuts, dump, outcome, pillow  # noqa: E402


def samples(n, maxval, seed=1):
    rng = random.Random(seed)
    return [0, maxval, *(rng.randint(0, maxval) for _ in range(n - 2))]


def as_bytes(values, maxval):
    return np.array(values, dtype=">u2" if maxval > 255 else "u1").tobytes()


def write(tmp_path, data, name="x.pnm"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("maxval", [1, 2, 7, 15, 100, 254, 255, 256, 1000, 1023, 4095, 65534, 65535])
@pytest.mark.parametrize("kind", ["P2", "P3", "P5", "P6"])
def test_every_maxval(tmp_path, kind, maxval):
    values = samples(13 * 7 * (3 if kind in ("P3", "P6") else 1), maxval)
    body = as_bytes(values, maxval) if kind > "P3" else " ".join(map(str, values)).encode()
    assert_as_pillow(write(tmp_path, f"{kind}\n13 7\n{maxval}\n".encode() + body))


@pytest.mark.parametrize("width", [1, 7, 8, 9, 31])
def test_bitmaps(tmp_path, width):
    rng = random.Random(width)
    assert_as_pillow(write(tmp_path, b"P4 %d 5\n" % width + rng.randbytes((width + 7) // 8 * 5)))
    digits = "".join(rng.choice("01") + rng.choice(["", " ", "\n", "# 0 1\n"]) for _ in range(5 * width))
    assert_as_pillow(write(tmp_path, b"P1 %d 5\n" % width + digits.encode()))


def test_scaling_of_every_value(tmp_path):
    """Halves are rounded to even, as Python rounds them."""
    for maxval in (2, 6, 10, 34, 102, 170, 510, 32767):
        values = list(range(maxval + 1))
        data = b"P6 %d 1 %d\n" % (maxval + 1, maxval) + as_bytes([v for v in values for _ in range(3)], maxval)
        assert_as_pillow(write(tmp_path, data))


HEADERS = {
    "comments": b"P5 # one\n3#two\n # three\r2\n255\n",
    "comment in a number": b"P5 3 2 2#x\n55\n",
    "every space": b"P5\t3\x0b2\x0c255\r",
    "two spaces": b"P5  3  2  255 ",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers(tmp_path, name):
    assert_as_pillow(write(tmp_path, HEADERS[name] + bytes([7, 80, 255, 0, 10, 35])))


def test_binary_values_above_the_largest(tmp_path):
    assert_as_pillow(write(tmp_path, b"P5 3 2 100\n" + bytes([0, 99, 100, 101, 200, 255])))
    assert_as_pillow(write(tmp_path, b"P6 1 2 1000\n" + as_bytes([0, 999, 1000, 1001, 60000, 65535], 1000)))


def test_unchanged(tmp_path):
    """16 bits stay; a smaller range is scaled to all of it, as Pillow does for grey."""
    values = samples(12, 1000)
    (got,), _ = dump(write(tmp_path, b"P5 4 3 1000\n" + as_bytes(values, 1000)), "unchanged")
    assert got.dtype == np.uint16 and got.ravel().tolist() == [round(v / 1000 * 65535) for v in values]
    (got,), _ = dump(write(tmp_path, b"P6 2 2 1000\n" + as_bytes(values, 1000)), "unchanged")
    assert got.dtype == np.uint16 and got.ravel().tolist() == [round(v / 1000 * 65535) for v in values]
    (got,), _ = dump(write(tmp_path, b"P4 4 1\n\x50"), "unchanged")
    assert got.dtype == np.uint8 and got.ravel().tolist() == [255, 0, 255, 0]


@pytest.mark.parametrize("data", [b"P5 9 7 255\n" + bytes(63), b"P6 9 7 999\n" + bytes(378), b"P4 9 7\n" + bytes(14),
                                  b"P2 3 2 9\n" + b"1 2 3 4 5 6", b"P1 4 2 " + b"01100110"])  # fmt: skip
def test_cut_off(tmp_path, data):
    assert differing_cuts(write(tmp_path, data)) == []


BAD = {
    "no size": (b"P5 x 3 255\n", "byte 120"),
    "no height": (b"P5 3", "truncated"),
    "width 0": (b"P5 0 3 255\n" + bytes(9), "0 x 3"),
    "maxval 0": (b"P5 3 3 0\n" + bytes(9), "largest value must be 1 to 65535, is 0"),
    "maxval 65536": (b"P5 3 3 65536\n" + bytes(18), "65536"),
    "long number": (b"P5 00000000003 3 255\n" + bytes(9), "more than 10 digits"),
    "negative": (b"P2 2 1 9\n-1 2", "byte 45"),
    "too large": (b"P2 2 1 9\n10 2", "a value of 10"),
    "no bit": (b"P1 2 1\n0 2", "byte 50"),
    "wide": (b"P5 70000 3 255\n", "max_side is 65535"),
    "large": (b"P5 60000 60000 255\n", "max_pixels"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged(tmp_path, name):
    data, words = BAD[name]
    path = write(tmp_path, data)
    assert_refused(path, words)
    assert outcome(pillow, path) is None


@pytest.mark.parametrize("data", [b"P7\nWIDTH 2\n", b"Pf\n2 1\n-1.0\n" + bytes(8), b"P0CMYK 1 1 255\n" + bytes(4)])
def test_other_kinds_are_refused(tmp_path, data):
    """Of these Pillow reads the last two."""
    assert_refused(write(tmp_path, data), "not an image that can be read")
