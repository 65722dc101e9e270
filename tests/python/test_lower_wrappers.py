"""Plain wrappers are looked through, and nothing is that does more than hand on."""

import functools
import random

import numpy
import pytest
import torch
from torch.utils import data

from imagesets import write_folder
from lower_sets import D, cifar, identity, lowered, v1, v2

from drapps import DataLoader
from drapps.torch.lower import lower
from drapps.torch.lower_exact_code import bindings, template

CHAIN = v1.Compose([v1.Resize((16, 16)), v1.ToTensor()])


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("wrapped") / "set", n=6)


# --- transforms that only hand on ---


class Preset:
    """As those of torchvision's references."""

    def __init__(self, held=CHAIN):
        self.transforms = held

    def __call__(self, img):
        """What it holds."""
        return self.transforms(img)


class ByName(Preset):
    def __call__(self, image):
        made = self.transforms(image)
        return made


class Module(torch.nn.Module):
    def __init__(self, held=CHAIN):
        super().__init__()
        self.inner = held

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


class InTurn:
    def __init__(self, *held):
        self.steps = list(held)

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


@pytest.mark.parametrize("wrapper", [
    Preset(), ByName(), Module(), Module(v2.Compose([v2.Resize((16, 16)), v2.ToImage()])), Preset(Module(Preset())),
    InTurn(v1.Resize((16, 16)), v1.ToTensor()), v1.Compose([Preset(v1.Resize((16, 16))), Preset(v1.ToTensor())]),
])  # fmt: skip
def test_transforms_that_hand_on(images, wrapper):
    chain = lowered(wrapper)
    assert chain.ops and not chain.rest, chain.lines
    mine, theirs = (
        list(kind(D.ImageFolder(images, wrapper), 3, num_workers=1)) for kind in (DataLoader, data.DataLoader)
    )
    assert all(torch.equal(a, b) for one, other in zip(mine, theirs, strict=True) for a, b in zip(one, other))
    assert lower(D.ImageFolder(images, wrapper)).is_native


# --- and those that do more, or hide what they do ---


def counted(function):
    @functools.wraps(function)
    def count(self, img):
        self.calls = getattr(self, "calls", 0) + 1
        return function(self, img)

    return count


class Twice(Preset):
    def __call__(self, img):
        return self.transforms(self.transforms(img))


class Noting(Preset):
    def __call__(self, img):
        self.last = img
        return self.transforms(img)


class Decorated(Preset):
    @counted
    def __call__(self, img):
        return self.transforms(img)


class Property(Preset):
    transforms = property(lambda self: identity, lambda self, value: None)


class Getattr(Preset):
    def __getattr__(self, name):
        return identity


class Getattribute(Preset):
    def __getattribute__(self, name):
        return identity


class Slots:
    __slots__ = ("transforms",)
    __init__, __call__ = Preset.__init__, Preset.__call__


class Static(Preset):
    __call__ = staticmethod(CHAIN)


class MoreArguments(Preset):
    def __call__(self, img, extra=None):
        return self.transforms(img)


class Many(Preset):
    def __call__(self, *img):
        return self.transforms(*img)


class Later(Preset):
    def __call__(self, img):
        yield self.transforms(img)


class InnerOnly(Preset):
    def __call__(self, img):
        return self.transforms.transforms[0](img)


class Global(Preset):
    def __call__(self, img):
        return CHAIN(img)


class OwnCall(Module):
    def __call__(self, x):
        return super().__call__(x) + 1


def hooked():
    module = Module()
    module.register_forward_hook(lambda *_: None)
    return module


def replaced(name):
    module = Module()
    vars(module)[name] = identity
    return module


def of_closure():
    held = [CHAIN]

    class Closure(Preset):
        def __call__(self, img):
            return held[0](img)

    return Closure()


def around_itself():
    preset = Preset()
    preset.transforms = preset
    return preset


@pytest.mark.parametrize("wrapper", [
    Twice(), Noting(), Decorated(), Property(), Getattr(), Slots(), Static(), MoreArguments(), Many(), Later(),
    InnerOnly(), Global(), OwnCall(), hooked(), replaced("forward"), replaced("__call__"), of_closure(),
    around_itself(),
    Module().eval(), lambda img: CHAIN(img), functools.partial(CHAIN), Preset(None), Preset(identity),
    InTurn(identity), Preset(Twice()),
], ids=lambda wrapper: type(wrapper).__name__)  # fmt: skip
def test_transforms_that_do_more(wrapper):
    chain = lowered(wrapper)
    assert chain.rest and not chain.ops, chain.lines


def test_a_class_without_attributes_of_its_own():
    chain = lowered(object.__new__(Getattribute))
    assert chain.rest and not chain.ops


def test_a_patched_class(monkeypatch):
    monkeypatch.setattr(Preset, "__call__", lambda self, img: identity(img))
    assert lowered(Preset()).rest


