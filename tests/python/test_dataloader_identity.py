"""States are loaded into the data set and the transforms that they were saved with, and refused by others."""

import copy
import functools
import pathlib
import pickle
import shutil

import numpy
import pytest
import torch
from imagesets import run_python
from loadersets import Numbers, Stream, lists
from lower_sets import D, Doubled, cifar, identity, mnist, v1, v2
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.torch import identity as identities, state as states

CHAIN = v1.Compose([v1.Resize((16, 16)), v1.ToTensor(), v1.Normalize([0.5], [0.5])])


def begun(dataset, **options):
    """The state after two batches, of anything."""
    loader = DataLoader(dataset, 4, **{"num_workers": 0, "collate_fn": list, **options})
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    loader.close()
    return state


def load(state, dataset, **options):
    loader = DataLoader(dataset, 4, **{"num_workers": 0, **options})
    loader.load_state_dict(state)
    return loader


def assert_refused(one, other, said):
    """Both ways; and the message says how to load it all the same."""
    for saved, loading in ((one, other), (other, one)):
        state = begun(saved)
        load(state, saved)
        with pytest.raises(ValueError, match=said) as refusal:
            load(state, loading)
        key = "transforms" if "transform" in said else "data"
        assert f'remove state["made_with"]["{key}"]' in str(refusal.value)
        del state["made_with"][key]
        load(state, loading)


# --- data sets ---


@pytest.fixture
def moved(folder, tmp_path):
    """The folder of images, elsewhere."""
    return shutil.copytree(folder, tmp_path / "moved" / "copy")


def test_a_folder_may_move(folder, moved):
    assert len(lists(load(begun(D.ImageFolder(folder, CHAIN)), D.ImageFolder(str(moved), CHAIN)))) == 4


def test_other_files(folder, moved):
    (moved / "ant" / "000.jpg").rename(moved / "ant" / "999.jpg")
    assert_refused(D.ImageFolder(folder, CHAIN), D.ImageFolder(moved, CHAIN), "told by its files")


def test_other_labels(folder, moved):
    """As of another function that makes labels of classes."""
    other = D.ImageFolder(moved, CHAIN)
    other.samples = other.imgs = [(path, 1 - label) for path, label in other.samples]
    assert_refused(D.ImageFolder(folder, CHAIN), other, "told by its labels;")


def test_other_files_of_the_same_names(folder, moved):
    """As train and val, where both are numbered."""
    for path in moved.rglob("*.jpg"):
        path.write_bytes(path.read_bytes() + b"\0")
    assert_refused(D.ImageFolder(folder, CHAIN), D.ImageFolder(moved, CHAIN), "told by its sizes of files;")


class Listed(data.Dataset):
    """A user's data set over a list of files."""

    def __init__(self, paths):
        self.paths, self.seen = paths, []

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        self.seen.append(index)
        return index


def test_other_files_of_a_users_class(folder, moved):
    here, there = (sorted(root.rglob("*.jpg")) for root in (folder, moved))
    load(begun(Listed(here)), Listed(list(map(str, there))))
    assert_refused(Listed(here), Listed(here[::-1]), "files")


def test_lists(folder):
    paths = sorted(map(str, folder.rglob("*.jpg")))
    assert_refused(paths, paths[::-1], "told by its files")
    assert_refused(list(range(9)), [*range(8), 0], "told by its values")
    assert_refused([(torch.ones(3), 1)] * 9, [(torch.zeros(3), 1)] * 9, "told by its values")


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x.numpy(), lambda x: data.TensorDataset(torch.ones(64), x)],
                         ids=["tensor", "array", "TensorDataset"])  # fmt: skip
def test_values(make):
    x = torch.randn(64, 40)
    load(begun(make(x)), make(x.clone()))
    assert_refused(make(x), make(torch.randn(64, 40)), "told by its values")
    assert_refused(make(x), make(x.double()), "told by its values")


@pytest.mark.parametrize("make", [cifar, mnist])
def test_pixels_and_labels(make):
    other, relabelled = make(12), make(12)
    other.data = other.data[list(range(1, 12)) + [0]]
    relabelled.targets = relabelled.targets[::-1] if make is cifar else relabelled.targets.flip(0)
    assert_refused(make(12), other, "told by its data")
    assert_refused(make(12), relabelled, "told by its targets")


class Remembering(D.CIFAR10):
    """A user's class that keeps what it has made."""

    def __getitem__(self, index):
        self.made = vars(self).get("made") or [None] * len(self)
        self.made[index] = self.made[index] or super().__getitem__(index)
        return self.made[index]


def test_what_a_subclass_keeps_does_not_count():
    def made(change=0):
        dataset = cifar(12)
        dataset.__class__, dataset.data = Remembering, dataset.data + change
        return dataset

    load(begun(made()), made())
    assert_refused(made(), made(1), "told by its data;")


