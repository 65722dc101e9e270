"""Whole data sets: what a native loader delivers is what torch's loader makes with a worker and default_collate."""

import gc
import os
import pathlib
import time

import numpy
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

import drapps
from imagesets import N_IMAGES, picture, run_python
from lower_sets import D, cifar, identity, mnist, svhn, v1, v2

from drapps.torch.lower import lower

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CHAINS = {
    "v1": v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
    "v2": v2.Compose([v2.Resize(40), v2.CenterCrop(32), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
                      v2.Normalize(MEAN, STD)]),
    "bytes": v1.Compose([v1.Resize((24, 20)), v1.PILToTensor()]),
    "grey": v2.Compose([v2.Grayscale(), v2.Resize((24, 20)), v2.ToImage(), v2.RandomHorizontalFlip(p=1)]),
    "half": v2.Compose([v2.Resize((24, 20)), v2.ToImage(), v2.ToDtype(torch.float16, scale=True)]),
    "nested": v1.Compose([v1.Compose([v1.Resize(40), v1.Compose([v1.CenterCrop(16)])]), v1.ToTensor()]),
}  # fmt: skip


def batches_of(plan, batch_size=7):
    """An epoch in the order of the data set's indices."""
    wanted = plan.ids(range(len(plan.ids.table)))
    everything = next(iter(plan.pipe.loader(len(plan.pipe), outputs=plan.outputs, output="torch", workers=0).batches()))
    assert all(field.is_contiguous() for field in plan.deliver(everything))
    place = numpy.argsort(everything.ids)
    rows = torch.from_numpy(place[wanted])
    parts = [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    return [[field[part] for field in plan.deliver(everything)] for part in parts]


def assert_equal_batches(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert type(a) is type(b) is list and len(a) == len(b)
        for x, y in zip(a, b):
            assert type(x) is type(y) is torch.Tensor
            assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
            assert torch.equal(x, y)


def assert_native(dataset):
    plan = lower(dataset, True)
    assert plan.pipe is not None, plan.lines
    assert_equal_batches(batches_of(plan), list(DataLoader(dataset, batch_size=7, num_workers=1)))


@pytest.mark.parametrize("name", CHAINS)
def test_image_folder(folder, name):
    assert_native(D.ImageFolder(folder, CHAINS[name]))


def test_dataset_folder(folder):
    assert_native(D.DatasetFolder(str(folder), D.folder.default_loader, (".jpg",), transform=CHAINS["v1"]))


def test_relative_root(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert_native(D.ImageFolder(folder.name, CHAINS["bytes"]))


@pytest.mark.parametrize("make, kind", [(cifar, D.CIFAR10), (cifar, D.CIFAR100), (mnist, D.MNIST),
                                        (mnist, D.FashionMNIST), (mnist, D.KMNIST)])  # fmt: skip
def test_arrays(make, kind):
    assert_native(make(transform=v1.Compose([v1.Pad(2), v1.ToTensor(), v1.Normalize([0.5], [0.25])]), kind=kind))
    assert_native(make(transform=v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(p=1)]), kind=kind))


@pytest.mark.parametrize("targets", [numpy.arange(10), torch.arange(10)])
def test_labels_in_arrays(targets):
    dataset = cifar(transform=v1.ToTensor())
    dataset.targets = targets
    assert_native(dataset)


def test_tensor_dataset():
    n = 10
    assert_native(TensorDataset(torch.randn(n, 3, 4), torch.arange(n), torch.rand(n) > 0.5))
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.float64):
        assert_native(TensorDataset(torch.arange(n * 6).reshape(n, 2, 3).to(dtype)))


def test_shared_memory():
    """A change of the tensors is seen, as torch would see it."""
    dataset = TensorDataset(torch.zeros(4, 2))
    plan = lower(dataset, True)
    dataset.tensors[0].fill_(5)
    assert batches_of(plan)[0][0].unique().tolist() == [5]


def test_alone(folder):
    """Lowering needs nothing that the program has not imported, and imports torchvision for nobody."""
    program = """
        import sys
        import torch
        from drapps.torch.lower import lower
        assert lower(torch.utils.data.TensorDataset(torch.zeros(3))).pipe is not None
        assert "torchvision" not in sys.modules and "PIL" not in sys.modules
        sys.path.insert(0, sys.argv[1])
        import op_runner
        op_runner.import_torchvision()
        from torchvision import datasets, transforms
        chain = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
        assert lower(datasets.ImageFolder(sys.argv[2], chain)).pipe is not None
    """
    done = run_python(program, pathlib.Path(__file__).parent, folder)
    assert done.returncode == 0, done.stderr


# --- indices ---


