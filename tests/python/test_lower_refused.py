"""Nothing is lowered by mistake: whatever a user changed runs in Python, and a line says why."""

import functools

import PIL.Image
import pytest
import torch

from lower_sets import D, Doubled, cifar, fake, identity, lowered, mnist, v1, v2
from imagesets import write_folder

from drapps.torch.lower import lower


class MyResize(v1.Resize):
    pass


class MyCompose(v2.Compose):
    pass


def hooked():
    resize = v2.Resize(8)
    resize.register_forward_hook(lambda *_: None)
    return resize


def replaced():
    resize = v1.Resize(8)
    resize.forward = identity
    return resize


def with_gradient():
    return v1.Compose([v1.ToTensor(), v1.Normalize(torch.zeros(3, requires_grad=True), torch.ones(3))])


def changed_policies():
    augment = v2.AutoAugment()
    augment._policies = augment._policies[:1]
    return augment


TWICE = v1.RandomHorizontalFlip()
REFUSED = [
    (MyResize(8), "a subclass of torchvision's Resize"),
    (MyCompose([v2.Resize(8)]), "a subclass of torchvision's Compose"),
    (hooked(), "has hooks"),
    (v2.Resize(8).eval(), "switched to eval"),
    (replaced(), "its forward was replaced"),
    (with_gradient(), "requires a gradient"),
    (changed_policies(), "policies were changed"),
    (identity, "code that is not torchvision's"),
    (functools.partial(identity), "code that is not torchvision's"),
    (v1.Lambda(identity), "identity: Python, code that is not torchvision's"),
    (v2.Lambda(identity), "has no native form"),
    (v2.RandomPerspective(), "has no native form"),
    (v1.RandomApply([v1.ToTensor()]), "would depend on what is drawn"),
    (v1.RandomApply([identity]), "holds function: code that is not torchvision's"),
    (v2.RandomChoice([v2.ToImage(), v2.PILToTensor()]), "would depend on what is drawn"),
    (v1.Compose([TWICE, TWICE]), "stands in the chain before"),
    (v2.Normalize([0.5], [0.5]), "needs a tensor"),
    (v2.Compose([v2.ToImage(), v2.Normalize([0.5], [0.5])]), "needs floats"),
    (v1.Compose([v1.ToTensor(), v1.Normalize([0.5, 0.5], [0.5])]), "mean has 2 values for 3 channels"),
    (v1.Compose([v1.ToTensor(), v1.Normalize([0.5], [0.0])]), "std"),
    (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float64)]), "float64"),
    (v2.Compose([v2.ToImage(), v2.ToDtype({torch.Tensor: torch.float32})]), "dict by type"),
    (v1.Compose([v1.ToTensor(), v2.ToDtype(torch.uint8, scale=True)]), "floats to uint8"),
    (v2.Compose([v2.ToImage(), v1.RandomHorizontalFlip()]), "a v1 transform"),
    (v2.Pad(1, fill={PIL.Image.Image: 300, "others": 0}), "outside of 0 to 255"),
    (v1.Pad(1, fill=300), "outside of 0 to 255"),
    (v2.Compose([v2.ToImage(), v2.Pad(1, padding_mode="reflect")]), "padding_mode='reflect'"),
    (v1.Compose([v1.PILToTensor(), v1.RandomErasing(value="random")]), "for bytes"),
]  # fmt: skip


@pytest.mark.parametrize("transform, reason", REFUSED)
def test_transform(transform, reason):
    chain = lowered(transform)
    assert chain.rest
    assert reason in chain.lines[-1], chain.lines


def test_default_type_of_torch():
    torch.set_default_dtype(torch.float64)
    try:
        assert "float64" in lowered(v1.ToTensor()).lines[0]
    finally:
        torch.set_default_dtype(torch.float32)


def test_global_hooks():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert "has hooks" in lowered(v1.Resize(8)).lines[0]
    finally:
        handle.remove()


def test_patched_class(monkeypatch):
    monkeypatch.setattr(v1.Resize, "forward", identity)
    assert "Resize.forward was replaced" in lowered(v1.Resize(8)).lines[0]


def test_everything_after_python_is_python():
    chain = lowered(v1.Compose([v1.Resize(8), identity, v1.ToTensor()]))
    assert [op.name for op in chain.ops] == ["resize"]
    assert chain.lines == ("Resize: native (resize)", "identity: Python, code that is not torchvision's",
                           "ToTensor: Python, stands after Python code")  # fmt: skip


# --- data sets ---


class OwnItems(D.ImageFolder):
    def __getitem__(self, index):
        return super().__getitem__(index)


class OwnBatches(D.ImageFolder):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


class OwnAttributes(D.ImageFolder):
    def __getattr__(self, name):
        raise AttributeError(name)


