"""GIF files against Pillow, bit for bit: those that it writes, and files made by hand."""

import random
import struct
import subprocess

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

from codec_dump import assert_as_pillow, assert_refused, differing_cuts, dump, outcome, pillow  # noqa: E402
from golden import find_program  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _codec():
    codecs = subprocess.run([find_program("decode_dump"), "--codecs"], capture_output=True, text=True, check=True)
    if "gif:" not in codecs.stdout:
        pytest.skip("built without giflib")


def table(colors):
    """The bits of a flag byte that say how many colours there are."""
    return 0 if colors is None else 0x80 | (len(colors) // 3).bit_length() - 2


def blocks(data, n=255):
    return b"".join(bytes([len(part)]) + part for part in (data[i : i + n] for i in range(0, len(data), n)))


def lzw(indices, bits=8):
    """Codes of one index each, with a new beginning before they would get longer."""
    clear, codes = 1 << bits, []
    for i, index in enumerate(indices):
        if i % (clear - 2) == 0:
            codes.append(clear)
        codes.append(index)
    number = sum(code << (bits + 1) * i for i, code in enumerate([*codes, clear + 1]))
    return number.to_bytes(((len(codes) + 1) * (bits + 1) + 7) // 8, "little")


def gif(indices, size, at=(0, 0), screen=None, colors=None, local=None, transparent=None, interlaced=False, before=b"",
        bits=8, block=255, version=b"89a"):  # fmt: skip
    head = b"GIF" + version + struct.pack("<HHBBB", *(screen or size), table(colors), 0, 0) + (colors or b"")
    if transparent is not None:
        before += b"!\xf9\x04\x01\0\0" + bytes([transparent]) + b"\0"
    frame = struct.pack("<HHHHB", *at, *size, table(local) | (64 if interlaced else 0)) + (local or b"")
    return head + before + b"," + frame + bytes([bits]) + blocks(lzw(indices, bits), block) + b"\0;"


def noise(n, most=255, seed=1):
    rng = random.Random(seed)
    return [rng.randint(0, most) for _ in range(n)]


def palette(n, seed=2):
    return random.Random(seed).randbytes(3 * n)


def greys(n):
    return bytes(v for i in range(n) for v in (i, i, i))


def write(tmp_path, data):
    path = tmp_path / "x.gif"
    path.write_bytes(data)
    return path


SIZE = (17, 13)
INDICES = noise(17 * 13)

KINDS = {
    "global palette": gif(INDICES, SIZE, colors=palette(256)),
    "local palette": gif(INDICES, SIZE, local=palette(256)),
    "both": gif(INDICES, SIZE, colors=palette(256), local=palette(256, 3)),
    "small palette": gif(INDICES, SIZE, colors=palette(16)),
    "no palette": gif(INDICES, SIZE),
    "grey palette": gif(INDICES, SIZE, colors=greys(256)),
    "few greys": gif(INDICES, SIZE, colors=greys(8)),
    "local greys": gif(INDICES, SIZE, local=greys(256)),
    "two grey palettes": gif(INDICES, SIZE, colors=greys(4), local=greys(256)),
    "colours over greys": gif(INDICES, SIZE, colors=greys(256), local=palette(256)),
    "transparent": gif(INDICES, SIZE, colors=palette(256), transparent=INDICES[0]),
    "transparent 0": gif(INDICES, SIZE, colors=palette(256), transparent=0),
    "transparent grey": gif(INDICES, SIZE, transparent=INDICES[5]),
    "transparent beyond the palette": gif(INDICES, SIZE, colors=palette(16), transparent=200, screen=(20, 20)),
    "two control blocks": gif(INDICES, SIZE, colors=palette(256), transparent=3,
                              before=b"!\xf9\x04\x01\0\0\x07\0"),
    "control block without": gif(INDICES, SIZE, colors=palette(256), before=b"!\xf9\x04\x01\0\0\x07\0"
                                 b"!\xf9\x04\0\0\0\x09\0"),
    "comments": gif(INDICES, SIZE, colors=palette(256), before=b"!\xfe\3abc\2de\0!\xff\x0bNETSCAPE2.0\3\1\0\0\0"),
    "87a": gif(INDICES, SIZE, colors=palette(256), version=b"87a"),
    "blocks of one byte": gif(INDICES, SIZE, colors=palette(256), block=1),
    **{f"smaller than the screen at {at}": gif(INDICES, SIZE, at, (30, 25), palette(256)) for at in
       ((0, 0), (5, 7), (13, 12))},
    "smaller, transparent": gif(INDICES, SIZE, (3, 4), (30, 25), palette(256), transparent=9),
    "smaller, grey": gif(INDICES, SIZE, (3, 4), (30, 25), transparent=9),
    "smaller, interlaced": gif(INDICES, SIZE, (3, 4), (30, 25), palette(256), interlaced=True),
    "beyond the screen": gif(INDICES, SIZE, (3, 4), (10, 10), palette(256)),
    "beyond the screen, transparent": gif(INDICES, SIZE, (3, 4), (10, 20), palette(256), transparent=9),
    "no screen": gif(INDICES, SIZE, screen=(0, 0), colors=palette(256)),
    **{f"interlaced, {h} rows": gif(noise(6 * h), (6, h), colors=palette(256), interlaced=True) for h in range(1, 20)},
    **{f"{bits} bits": gif(noise(221, (1 << bits) - 1), SIZE, colors=palette(256), bits=bits) for bits in range(2, 8)},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    assert_as_pillow(write(tmp_path, KINDS[name]))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("interlace", [0, 1])
def test_written_by_pillow(tmp_path, mode, interlace):
    rng = np.random.default_rng(1)
    for shape in ((64, 90, 4), (200, 300, 4)):
        smooth = (np.add.outer(np.arange(shape[0]), np.arange(shape[1]))[..., None] + rng.integers(0, 40, shape)) % 256
        image = Image.fromarray(smooth.astype(np.uint8)).convert(mode)
        image.save(tmp_path / "x.gif", interlace=interlace)
        assert_as_pillow(tmp_path / "x.gif")


def test_first_frame_of_an_animation(tmp_path):
    frames = [Image.fromarray(np.random.default_rng(i).integers(0, 9, (20, 30), dtype=np.uint8)) for i in range(4)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:], duration=50, loop=0, disposal=2)
    assert_as_pillow(tmp_path / "x.gif")


def test_unchanged(tmp_path):
    """Palettes are expanded, with alpha if a colour is transparent."""
    for name, mode, channels in (("global palette", "rgb", 3), ("transparent", "rgba", 4), ("no palette", "gray", 1)):
        path = write(tmp_path, KINDS[name])
        (got,), _ = dump(path, "unchanged")
        assert got.shape[2] == channels and np.array_equal(got, pillow(path, mode))
    (got,), _ = dump(write(tmp_path, KINDS["transparent grey"]), "unchanged")
    assert np.array_equal(got, pillow(tmp_path / "x.gif", "rgba")[..., [0, 3]])


@pytest.mark.parametrize("name", ["global palette", "blocks of one byte", "interlaced, 13 rows", "smaller, interlaced"])
def test_cut_off(tmp_path, name):
    assert differing_cuts(write(tmp_path, KINDS[name]), 40) == []


BAD = {
    "no frame": b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + b";",
    "empty frame": gif([1], (0, 3), screen=(4, 4), colors=palette(4)),
    "too few pixels": gif(INDICES[:-1], SIZE, colors=palette(256)),
    "short control block": gif(INDICES, SIZE, before=b"!\xf9\x01\x01\0"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged(tmp_path, name):
    path = write(tmp_path, BAD[name])
    assert_refused(path, "GIF")
    assert outcome(pillow, path) is None


def test_limits(tmp_path):
    assert_refused(write(tmp_path, gif([1], (60000, 60000), colors=palette(4))), "max_pixels")


REFUSED = {
    "grey palette over colours": (gif(INDICES, SIZE, colors=palette(256), local=greys(256)), "grey palette"),
    "codes of more than 8 bits": (gif(INDICES, SIZE, colors=palette(256), bits=9), "damaged GIF"),
    "empty block": (gif(INDICES, SIZE).replace(b"\x08\xfb", b"\x08\0\xfb"), "damaged GIF"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_though_pillow_reads_it(tmp_path, name):
    data, words = REFUSED[name]
    path = write(tmp_path, data)
    assert_refused(path, words)
    assert outcome(pillow, path) is not None