def test_subset_and_concat(folder):
    inner = D.ImageFolder(folder, CHAINS["v1"])
    other = D.ImageFolder(folder, CHAINS["v1"])
    for dataset in (
        Subset(inner, [5, -1, 0, 5]),
        Subset(Subset(inner, torch.arange(10)), numpy.array([9, 1, -2])),
        ConcatDataset([inner, Subset(other, range(3)), inner]),
        Subset(ConcatDataset([other, inner]), [N_IMAGES + 2, -1, 0]),
        *torch.utils.data.random_split(inner, [0.5, 0.5]),
    ):
        plan = lower(dataset, True)
        assert plan.pipe is not None, plan.lines
        indices = [*range(len(dataset)), -1, -len(dataset)]
        wanted = [dataset[i] for i in indices]
        made = {}
        for batch in plan.pipe.loader(1, outputs=plan.outputs, output="torch", workers=0).batches():
            made[batch.ids[0]] = plan.deliver(batch)
        ids = plan.ids(indices)
        assert ids.dtype == numpy.int64
        for i, (image, label) in zip(ids, wanted):
            assert torch.equal(made[i][0][0], image) and made[i][1].item() == label
        assert plan.ids(torch.tensor(0)) == plan.ids(0) == ids[0]


def test_indices_out_of_range(folder):
    inner = D.ImageFolder(folder, CHAINS["v1"])
    for dataset in (inner, Subset(inner, [1, 2]), ConcatDataset([inner, inner])):
        ids = lower(dataset, True).ids
        for index in (len(dataset), -len(dataset) - 1, 10**9):
            with pytest.raises((IndexError, ValueError)) as wanted:
                dataset[index]
            with pytest.raises(wanted.type):
                ids([0, index])
    with pytest.raises(TypeError):
        ids([0.5])


@pytest.mark.parametrize("indices", [[0, 99], [-99], [0.5], ["a"], [True]])
def test_odd_subsets_are_left_to_torch(folder, indices):
    plan = lower(Subset(D.ImageFolder(folder, CHAINS["v1"]), indices), True)
    assert plan.pipe is None and "Subset" in plan.lines[-1]


def test_parts_that_differ(folder):
    parts = [D.ImageFolder(folder, CHAINS["v1"]), D.ImageFolder(folder, CHAINS["bytes"])]
    plan = lower(ConcatDataset(parts), True)
    assert plan.pipe is None and "not transformed alike" in plan.lines[-1]
    assert [plan.dataset[i][0].dtype for i in (0, N_IMAGES)] == [torch.float32, torch.uint8]


def test_parts_that_have_grown(folder):
    """A ConcatDataset goes by the sizes that it noted when it was made."""
    parts = [cifar(transform=v1.Compose([v1.Pad(1), v1.ToTensor()])), mnist(transform=v1.ToTensor())]
    dataset = ConcatDataset(parts)
    parts[0].data, parts[0].targets = numpy.concatenate([parts[0].data] * 2), parts[0].targets * 2
    for default in (True, False):
        plan = lower(dataset, default)
        assert plan.pipe is None and len(plan.dataset) == len(dataset) == 20
        assert torch.equal(plan.dataset[12][0], dataset[12][0])


def test_a_part_that_is_unknown(folder):
    plan = lower(ConcatDataset([D.ImageFolder(folder, CHAINS["v1"]), ["x"]]), True)
    assert plan.pipe is None and "list: a data set that is not torch's" in plan.lines[-1]
    assert plan.dataset[-1] == "x" and type(plan.dataset.datasets[0]).__name__ == "MixedDataset"


# --- changes between epochs ---


def test_nothing_changed(folder):
    to_tensor = v1.ToTensor()
    for dataset in (
        D.ImageFolder(folder, CHAINS["v1"]),
        D.ImageFolder(folder, identity),
        cifar(transform=to_tensor),
        mnist(transform=to_tensor),
        TensorDataset(torch.zeros(3)),
        ConcatDataset([cifar(transform=to_tensor), Subset(cifar(transform=to_tensor), [1])]),
        Subset(D.ImageFolder(folder, identity), [1, 2]),
        [1, 2],
    ):
        plan = lower(dataset, True)
        assert lower(dataset, True, plan) is plan and plan.is_native == (plan.pipe is not None)
        assert lower(dataset, False, lower(dataset, False)) is not plan


def in_a_list(*tensors):
    dataset = TensorDataset(*tensors)
    dataset.tensors = list(tensors)
    return dataset


