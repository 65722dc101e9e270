"""drapps.codec and `drapps codec`: round trips, files of the reference tools, dictionaries, choice, kept figures."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import drapps
from drapps import codec
from drapps.cli import main

DTYPES = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool")
STAGES = {row["name"]: row for row in codec.codecs()}
TEXT = b"".join(b"line %d of a text that is not very interesting\n" % (i * 7919 % 1000) for i in range(20000))


def stages(kind):
    return [name for name, row in STAGES.items() if row["kind"] == kind]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def needs(*names):
    missing = [name for name in names if name not in STAGES]
    if missing:
        pytest.skip(f"this build has no {missing}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back(dtype):
    rng = np.random.default_rng(3)
    array = rng.integers(0, 2 if dtype == "bool" else 100, (5, 7, 300)).astype(dtype)
    specs = [name for name in STAGES if dtype in STAGES[name]["types"]]
    specs += [f"{filt}+{last}" for filt in stages("filter") for last in stages("bytes")]
    for spec in specs:
        if STAGES.get(spec, {}).get("kind") == "lossy":
            continue
        for sent in (array, array[:, ::2], array[0, 0, 0], array[:0], np.asfortranarray(array)):
            back = codec.decode(codec.encode(sent, spec))
            assert back.dtype == sent.dtype and back.shape == np.shape(sent)
            assert np.array_equal(back, sent)


@pytest.mark.parametrize("data", [b"", b"a", TEXT, bytearray(TEXT), memoryview(TEXT), "", "grüße " * 100])
def test_bytes_and_texts_come_back(data):
    for spec in stages("bytes"):
        back = codec.decode(codec.encode(data, spec))
        assert back == (data if isinstance(data, str) else bytes(data))


def test_peek_tells_what_a_frame_is():
    array = np.linspace(0, 1, 600, dtype="float32").reshape(20, 30)
    info = codec.peek(codec.encode(array, "bf16+shuffle"))
    assert info[:5] == ("float32", (20, 30), "array", 2400, "bf16+shuffle")
    assert not info.lossless and 0.0039 < info.max_rel_error < 0.004
    assert codec.peek(codec.encode(array, "shuffle")).lossless


@pytest.mark.parametrize("spec", [name for name in STAGES if STAGES[name]["kind"] == "lossy"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lossy_stages_keep_their_bound(spec, dtype):
    array = (np.random.default_rng(1).standard_normal(100_000) * np.logspace(-6, 4, 100_000)).astype(dtype)
    frame = codec.encode(array, spec)
    info = codec.peek(frame)
    back = codec.decode(frame)
    error = np.abs(back.astype("float64") - array.astype("float64"))
    assert (error <= np.maximum(info.max_abs_error, info.max_rel_error * np.abs(array.astype("float64")))).all()
    assert len(frame) < array.nbytes * 0.51


def test_halves_are_those_of_numpy():
    array = np.concatenate([np.arange(65536, dtype="uint16").view("float16").astype("float32"),
                            np.random.default_rng(1).standard_normal(50000).astype("float32")])
    back = codec.decode(codec.encode(array, "fp16"))
    assert np.array_equal(back, array.astype("float16").astype("float32"), equal_nan=True)


def test_wrong_calls_are_explained():
    with pytest.raises(drapps.ArgumentError, match='no stage "zlib"; stages: shuffle'):
        codec.encode(b"abc", "zlib")
    with pytest.raises(TypeError, match="arrays of uint32 are not supported; view them as int32"):
        codec.encode(np.zeros(3, "uint32"), "shuffle")
    with pytest.raises(drapps.ArgumentError, match="int8 does not take int32"):
        codec.encode(np.zeros(3, "int32"), "int8")
    with pytest.raises(drapps.ArgumentError, match="element 2 is inf, which int8 cannot hold"):
        codec.encode(np.array([1, 2, np.inf]), "int8")
    with pytest.raises(drapps.FormatError, match="not the first bytes of a frame"):
        codec.decode(b"hello, this is no frame")
    frame = bytearray(codec.encode(np.arange(1000), "shuffle"))
    frame[-1] ^= 1
    with pytest.raises(drapps.FormatError, match="checksum is wrong"):
        codec.decode(frame)
    with pytest.raises(drapps.FormatError, match=r"not a \.zst"):
        codec.decompress(b"hello")


# --- the reference tools ---

TOOLS = {"zstd": ("zstd", "zstd:3", ["-q"]), "zstd -19": ("zstd", "zstd:19", ["-q", "-19"]),
         "lz4": ("lz4", "lz4", ["-q"]), "lz4 -9": ("lz4", "lz4hc:9", ["-q", "-9"])}


def tool(name, *arguments, data):
    if not shutil.which(name):
        pytest.skip(f"the program {name} is not here")
    return subprocess.run([name, *arguments, "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("case", TOOLS)
@pytest.mark.parametrize("data", [TEXT, b"x", np.random.default_rng(2).bytes(300_000)], ids=["text", "one", "noise"])
def test_the_tools_and_drapps_read_each_other(case, data):
    name, spec, options = TOOLS[case]
    needs(name)
    assert tool(name, "-d", "-q", data=codec.compress(data, spec)) == data
    assert codec.decompress(tool(name, *options, data=data)) == data
    assert codec.decompress(tool(name, *options, data=data) + codec.compress(data, spec)) == 2 * data


def test_dictionaries_of_the_tool(tmp_path):
    needs("zstd")
    samples = [json.dumps({"id": i, "label": f"class{i % 9}", "box": [i % 640, i % 480]}).encode() for i in range(3000)]
    ours = codec.train_dictionary(samples, 4096)
    (tmp_path / "ours").write_bytes(bytes(ours))
    packed = codec.compress(samples[5], "zstd:9", dictionary=ours)
    assert len(packed) < len(codec.compress(samples[5], "zstd:9"))
    assert tool("zstd", "-d", "-q", "-D", str(tmp_path / "ours"), data=packed) == samples[5]
    theirs = tool("zstd", "-q", "-D", str(tmp_path / "ours"), data=samples[6])
    assert codec.decompress(theirs, dictionary=ours) == samples[6]
    again = codec.open_dictionary(bytes(ours))
    frame = codec.encode(samples[7], "zstd:9", dictionary=ours)
    assert codec.peek(frame).dictionary_id == ours.id == again.id
    assert codec.decode(frame, dictionary=again) == samples[7]
    with pytest.raises(drapps.ArgumentError, match="needs the dictionary with number"):
        codec.decode(frame)


def test_snappy_files_follow_the_format():
    """The chunks, read by what the format says (framing_format.txt of Snappy)."""
    needs("snappy")
    data = TEXT + np.random.default_rng(2).bytes(100_000)
    file = codec.compress(data, "snappy")
    assert file[:10] == b"\xff\x06\x00\x00sNaPpY"
    at, types = 10, []
    while at < len(file):
        types.append(file[at])
        at += 4 + int.from_bytes(file[at + 1:at + 4], "little")
    assert at == len(file) and len(types) == -(-len(data) // 65536) and set(types) == {0, 1}
    padded = file[:10] + b"\xfe\x03\x00\x00abc" + file[10:]  # padding is skipped
    assert codec.decompress(padded) == data
    with pytest.raises(drapps.UnsupportedError, match="must not be skipped"):
        codec.decompress(file + b"\x02\x00\x00\x00")


def test_a_limit_stops_bombs():
    needs("zstd", "lz4", "snappy")
    for spec in ("zstd", "lz4", "snappy"):
        bomb = codec.compress(bytes(50_000_000), spec)
        with pytest.raises(drapps.LimitError, match="more than the allowed 1000000 bytes"):
            codec.decompress(bomb, max_size=1_000_000)


# --- choice ---


def test_media_is_left_alone():
    rng = np.random.default_rng(1)
    jpeg = b"\xff\xd8\xff\xe0" + rng.bytes(50_000)
    assert codec.choose(jpeg, read_bytes_per_s=1e6)[:2] == ("media", "none")
    assert codec.choose(rng.bytes(50_000), read_bytes_per_s=1e6)[:2] == ("media", "none")
    assert len(codec.encode(jpeg, "zstd:19")) < len(jpeg) + 60


def test_classes_and_choices():
    rng = np.random.default_rng(1)
    smooth = np.cumsum(rng.standard_normal(100_000)).astype("float32")
    assert codec.choose(TEXT).data_class == "text"
    assert codec.choose(rng.integers(0, 50257, 100_000), read_bytes_per_s=1e7).data_class == "tokens"
    found = codec.choose(np.arange(100_000) * 5, read_bytes_per_s=1e7)
    assert found.data_class == "ints" and found.speed.ratio > 7
    found = codec.choose(smooth, read_bytes_per_s=1e6)
    assert found.data_class == "floats" and "shuffle" in found.spec and found.speed.ratio > 1.1
    assert codec.choose(smooth, read_bytes_per_s=1e13).spec == "none"
    with pytest.raises(drapps.ArgumentError, match="decode_cores must be above 0"):
        codec.choose(smooth, decode_cores=0)


def test_figures_are_kept_for_other_processes():
    assert not codec.measured("shuffle", "floats").measured
    speed = codec.measure(np.arange(1000, dtype="float32"), "shuffle", seconds=0, keep="floats")
    assert codec.measured("shuffle", "floats") == pytest.approx(speed)
    program = "from drapps import codec; print(codec.measured('shuffle', 'floats').measured)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("name", codec.CLASSES)
def test_candidates_are_codecs(name):
    for dtype in DTYPES:
        assert codec.candidates(name, dtype)[0] == "none"
    with pytest.raises(ValueError, match="data_class must be .*, got 'weather'"):
        codec.candidates("weather")


# --- the command ---


def test_list(capsys):
    assert main(["codec", "list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in STAGES) and "error: relative 2^-8" in out
    assert main(["codec", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == codec.codecs()


def test_bench(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(TEXT)
    np.save(tmp_path / "b.npy", np.arange(60000, dtype="int32").reshape(20, 3000))
    (tmp_path / "c.jpg").write_bytes(b"\xff\xd8\xff\xe0" + np.random.default_rng(1).bytes(5000))
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    assert main(["codec", "bench", "--seconds", "0", "--json", *files]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["class"] for row in rows} == {"text", "ints", "media"}
    assert [row["codec"] for row in rows if row["class"] == "media"] == ["none"]
    assert all(row["ratio"] > 5 for row in rows if row["codec"] == "delta+bitpack")
    assert codec.measured("delta+bitpack", "ints").measured
    assert main(["codec", "bench", "--seconds", "0", "--no-keep", "--codec", "shuffle", files[0]]) == 0
    assert "shuffle" in capsys.readouterr().out
    assert not codec.measured("shuffle", "text").measured


def test_bench_says_what_is_wrong(tmp_path, capsys):
    (tmp_path / "x.npy").write_bytes(b"no array")
    for arguments, text in ((["nowhere"], "nowhere"), ([str(tmp_path / "x.npy")], "x.npy"),
                            (["--dtype", "real", str(tmp_path / "x.npy")[:-4]], "x")):
        assert main(["codec", "bench", *arguments]) != 0
        assert text in capsys.readouterr().err


# --- messages ---


def test_unsigned_types_are_explained():
    with pytest.raises(TypeError, match=r"arrays of uint64 are not supported; view them as int64: \.view\('int64'\)"):
        codec.encode(np.arange(4, dtype="uint64"), "zstd")


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "bool"])
def test_bench_takes_every_type(tmp_path, capsys, dtype):
    path = tmp_path / "array.npy"
    np.save(path, np.arange(5000).astype(dtype))
    assert main(["codec", "bench", str(path), "--seconds", "0.001", "--no-keep", "--json"]) == 0
    assert {row["bytes"] for row in json.loads(capsys.readouterr().out)} == {5000 * np.dtype(dtype).itemsize}


@pytest.mark.parametrize(("content", "more", "said"), [
    (b"", (), "array.npy: no array of NumPy"),
    (b"\x93NUMPY\x01\x00\xff", (), "array.npy: no array of NumPy"),
    (np.zeros(0), (), "array.npy: is empty"),
    (np.array([{}]), (), "one of Python objects"),
    (np.arange(9), ("--codec", "bf16"), "--codec bf16 does not take elements of type int64"),
])  # fmt: skip
def test_bench_names_the_file_and_the_reason(tmp_path, capsys, content, more, said):
    path = tmp_path / "array.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    assert main(["codec", "bench", str(path), "--seconds", "0.001", "--no-keep", *more]) in (1, 2)
    out, err = capsys.readouterr()
    assert not out and said in err and "unsafe" not in err


def test_bench_of_an_empty_file(tmp_path, capsys):
    (tmp_path / "empty").write_bytes(b"")
    assert main(["codec", "bench", str(tmp_path / "none"), "--no-keep"]) == 1
    assert capsys.readouterr().err == f"drapps: {tmp_path / 'none'}: No such file or directory\n"
    assert main(["codec", "bench", str(tmp_path / "empty"), "--no-keep"]) == 1
    assert "is empty: there is nothing to measure" in capsys.readouterr().err


def test_a_dictionary_needs_samples():
    with pytest.raises(drapps.ArgumentError, match="at least 7 samples, better some hundreds, got 1"):
        codec.train_dictionary([b"alone" * 100])
    assert bytes(codec.train_dictionary([f"sample {i} of many, all alike".encode() * 9 for i in range(200)]))
