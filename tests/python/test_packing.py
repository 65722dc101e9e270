"""Packed sets hold what was packed: the same samples and batches, the same files, the same bytes each time."""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import numpy
import pytest
from imagesets import N_IMAGES, picture, write_folder
from packsets import SMALL, assert_same_batches, assert_same_samples, shards_of, train, tree, write_list

import drapps
from benchmarks import volumes


@pytest.fixture
def packed(folder, tmp_path):
    drapps.read(folder).pack(tmp_path / "set", shard_bytes=SMALL)
    return tmp_path / "set"


def test_a_folder(folder, packed):
    source, made = drapps.read(folder), drapps.read(packed)
    assert len(shards_of(packed)) > 2
    assert made.dataset.format == "tar" and made.dataset.fingerprint == source.dataset.fingerprint
    assert made.dataset.fields == source.dataset.fields and made.classes == source.classes
    assert [made.dataset.key(i) for i in range(N_IMAGES)] == [source.dataset.key(i) for i in range(N_IMAGES)]
    assert_same_samples(source, made)
    assert_same_batches(train(source), train(made), outputs=["image", "label", "key"])


def test_a_list(folder, tmp_path):
    source = drapps.read(write_list(folder, tmp_path))
    source.pack(tmp_path / "set", shard_samples=7)
    made = drapps.read(tmp_path / "set")
    assert made.dataset.fields == source.dataset.fields
    assert [shard["samples"] for shard in shards_of(tmp_path / "set")] == [7, 7, 7, 2]
    assert_same_samples(source, made)
    chain = [
        pipe.decode(fields=("image", "mask")).random_resized_crop(24).clamp_bounding_boxes() for pipe in (source, made)
    ]
    assert_same_batches(*chain, outputs=["image", "mask", "label", "caption", "weight", "boxes"],
                        collate={"boxes": "list", "caption": "list"})  # fmt: skip