def test_what_it_holds_may_be_swapped(images):
    """Each pass looks anew."""
    preset = Preset()
    loader = DataLoader(D.ImageFolder(images, preset), 6, num_workers=1)
    assert next(iter(loader))[0].shape[2:] == (16, 16)
    preset.transforms = v1.Compose([v1.Resize((8, 8)), v1.ToTensor()])
    assert next(iter(loader))[0].shape[2:] == (8, 8) and "by 1 thread" in loader.explain()
    preset.transforms = v1.Compose([v1.Resize((9, 9)), v1.ToTensor(), torch.neg])
    assert next(iter(loader))[0].max() <= 0 and "by 1 thread" not in loader.explain()


def test_advice_names_what_to_move(images):
    text = "\n".join(lower(D.ImageFolder(images, v1.Compose([v1.Resize(8), identity, v1.ToTensor()]))).lines)
    assert "if identity may stand further back, move it there" in text
    text = "\n".join(lower(D.ImageFolder(images, v1.Compose([v1.Resize(8), v1.ToTensor(), identity]))).lines)
    assert "move" not in text


def test_advice_of_a_transform_stands_alone(images):
    """Where it says that the transform runs natively further to the front, nothing tells to move it to the back."""
    text = "\n".join(lower(D.ImageFolder(images, v1.Compose([v1.PILToTensor(), v1.Resize(8), v1.CenterCrop(8)]))).lines)
    assert "before PILToTensor it runs natively" in text and "move" not in text


# --- data sets ---


class Handing(data.Dataset):
    def __init__(self, dataset, transform=None):
        self.dataset, self.transform = dataset, transform

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]


class Transforming(Handing):
    def __getitem__(self, index):
        image, label = self.dataset[index]
        return self.transform(image), label


class InSteps(Handing):
    def __getitem__(self, i):
        x, y = self.dataset[i]
        x = self.transform(x)
        return x, y


class IfAny(Handing):
    def __getitem__(self, i):
        x, y = self.dataset[i]
        if self.transform:
            x = self.transform(x)
        return x, y


