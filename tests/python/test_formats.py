"""Data sets as others see them: ImageFolder's samples, archives that Python's tarfile writes, lists
of the csv module."""

import csv
import io
import json
import os
import re
import struct
import tarfile
import time

import numpy as np
import pytest
import xxhash
from PIL import Image

import drapps
from imagesets import write_folder
from op_runner import import_torchvision


def put(path, data=b"x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def keys(path, **options):
    dataset = drapps.read(path, **options).dataset
    return [dataset.key(i) for i in range(dataset.size)]


def labels_of(path, **options):
    with drapps.read(path, **options).loader(batch_size=1000, outputs=["label", "key"], output="numpy") as loader:
        return [int(v) for batch in loader for v in batch["label"]]


ODD_NAMES = ["10.jpg", "9.jpg", "a.JPG", "A.jpg", "é.jpg", "中.png", "\udcff.jpg", "\udcc3a.jpg", "\uf8ff.jpg",
             "😀.jpg",
             "b c.webp", ".jpg", "x.jpg.txt", "noext", "y.TIFF", "z.bmp", "-.jpg", "~.jpeg"]  # fmt: skip


@pytest.fixture
def odd_tree(tmp_path):
    """Folders and names whose order is easy to get wrong."""
    root = os.fspath(tmp_path / "set")
    for folder in ("b", "b/sub", "b/sub-x", "b/sub/deep", "a-b", "a", "é", "\udcff", ".hidden", "B"):
        for name in ODD_NAMES:
            put(os.path.join(root, folder, name))
    put(os.path.join(root, "stray.jpg"))
    put(os.fspath(tmp_path / "elsewhere/linked.jpg"))
    os.symlink("../../elsewhere", os.path.join(root, "a", "link"))
    os.symlink("../elsewhere", os.path.join(root, "linkclass"))
    os.symlink("nowhere", os.path.join(root, "a", "broken.jpg"))
    return root


def test_folder_is_what_image_folder_finds(odd_tree):
    folder = pytest.importorskip("torch") and import_torchvision().datasets.ImageFolder(odd_tree)
    dataset = drapps.read(odd_tree).dataset
    assert dataset.format == "folder"
    assert list(dataset.classes) == folder.classes
    assert keys(odd_tree) == [os.path.relpath(path, odd_tree) for path, _ in folder.samples]


def test_labels_are_those_of_image_folder(folder):
    pytest.importorskip("torch")
    theirs = import_torchvision().datasets.ImageFolder(folder)
    assert labels_of(folder) == [label for _, label in theirs.samples]


def test_class_without_files_fails_as_in_image_folder(tmp_path):
    put(os.fspath(tmp_path / "a/1.jpg"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(drapps.Error, match="empty"):
        drapps.read(tmp_path)


def test_flat_order(odd_tree):
    found = keys(odd_tree, format="flat")
    walked = [(os.path.relpath(top, odd_tree), name) for top, _, names in sorted(os.walk(odd_tree, followlinks=True))
              for name in sorted(names)]  # fmt: skip
    endings = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
    assert found == [
        os.path.normpath(os.path.join(top, name)) for top, name in walked if name.lower().endswith(endings)
    ]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("length", [5, 60, 110])  # in the name field, in ustar's prefix, in a header of its own
def test_tar_of_any_dialect(tmp_path, form, length):
    if form == tarfile.USTAR_FORMAT and length > 100:
        pytest.skip("ustar has no names that long")
    path = tmp_path / "x.tar"
    names = [f"{'d' * length}/{'n' * length}{i}" for i in range(3)]
    with tarfile.open(path, "w", format=form) as archive:
        for i, name in enumerate(names):
            for ending, data in (("jpg", b"image"), ("cls", str(i * 10).encode()), ("json", b"{}")):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    for _ in range(2):  # from the archive, then from its index
        assert keys(path) == names
        assert labels_of(path) == [0, 10, 20]
    assert sorted(os.listdir(tmp_path)) == ["x.tar", "x.tar.drapps-index"]


def write_shard(path, labels):
    with tarfile.open(path, "w") as archive:
        for i, label in enumerate(labels):
            for ending, data in (("jpg", b"image"), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{i}.{ending}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def with_labels(index, label):
    """The bytes of a shard's index with other labels and right checksums (docs/formats.md)."""
    data, table = bytearray(index), 16
    n_sections = int.from_bytes(data[12:16], "little")
    for at in range(table, table + 32 * n_sections, 32):
        number, _, offset, length, _ = struct.unpack_from("<IIQQQ", data, at)
        if number == 4:  # for each sample: u64 header, u64 label, u32 number of members
            for sample in range(offset, offset + length, 20):
                struct.pack_into("<Q", data, sample + 8, label)
            struct.pack_into("<Q", data, at + 24, xxhash.xxh3_64_intdigest(data[offset : offset + length]))
    head = table + 32 * n_sections
    struct.pack_into("<Q", data, head, xxhash.xxh3_64_intdigest(data[:head]))
    return bytes(data)


def test_a_forged_index_gives_no_labels(tmp_path):
    shard, index = tmp_path / "x.tar", tmp_path / "x.tar.drapps-index"
    write_shard(shard, [0, 1, 2])
    assert labels_of(shard) == [0, 1, 2]
    forged = with_labels(index.read_bytes(), 777)
    index.write_bytes(forged)  # by the user: the forgery is good
    assert labels_of(shard) == [777] * 3
    index.unlink()
    index.write_bytes(forged)  # as it comes out of an archive
    assert labels_of(shard) == [0, 1, 2]


def with_other_brightness(seek):
    """The bytes of a seek file whose points have another DC value, with right checksums (docs/formats.md)."""
    data = bytearray(seek)
    (n_buckets,) = struct.unpack_from("<I", data, 12)
    lengths = struct.unpack_from(f"<{n_buckets}I", data, 24)
    at = 24 + 4 * n_buckets + 8
    for length in lengths:
        entry, end = at + 8, at + length
        while entry < end:
            (size,) = struct.unpack_from("<I", data, entry + 12)
            points = entry + 16
            value = points + 1  # behind the version: total, n, components, and of the first point its position
            for _ in range(2):
                value = after_varint(data, value)
            value = after_varint(data, value + 1)
            data[value] ^= 0x20
            entry = points + size
        if length:
            struct.pack_into("<Q", data, at, xxhash.xxh3_64_intdigest(data[at + 8 : end]))
        at = end
    assert at == len(data) - 8  # the stamp
    return bytes(data)


def after_varint(data, at):
    while data[at] & 0x80:
        at += 1
    return at + 1


def test_a_forged_seek_file_gives_the_right_pixels(tmp_path):
    folder, seek = tmp_path / "set", tmp_path / "set/.drapps-seek"
    write_folder(folder, 12, size=(8000, 64))  # tall, so that a few files are worth an index

    def crops(**options):
        pipe = drapps.read(folder).decode().random_crop(32)
        with pipe.loader(batch_size=12, seed=1, output="numpy", **options) as loader:
            return [images.copy() for _ in range(2) for images, _ in loader]

    right = crops(seek_index="off")
    assert np.array_equal(crops(), right)
    forged = with_other_brightness(seek.read_bytes())
    seek.write_bytes(forged)  # by the user: the forgery is good
    assert not np.array_equal(crops(), right)
    seek.unlink()
    seek.write_bytes(forged)  # as it comes out of an archive
    assert np.array_equal(crops(), right)
    assert np.array_equal(crops(), right)  # nor was anything of it kept


def test_a_shard_rewritten_with_its_size_and_time(tmp_path):
    path = tmp_path / "x.tar"
    write_shard(path, [0, 1, 2])
    before = path.stat()
    assert labels_of(path) == [0, 1, 2]
    time.sleep(0.02)  # the clock of a file system may tick so rarely
    write_shard(path, [3, 4, 5])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert labels_of(path) == [3, 4, 5]


def test_csv_as_the_csv_module_writes_it(tmp_path):
    rows = [("a,b.jpg", 'say "hi"', 1), ("line\nend.jpg", "", -2), ("é.jpg", ",", 3)]
    path = tmp_path / "list.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("path", "caption", "label"), *rows])
    for name, _, _ in rows:
        put(os.fspath(tmp_path / name))
    assert keys(path) == [name for name, _, _ in rows]
    assert labels_of(path) == [1, -2, 3]
    assert [field[:3] for field in drapps.read(path).dataset.fields] == [
        ("image", "bytes", "uint8"), ("label", "array", "int64"), ("key", "text", "uint8"),
        ("caption", "text", "uint8"),
    ]  # fmt: skip


def test_json_lines_with_class_names(tmp_path):
    path = tmp_path / "list.jsonl"
    rows = [{"file": f"{i}.jpg", "class": name, "score": i / 2} for i, name in enumerate("cab")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        put(os.fspath(tmp_path / row["file"]))
    dataset = drapps.read(path).dataset
    assert list(dataset.classes) == ["a", "b", "c"]
    assert labels_of(path) == [2, 0, 1]


def test_two_encoded_fields_in_one_decode(tmp_path):
    """A JPEG and a PNG of another size in each sample: each is decoded by what its own header says."""
    rng = np.random.default_rng(5)
    want = []
    with tarfile.open(tmp_path / "pairs.tar", "w") as tar:
        for i in range(3):
            for kind, shape in (("jpg", (40 + i, 60, 3)), ("png", (9, 30 + i, 3))):
                array = rng.integers(0, 256, shape, dtype=np.uint8)
                path = tmp_path / f"{i:03d}.{kind}"
                Image.fromarray(array).save(path)
                tar.add(path, path.name)
            want.append([np.asarray(Image.open(tmp_path / f"{i:03d}.{kind}")) for kind in ("jpg", "png")])
    pipe = drapps.read(tmp_path / "pairs.tar").decode(fields=["image", "png"])
    loader = pipe.loader(batch_size=1, output="numpy", outputs=["image", "png"], layout="NHWC",
                         collate={"image": "list", "png": "list"})
    got = [[batch["image"][0], batch["png"][0]] for batch in loader]
    for pair, pair_wanted in zip(got, want, strict=True):
        for array, array_wanted in zip(pair, pair_wanted):
            np.testing.assert_array_equal(array, array_wanted)


def test_seek_points_of_a_tar_shard(tmp_path, monkeypatch):
    """Learnt in one run, kept beside the shard, found for every sample by the next; the same pixels as without."""
    monkeypatch.delenv("DRAPPS_SEEK_INDEX", raising=False)
    shard = tmp_path / "shard.tar"
    rng = np.random.default_rng(6)
    with tarfile.open(shard, "w") as tar:
        for i in range(80):  # fewer points than 16 KB are not worth a file
            path = tmp_path / f"{i:03d}.jpg"
            Image.fromarray(rng.integers(0, 256, (300 + i, 200, 3), dtype=np.uint8)).save(path)
            tar.add(path, path.name)

    def run(seek_index):
        pipe = drapps.read(shard).decode().random_resized_crop(32)
        with pipe.loader(batch_size=8, seed=1, output="numpy", outputs=["image"], seek_index=seek_index) as loader:
            pixels = [np.array(batch["image"]) for _ in range(2) for batch in loader]
            return np.concatenate(pixels), loader.stats()

    want, _ = run("off")
    first, _ = run("auto")
    again, stats = run("auto")
    np.testing.assert_array_equal(first, want)
    np.testing.assert_array_equal(again, want)
    assert os.path.exists(f"{shard}.drapps-seek")
    assert stats["seek_missed"] == 0 and stats["seek_found"] == 160


@pytest.mark.parametrize(("name", "advice"), [
    ("scan.nii.gz", r"drapps.read\(\['.*scan.nii.gz'\]\).decode_volume\(\)"),
    ("photo.JPG", r"drapps.read\(\['.*photo.JPG'\]\).decode\(\)"),
    ("instances.json", r"drapps.read_coco\(annotations, root\)"),
])  # fmt: skip
def test_a_single_file_is_read_in_another_way(tmp_path, name, advice):
    (tmp_path / name).touch()
    with pytest.raises(drapps.Error, match=advice):
        drapps.read(tmp_path / name)


def test_a_list_of_files_has_no_temporary_name(tmp_path):
    pipe = drapps.read([tmp_path / "a.jpg", tmp_path / "b.jpg"])
    assert repr(pipe) == "drapps.read('2 files')"
    with pytest.raises(drapps.Error, match="^2 files: sample .*a.jpg: cannot open"):
        pipe.decode()[0]
    with pytest.raises(drapps.ArgumentError, match="read: labels must be ints or files, got None"):
        drapps.read([tmp_path / "a.jpg"], labels=[None])


def test_errors_do_not_steer_the_terminal(tmp_path):
    (tmp_path / "a\x1b[2J\nb.jpg").touch()
    pipe = drapps.read([tmp_path / "a\x1b[2J\nb.jpg"])
    with pytest.raises(drapps.Error) as raised:
        pipe.decode()[0]
    assert r"a\x1b[2J\nb.jpg" in str(raised.value) and "\x1b" not in str(raised.value)
    with pytest.raises(ZeroDivisionError) as raised:
        next(iter(pipe.map(lambda sample: 1 / 0).loader(workers=0)))
    assert any(note.endswith(r"a\x1b[2J\nb.jpg") for note in raised.value.__notes__)


def test_kinds_of_images(tmp_path):
    """Every codec by a list of files; .gif in a folder only where it is asked for."""
    array = np.random.default_rng(1).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    codecs = {ending for codec in drapps.info()["codecs"] for ending in codec["extensions"]}
    names = [f"x{ending}" for ending in (".bmp", ".gif", ".png", ".ppm", ".tif") if ending in codecs]
    (tmp_path / "flat").mkdir()
    for name in names:
        Image.fromarray(array).save(tmp_path / "flat" / name)
    for i, sample in enumerate(drapps.read([tmp_path / "flat" / name for name in names]).decode()):
        want = np.asarray(Image.open(tmp_path / "flat" / names[i]).convert("RGB"))
        assert np.array_equal(sample["image"], want), names[i]
    assert keys(tmp_path / "flat") == [name for name in names if not name.endswith(".gif")]
    assert keys(tmp_path / "flat", extensions=".gif") == [name for name in names if name.endswith(".gif")]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_tables_with_hundreds_of_columns(tmp_path, kind):
    """Every column is a field and can be delivered, natively and behind a Python function; caching is left out."""
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    names = [f"column {i}" for i in range(300)]
    rows = [{"path": "a.png", **{name: 1000 * row + i for i, name in enumerate(names)}} for row in range(5)]
    path = tmp_path / f"table.{kind}"
    with open(path, "w", newline="") as file:
        if kind == "csv":
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    pipe = drapps.read(path).decode().resize(size=(8, 8))
    for chain in (pipe, pipe.map(lambda sample: sample)):
        with chain.loader(batch_size=5, shuffle=False, workers=0, output="numpy", outputs=["image", *names]) as loader:
            batch = next(iter(loader))
        assert len(batch) == 301 and batch["image"].shape == (5, 3, 8, 8)
        assert all(list(batch[name]) == [row[name] for row in rows] for name in names)
    with pipe.loader(batch_size=5, output="numpy", outputs=["image", *names], cache=tmp_path / "cache") as loader:
        assert len(next(iter(loader))) == 301
        assert "more fields than a stored sample can have" in loader.stats()["cache_why"]


def test_kinds_of_images_in_a_shard(tmp_path):
    """A tar shard knows every image file that a codec of this build reads."""
    array = np.random.default_rng(2).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    codecs = {ending for codec in drapps.info()["codecs"] for ending in codec["extensions"]}
    names = [f"{i}{e}" for i, e in enumerate((".bmp", ".gif", ".png", ".ppm", ".tif", ".tiff")) if e in codecs]
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name in names:
            Image.fromarray(array).save(tmp_path / name)
            archive.add(tmp_path / name, name)
    assert [field[0] for field in drapps.read(tmp_path / "x.tar").dataset.fields] == ["image", "key"]
    for name, sample in zip(names, drapps.read(tmp_path / "x.tar").decode(), strict=True):
        assert np.array_equal(sample["image"], np.asarray(Image.open(tmp_path / name).convert("RGB"))), name


def test_the_documents_list_every_image_file(request):
    """The table of docs/formats.md has the extensions that the library knows."""
    text = (request.config.rootpath / "docs" / "formats.md").read_text()
    listed = re.search(r"^\| image files: (.*) \| `image` \|$", text, re.MULTILINE)[1].replace("`", "").split()
    images = [codec for codec in drapps.info()["codecs"] if codec["kind"] == "image"]
    assert {extension for codec in images for extension in codec["extensions"]} <= set(listed)
    assert len(listed) == len(set(listed))


def test_a_kind_that_is_refused_is_named_with_its_file(tmp_path):
    if "tiff" not in [codec["name"] for codec in drapps.info()["codecs"]]:
        pytest.skip("built without libtiff")
    Image.fromarray(np.zeros((4, 5), np.float32)).save(tmp_path / "floats.tif")
    with pytest.raises(drapps.Error, match=r"floats\.tif.*1 samples of 32 bits.*format 3"):
        drapps.read([tmp_path / "floats.tif"]).decode()[0]