def test_subsets():
    indices = list(range(5, 20))
    for same in (torch.tensor(indices), numpy.array(indices), range(5, 20)):
        load(begun(data.Subset(Numbers(30), indices)), data.Subset(Numbers(30), same))
    assert_refused(data.Subset(Numbers(30), indices), data.Subset(Numbers(30), indices[::-1]), "told by its indices")
    x, y = torch.randn(2, 30, 5)
    assert_refused(*(data.Subset(data.TensorDataset(z), indices) for z in (x, y)), "told by its values")


def test_parts():
    parts = [data.TensorDataset(torch.randn(n, 3)) for n in (10, 20)]
    assert_refused(data.ConcatDataset(parts), data.ConcatDataset(parts[::-1]), "told by its sizes of parts, values")
    assert_refused(data.ConcatDataset([parts[0]] * 2), data.ConcatDataset([parts[0], data.Subset(parts[1], range(10))]),
                   "told by its values, .*indices")  # fmt: skip


class Wrapped(data.Dataset):
    """A user's wrapper; a state of its own does not count."""

    def __init__(self, dataset, transform=None):
        self.dataset, self.transform, self.calls = dataset, transform, 0

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.calls += 1
        return index


def test_what_a_wrapper_holds():
    inner = data.TensorDataset(torch.randn(20, 3)), data.TensorDataset(torch.randn(20, 3))
    assert_refused(*map(Wrapped, inner), "told by its values")
    assert_refused(Wrapped(inner[0], CHAIN), Wrapped(inner[0], v1.ToTensor()), "the transform Resize|the transform ToT")
    itself = Wrapped(inner[0])
    itself.dataset = itself
    assert identities.data_of(itself) == {} == identities.data_of(Wrapped([1, 2]))


def test_the_users_word_counts():
    """Where a data set has a fingerprint, nothing else is looked at."""
    def marked(mark, x):
        dataset = data.TensorDataset(x)
        dataset.fingerprint = mark
        return data.Subset(dataset, range(20))

    load(begun(marked("a", torch.ones(20))), marked("a", torch.zeros(20)))
    assert_refused(marked("a", torch.ones(20)), marked("b", torch.ones(20)), "told by its fingerprint")


def test_unknown_data_sets_have_nothing_to_compare():
    state = begun(Numbers(30))
    assert state["made_with"]["data"] == {} and state["made_with"]["transforms"] == []


def test_hugging_face():
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    one, same, other = (datasets.Dataset.from_dict({"x": x}) for x in ([*range(20)], [*range(20)], [*range(1, 21)]))
    load(begun(one), same)
    assert_refused(one, other, "told by its fingerprint")
    assert_refused(one, one.with_format("torch"), "told by its fingerprint")


def test_large_arrays_are_looked_at_all_over():
    """Even where rows and steps would fall together, so that every pixel looked at was a corner."""
    found = identities._some(65536 * 784, 1024)
    assert len(found) == 1024 and found[0] >= 0 and found[-1] < 65536 * 784
    assert len({int(i) % 784 for i in found}) > 400


ODD = [torch.zeros(0, 3), torch.tensor(1), torch.eye(3).to_sparse(), torch.empty(2, device="meta"),
       torch.ones(3, dtype=torch.bfloat16), torch.ones(2, dtype=torch.complex64).conj(),
       numpy.array(["a", None]), {"a": {1, 2}}, b"abc"]  # fmt: skip


@pytest.mark.parametrize("values", ODD)
def test_any_value_has_a_sketch(values):
    assert identities.digest(identities.sketch(values)) == identities.digest(identities.sketch(values))


# --- transforms ---


def of(transform, **more):
    """A small data set with a transform."""
    dataset = cifar(12, transform)
    vars(dataset).update(more)
    return dataset


def test_other_parameters():
    other = v1.Compose([*CHAIN.transforms[:2], v1.Normalize([0.4], [0.5])])
    normalize = r"Normalize\(mean=\[0.[45]\], std=\[0.5\], inplace=False\)"
    said = f"the transform {normalize}, the loader has {normalize};"
    assert_refused(of(CHAIN), of(other), said)


def test_another_chain():
    assert_refused(of(CHAIN), of(v1.Compose(CHAIN.transforms[:2])), "the transform (Normalize.*|none), the loader has ")
    assert_refused(of(CHAIN), of(v1.Compose([v1.CenterCrop(16), *CHAIN.transforms[1:]])), "the transform")
    assert_refused(of(CHAIN), of(CHAIN, target_transform=identity), "target_transform identity")


def test_where_it_runs_does_not_matter():
    state = begun(of(CHAIN), num_workers=2, collate_fn=None)
    assert len(lists(load(state, of(CHAIN), num_workers=0, prefetch_factor=None))) == 1
    assert len(lists(load(begun(of(CHAIN)), of(CHAIN), num_workers=1, prefetch_factor=3))) == 1


def test_how_it_is_written_does_not_matter():
    nested = v1.Compose([v1.Compose(CHAIN.transforms[:1]), torch.nn.Sequential(), *CHAIN.transforms[1:]])
    load(begun(of(CHAIN)), of(nested))
    load(begun(of(v1.Resize((16, 16)))), of(v1.Compose([v1.Resize([16, 16])])))