class IfNotNone(Handing):
    def __getitem__(self, i):
        x, y = self.dataset[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, y


def same_batches(dataset):
    mine, theirs = (list(kind(dataset, 4, num_workers=1)) for kind in (DataLoader, data.DataLoader))
    return len(mine) == len(theirs) and all(
        torch.equal(a, b) for one, other in zip(mine, theirs) for a, b in zip(one, other)
    )


FLIP = v1.RandomHorizontalFlip(p=1)


@pytest.mark.parametrize("make", [
    lambda inner: Handing(inner(CHAIN)),
    lambda inner: Handing(data.Subset(Handing(inner(CHAIN)), [3, 1, 1])),
    lambda inner: Transforming(inner(v1.Resize((9, 9))), v1.Compose([FLIP, v1.ToTensor()])),
    lambda inner: InSteps(data.Subset(inner(None), [5, 2, 3]), CHAIN),
    lambda inner: IfAny(inner(CHAIN)),
    lambda inner: IfAny(inner(None), CHAIN),
    lambda inner: IfNotNone(Transforming(inner(v1.Resize((9, 9))), FLIP), v1.ToTensor()),
    lambda inner: Transforming(data.ConcatDataset([inner(None), inner(None)]), Preset()),
    lambda inner: data.ConcatDataset([Transforming(inner(None), CHAIN), Handing(inner(CHAIN))]),
])  # fmt: skip
def test_data_sets_that_hand_on(images, make):
    dataset = make(functools.partial(D.ImageFolder, images))
    assert lower(dataset).is_native, lower(dataset).lines
    assert same_batches(dataset)


def test_one_data_set_in_two_ways(images):
    """It is one leaf of the tree, and has two chains."""
    inner = D.ImageFolder(images)
    small = v1.Compose([v1.Resize((9, 9)), v1.ToTensor(), v1.RandomVerticalFlip(p=1)])
    large = v1.Compose([v1.Resize((9, 9)), v1.ToTensor()])
    dataset = data.ConcatDataset([Transforming(inner, small), Transforming(inner, large)])
    assert not lower(dataset).is_native and "not transformed alike" in lower(dataset).lines[-1]
    assert same_batches(dataset)


def test_what_is_not_native_stays_with_the_wrapper(images):
    dataset = Transforming(D.ImageFolder(images, v1.Resize((9, 9))), v1.Compose([v1.ToTensor(), torch.neg]))
    plan = lower(dataset)
    assert not plan.is_native and type(plan.dataset) is Transforming and plan.dataset is not dataset
    assert "Transforming: its transform runs in Python" in plan.lines
    assert same_batches(dataset)


class Doubling(Handing):
    def __getitem__(self, index):
        return self.dataset[index * 2 % len(self.dataset)]


class Counting(Handing):
    def __getitem__(self, index):
        self.last = index
        return self.dataset[index]


class Labelled(Handing):
    def __getitem__(self, index):
        image, label = self.dataset[index]
        return self.transform(image), label + 1


class Swapped(Handing):
    def __getitem__(self, index):
        image, label = self.dataset[index]
        return label, self.transform(image)


class Batches(Handing):
    def __getitems__(self, indices):
        return [self.dataset[0] for _ in indices]


class Asked(Handing):
    def __getattr__(self, name):
        raise AttributeError(name)


class Decided:
    """A transform that is false."""

    __call__ = Preset.__call__

    def __init__(self):
        self.transforms = CHAIN

    def __bool__(self):
        return False


@pytest.mark.parametrize("make", [
    Doubling, Counting, Batches, Asked, lambda inner: Labelled(inner, v1.RandomHorizontalFlip(p=0)),
    lambda inner: Swapped(inner, v1.RandomHorizontalFlip(p=0)), lambda inner: IfAny(inner, Decided()),
    lambda inner: Transforming(inner, torch.neg), lambda inner: Handing([inner[0]] * 4),
])  # fmt: skip
def test_data_sets_that_do_more(images, make):
    dataset = make(D.ImageFolder(images, CHAIN))
    assert not lower(dataset).is_native
    if type(dataset) is not Swapped:
        assert same_batches(dataset)


def test_one_that_reads_in_its_own_way_on_the_object(images):
    dataset = Handing(D.ImageFolder(images, CHAIN))
    dataset.__getitem__ = None  # which Python does not look at, and drapps does not trust
    assert not lower(dataset).is_native


def test_one_around_itself():
    dataset = Handing(None)
    dataset.dataset = dataset
    assert not lower(dataset).is_native


def test_tensors_and_a_transform():
    dataset = Transforming(data.TensorDataset(torch.zeros(4, 3), torch.arange(4)), torch.exp)
    assert not lower(dataset).is_native and same_batches(dataset)


def test_indices_are_those_of_what_it_holds():
    dataset = Handing(cifar(transform=v1.ToTensor()))
    assert lower(dataset).ids([0, -1]).tolist() == [0, 9]
    with pytest.raises(IndexError):
        lower(dataset).ids([10])
    with pytest.raises(ValueError, match="absolute value"):
        lower(Handing(data.ConcatDataset([dataset]))).ids([-11])


# --- the comparison itself ---


@pytest.mark.parametrize("function, is_same", [
    (lambda me, b: me.any(b), True), (lambda me, b: me.any(b, b), False), (lambda me, b: me.any(me), False),
    (lambda me, b: me.any(*b), False), (lambda me, b: me.any(b=b), False), (lambda me, b=3: me.any(b), True),
    (lambda me, *, b: me.any(b), False), (lambda me, b: me.any(b) or b, False), (lambda me, b: [me.any(b)], False),
    (lambda me, b: (me.any(b),), False), (lambda me, b: me.a.b(b), False), (lambda me, b, /: me.any(b), False),
])  # fmt: skip
def test_templates(function, is_same):
    found = bindings(function, template("self, x: return self.HELD(x)"))
    assert found == ({"HELD": "any"} if is_same else None)


def test_a_name_stands_for_one_thing():
    twice = template("self, x: return self.A(self.A(x))")
    assert bindings(lambda s, x: s.a(s.a(x)), twice) == {"A": "a"}
    assert bindings(lambda s, x: s.a(s.b(x)), twice) is None
    assert bindings(print, twice) is None


# --- worker_init_fn ---


def seed_worker(worker_id):
    """As torch's page on reproducibility has it."""
    worker_seed = torch.initial_seed() % 2**32
    numpy.random.seed(worker_seed)
    random.seed(worker_seed)


def seed_by_number(worker):
    numpy.random.seed(torch.utils.data.get_worker_info().seed % 2**32 + worker)
    torch.set_num_threads(1)


def change_data(worker):
    torch.utils.data.get_worker_info().dataset.transform = None


def call_data(worker):
    torch.utils.data.get_worker_info().dataset.seed(worker)


def set_global(worker):
    global CHAIN
    CHAIN = worker


def set_attribute(worker):
    numpy.random.seed = worker


def import_more(worker):
    import os  # noqa: F401


def seed_by_lambda(worker):
    (lambda: random.seed(worker))()


@pytest.mark.parametrize("function, is_harmless", [
    (seed_worker, True), (seed_by_number, True), (lambda worker: numpy.random.seed(worker), True), (None, True),
    (change_data, False), (call_data, False), (set_global, False), (set_attribute, False), (import_more, False),
    (seed_by_lambda, False), (print, False), (functools.partial(seed_worker), True), (Preset(), False),
    (functools.partial(change_data), False), (lambda worker: CHAIN(worker), False),
])  # fmt: skip
def test_a_worker_init_fn_that_only_seeds(images, function, is_harmless):
    loader = DataLoader(D.ImageFolder(images, CHAIN), 3, num_workers=1, worker_init_fn=function)
    assert ("by 1 thread, natively" in loader.explain()) is is_harmless