def test_memory_is_kept_as_long_as_it_is_read():
    """Tensors may be given another memory, which frees the one that they had."""
    images, labels = mnist(transform=v1.ToTensor()), torch.zeros(1 << 16)
    images.targets = images.targets.clone()
    for dataset, tensor in ((TensorDataset(labels), labels), (images, images.data), (images, images.targets)):
        plan, memory = lower(dataset, True), StorageWeakRef(tensor.untyped_storage())
        assert plan.is_native
        tensor.set_(tensor.clone())
        assert not memory.expired()
        del plan
        gc.collect()
        assert memory.expired()


def test_changes_are_seen(folder):
    def check(dataset, change):
        plan = lower(dataset, True)
        change(dataset)
        again = lower(dataset, True, plan)
        assert again is not plan
        assert_equal_batches(batches_of(again), list(DataLoader(dataset, batch_size=7, num_workers=1)))

    def fresh():
        return v1.Compose([v1.Resize((20, 20)), v1.ToTensor()])

    crop = v1.Compose([v1.CenterCrop(8), v1.ToTensor()])
    check(D.ImageFolder(folder, fresh()), lambda d: setattr(d, "transform", crop))
    check(D.ImageFolder(folder, fresh()), lambda d: setattr(d.transform.transforms[0], "size", (9, 9)))
    check(D.ImageFolder(folder, fresh()), lambda d: d.samples.reverse())
    check(D.ImageFolder(folder, fresh()), lambda d: d.samples.__setitem__(3, (d.samples[3][0], 17)))
    check(cifar(transform=fresh()), lambda d: d.targets.__setitem__(2, 9))
    check(cifar(transform=fresh()), lambda d: setattr(d, "data", d.data[::-1].copy()))
    check(TensorDataset(torch.zeros(3)), lambda d: setattr(d, "tensors", (torch.ones(3),)))
    check(TensorDataset(torch.zeros(3)), lambda d: setattr(d.tensors[0], "data", torch.ones(3)))
    check(TensorDataset(torch.zeros(3)), lambda d: d.tensors[0].set_(torch.ones(2)))
    check(in_a_list(torch.zeros(3), torch.zeros(3)), lambda d: d.tensors.__setitem__(1, torch.ones(3)))
    check(mnist(transform=fresh()), lambda d: d.data.set_(d.data.flip(0)))
    check(mnist(transform=fresh()), lambda d: setattr(d.targets, "data", d.targets.flip(0)))
    check(Subset(cifar(transform=fresh()), [1, 2, 3]), lambda d: setattr(d, "indices", [5]))
    check(Subset(cifar(transform=fresh()), [1, 2, 3]), lambda d: d.indices.append(5))


def test_changes_are_seen_sample_by_sample(folder):
    dataset = Subset(D.ImageFolder(folder, v1.Compose([v1.Resize(8), identity])), [1])
    plan = lower(dataset, True)
    dataset.indices = [2, 3]
    again = lower(dataset, True, plan)
    assert again is not plan and len(again.dataset) == 2
    dataset.dataset.transform.transforms[0].size = 9
    assert min(lower(dataset, True, again).dataset[0][0].size) == 9


def test_native_data_set_is_kept_when_transforms_change(folder):
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize((20, 20)), v1.ToTensor()]))
    plan = lower(dataset, True)
    dataset.transform = v1.Compose([v1.Resize((10, 10)), v1.ToTensor()])
    again = lower(dataset, True, plan)
    assert again.pipe.dataset is plan.pipe.dataset and again.pipe != plan.pipe


# --- files ---


def test_million_files(tmp_path):
    """Nothing is made for each of them in Python, and no file is written."""
    picture(0).save(tmp_path / "a.jpg")
    dataset = D.DatasetFolder.__new__(D.DatasetFolder)
    rows = [(f"{tmp_path}/n{i % 1000:08}/n{i % 1000:08}_{i}.JPEG", i % 1000) for i in range(10**6)]
    vars(dataset).update(root=str(tmp_path), samples=rows, loader=D.folder.default_loader, transform=CHAINS["v1"],
                         target_transform=None)  # fmt: skip
    started = time.perf_counter()
    plan = lower(dataset, True)
    print(f"lowered in {time.perf_counter() - started:.2f} s")
    assert plan.pipe.dataset.size == 10**6 and plan.pipe.dataset.key(123456) == rows[123456][0]
    assert lower(dataset, True, plan) is plan


@pytest.mark.parametrize("name", ["x.bmp", "x.ppm", "x.pgm"])
def test_files_whose_kinds_are_all_read(tmp_path, name):
    (tmp_path / "a").mkdir()
    picture(0).convert("L" if name.endswith("pgm") else "RGB").save(tmp_path / "a" / name)
    picture(1).save(tmp_path / "a" / "y.jpg")
    dataset = D.ImageFolder(tmp_path, CHAINS["bytes"])
    plan = lower(dataset, True)
    images = [image for batch in batches_of(plan) for image in batch[0]]
    assert len(images) == 2 and all(torch.equal(images[i], dataset[i][0]) for i in range(2))


