"""bad_samples() of every loader, and timeouts that name what native workers are at."""

import importlib
import pickle
import re

import pytest
from imagesets import write_flat_images
from loadersets import Faulty, lists
from op_runner import import_torchvision
from torch.utils.data import ConcatDataset, Subset

import drapps
from drapps import DataLoader
from drapps.passes.bad_samples import MAX_LISTED, BadList

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

N = 12


def images_of(folder, bad=()):
    write_flat_images(folder, N, bad)
    return torchvision.datasets.ImageFolder(folder, v2.Compose([v2.Resize((4, 4)), v2.PILToTensor()]))


def told(loader):
    return sorted((bad.epoch, bad.index, bad.name) for bad in loader.bad_samples())


# --- DataLoader ---


@pytest.mark.parametrize("policy", ["skip", "replace"])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("workers", [0, 1])
def test_files_are_named(tmp_path, workers, in_order, policy):
    """Of a native data set, and, with workers=0, of the same one in Python."""
    images = images_of(tmp_path, {3, N - 1})
    loader = DataLoader(images, 4, num_workers=workers, on_bad_sample=policy, in_order=in_order, seed=1)
    assert loader.bad_samples() == []
    for epoch in range(2):
        list(loader)
        for index in (3, N - 1):
            assert (epoch, index, images.samples[index][0]) in told(loader)
    assert len(loader.bad_samples()) == loader.stats()["bad_samples"]
    assert {index for _, index, _ in told(loader)} == {3, N - 1}
    assert all(bad.error and "\n" not in bad.error for bad in loader.bad_samples())
    assert pickle.loads(pickle.dumps(loader)).bad_samples() == loader.bad_samples()


@pytest.mark.parametrize("workers", [0, 1])
def test_warnings_and_errors_name_the_file(tmp_path, caplog, workers):
    images = images_of(tmp_path, {3, 7})
    images.transform = v2.Compose([images.transform, abs])  # which runs in Python
    loader = DataLoader(images, 4, num_workers=workers, on_bad_sample="skip", max_bad=1)
    with pytest.raises(drapps.BadSampleError, match=re.escape(f"the last: sample 7 ({images.samples[7][0]}): ")):
        list(loader)
    assert f"bad sample 3 ({images.samples[3][0]}) (skipped): " in caplog.text


@pytest.mark.parametrize("make", [
    lambda folder: drapps.read(folder).decode().resize((4, 4)).loader(batch_size=2, on_bad_sample="skip"),
    lambda folder: DataLoader(torchvision.datasets.ImageFolder(folder), 2, collate_fn=list, on_bad_sample="skip"),
], ids=["pipeline", "torch"])  # fmt: skip
def test_a_name_forges_no_line_of_the_log(tmp_path, caplog, make):
    write_flat_images(tmp_path, 3)
    first = min(tmp_path.rglob("*.*g"))
    (first.parent / f"a\nERROR \x1b[31mall is lost{first.suffix}").write_bytes(b"no image")
    list(make(tmp_path))
    lines = [record.getMessage() for record in caplog.records]
    assert any(r"a\nERROR \x1b[31mall is lost" in line for line in lines)
    assert not any("\n" in line or "\x1b" in line for line in lines)


def test_indices_are_those_of_the_data_set(tmp_path):
    images = images_of(tmp_path, {3, 7})
    part = Subset(images, [7, 1, 3, 0])
    loader = DataLoader(part, 2, num_workers=1, on_bad_sample="skip")
    list(loader)
    assert "native" in loader.explain()
    assert told(loader) == [(0, 0, images.samples[7][0]), (0, 2, images.samples[3][0])]
    loader = DataLoader(ConcatDataset([part, images]), 2, num_workers=1, on_bad_sample="skip")
    list(loader)
    assert "native" in loader.explain()
    assert [bad.index for bad in loader.bad_samples()] == [0, 2, 2, 0]  # the first one of a file
    assert [bad.name[-7:] for bad in loader.bad_samples()] == ["007.png", "003.png", "003.png", "007.png"]


def test_what_is_no_part_of_a_subset_takes_no_place_in_it(tmp_path):
    images = images_of(tmp_path, {0, 2})
    for seed in range(20):
        loader = DataLoader(Subset(images, [0, 1, 2, 3]), 2, num_workers=1, on_bad_sample="replace", seed=seed)
        found = sum((batch[0][:, 0, 0, 0].tolist() for batch in loader), [])
        assert "native" in loader.explain() and len(found) == 4 and set(found) == {1, 3}