def test_tars_of_others(tmp_path):
    with tarfile.open(tmp_path / "others.tar", "w") as tar:
        for i in range(9):
            for name, data in (("jpg" if i % 2 else "png", encoded(i)), ("cls", str(i).encode()), ("txt", b"t" * i),
                               ("seg.png", encoded(i + 20, "png")), ("json", b"{}")):  # fmt: skip
                member = tarfile.TarInfo(f"some/{i:03}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    source = drapps.read(tmp_path / "others.tar")
    source.pack(tmp_path / "set", shard_samples=4)
    made = drapps.read(tmp_path / "set")
    assert made.dataset.fields == source.dataset.fields
    assert_same_samples(source, made)
    with tarfile.open(tmp_path / "set" / "shard-000000.tar") as tar:
        assert "some/001.jpg" in tar.getnames() and "some/001.seg.png" in tar.getnames()
    made.pack(tmp_path / "again", shard_samples=4)  # a packed set is a source like any other
    assert tree(tmp_path / "set").keys() == tree(tmp_path / "again").keys()
    for name in ("shard-000000.tar", "shard-000002.tar"):
        assert tree(tmp_path / "set")[name] == tree(tmp_path / "again")[name]


def encoded(i, form="jpeg"):
    data = io.BytesIO()
    picture(i).save(data, "jpeg" if form == "jpeg" else "png")
    return data.getvalue()


def test_arrays(tmp_path):
    rng = numpy.random.default_rng(0)
    arrays = {name: rng.integers(0, 2, (6, 3, 2)).astype(name) for name in
              "uint8 int8 uint16 int16 int32 int64 float16 float32 float64 bool".split()}  # fmt: skip
    source = drapps.from_arrays(image=rng.integers(0, 255, (6, 8, 9, 3), "uint8"), label=numpy.arange(6),
                                Empty=numpy.zeros((6, 0, 4)), **arrays)  # fmt: skip
    source.pack(tmp_path / "set")
    made = drapps.read(tmp_path / "set")
    assert made.dataset.fields == source.dataset.fields
    assert_same_samples(source, made)
    with tarfile.open(tmp_path / "set" / "shard-000000.tar") as tar:
        assert numpy.array_equal(numpy.load(io.BytesIO(tar.extractfile("3.float16.npy").read())), arrays["float16"][3])


def test_volumes_keep_their_spacing(tmp_path):
    images, labels = volumes.write_cases(tmp_path, [(20, 33, 40), (9, 50, 31), (37, 28, 29)], (2.5, 0.9, 1.1))
    source = drapps.read(images, labels=labels)
    source.pack(tmp_path / "raw")
    assert drapps.unpack(tmp_path / "raw", tmp_path / "out") == (6, [])
    assert_same_samples(source, drapps.read(tmp_path / "raw"))
    decoded = source.decode_volume().decode_volume(labels=True, field="label")
    decoded.pack(tmp_path / "set")
    whole = decoded.random_flip_volume(fields="image,label").resample_volume(
        spacing=volumes.SPACING, fields="image,label"
    )
    assert_same_batches(whole, whole.use(tmp_path / "set"), collate={"image": "list", "label": "list"})


# --- tar and webdataset ---


def test_gnu_tar_extracts_the_folder(folder, packed, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for shard in shards_of(packed):
        listed = subprocess.run(["tar", "tf", packed / shard["name"]], capture_output=True, text=True, check=True)
        assert not listed.stderr and len(listed.stdout.splitlines()) == 2 * shard["samples"]
        subprocess.run(["tar", "xf", packed / shard["name"], "-C", out], check=True)
    found = tree(out)
    labels = {name: found.pop(name) for name in list(found) if name.endswith(".cls")}
    assert found == {name: data for name, data in tree(folder).items() if name.endswith(".jpg")}
    assert labels["bee/001.cls"] == b"1"


def test_webdataset_reads_it(folder, packed):
    webdataset = pytest.importorskip("webdataset")
    urls = [str(packed / shard["name"]) for shard in shards_of(packed)]
    rows = list(webdataset.WebDataset(urls, shardshuffle=False))
    source = drapps.read(folder)
    assert len(rows) == N_IMAGES
    for i, row in enumerate(rows):
        assert row["__key__"] + ".jpg" == source[i]["key"]
        assert row["jpg"] == source[i]["image"] and int(row["cls"]) == source[i]["label"]


def test_webdataset_reads_arrays(folder, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    pipe = drapps.read(folder).decode().resize((20, 24))
    pipe.pack(tmp_path / "set")
    rows = list(webdataset.WebDataset(str(tmp_path / "set" / "shard-000000.tar"), shardshuffle=False).decode())
    for i in (0, 7, N_IMAGES - 1):
        assert numpy.array_equal(rows[i]["image.npy"], pipe[i]["image"]) and rows[i]["cls"] == pipe[i]["label"]
        assert rows[i]["origin.json"]["key"] == pipe[i]["key"]


def test_webdataset_shards_open_directly(folder, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    source = drapps.read(folder)
    with webdataset.ShardWriter(str(tmp_path / "w-%06d.tar"), maxcount=10, verbose=0) as writer:
        for i in range(N_IMAGES):
            writer.write({"__key__": f"{i:06}", "jpg": source[i]["image"], "cls": source[i]["label"], "txt": f"t{i}"})
    made = drapps.read(tmp_path / "w-{000000..000002}.tar")
    assert [made[i]["image"] for i in range(N_IMAGES)] == [source[i]["image"] for i in range(N_IMAGES)]
    assert [made[i]["label"] for i in range(N_IMAGES)] == [source[i]["label"] for i in range(N_IMAGES)]


# --- files ---


def test_unpack_gives_the_files(folder, packed, tmp_path):
    written, damaged = drapps.unpack(packed, tmp_path / "out")
    assert (written, damaged) == (N_IMAGES, [])
    assert tree(tmp_path / "out") == {name: data for name, data in tree(folder).items() if name.endswith(".jpg")}
    with pytest.raises(drapps.StateError, match="is there already"):
        drapps.unpack(packed, tmp_path / "out")
    drapps.unpack(packed, tmp_path / "out", force=True)


ODD_NAMES = ["a.b.jpg", "a.c.jpg", "x/1.jpg", "x/1.png", "UPPER.JPG", "spaces and ü.jpg", "-dash.jpg",
             "n" * 120 + ".jpg",
             "deep/er/and/deeper/" + "d" * 90 + ".jpeg", ".hidden.jpg", "q'u\"o`te$.jpg", "new\nline.jpg"]  # fmt: skip


def test_odd_names(tmp_path):
    root = tmp_path / "set"
    for i, name in enumerate(ODD_NAMES):
        path = root / "c" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(i).save(path, "png" if name.endswith("png") else "jpeg")
    source = drapps.read(root)
    source.pack(tmp_path / "packed", shard_samples=5)
    assert_same_samples(source, drapps.read(tmp_path / "packed"))
    assert drapps.unpack(tmp_path / "packed", tmp_path / "out")[1] == []
    assert tree(tmp_path / "out") == tree(root)
    for shard in shards_of(tmp_path / "packed"):
        subprocess.run(["tar", "tf", tmp_path / "packed" / shard["name"]], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["UPPER.JPG", "spaces and ü.jpg", "n" * 120 + ".jpg", "deep/er/" + "d" * 90 + ".jpeg"])
def test_names_with_one_dot_stay(tmp_path, name):
    path = tmp_path / "set" / "c" / name
    path.parent.mkdir(parents=True)
    picture(1).save(path, "jpeg")
    drapps.read(tmp_path / "set").pack(tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "shard-000000.tar") as tar:
        assert tar.getnames()[0] == f"c/{name}"
    assert drapps.read(tmp_path / "packed").dataset.key(0) == f"c/{name}"


# --- the same bytes ---


def test_the_same_bytes_each_time(folder, packed, tmp_path):
    for workers in (1, 3):
        drapps.read(folder).pack(tmp_path / f"{workers}", shard_bytes=SMALL, workers=workers)
        assert tree(tmp_path / f"{workers}") == tree(packed)


def test_the_index_can_be_made_again(packed):
    before = [drapps.read(packed)[i] for i in range(N_IMAGES)]
    for path in packed.glob("*.drapps-shard"):
        path.unlink()
    made = drapps.read(packed)
    assert [made.dataset.key(i) for i in range(N_IMAGES)] == [sample["key"] for sample in before]
    assert [made[i] for i in range(N_IMAGES)] == before


def test_seek_points_are_there(tmp_path):
    drapps.read(write_folder(tmp_path / "large", n=12, size=(1000, 1400))).pack(tmp_path / "set")
    assert (tmp_path / "set" / "shard-000000.tar.drapps-seek").exists()
    with train(tmp_path / "set").loader(batch_size=8) as loader:
        list(loader)
        assert loader.stats()["seek_found"] == 12


# --- ops that run once ---


def test_use(folder, tmp_path):
    pipe = (
        drapps.read(folder)
        .decode()
        .resize(40)
        .random_crop(24, pad_if_needed=True)
        .random_horizontal_flip()
        .to_dtype("float32")
    )
    done = pipe.pack(tmp_path / "set", shard_samples=6)
    assert done.samples == N_IMAGES and done.shards == 4
    fast = pipe.use(tmp_path / "set")
    assert [stage.op.name for stage in fast.stages] == ["random_crop", "random_horizontal_flip", "to_dtype"]
    assert_same_batches(pipe, fast, outputs=["image", "label", "key"])
    assert_same_batches(pipe, fast, in_order=False, workers=1)
    raw = pipe.use(packed_raw(folder, tmp_path))
    assert raw.stages == pipe.stages
    assert_same_batches(pipe, raw)


def packed_raw(folder, tmp_path):
    drapps.read(folder).pack(tmp_path / "raw")
    return tmp_path / "raw"


def test_upto(folder, tmp_path):
    pipe = drapps.read(folder).decode().resize((30, 30)).grayscale().random_horizontal_flip()
    for upto, left in (("resize", 2), (1, 3), (0, 4), (None, 1)):
        pipe.pack(tmp_path / f"{upto}", upto=upto)
        assert len(pipe.use(tmp_path / f"{upto}").stages) == left
        assert_same_batches(pipe, pipe.use(tmp_path / f"{upto}"), collate={"image": "stack"})


def test_what_draws_is_not_stored(folder, tmp_path):
    pipe = drapps.read(folder).decode().random_resized_crop(24).resize(20)
    with pytest.raises(drapps.ArgumentError, match="random_resized_crop draws"):
        pipe.pack(tmp_path / "set", upto="resize")
    with pytest.raises(drapps.ArgumentError, match="no op 'rotate'.*decode, random_resized_crop, resize"):
        pipe.pack(tmp_path / "set", upto="rotate")
    with pytest.raises(drapps.ArgumentError, match="upto must be at most 3"):
        pipe.pack(tmp_path / "set", upto=4)
    assert not (tmp_path / "set").exists()


def test_use_refuses_other_data_and_ops(folder, tmp_path):
    pipe = drapps.read(folder).decode().resize((30, 30)).random_horizontal_flip()
    pipe.pack(tmp_path / "set")
    with pytest.raises(drapps.ArgumentError, match="other ops"):
        drapps.read(folder).decode().resize((30, 31)).random_horizontal_flip().use(tmp_path / "set")
    other = write_folder(tmp_path / "other", n=9)
    with pytest.raises(drapps.ArgumentError, match="packed from other data"):
        drapps.read(other).decode().resize((30, 30)).use(tmp_path / "set")
    with pytest.raises(drapps.ArgumentError, match="is not a packed set"):
        pipe.use(folder)


def test_python_functions_run_behind_the_set(folder, tmp_path):
    pipe = drapps.read(folder).decode().resize((16, 16)).map(lambda image: 255 - image, field="image")
    pipe.pack(tmp_path / "set")
    assert len(pipe.use(tmp_path / "set").stages) == 1
    assert_same_batches(pipe, pipe.use(tmp_path / "set"), workers=0)


def test_selections_are_refused(folder, tmp_path):
    with pytest.raises(drapps.UnsupportedError, match="a selection or a mixture"):
        drapps.read(folder).take(5).pack(tmp_path / "set")
    both = drapps.read(folder).concat(drapps.read(folder))
    both.pack(tmp_path / "both")
    assert_same_samples(both, drapps.read(tmp_path / "both"))


# --- adding ---


def test_adding(folder, tmp_path):
    other = write_folder(tmp_path / "more", n=8, size=(33, 35))
    for path in other.rglob("*.jpg"):
        path.rename(path.with_name(f"new{path.name}"))
    drapps.read(folder).pack(tmp_path / "set", shard_samples=10)
    before = drapps.read(tmp_path / "set")
    first = before[0]
    done = drapps.read(other).pack(tmp_path / "set", shard_samples=10, append=True)
    after = drapps.read(tmp_path / "set")
    assert done.samples == 8 and len(before) == N_IMAGES and len(after) == N_IMAGES + 8
    assert before[0] == first and before[N_IMAGES - 1] == after[N_IMAGES - 1]
    assert after[N_IMAGES] == drapps.read(other)[0]
    assert after.dataset.fingerprint != before.dataset.fingerprint
    assert drapps.verify(tmp_path / "set") == ([], [])
    drapps.read(other).pack(tmp_path / "set", append=True)  # names that are there: these are numbered
    assert len(drapps.read(tmp_path / "set")) == N_IMAGES + 16
    assert drapps.verify(tmp_path / "set") == ([], [])


def test_verify_counts_batches_of_which_nothing_is_left(tmp_path):
    (tmp_path / "list.csv").write_text("path,label\n" + "".join(f"none{i}.jpg,{i % 3}\n" for i in range(70)))
    seen = []
    files, samples = drapps.verify(tmp_path / "list.csv", progress=seen.append)
    assert files == [] and [damage.name for damage in samples] == [f"none{i}.jpg" for i in range(70)]
    assert all("cannot open" in damage.error for damage in samples) and seen[-1] == 70


def test_volumes_of_several_channels_are_not_damaged(tmp_path):
    for i, channels in enumerate((1, 3)):
        numpy.save(tmp_path / f"{i}.npy", numpy.zeros((channels, 4, 5, 6), "float32"))
    drapps.read([tmp_path / "0.npy", tmp_path / "1.npy"]).pack(tmp_path / "set")
    assert drapps.verify(tmp_path / "set") == ([], [])


def test_what_does_not_fit_is_not_added(folder, tmp_path):
    drapps.read(folder).pack(tmp_path / "set")
    with pytest.raises(drapps.ArgumentError, match="set: has 3 classes, .*other has 1 and cannot be added"):
        drapps.read(write_folder(tmp_path / "other", classes=("dog",))).pack(tmp_path / "set", append=True)
    with pytest.raises(drapps.ArgumentError, match="its class 2 is 'cat', that of .* is 'dog'"):
        renamed = write_folder(tmp_path / "renamed", classes=("ant", "bee", "dog"))
        drapps.read(renamed).pack(tmp_path / "set", append=True)
    with pytest.raises(drapps.ArgumentError, match="its field 'image' has another type, shape or form"):
        drapps.read(folder).decode().pack(tmp_path / "set", append=True, upto=1)
    with pytest.raises(drapps.ArgumentError, match="set: has 3 fields, .* has 2 and cannot be added"):
        drapps.from_arrays(x=numpy.zeros((4, 9), "int32")).pack(tmp_path / "set", append=True)
    zeros = numpy.zeros((4, 9), "int32")
    drapps.from_arrays(x=zeros).pack(tmp_path / "arrays", codec="lz4")
    with pytest.raises(drapps.ArgumentError, match="its field 'x' is stored by codec 'lz4', 'zstd:3' cannot be added"):
        drapps.from_arrays(x=zeros).pack(tmp_path / "arrays", codec="zstd", append=True)
    with pytest.raises(drapps.ArgumentError, match="its field 0 is 'x', that of .* is 'y'"):
        drapps.from_arrays(y=zeros).pack(tmp_path / "arrays", codec="lz4", append=True)
    with pytest.raises(drapps.StateError, match="is a packed set already"):
        drapps.read(write_folder(tmp_path / "third", n=5)).pack(tmp_path / "set")
    assert len(drapps.read(tmp_path / "set")) == N_IMAGES


# --- mistakes ---


WRONG = [("shard_bytes", 0), ("shard_samples", -1), ("workers", 65), ("name", "a/b"), ("on_bad_sample", "skip"),
         ("upto", -1), ("append", "yes"), ("codec", 3)]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_arguments_are_named(folder, tmp_path, name, value):
    with pytest.raises(drapps.ArgumentError, match=f"{name} must be .*, got {value!r}"):
        drapps.read(folder).pack(tmp_path / "set", **{name: value})


def test_bad_samples(tmp_path):
    root = write_folder(tmp_path / "images", n=9)
    (root / "ant" / "003.jpg").write_bytes(b"\xff\xd8 no picture")
    pipe = drapps.read(root).decode().resize((8, 8))
    with pytest.raises(drapps.FormatError, match="ant/003.jpg"):
        pipe.pack(tmp_path / "set")
    with pytest.raises(drapps.StateError, match="was not finished"):
        drapps.read(tmp_path / "set")
    with pytest.raises(
        drapps.StateError, match=r"begun here with other arguments.*\(ops: decode, resize then, none now"
    ):
        drapps.read(root).pack(tmp_path / "set", on_bad_sample="keep")
    assert pipe.pack(tmp_path / "set", on_bad_sample="keep").bad == 1
    assert pipe.pack(tmp_path / "kept", on_bad_sample="keep").bad == 1
    assert_same_batches(pipe, pipe.use(tmp_path / "kept"), on_bad_sample="skip")
    assert [damage.name for damage in drapps.verify(tmp_path / "kept")[1]] == ["ant/003.jpg"]
    drapps.read(root).pack(tmp_path / "raw", check_images=False)  # files are stored as they are
    assert [damage.name for damage in drapps.verify(tmp_path / "raw")[1]] == ["ant/003.jpg"]


def test_a_full_disk_is_noticed_first(folder, tmp_path, monkeypatch):
    if not os.path.exists("/dev/full") or os.geteuid():
        pytest.skip("needs a small file system")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a file system here")
    try:
        with pytest.raises(drapps.LimitError, match=r"will take about 0\.[1-9] MB, the disk has 0\.0 MB left"):
            drapps.read(folder).pack(small / "set")
        with pytest.raises(drapps.IOError, match="the disk is full"):
            drapps.read(folder).pack(small / "set", check_space=False)
        assert [path.name for path in (small / "set").iterdir() if "tar" in path.name] == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_the_command_line(folder, tmp_path):
    def run(*args, status=0):
        done = subprocess.run([sys.executable, "-m", "drapps.cli", *map(str, args)], capture_output=True, timeout=60)
        assert done.returncode == status, done.stderr
        return done.stdout

    def run_badly(*args):
        done = subprocess.run([sys.executable, "-m", "drapps.cli", *map(str, args)], capture_output=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    assert b"23 samples packed" in run("pack", folder, tmp_path / "set", "--shard-size", "30k")
    text = run("ls", tmp_path / "set").decode()
    assert "packed: " in text and "generation 1" in text and "ant/000.jpg" in text
    assert b"0 damaged" in run("verify", tmp_path / "set")
    assert run("cat", tmp_path / "set", "ant/000.jpg") == (pathlib.Path(folder) / "ant" / "000.jpg").read_bytes()
    assert run("cat", tmp_path / "set", "bee/001.jpg.label") == b"1\n" == run("cat", folder, "#8.label")
    assert b"no sample 'ant/000'" in run_badly("cat", tmp_path / "set", "ant/000")
    assert b"did you mean 'ant/000.jpg'?" in run_badly("cat", tmp_path / "set", "ant/000")
    assert b"there are 23 samples" in run_badly("cat", tmp_path / "set", "#23")
    run("unpack", tmp_path / "set", tmp_path / "out")
    assert b"is there already" not in run("unpack", tmp_path / "set", tmp_path / "out", "--force")
    run("pack", folder, tmp_path / "small", "--op", "resize(20)", "--op", "center_crop(16)")
    assert "after: decode(), resize(size=[20]), center_crop(size=[16])" in run("ls", tmp_path / "small").decode()
    run("pack", folder, tmp_path / "bad", "--op", "resize(", status=2)
    (tmp_path / "p.py").write_text(
        f"import drapps\npipe = drapps.read({str(folder)!r}).decode().resize(9).random_crop(8)\n"
    )
    run("pack", f"{tmp_path}/p.py:pipe", tmp_path / "script")
    assert "after: decode(), resize(size=[9])" in run("ls", tmp_path / "script").decode()


# --- compressed ---


def test_compressed_arrays_and_texts(folder, tmp_path):
    source = drapps.read(write_list(folder, tmp_path))
    pipe = source.decode(fields=("image", "mask")).resize((24, 32))
    pipe.pack(tmp_path / "plain")
    sizes = {"plain": sum(shard["size"] for shard in shards_of(tmp_path / "plain"))}
    codecs = {"zstd": "zstd:3", "frames": "shuffle+zstd:1", "lz4": {"image": "lz4", "boxes": "delta+zstd"},
              "auto": "auto"}  # fmt: skip
    for name, codec in codecs.items():
        pipe.pack(tmp_path / name, codec=codec, shard_samples=9)
        assert_same_samples(pipe, drapps.read(tmp_path / name))
        assert_same_batches(pipe, pipe.use(tmp_path / name), collate={"boxes": "list", "caption": "list"},
                            outputs=["image", "mask", "boxes", "caption", "weight", "label"])  # fmt: skip
        assert drapps.verify(tmp_path / name) == ([], [])
        sizes[name] = sum(shard["size"] for shard in shards_of(tmp_path / name))
        for path in (tmp_path / name).glob("*.drapps-shard"):
            path.unlink()
        assert_same_samples(pipe, drapps.read(tmp_path / name))
    assert sizes["zstd"] < sizes["plain"] and sizes["frames"] < sizes["plain"]


def test_compressed_members_are_those_of_the_tools(folder, tmp_path):
    if shutil.which("zstd") is None:
        pytest.skip("needs the program zstd")
    pipe = drapps.read(folder).decode().resize((40, 40))
    pipe.pack(tmp_path / "set", codec="zstd:3")
    with tarfile.open(tmp_path / "set" / "shard-000000.tar") as tar:
        data = tar.extractfile("000000004.image.npy.zst").read()
    raw = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    assert numpy.array_equal(numpy.load(io.BytesIO(raw)), pipe[4]["image"])


def test_encoded_images_are_not_compressed_again(folder, tmp_path):
    drapps.read(folder).pack(tmp_path / "plain")
    drapps.read(folder).pack(tmp_path / "zstd", codec="zstd:9")
    assert tree(tmp_path / "plain")["shard-000000.tar"] == tree(tmp_path / "zstd")["shard-000000.tar"]
    with pytest.raises(drapps.ArgumentError, match='field "image" cannot be compressed'):
        drapps.read(folder).pack(tmp_path / "third", codec={"image": "zstd"})
    with pytest.raises(drapps.ArgumentError, match='codec: no field "picture" is stored'):
        drapps.read(folder).pack(tmp_path / "third", codec={"picture": "zstd"})
    with pytest.raises(drapps.ArgumentError, match='codec "nonsense"'):
        drapps.from_arrays(x=numpy.zeros((3, 4))).pack(tmp_path / "third", codec="nonsense")


def test_rounded_arrays_are_no_replacement(tmp_path):
    source = drapps.from_arrays(x=numpy.linspace(0, 1, 600, dtype="float32").reshape(6, 100))
    source.pack(tmp_path / "set", codec="bf16+zstd")
    assert numpy.allclose(drapps.read(tmp_path / "set")[3]["x"], source[3]["x"], rtol=2**-8)
    with pytest.raises(drapps.ArgumentError, match="it was rounded: x by bf16"):
        source.use(tmp_path / "set")
