"""A packed set and the data it was made of: what changes there is noticed, and what is damaged there is named."""

import os
import shutil

import pytest
from imagesets import N_IMAGES
from packsets import SMALL, assert_same_samples, shards_of, train, write_list

import drapps
from drapps.cli import main


def files_of(folder):
    return sorted(folder.rglob("*.jpg"))


@pytest.fixture
def source(folder, tmp_path):
    """A copy of the folder, which tests may change."""
    shutil.copytree(folder, tmp_path / "source")
    return tmp_path / "source"


def touch(path, seconds=10):
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + seconds * 10**9))


def replace(path, by):
    """Other bytes under the same name."""
    path.write_bytes(by.read_bytes())
    touch(path)


# --- changes ---


def test_a_changed_file_is_noticed(source, tmp_path):
    drapps.read(source).pack(tmp_path / "set", shard_bytes=SMALL)
    first, *_, last = files_of(source)
    replace(last, first)
    name = str(last.relative_to(source))
    with pytest.raises(drapps.StateError, match=f"1 of the {N_IMAGES} samples.*: {name}; delete .*another folder"):
        drapps.read(source).pack(tmp_path / "set", shard_bytes=SMALL)
    with pytest.raises(drapps.ArgumentError, match=f"use: 1 sample of .* changed after .*: {name}; pack it anew"):
        drapps.read(source).use(tmp_path / "set")
    assert len(drapps.read(source).use(tmp_path / "set", check_source=False)) == N_IMAGES


def test_a_changed_file_is_noticed_behind_ops(source, tmp_path):
    pipe = drapps.read(source).decode().resize((20, 24)).random_horizontal_flip()
    pipe.pack(tmp_path / "set", shard_samples=7)
    assert pipe.use(tmp_path / "set")
    files = files_of(source)
    for path in files[3:8]:
        replace(path, files[0])
    with pytest.raises(drapps.ArgumentError, match=r"use: 5 samples of .*, \.\.\.; pack it anew"):
        pipe.use(tmp_path / "set")
    with pytest.raises(drapps.StateError, match=rf"{files[3].relative_to(source)}, .*, \.\.\."):
        pipe.pack(tmp_path / "set", shard_samples=7)


def test_a_file_of_the_same_size_is_noticed(source, tmp_path):
    drapps.read(source).pack(tmp_path / "set")
    path = files_of(source)[5]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    touch(path)
    with pytest.raises(drapps.ArgumentError, match=str(path.relative_to(source))):
        drapps.read(source).use(tmp_path / "set")


def test_a_mask_of_a_list_is_noticed(folder, tmp_path):
    path = write_list(folder, tmp_path)
    drapps.read(path).pack(tmp_path / "set")
    assert drapps.read(path).use(tmp_path / "set")
    replace(tmp_path / "masks" / "4.png", tmp_path / "masks" / "5.png")
    with pytest.raises(drapps.ArgumentError, match="1 sample"):
        drapps.read(path).use(tmp_path / "set")


def test_touched_files_are_the_same(source, tmp_path):
    drapps.read(source).pack(tmp_path / "set", shard_bytes=SMALL)
    marks = sorted((tmp_path / "set").glob("*.drapps-source"))
    assert len(marks) == len(shards_of(tmp_path / "set")) > 1
    before = [path.read_bytes() for path in marks]
    for path in files_of(source):
        touch(path)
    dataset = drapps.read(tmp_path / "set").dataset
    assert dataset.compare(0, drapps.read(source).dataset, 0) == (0, shards_of(tmp_path / "set")[0]["samples"], "")
    assert_same_samples(drapps.read(source), drapps.read(source).use(tmp_path / "set"))
    assert all(path.read_bytes() != data for path, data in zip(marks, before))  # the new times are remembered
    assert dataset.compare(0, drapps.read(source).dataset, 0) == (0, 0, "")
    assert drapps.read(source).pack(tmp_path / "set", shard_bytes=SMALL).resumed_samples == N_IMAGES