class OwnSamples(D.ImageFolder):
    transform = property(lambda self: identity, lambda self, value: None)


class Harmless(D.ImageFolder):
    """Changes nothing that reading an item uses."""

    def __len__(self):
        return 3

    def describe(self):
        return "mine"


class MySubset(torch.utils.data.Subset):
    def __getitem__(self, index):
        return super().__getitem__(index)

    def __getitems__(self, indices):
        return [self[i] for i in indices]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("refused") / "set", n=6)


CHAIN = v1.Compose([v1.Resize((16, 16)), v1.ToTensor()])


@pytest.mark.parametrize("kind, reason", [
    (OwnItems, "reads its items in its own way"), (OwnBatches, "reads its items in its own way"),
    (OwnAttributes, "reads its items in its own way"), (OwnSamples, "its transform is not a plain attribute"),
])  # fmt: skip
def test_subclass(images, kind, reason):
    dataset = kind(images, CHAIN)
    plan = lower(dataset, True)
    assert plan.pipe is None and plan.dataset is dataset
    assert reason in plan.lines[0]


def test_harmless_subclass(images):
    plan = lower(Harmless(images, CHAIN), True)
    assert plan.pipe is not None
    assert len(Harmless(images)) == 3


def test_own_loader(images):
    for loader in (identity, lambda path: D.folder.pil_loader(path)):
        dataset = D.ImageFolder(images, CHAIN, loader=loader)
        assert lower(dataset, True).dataset is dataset
    assert lower(D.ImageFolder(images, CHAIN, loader=D.folder.pil_loader), True).pipe is not None


def test_patched_loader(images, monkeypatch):
    monkeypatch.setattr(D.folder, "pil_loader", identity)
    assert "loader was replaced" in lower(D.ImageFolder(images, CHAIN), True).lines[0]


def test_patched_data_set(images, monkeypatch):
    monkeypatch.setattr(D.DatasetFolder, "__getitem__", lambda self, index: None)
    plan = lower(D.ImageFolder(images, CHAIN), True)
    assert plan.pipe is None and "__getitem__ was replaced" in plan.lines[0]


def test_pillow_that_accepts_truncated_files(images, monkeypatch):
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    assert "truncated" in lower(D.ImageFolder(images, CHAIN), True).lines[0]


def test_limit_of_pillow(images, monkeypatch):
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 100)
    assert "max_pixels=200" in repr(lower(D.ImageFolder(images, CHAIN), True).pipe)


def test_subset_of_its_own(images):
    dataset = MySubset(D.ImageFolder(images, CHAIN), [1, 2])
    assert lower(dataset, True).dataset is dataset


@pytest.mark.parametrize("change", [
    {"data": None}, {"targets": ["a"] * 10}, {"targets": [0] * 9}, {"targets": [True] * 10},
])  # fmt: skip
def test_arrays_that_are_none(change):
    dataset = cifar(transform=CHAIN)
    vars(dataset).update(change)
    if change.get("data", 0) is None:
        dataset.data = cifar().data.astype("float32")
    assert lower(dataset, True).dataset is dataset


def test_qmnist_has_its_own_way():
    dataset = fake(D.QMNIST, data=mnist().data, targets=torch.zeros(10, 8), compat=True)
    assert lower(dataset, True).dataset is dataset


def test_other_kinds():
    class Numbers(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return index

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    for dataset in (Numbers(), Stream(), [1, 2, 3], {"a": 1}):
        plan = lower(dataset, True)
        assert plan.dataset is dataset and plan.pipe is None
        assert "not torch's or torchvision's" in plan.lines[0]


def test_torchvisions_own_without_a_native_form():
    plan = lower(D.FakeData(4), True)
    assert plan.lines[0] == "FakeData: Python, drapps has no native form of it"


@pytest.mark.parametrize("tensors, reason", [
    ([torch.zeros(4, 2, requires_grad=True)], "requires a gradient"),
    ([torch.zeros(2, 4).T], "a view"),
    ([torch.zeros(4, 2).to_sparse()], "not a plain tensor"),
    ([torch.zeros(4, dtype=torch.complex64)], ""),
    ([torch.zeros(4, dtype=torch.bfloat16)], ""),
    ([torch.zeros(0, 2)], ""),
    ([torch.nn.Parameter(torch.zeros(4))], "not a plain tensor"),
])  # fmt: skip
def test_tensors(tensors, reason):
    dataset = torch.utils.data.TensorDataset(*tensors)
    plan = lower(dataset, True)
    assert plan.dataset is dataset and plan.pipe is None
    assert reason in "\n".join(plan.lines)


def test_module_of_a_user():
    assert lowered(Doubled()).rest
