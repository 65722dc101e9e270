"""JPEGs read in ranges: the same batches as without, from fewer bytes, for every format and front end."""

import os
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image, ImageFile

import drapps
from drapps.report import write_report
from drapps.report.text import percent

N, EPOCHS = 40, 3


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    monkeypatch.delenv("DRAPPS_SEEK_INDEX", raising=False)
    monkeypatch.delenv("DRAPPS_RANGES", raising=False)


def write_image(path, i):
    """A photo of no fixed size: every eighth is progressive, every tenth a PNG in all but its name."""
    rng = np.random.default_rng(i)
    small = rng.integers(0, 256, (12 + i % 7, 10 + i % 5, 3), dtype=np.uint8)
    image = Image.fromarray(small).resize((260 + 9 * (i % 11), 240 + 13 * (i % 9)), Image.BICUBIC)
    image = Image.fromarray((np.asarray(image) // 2 + rng.integers(0, 100, (*image.size[::-1], 3))).astype(np.uint8))
    if i % 10 == 9:
        image.save(path, "PNG")
        return
    with pytest.MonkeyPatch.context() as patch:  # Pillow's buffer is too small for progressive noise
        patch.setattr(ImageFile, "MAXBLOCK", 1 << 22)
        image.save(path, "JPEG", quality=88, progressive=i % 8 == 7, subsampling=(0, 1, 2)[i % 3])


@pytest.fixture
def images(tmp_path):
    """A folder of two classes."""
    root = tmp_path / "images"
    for i in range(N):
        (root / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        write_image(root / "ab"[i % 2] / f"{i:03d}.jpg", i)
    return root


def files_of(root):
    return sorted(root.rglob("*.jpg"))


def as_folder(root):
    return root


def as_flat(root):
    flat = root.parent / "flat"
    flat.mkdir(exist_ok=True)
    for path in files_of(root):
        shutil.copy2(path, flat)
    return flat


def as_list(root):
    path = root.parent / "list.csv"
    rows = [f"{file},{i}" for i, file in enumerate(files_of(root))]
    path.write_text("\n".join(["path,label", *rows]) + "\n")
    return path


def as_files(root):
    return files_of(root)


def as_tar(root):
    for shard in range(3):
        with tarfile.open(root.parent / f"train-{shard}.tar", "w") as tar:
            for file in files_of(root)[shard::3]:
                tar.add(file, file.name)
    return root.parent / "train-{0..2}.tar"


def as_packed(root):
    drapps.read(root).pack(root.parent / "packed")
    return root.parent / "packed"


FORMS = [as_folder, as_flat, as_list, as_files, as_tar, as_packed]


def crops(pipe, size=48):
    return pipe.decode().random_resized_crop(size, scale=(0.08, 0.5)).random_horizontal_flip()


def run(pipe, ranges, epochs=range(EPOCHS), seek_index="memory", **options):
    """(the arrays of some epochs, stats) of one loader."""
    options = {"batch_size": 8, "shuffle": True, "seed": 3, "workers": 2, "outputs": "image", **options}
    with pipe.loader(ranges=ranges, seek_index=seek_index, output="numpy", **options) as loader:
        arrays = []
        for epoch in epochs:
            loader.set_epoch(epoch)
            arrays += [np.array(batch["image"]) for batch in loader]
        return arrays, loader.stats()


def assert_equal(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def n_sequential():
    return sum(i % 10 != 9 and i % 8 != 7 for i in range(N))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_batches_are_the_same_from_fewer_bytes(images, form):
    path = form(images)
    want, whole = run(crops(drapps.read(path)), "off")
    got, stats = run(crops(drapps.read(path)), "on")
    assert_equal(got, want)
    assert stats["range_samples"] == (EPOCHS - 1) * n_sequential()
    assert stats["range_again"] == 0
    assert stats["range_bytes_read"] < 0.8 * stats["range_bytes_stored"]
    saved = stats["range_bytes_stored"] - stats["range_bytes_read"]
    assert stats["bytes_read"] == whole["bytes_read"] - saved
    assert whole["range_samples"] == whole["range_noted"] == 0


def test_a_packed_set_is_read_in_ranges_from_the_first_epoch(images):
    pipe = crops(drapps.read(as_packed(images)))
    want, _ = run(pipe, "off", range(1))
    got, stats = run(pipe, "on", range(1), seek_index="auto")
    assert_equal(got, want)
    assert stats["range_samples"] == n_sequential()
    assert stats["range_noted"] == stats["range_again"] == 0


@pytest.mark.parametrize("form", [as_folder, as_tar], ids=lambda form: form.__name__)
def test_the_next_run_begins_with_ranges(images, form):
    """Notes are kept beside seek points: another process reads ranges in its first epoch."""
    path = form(images)
    want, _ = run(crops(drapps.read(path)), "off", range(1, 2))
    _, first = run(crops(drapps.read(path)), "on", range(1), seek_index="auto")
    assert first["range_samples"] == 0 and first["range_noted"] == n_sequential()
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import drapps, numpy as np, test_ranges as t\n"
        "got, stats = t.run(t.crops(drapps.read(sys.argv[2])), 'on', range(1, 2), seek_index='auto')\n"
        "np.savez(sys.argv[3], *got); print(stats['range_samples'], stats['range_again'])"
    )
    out = path.parent / "got.npz"
    done = subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__), str(path), str(out)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.split() == [str(n_sequential()), "0"]
    with np.load(out) as got:
        assert_equal([got[f"arr_{i}"] for i in range(len(want))], want)


def test_selections_and_mixtures(images):
    second = images.parent / "second"
    shutil.copytree(images, second)
    for i, path in enumerate(files_of(second)):
        write_image(path, 10 * i)

    def made():
        whole = drapps.read(images)
        other = drapps.read(second)  # other photos by the same names
        return [crops(whole.select(range(5, 30))), crops(drapps.mix([whole, other], [1, 2]))]

    for a, b in zip(made(), made()):
        want, _ = run(a, "off")
        got, stats = run(b, "on")
        assert_equal(got, want)
        assert stats["range_samples"] > 10


def test_other_fields_are_there(images):
    pipe = drapps.read(as_list(images)).decode().random_crop(40)
    want, _ = run(pipe, "off", outputs="image,label,key")
    with pipe.loader(batch_size=5, shuffle=True, ranges="on", seek_index="memory", output="numpy",
                     outputs="image,label,key") as loader:  # fmt: skip
        for epoch in range(2):
            loader.set_epoch(epoch)
            for batch in loader:
                for label, key in zip(batch["label"], batch["key"]):
                    assert files_of(images)[int(label)].name in str(key)
        assert loader.stats()["range_samples"] == n_sequential()


def damage(root):
    """A file that is cut off, one with noise in it, one that is gone, one that is empty."""
    paths = files_of(root)
    data = paths[0].read_bytes()
    paths[0].write_bytes(data[: len(data) // 2])
    noisy = bytearray(paths[1].read_bytes())
    noisy[len(noisy) // 3 : len(noisy) // 2] = os.urandom(len(noisy) // 2 - len(noisy) // 3)
    paths[1].write_bytes(noisy)
    paths[2].unlink()
    paths[3].write_bytes(b"")


def contents(loader):
    """Images, keys, and bad samples, which workers note in any order, of each batch."""
    return [(np.array(batch["image"]), list(batch["key"]), sorted(batch.bad, key=str)) for batch in loader.batches()]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_damaged_files_are_handled_as_without(images, policy):
    """Damaged before the first epoch, and between two of them."""
    pipe = crops(drapps.read(images))
    for when in (0, 1):
        with pipe.loader(batch_size=8, seed=3, workers=2, outputs="image,key", output="numpy", ranges="on",
                         seek_index="memory", on_bad_sample=policy) as loader:  # fmt: skip
            for epoch in range(3):
                if epoch == when and when == 0:
                    damage(images)
                elif epoch == when:
                    paths = files_of(images)
                    paths[-1].write_bytes(paths[-1].read_bytes()[:-3000])
                loader.set_epoch(epoch)
                got = contents(loader)
                with pipe.loader(batch_size=8, seed=3, workers=2, outputs="image,key", output="numpy", ranges="off",
                                 seek_index="off", on_bad_sample=policy) as plain:  # fmt: skip
                    plain.set_epoch(epoch)
                    want = contents(plain)
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a[0], b[0])
                    assert a[1:] == b[1:]


def test_an_error_is_the_same(images):
    with crops(drapps.read(images)).loader(batch_size=8, workers=1, ranges="on", seek_index="memory",
                                           outputs="image", output="numpy") as loader:  # fmt: skip
        for _ in loader:
            pass
        path = files_of(images)[0]
        path.unlink()
        loader.set_epoch(1)
        with pytest.raises(drapps.Error, match=f"{path.name}: cannot open"):
            for _ in loader:
                pass


@pytest.mark.parametrize("form", [as_folder, as_list], ids=lambda form: form.__name__)
def test_a_replaced_file_is_noticed(images, form):
    pipe = crops(drapps.read(form(images)))
    with pipe.loader(batch_size=8, seed=3, workers=2, outputs="image", output="numpy", ranges="on",
                     seek_index="memory") as loader:  # fmt: skip
        for epoch in range(2):
            loader.set_epoch(epoch)
            for _ in loader:
                pass
        noted = loader.stats()["range_noted"]
        for i, path in enumerate(files_of(images)[:6]):
            write_image(path.parent / "new", 100 + 10 * i)
            os.replace(path.parent / "new", path)
        loader.set_epoch(2)
        got = [np.array(batch["image"]) for batch in loader]
        stats = loader.stats()
    want, _ = run(pipe, "off", range(2, 3), shuffle=False)
    assert_equal(got, want)
    assert stats["range_again"] >= 4 and stats["range_noted"] == noted + 6


def test_a_rewritten_shard_costs_whole_reads(images):
    """A tar that another program replaces: what is open stays, and what is opened anew is another data set."""
    path = as_tar(images)
    run(crops(drapps.read(path)), "on", range(1), seek_index="auto")
    for i, file in enumerate(files_of(images)):
        write_image(file, 200 + i - i % 10)
    as_tar(images)
    want, _ = run(crops(drapps.read(path)), "off", range(2))
    got, stats = run(crops(drapps.read(path)), "on", range(2), seek_index="auto")
    assert_equal(got, want)
    assert stats["range_samples"] == N  # of the second epoch


def test_the_drop_in(images):
    torch = pytest.importorskip("torch")
    datasets = pytest.importorskip("torchvision.datasets")
    from torchvision import transforms

    chain = transforms.Compose([transforms.RandomResizedCrop(48), transforms.ToTensor()])

    def epochs(ranges):
        loader = drapps.DataLoader(datasets.ImageFolder(str(images), chain), batch_size=8, shuffle=True, seed=5,
                                   num_workers=2, ranges=ranges)  # fmt: skip
        batches = []
        for epoch in range(EPOCHS):
            loader.set_epoch(epoch)
            batches += [(x.clone(), y.clone()) for x, y in loader]
        stats = loader.stats()
        loader.close()
        return batches, stats

    want, _ = epochs("off")
    got, stats = epochs("on")
    assert len(got) == len(want)
    for (x, y), (a, b) in zip(got, want):
        assert torch.equal(x, a) and torch.equal(y, b)
    assert stats["range_samples"] >= (EPOCHS - 1) * n_sequential()
    assert stats["range_bytes_read"] < stats["range_bytes_stored"]


def test_auto_leaves_fast_files_alone(images):
    _, stats = run(crops(drapps.read(images)), "auto")
    assert stats["range_samples"] == stats["range_noted"] == 0


def test_explain(images):
    pipe = crops(drapps.read(images))
    with pipe.loader(ranges="on", output="numpy", outputs="image", seek_index="memory") as loader:
        assert "ranges: of all JPEGs that are known, none read so far\n" in loader.explain()
        for epoch in range(2):
            loader.set_epoch(epoch)
            for _ in loader:
                pass
        assert f"ranges: {n_sequential()} samples so far, " in loader.explain()
    with pipe.loader(ranges="on", output="numpy", outputs="image", seek_index="off") as loader:
        assert "ranges: none: without seek points\n" in loader.explain()
    whole = drapps.read(images).decode().resize((32, 32)).loader(ranges="off", output="numpy", outputs="image")
    assert "ranges:" not in whole.explain()
    whole.close()


def test_trace_and_report(images, tmp_path):
    path = tmp_path / "run.drtrace"
    _, stats = run(crops(drapps.read(images)), "on", trace=path)
    (event,) = (e for e in drapps.trace.read(path).events if e["event"] == "ranges")
    assert event["samples"] == stats["range_samples"] and event["again"] == 0
    assert (event["bytes_read"], event["bytes_stored"]) == (stats["range_bytes_read"], stats["range_bytes_stored"])
    page = tmp_path / "page.html"
    write_report([("run", drapps.trace.read(path))], page)
    shown = percent(event["bytes_read"] / event["bytes_stored"])
    assert f"read of images in ranges</span><b>{shown}</b>" in page.read_text(encoding="utf-8")


def test_arguments(images, monkeypatch):
    pipe = crops(drapps.read(images))
    with pytest.raises(drapps.ArgumentError, match="ranges must be 'auto', 'on' or 'off', got 'always'"):
        pipe.loader(ranges="always")
    with pytest.raises(drapps.Error, match="ranges='on' does not work yet in a chain with .map"):
        pipe.map(lambda sample: sample).loader(ranges="on")
    monkeypatch.setenv("DRAPPS_RANGES", "on")
    _, stats = run(pipe, "off")
    assert stats["range_samples"] > 0
    monkeypatch.setenv("DRAPPS_RANGES", "perhaps")
    with pytest.raises(drapps.ArgumentError, match='DRAPPS_RANGES must be "auto", "on" or "off", got "perhaps"'):
        pipe.loader()