@pytest.mark.parametrize("mode", ["RGB", "L", "F", "LAB", "I;16"])
def test_files_of_which_some_are_left_to_pillow(tmp_path, mode):
    """Of TIFF files some kinds are not decoded natively, so samples are made one by one."""
    (tmp_path / "a").mkdir()
    picture(0).convert("L" if mode == "I;16" else mode).convert(mode).save(tmp_path / "a" / "x.tiff")
    picture(1).save(tmp_path / "a" / "y.jpg")
    dataset = D.ImageFolder(tmp_path, CHAINS["bytes"])
    plan = lower(dataset, True)
    assert plan.pipe is None and "x.tiff: the name ends with none of" in plan.lines[-1]
    for i in range(2):
        assert torch.equal(plan.dataset[i][0], dataset[i][0])


def folder_of(tmp_path, *names):
    """A data set of files with the extension .ico besides."""
    (tmp_path / "a").mkdir()
    for i, name in enumerate(names):
        picture(i).save(tmp_path / "a" / name)
    return D.DatasetFolder(tmp_path, D.folder.default_loader, (".ico", ".jpg"), CHAINS["bytes"])


def test_files_that_no_codec_reads(tmp_path):
    dataset = folder_of(tmp_path, "x.ico", "y.jpg")
    plan = lower(dataset, True)
    assert plan.pipe is None and "x.ico" in plan.lines[-1]
    assert plan.lines[0].endswith("files that drapps does not decode: Python") and "native" in plan.lines[1]
    for i in range(2):
        assert torch.equal(plan.dataset[i][0], dataset[i][0])


def test_a_folder_of_such_files_alone_runs_in_python(tmp_path):
    dataset = folder_of(tmp_path, "x.ico")
    plan = lower(dataset, True)
    assert plan.dataset is dataset and "decodes none of its files" in plan.lines[0]
    assert not any(line.endswith("native") or ": native" in line for line in plan.lines)


def test_bad_files_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    picture(0).save(tmp_path / "a" / "0.jpg")
    (tmp_path / "a" / "broken.jpg").write_bytes(b"no image")
    (tmp_path / "a" / "gone.jpg").write_bytes(b"")
    dataset = D.ImageFolder(tmp_path, CHAINS["bytes"])
    (tmp_path / "a" / "gone.jpg").unlink()
    plan = lower(dataset, True)
    with pytest.raises(drapps.Error, match="broken.jpg"):
        batches_of(plan)
    loader = plan.pipe.loader(3, outputs=plan.outputs, workers=0, output="torch", on_bad_sample="skip")
    (batch,) = loader.batches()
    assert [bad["key"].rpartition("/")[2] for bad in batch.bad] == ["broken.jpg", "gone.jpg"]


def test_names_that_are_no_utf8(tmp_path):
    path = os.fsencode(tmp_path / "a") + b"/\xff\xfe.jpg"
    (tmp_path / "a").mkdir()
    picture(0).save(tmp_path / "plain.jpg")
    os.rename(tmp_path / "plain.jpg", path)
    assert_native(D.ImageFolder(tmp_path, CHAINS["bytes"]))


def test_labels_that_are_not_numbers(folder):
    dataset = D.ImageFolder(folder, CHAINS["v1"])
    dataset.samples = [(path, str(label)) for path, label in dataset.samples]
    plan = lower(dataset, True)
    assert plan.pipe is None and "a str and an int" in plan.lines[-1]
    assert plan.dataset[0][1] == "0"


# --- words ---


def test_lines(folder):
    plan = lower(D.ImageFolder(folder, CHAINS["nested"]), True)
    assert plan.lines == ("ImageFolder: native: batches are made by threads", "  Resize: native (resize)",
                          "  CenterCrop: native (center_crop)", "  ToTensor: native (to_dtype)")  # fmt: skip
    dataset = D.ImageFolder(folder, v1.Compose([v1.Resize(8), identity]), target_transform=identity)
    assert lower(dataset, True).lines == (
        "ImageFolder: native in worker processes, up to the first Python code",
        "  Resize: native (resize)",
        "  identity: Python, code that is not torchvision's",
        "  target_transform: Python",
        "batches are not made natively: some transforms run in Python",
    )
    assert lower(svhn(transform=v1.ToTensor()), True).lines[-1].endswith("SVHN: its data is stored with channels first")
    assert lower(cifar(transform=v1.ToTensor()), False, why="for me").lines[-1].endswith("natively: for me")
    assert "return PIL images" in lower(D.ImageFolder(folder), True).lines[-1]