PARTS = {
    "v2": v2.Compose([v2.RandomResizedCrop(32, antialias=True), v2.ToDtype(torch.float32, scale=True)]),
    "groups": v2.RandomApply([v2.ColorJitter(0.1), v2.RandomChoice([v2.GaussianBlur(3), v2.Identity()])], p=0.3),
    "lambda": v1.Lambda(lambda x: x),
    "function": identity,
    "partial": functools.partial(identity, image=numpy.ones(3)),
    "user's": torch.nn.Sequential(Doubled(), v1.GaussianBlur(3)),
    "matrix": v1.LinearTransformation(torch.eye(12), torch.zeros(12)),
    "long": v1.AutoAugment(),
}


@pytest.mark.parametrize("transform", PARTS.values(), ids=PARTS)
def test_lines_say_what_holds_in_other_processes(transform):
    lines = identities.transforms_of(of(transform))
    assert lines == identities.transforms_of(of(copy.deepcopy(transform)))
    assert lines and all(len(line) <= identities.LINE for line in lines)
    assert not any(" at 0x" in line for line in lines)


def test_lines_read_well():
    lines = identities.transforms_of(of(PARTS["groups"]))
    assert lines[0].startswith("RandomApply(transforms=[ColorJitter(brightness=[0.9, 1.1]")
    lines = identities.transforms_of(of(PARTS["user's"]))
    assert lines == ["Doubled", "GaussianBlur(kernel_size=[3, 3], sigma=[0.1, 2.0])"]


def test_parts_that_are_transformed_alike_are_told_once():
    parts = [of(CHAIN) for _ in range(3)]
    assert identities.transforms_of(data.ConcatDataset(parts)) == identities.transforms_of(parts[0])


def test_steps_of_a_named_loader():
    def make(steps):
        return drapps.DRAPPSLoader(data.TensorDataset(torch.ones(12)), 4, {"loader": {"num_workers": 0}}, steps)

    state = make([identity]).state_dict()
    make([identity]).load_state_dict(state)
    with pytest.raises(ValueError, match="the transform identity, the loader has len"):
        make([len]).load_state_dict(state)


# --- over processes, restarts and versions ---

PROGRAM = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    from test_dataloader_identity import CHAIN, D, PARTS, identities, of
    sets = [D.ImageFolder(sys.argv[2], CHAIN), *map(of, PARTS.values())]
    print(json.dumps([[identities.data_of(one), identities.transforms_of(one)] for one in sets]))
"""


def test_the_same_in_every_process(folder, monkeypatch):
    said = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        done = run_python(PROGRAM, pathlib.Path(__file__).parent, folder)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1] and "files" in said[0]


def test_states_of_before_are_loaded():
    """They have neither data nor transforms."""
    state = begun(of(CHAIN))
    del state["made_with"]["data"], state["made_with"]["transforms"]
    assert len(lists(load(state, of(v1.ToTensor())))) == 1


def test_what_goes_on_says_what_it_has_now():
    state = begun(of(CHAIN))
    del state["made_with"]["transforms"]
    loader = load(state, of(v1.ToTensor()))
    iter(loader)
    assert loader.state_dict()["made_with"]["transforms"] == ["ToTensor()"]


def test_another_state_of_any_rank_is_refused():
    def ranks(seed):
        dataset = data.TensorDataset(torch.randn(40, generator=torch.Generator().manual_seed(seed)))
        return [DataLoader(dataset, 4, num_workers=0, rank=rank, world_size=2) for rank in range(2)]

    saved = [loader.state_dict() for loader in (ranks(1)[0], ranks(2)[1])]
    with pytest.raises(ValueError, match="values"):
        ranks(1)[0].load_state_dict(saved)


@pytest.mark.parametrize("dataset", [Numbers(30), Stream(30)], ids=["map", "stream"])
def test_a_careful_torch_loads_states(dataset, tmp_path):
    """Plain values, as torch.load insists on."""
    torch.save(begun(dataset, num_workers=1, shuffle=None), tmp_path / "state")
    load(torch.load(tmp_path / "state", weights_only=True), dataset, num_workers=1)


def test_a_data_set_is_looked_at_once_a_pass(monkeypatch):
    looked = []
    monkeypatch.setattr(states, "data_of", lambda dataset: looked.append(dataset) or {})
    loader = DataLoader(Numbers(30), 4, num_workers=0)
    lists(loader)
    assert not looked
    for _ in loader:
        loader.state_dict()
    assert len(looked) == 1
    for _ in loader:
        loader.state_dict()
    assert len(looked) == 2


def test_states_share_nothing_with_the_pass():
    loader = DataLoader(of(CHAIN), 4, num_workers=0)
    iter(loader)
    del loader.state_dict()["made_with"]["transforms"]
    assert loader.state_dict()["made_with"]["transforms"]
