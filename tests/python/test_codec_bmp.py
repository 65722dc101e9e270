"""BMP files against Pillow, bit for bit: those that it writes, and headers made by hand."""

import random
import struct

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

from codec_dump import assert_as_pillow, assert_refused, differing_cuts, dump, outcome, pillow  # noqa: E402

RAW, RLE8, RLE4, BITFIELDS = range(4)


def bmp(bits, data, size=(19, 11), compression=RAW, palette=b"", colors=0, header=40, masks=b"", top_down=False,
        offset=None):  # fmt: skip
    width, height = size
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IIiHHIIIIII", header, width, -height if top_down else height, 1, bits, compression,
                           len(data), 0, 0, colors, 0)  # fmt: skip
    info = (info + masks).ljust(max(header, len(info + masks)), b"\0")
    at = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at if offset is None else offset) + info + palette + data


def pixels(bits, size=(19, 11), seed=1):
    return random.Random(seed).randbytes((size[0] * bits + 31) // 32 * 4 * size[1])


def palette(n, entry=4, seed=2):
    rng = random.Random(seed)
    return b"".join(rng.randbytes(3) + bytes(entry - 3) for _ in range(n))


def ramp(values, entry=4):
    return b"".join(bytes([v] * 3) + bytes(entry - 3) for v in values)


def write(tmp_path, data):
    path = tmp_path / "x.bmp"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_written_by_pillow(tmp_path, mode):
    array = np.random.default_rng(1).integers(0, 256, (23, 37, 4), dtype=np.uint8)
    Image.fromarray(array).convert(mode).save(tmp_path / "x.bmp")
    assert_as_pillow(tmp_path / "x.bmp")


KINDS = {
    "1 bit": bmp(1, pixels(1), palette=palette(2)),
    "1 bit, black and white": bmp(1, pixels(1), palette=ramp([0, 255])),
    "1 bit, white and black": bmp(1, pixels(1), palette=ramp([255, 0])),
    "1 bit, one colour": bmp(1, pixels(1), palette=ramp([0]), colors=1),
    "4 bit": bmp(4, pixels(4), palette=palette(16)),
    "4 bit, few colours": bmp(4, pixels(4), palette=palette(5), colors=5),
    "8 bit": bmp(8, pixels(8), palette=palette(256)),
    "8 bit, few colours": bmp(8, pixels(8), palette=palette(99), colors=99),
    "8 bit, grey": bmp(8, pixels(8), palette=ramp(range(256))),
    "8 bit, few greys": bmp(8, pixels(8), palette=ramp(range(16)), colors=16),
    "8 bit, black and white": bmp(8, pixels(8), palette=ramp([0, 255]), colors=2),  # which Pillow takes for 1 bit
    "4 bit, black and white": bmp(4, pixels(4), palette=ramp([0, 255]), colors=2),
    "4 bit, greys, narrow": bmp(4, pixels(4, (4, 3)), (4, 3), palette=ramp(range(16))),  # and these for 8
    "8 bit, greys backwards": bmp(8, pixels(8), palette=ramp(range(255, -1, -1))),
    "16 bit": bmp(16, pixels(16)),
    "24 bit": bmp(24, pixels(24)),
    "32 bit": bmp(32, pixels(32)),
    "OS/2, 1 bit": bmp(1, pixels(1), palette=palette(2, 3), header=12),
    "OS/2, 4 bit": bmp(4, pixels(4), palette=palette(16, 3), header=12),
    "OS/2, 8 bit": bmp(8, pixels(8), palette=palette(256, 3), header=12),
    "OS/2, 24 bit": bmp(24, pixels(24), header=12),
    "OS/2 version 2": bmp(24, pixels(24), header=64),
    "offset at the palette": bmp(8, pixels(8), palette=palette(256), offset=54),
    "offset 0": bmp(8, pixels(8), palette=palette(256), offset=0),
    "offset 0, 24 bit": bmp(24, pixels(24), offset=0),
    "gap before the pixels": bmp(24, bytes(7) + pixels(24), offset=61),
    "no padding after the last row": bmp(24, pixels(24)[:-3]),
    **{f"header of {n}": bmp(24, pixels(24), header=n) for n in (52, 56, 108, 124)},
    **{f"top down, {n} bit": bmp(n, pixels(n), palette=palette(1 << n if n < 16 else 0), top_down=True)
       for n in (1, 4, 8, 16, 24, 32)},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    assert_as_pillow(write(tmp_path, KINDS[name]))


MASKS = [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF00, 0xFF, 0),
         (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
         (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF000000, 0xFF00, 0xFF, 0xFF0000), (0, 0, 0, 0)]  # fmt: skip


@pytest.mark.parametrize("header", [40, 52, 56, 108, 124])
@pytest.mark.parametrize("masks", MASKS)
def test_masks_of_32_bits(tmp_path, masks, header):
    said = struct.pack("<4I", *masks)[: 12 if header < 56 else 16]
    path = write(tmp_path, bmp(32, pixels(32), compression=BITFIELDS, masks=said, header=header))
    if outcome(pillow, path) is None:  # a mask for alpha that a short header has no place for
        assert_refused(path, "masks")
    else:
        assert_as_pillow(path)


@pytest.mark.parametrize("bits, masks", [(16, (0xF800, 0x7E0, 0x1F)), (16, (0x7C00, 0x3E0, 0x1F)),
                                         (24, (0xFF0000, 0xFF00, 0xFF))])  # fmt: skip
def test_masks(tmp_path, bits, masks):
    for header, offset in ((40, None), (40, 0), (56, None)):
        said = struct.pack("<3I", *masks)
        data = bmp(bits, pixels(bits), compression=BITFIELDS, masks=said, header=header, offset=offset)
        assert_as_pillow(write(tmp_path, data))


RUNS = {
    "runs": [(19, 3), (0, 0)] * 10 + [(19, 1), (0, 1)],
    "runs longer than the row": [(255, 7), (0, 0)] * 11,
    "short rows": [(5, 9), (3, 200), (0, 0)] * 11,
    "literals": [(0, 19), bytes(range(19)) + b"\0", (0, 0)] * 11,
    "literals over the end of a row": [(0, 38), bytes(range(38))] * 5 + [(0, 19), bytes(19)],
    "run after a long literal": [(0, 25), bytes(range(26)), (7, 3), (0, 0)] + [(19, 2), (0, 0)] * 9,
    "leaps": [(0, 2), bytes([4, 2]), (3, 8), (0, 0), (0, 2), bytes([0, 3])] + [(19, 5), (0, 0)] * 6,
    "a leap beyond the end": [(3, 3), (0, 2), bytes([200, 200])],
    "odd literals": [(0, 3), bytes([1, 2, 3, 0]), (0, 5), bytes([4, 5, 6, 7, 8, 0]), (0, 0)] * 11,
    "early end": [(19, 3), (0, 0), (0, 1)],
    "cut off": [(19, 3), (0, 0)] * 6,
    "cut off in a literal": [(19, 3), (0, 0), (0, 19), b"\1\2"],
}


@pytest.mark.parametrize("bits, compression", [(8, RLE8), (4, RLE4), (4, RLE8), (1, RLE8)])
@pytest.mark.parametrize("kind", ["palette", "grey", "black and white"])
@pytest.mark.parametrize("name", RUNS)
def test_run_lengths(tmp_path, name, bits, compression, kind):
    colors = {"palette": palette(99), "grey": ramp(range(16)), "black and white": ramp([0, 255])}[kind]
    data = b"".join(bytes(part) for part in RUNS[name])
    path = write(tmp_path, bmp(bits, data, compression=compression, palette=colors, colors=len(colors) // 4))
    if outcome(pillow, path) is None:
        assert_refused(path, "run lengths end")
    else:
        assert_as_pillow(path)


def test_random_run_lengths(tmp_path):
    rng, decoded = random.Random(5), 0
    for i in range(60):
        data = bytes(rng.choice([0, 0, 1, 2, 3, 4, rng.randrange(256)]) for _ in range(700))
        kind = rng.choice([RLE8, RLE4])
        colors = palette(200)
        path = write(tmp_path, bmp(8, data, (5, 9), kind, colors, 200, top_down=rng.random() < 0.3))
        want, got = outcome(pillow, path), outcome(lambda: dump(path)[0][0])
        assert (want is None) == (got is None), i
        assert want is None or np.array_equal(got, want), i
        decoded += want is not None
    assert decoded > 20


def test_unchanged(tmp_path):
    for name, channels in (("1 bit, black and white", 1), ("8 bit, grey", 1), ("8 bit", 3), ("32 bit", 3)):
        path = write(tmp_path, KINDS[name])
        (got,), _ = dump(path, "unchanged")
        assert got.shape[2] == channels and np.array_equal(got, pillow(path, "gray" if channels == 1 else "rgb"))


@pytest.mark.parametrize("name", ["1 bit", "4 bit, few colours", "8 bit, grey", "16 bit", "24 bit", "OS/2, 8 bit"])
def test_cut_off(tmp_path, name):
    assert differing_cuts(write(tmp_path, KINDS[name])) == []


BAD = {
    "header of 41": (bmp(24, pixels(24), header=41), "header of 41 bytes"),
    "2 bit": (bmp(2, pixels(2), palette=palette(4)), "2 bits"),
    "64 bit": (bmp(64, pixels(64)), "64 bits"),
    "JPEG": (bmp(24, pixels(24), compression=4), "compression 4"),
    "masks of 8 bits": (bmp(8, pixels(8), palette=palette(256), compression=BITFIELDS), "compression 3"),
    "run lengths of 24 bits": (bmp(24, pixels(24), compression=RLE8), "compression 1"),
    "odd masks": (bmp(32, pixels(32), compression=BITFIELDS, masks=struct.pack("<3I", 1, 2, 4)), "masks 1, 2, 4"),
    "4 bit, greys": (bmp(4, pixels(4), palette=ramp(range(16))), "which Pillow does not read"),
    "300 colours": (bmp(8, pixels(8), palette=palette(300), colors=300), "300 colours"),
    "width 0": (bmp(24, b"", size=(0, 4)), "0 x 4"),
    "large": (bmp(24, b"", size=(60000, 60000)), "max_pixels"),
    "header alone": (b"BM" + bytes(10), "12 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged(tmp_path, name):
    data, words = BAD[name]
    path = write(tmp_path, data)
    assert_refused(path, words)
    assert outcome(pillow, path) is None