def test_a_copy_of_the_data_is_the_same(source, tmp_path):
    drapps.read(source).pack(tmp_path / "set")
    shutil.copytree(source, tmp_path / "copy")  # with its times
    dataset = drapps.read(tmp_path / "set").dataset
    assert dataset.compare(0, drapps.read(tmp_path / "copy").dataset, 0) == (0, 0, "")
    assert drapps.read(tmp_path / "copy").use(tmp_path / "set")


def test_what_is_remembered_may_be_lost(source, tmp_path):
    drapps.read(source).pack(tmp_path / "set")
    path = tmp_path / "set" / "shard-000000.tar.drapps-source"
    data = bytearray(path.read_bytes())
    for at in (0, len(data) // 2, len(data) - 1):
        data[at] ^= 0x40
        path.write_bytes(data)
        with pytest.raises(drapps.ArgumentError, match=r"is not known .*drapps-source: is damaged.*check_source=False"):
            drapps.read(source).use(tmp_path / "set")
        damaged, bad = drapps.verify(tmp_path / "set")
        assert [damage.name for damage in damaged] == ["shard-000000.tar"] and not bad
        data[at] ^= 0x40
    path.unlink()
    with pytest.raises(drapps.ArgumentError, match="is not known"):
        drapps.read(source).use(tmp_path / "set")
    with pytest.raises(drapps.StateError, match="is not known"):
        drapps.read(source).pack(tmp_path / "set")
    assert drapps.verify(tmp_path / "set") == ([], [])
    assert_same_samples(drapps.read(source), drapps.read(source).use(tmp_path / "set", check_source=False))


def test_a_change_before_an_interrupted_packing_goes_on(source, tmp_path):
    pipe = drapps.read(source)
    files = files_of(source)
    whole = files[15].read_bytes()
    files[15].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(drapps.FormatError, match="truncated"):
        pipe.pack(tmp_path / "set", shard_samples=5)
    files[15].write_bytes(whole)
    replace(files[2], files[0])
    with pytest.raises(drapps.StateError, match=str(files[2].relative_to(source))):
        pipe.pack(tmp_path / "set", shard_samples=5)


def test_the_program_says_so(source, tmp_path, capsys):
    assert main(["pack", str(source), str(tmp_path / "set")]) == 0
    assert "ops that ran: none; stored: image: files, label: label" in capsys.readouterr().out
    assert main(["pack", str(source), str(tmp_path / "set")]) == 0
    out = capsys.readouterr().out
    assert out == f"{tmp_path}/set: nothing to pack: all {N_IMAGES} samples are there, and have not changed\n"
    first, *_, last = files_of(source)
    replace(first, last)
    assert main(["pack", str(source), str(tmp_path / "set")]) == 1
    assert str(first.relative_to(source)) in capsys.readouterr().err


# --- damage ---


@pytest.fixture
def damaged(source):
    """Four files of the folder are damaged: {key: what the message says}."""
    files = files_of(source)
    data = files[2].read_bytes()
    files[2].write_bytes(data[: len(data) // 2])
    files[6].write_bytes(b"")
    files[9].write_text("not a picture\n")
    return {str(files[i].relative_to(source)): why for i, why in
            ((2, "truncated JPEG"), (6, "empty"), (9, "not a picture|no image|unknown"))}  # fmt: skip


def test_damaged_files_end_the_packing(source, damaged, tmp_path):
    first = min(damaged)
    with pytest.raises(drapps.FormatError, match=rf'"{first}": field "image": truncated JPEG.*--keep-bad'):
        drapps.read(source).pack(tmp_path / "set")
    assert drapps.read(source).pack(tmp_path / "other", check_images=False, seek_points=False).bad == 0


def test_damaged_files_are_kept_and_named(source, damaged, tmp_path):
    done = drapps.read(source).pack(tmp_path / "set", on_bad_sample="keep")
    assert done.bad == 3 and {sample.key for sample in done.bad_samples} == set(damaged)
    assert all(sample.error for sample in done.bad_samples)
    assert drapps.unpack(tmp_path / "set", tmp_path / "out") == (N_IMAGES, [])  # their bytes are as they were
    assert all((tmp_path / "out" / key).read_bytes() == (source / key).read_bytes() for key in damaged)
    found = {sample.name for sample in drapps.verify(tmp_path / "set")[1]}
    assert found == {sample.name for sample in drapps.verify(source)[1]} == set(damaged)
    pipe = train(drapps.read(source))
    assert pipe.use(tmp_path / "set")  # damaged as they were, they are what they were


def test_keep_bad_may_be_given_later(source, damaged, tmp_path, capsys):
    assert main(["pack", str(source), str(tmp_path / "set"), "--shard-samples", "1"]) == 1
    assert "--keep-bad" in capsys.readouterr().err
    assert main(["pack", str(source), str(tmp_path / "set"), "--shard-samples", "1", "--keep-bad"]) == 0
    out = capsys.readouterr().out
    assert all(key in out for key in damaged) and "3 bad" in out
    assert main(["verify", str(tmp_path / "set")]) == 1
    capsys.readouterr()
    assert main(["pack", str(source), str(tmp_path / "set"), "--shard-samples", "1"]) == 1
    assert "(keep_bad: true then, false now)" in capsys.readouterr().err


def test_damaged_masks_are_noticed(folder, tmp_path):
    path = write_list(folder, tmp_path)
    mask = tmp_path / "masks" / "4.png"
    mask.write_bytes(mask.read_bytes()[:-30])
    with pytest.raises(drapps.FormatError, match='field "mask": truncated PNG'):
        drapps.read(path).pack(tmp_path / "set")


# --- messages ---


def test_the_argument_that_differs_is_named(source, tmp_path):
    pipe = drapps.read(source).decode()
    pipe.resize(20).pack(tmp_path / "set", upto="resize")
    for arguments, said in (({"shard_samples": 3}, r"\(shard_samples: 0 then, 3 now\)"),
                            ({"codec": "zstd"}, r"\(codec: none then, image=zstd.* now\)"),
                            ({"name": "part"}, r"\(name: shard then, part now\)")):  # fmt: skip
        with pytest.raises(drapps.StateError, match=said):
            pipe.resize(20).pack(tmp_path / "set", upto="resize", **arguments)
    with pytest.raises(drapps.StateError, match=r"\(ops: decode, resize then, decode now\)"):
        pipe.pack(tmp_path / "set", upto="decode")
    shutil.copy(files_of(source)[0], files_of(source)[0].with_name("new.jpg"))
    with pytest.raises(drapps.StateError, match="the data: files were added"):
        drapps.read(source).decode().resize(20).pack(tmp_path / "set", upto="resize")


# --- what is stored unasked ---


def test_full_size_pixels_are_not_stored_unasked(source, tmp_path):
    pipe = drapps.read(source).decode().random_crop(8)
    done = pipe.pack(tmp_path / "set")
    assert done.ops == () and done.stored["image"] == "files"
    assert pipe.use(tmp_path / "set").stages == pipe.stages
    done = pipe.pack(tmp_path / "decoded", upto="decode")
    assert done.ops == ("decode",) and done.stored["image"] == "uint8 array"
    with pytest.raises(drapps.ArgumentError, match=r"leave \.decode\(\) out .*pipe\.use\(folder\).*upto=0"):
        drapps.read(tmp_path / "decoded").decode()[0]
    smaller = drapps.read(source).decode().resize((8, 8)).random_horizontal_flip()
    assert smaller.pack(tmp_path / "small").ops == ("decode", "resize")
    floats = drapps.read(source).decode().normalize(mean=(0, 0, 0), std=(1, 1, 1))
    assert floats.pack(tmp_path / "floats").ops == ()


def test_the_program_says_which_ops_ran(source, tmp_path, capsys):
    (tmp_path / "train.py").write_text(f"import drapps\npipe = drapps.read({str(source)!r}).decode().random_crop(8)\n")
    assert main(["pack", str(tmp_path / "train.py"), str(tmp_path / "set")]) == 0
    assert "ops that ran: none (none is worth storing" in capsys.readouterr().out
    assert main(["pack", str(tmp_path / "train.py"), str(tmp_path / "decoded"), "--upto", "decode"]) == 0
    assert "ops that ran: decode; stored: image: uint8 array" in capsys.readouterr().out