def test_an_empty_subset(tmp_path):
    assert list(DataLoader(Subset(images_of(tmp_path), []), 2, num_workers=1, on_bad_sample="replace")) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_data_sets_in_python(workers):
    loader = DataLoader(Faulty(6, [1, 4]), 2, num_workers=workers, on_bad_sample="skip")
    lists(loader)
    assert [tuple(bad) for bad in loader.bad_samples()] == [(1, None, "ValueError: no sample 1", 0),
                                                            (4, None, "ValueError: no sample 4", 0)]  # fmt: skip


class Files(Faulty):
    """Has a list of paths."""

    def __init__(self, n, bad, paths):
        super().__init__(n, bad)
        self.paths = paths


@pytest.mark.parametrize("workers", [0, 1])
def test_a_list_of_paths_gives_names(tmp_path, workers):
    paths = [tmp_path / f"{i}.txt" for i in range(6)]
    paths[0].write_text("there")
    loader = DataLoader(Files(6, [4], paths), 2, num_workers=workers, on_bad_sample="replace")
    lists(loader)
    assert {bad.name for bad in loader.bad_samples()} == {str(paths[4])}


def test_the_newest_are_kept():
    found = BadList()
    for index in range(MAX_LISTED + 200):
        found.add(index, "bad", 0)
    assert [bad.index for bad in found.newest()] == list(range(200, MAX_LISTED + 200))


# --- the other loaders ---


@pytest.mark.parametrize("functions", [False, True])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
def test_pipelines(tmp_path, workers, in_order, functions, caplog):
    """Also of samples after which no batch comes."""
    pipe = drapps.read(write_flat_images(tmp_path, N, {3, N - 2, N - 1})).decode().resize((4, 4))
    pipe = pipe.map(lambda sample: sample) if functions else pipe
    with pipe.loader(2, workers=workers, in_order=in_order, on_bad_sample="skip", output="numpy") as loader:
        for epoch in range(2):
            list(loader)
            new = sorted(bad for bad in loader.bad_samples() if bad.epoch == epoch)
            assert [bad.index for bad in new] == [3, N - 2, N - 1]
            assert [bad.name for bad in new] == ["a/003.png", "a/010.png", "a/011.png"]
        assert len(loader.bad_samples()) == loader.stats()["bad_samples"] == len(caplog.records) == 6


# --- timeouts ---


@pytest.mark.parametrize("readers", [0, 1])
def test_a_native_timeout_names_the_samples(tmp_path, monkeypatch, readers):
    monkeypatch.setenv("DRAPPS_READ_DELAY_US", "1500000")
    images = images_of(tmp_path)
    loader = DataLoader(Subset(images, [5, 6, 7, 8]), 4, num_workers=1, timeout=0.5)
    iterator = iter(loader)
    assert "native" in loader.explain()
    if readers:
        iterator._native.set("readers", 1)
    with pytest.raises(RuntimeError, match=r"timed out after 0.5 seconds; (worker|reader) 1 has been at sample [0-3] "
                                           r"\(.*00[5-8]\.png\) for \d+\.\d seconds"):  # fmt: skip
        next(iterator)
    loader.close()


def test_what_a_loader_is_at(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAPPS_READ_DELAY_US", "300000")
    pipe = drapps.read(write_flat_images(tmp_path, N)).decode().resize((4, 4))
    with pipe.loader(2, workers=1, output="numpy") as loader:
        assert loader.running() == []
        batches = loader.batches()
        next(batches)
        (at,) = loader.running()
        assert at["worker"] == 1 and at["key"] == f"a/{at['id']:03}.png" and at["seconds"] >= 0


def test_a_warning_names_a_sample_once(tmp_path, caplog):
    images = images_of(tmp_path, {3})
    with drapps.read(tmp_path).decode().resize((8, 8)).loader(batch_size=4, on_bad_sample="skip") as loader:
        list(loader)
    line, key = caplog.messages[-1], loader.bad_samples()[0].name
    assert line.startswith("bad sample (skipped): ") and line.count(f'"{key}"') == 1 and line.count(key) <= 2
    assert images.samples[3][0].endswith(key)


def test_unknown_arguments_are_answered():
    with pytest.raises(TypeError, match=r"DataLoader\(\) has no argument 'num_worker'; did you mean 'num_workers'\?"):
        DataLoader([1], num_worker=2)
