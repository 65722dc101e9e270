"""DataLoader over data sets that the engine reads itself: the same batches as torch's loader gives, and its states."""

import gc
import importlib
import os
import pickle
import threading
import weakref

import pytest
import torch
from imagesets import run_python
from loadersets import Numbers, Stream, lists
from op_runner import import_torchvision
from PIL import Image
from torch.utils import data

from drapps import DataLoader, _core, cli, trace
from drapps.report import events, write_report
from drapps.torch import workers

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")


def images(folder, *more):
    steps = [v2.Resize((24, 24)), v2.ToImage(), *more, v2.ToDtype(torch.float32, scale=True)]
    return torchvision.datasets.ImageFolder(folder, transform=v2.Compose(steps))


def passes(loader, n=1):
    return [[[field.tolist() for field in batch] for batch in loader] for _ in range(n)]


def table(n=23):
    return data.TensorDataset(torch.arange(n), torch.arange(n * 2.0).view(n, 2))


def runs_natively(loader):
    return "native" in loader.explain() and "runs: by" in loader.explain()


@pytest.fixture
def accelerator(monkeypatch):
    """One that is in use, as far as drapps can tell."""
    monkeypatch.setattr(workers, "accelerator_in_use", lambda: True)


@pytest.mark.usefixtures("accelerator")
def test_beside_an_accelerator_in_use_threads_work_and_nothing_is_forked(folder, monkeypatch):
    monkeypatch.setattr(os, "fork", None)
    monkeypatch.setattr(_core, "fork_both", None)
    loader = DataLoader(images(folder), 4)
    assert runs_natively(loader) and loader.num_workers == workers.usual_workers() and loader.prefetch_factor == 2
    assert passes(loader) == passes(data.DataLoader(images(folder), 4))
    for python in (Numbers(8), Stream(8)):
        loader = DataLoader(python, 4)
        assert loader.num_workers == 0 and loader.prefetch_factor is None and "accelerator" in loader.explain()
        assert lists(loader) == lists(data.DataLoader(python, 4))


@pytest.mark.usefixtures("accelerator")
def test_beside_an_accelerator_a_transform_of_python_goes_to_the_caller(folder):
    dataset = images(folder)
    loader = DataLoader(dataset, 4)
    first = passes(loader)
    dataset.transform = v2.Compose([*dataset.transform.transforms, v2.Lambda(lambda image: image)])
    assert "in the caller (an accelerator" in loader.explain()
    assert passes(loader) == first and loader.num_workers == 0


@pytest.mark.usefixtures("accelerator")
def test_beside_an_accelerator_workers_that_were_asked_for_are_started():
    loader = DataLoader(Numbers(8), 4, num_workers=1)
    assert "in 1 worker process" in loader.explain() and lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}, {"in_order": False}], ids=str)
def test_tables_are_torchs(options):
    found = []
    for kind in (data.DataLoader, DataLoader):
        torch.manual_seed(2)
        loader = kind(table(), 4, num_workers=2, **options)
        batches = [batch for found in passes(loader, 2) for batch in found]
        rows = sorted(row for batch in batches for row in zip(*batch, strict=True))
        found.append((batches if loader.in_order else rows, torch.get_rng_state().tolist()))
    assert found[0] == found[1] and runs_natively(loader)
    assert loader.stats()["samples"] == len(rows)


def test_images_are_torchs(folder):
    theirs = passes(data.DataLoader(images(folder), 2, num_workers=0))
    loader = DataLoader(images(folder), 2, num_workers=2)
    assert passes(loader) == theirs and runs_natively(loader)


@pytest.mark.parametrize("flip", [0, 1])
def test_the_chain_of_torchvisions_guide(tmp_path, flip):
    """On tensors from the first transform on.  Only the draws are forced here: crops are the square in the middle."""
    (tmp_path / "class").mkdir()
    for i, size in enumerate([(500, 375), (120, 260), (256, 256), (90, 31), (1024, 300), (33, 224)]):
        Image.effect_noise(size, 80).convert("RGB").save(tmp_path / "class" / f"{i}.jpg")
    steps = [
        v2.ToImage(),
        v2.ToDtype(torch.uint8, scale=True),
        v2.RandomResizedCrop(size=(224, 224), scale=(1, 1), ratio=(1, 1), antialias=True),
        v2.RandomHorizontalFlip(p=flip),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
    dataset = torchvision.datasets.ImageFolder(tmp_path, v2.Compose(steps))
    loader = DataLoader(dataset, 4)
    assert runs_natively(loader) and "Python" not in loader.explain()
    for (images, labels), (want, numbers) in zip(loader, data.DataLoader(dataset, 4), strict=True):
        assert torch.equal(images, want) and torch.equal(labels, numbers)


def test_unknown_transforms_run_in_worker_processes(folder):
    def negative(image):
        return -image

    theirs = passes(data.DataLoader(images(folder, negative), 2, num_workers=0))
    loader = DataLoader(images(folder, negative), 2, num_workers=2)
    assert passes(loader) == theirs and not runs_natively(loader)
    assert "negative" in loader.explain()


def test_a_worker_init_fn_keeps_it_in_workers():
    loader = DataLoader(table(), 4, num_workers=1, worker_init_fn=print)
    list(loader)
    assert not runs_natively(loader)


@pytest.mark.parametrize("options, reason", [
    ({"collate_fn": list}, "natively: collate_fn (list) is Python"),
    ({"batch_size": None}, "natively: batch_size=None"),
    ({"worker_init_fn": print}, "natively: worker_init_fn (print) may change"),
])  # fmt: skip
def test_explain_names_the_one_reason(options, reason):
    text = DataLoader(table(), **{"batch_size": 4, "num_workers": 1, **options}).explain()
    assert reason in text and text.count("collate_fn") == ("collate_fn" in options)
    assert text.count("worker_init_fn") == ("worker_init_fn" in options)


def test_explain_names_the_batch_sampler_alone():
    assert "order: list;" in DataLoader(table(), batch_sampler=[[0, 1], [2]], num_workers=1).explain()
    mine = data.BatchSampler(data.RandomSampler(table()), 2, False)
    assert "order: BatchSampler of RandomSampler;" in DataLoader(table(), batch_sampler=mine, num_workers=1).explain()


def test_threads_are_not_worker_processes_to_warn_of(recwarn):
    many = len(os.sched_getaffinity(0)) + 3
    list(DataLoader(table(), 4, num_workers=many))
    assert not recwarn.list
    DataLoader(Numbers(4), 4, num_workers=many)
    assert "worker processes" in str(recwarn.pop(UserWarning).message)


def test_an_iterator_that_outlives_the_program_ends_in_silence():
    program = """
        import torch
        from drapps import DataLoader
        loader = DataLoader(torch.utils.data.TensorDataset(torch.zeros(90, 3)), 2)
        it = iter(loader)
        next(it)
    """
    done = run_python(program)
    assert (done.returncode, done.stderr) == (0, "")


def still(worker):
    """No image is mirrored."""
    chain = data.get_worker_info().dataset.dataset.transform
    chain.transforms[0].p = 0


def test_what_a_worker_init_fn_changes_in_a_transform_counts(folder):
    steps = [v2.RandomHorizontalFlip(p=1), v2.Resize((9, 9)), v2.PILToTensor(), as_it_is]
    part = data.Subset(torchvision.datasets.ImageFolder(folder, v2.Compose(steps)), [0, 3, 2])
    found = [passes(kind(part, 2, num_workers=1, worker_init_fn=init)) for kind in (data.DataLoader, DataLoader)
             for init in (still, print)]  # fmt: skip
    assert found[0] == found[2] != found[1] == found[3]
    assert "up to the first Python code" in DataLoader(part, 2, num_workers=1, worker_init_fn=still).explain()


def as_it_is(image):
    return image


def flipped(folder, **options):
    torch.manual_seed(6)
    return DataLoader(images(folder, v2.RandomHorizontalFlip()), 2, shuffle=True, **options)


def test_randomness_does_not_hang_on_the_threads(folder):
    one, three = passes(flipped(folder, num_workers=1), 3), passes(flipped(folder, num_workers=3), 3)
    assert one == three


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("in_order", [True, False])
def test_states(folder, n, in_order):
    def loader(workers):
        return flipped(folder, num_workers=workers, in_order=in_order)

    whole = sorted(row for batch in passes(loader(2))[0] for row in zip(*batch, strict=True))
    saved = loader(2)
    iterator = iter(saved)
    begun = [[field.tolist() for field in next(iterator)] for _ in range(n)]
    again = loader(1)
    again.load_state_dict(saved.state_dict())
    rows = [row for batch in begun + passes(again)[0] for row in zip(*batch, strict=True)]
    assert sorted(rows) == whole


def test_own_batches_and_samples_twice(folder):
    batches = [[0, 1, 0], [2], [1, 1]]
    theirs = passes(data.DataLoader(images(folder), batch_sampler=batches))
    assert passes(DataLoader(images(folder), batch_sampler=batches, num_workers=2)) == theirs


def test_two_passes_at_once():
    loader = DataLoader(table(6), 2, num_workers=2)
    pairs = [(a[0].tolist(), b[0].tolist()) for a, b in zip(loader, loader, strict=True)]
    assert pairs == [([i, i + 1], [i, i + 1]) for i in (0, 2, 4)]


def test_threads_share_a_pass_and_it_stays_ended():
    iterator, found = iter(DataLoader(table(400), 4, num_workers=2)), []

    def consume():
        for numbers, _ in iterator:
            found.append(numbers.tolist())

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(found, [])) == list(range(400))
    assert next(iterator, None) is None


def drained_table(iterator):
    """The first column of each batch, and the names of errors."""
    found = []
    while True:
        try:
            found.append(next(iterator)[0].tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)


MISSING = [[0, 1, 9, 2, 3], [9, 0], [0, 1, -9], [9, 9, 9], [*range(6), 9, *range(6)]]


@pytest.mark.parametrize("ahead", [1, 8])
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("sampler", MISSING, ids=str)
def test_an_index_that_is_not_there_costs_its_batch_when_that_is_due(sampler, size, ahead):
    options = dict(sampler=sampler, num_workers=1, timeout=20, prefetch_factor=ahead)
    theirs = drained_table(iter(data.DataLoader(table(6), size, **options)))
    loader = DataLoader(table(6), size, **options)
    assert drained_table(iter(loader)) == theirs and runs_natively(loader)


@pytest.mark.parametrize("sampler", MISSING, ids=str)
def test_out_of_order_too(sampler):
    options = dict(batch_size=1, sampler=sampler, num_workers=1, timeout=20, in_order=False)
    theirs, ours = (drained_table(iter(kind(table(6), **options))) for kind in (data.DataLoader, DataLoader))
    assert sorted(ours, key=str) == sorted(theirs, key=str)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("sampler", [*MISSING, ["a", 1]], ids=str)
def test_an_index_that_is_not_there_is_a_bad_sample(sampler, in_order):
    good = [index for index in sampler if index != "a" and -6 <= index < 6]
    options = dict(sampler=sampler, num_workers=1, timeout=20, in_order=in_order)
    loader = DataLoader(table(6), 2, on_bad_sample="skip", **options)
    assert sorted(sum(drained_table(iter(loader)), [])) == sorted(good)
    assert loader.stats()["bad_samples"] == len(sampler) - len(good)
    loader = DataLoader(table(6), 2, on_bad_sample="replace", **options)
    found = sum(drained_table(iter(loader)), [])
    assert len(found) == len(sampler) and set(found) <= set(range(6))
    assert loader.stats()["bad_samples"] == len(sampler) - len(good)


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_states_count_indices_that_are_not_there(policy, n):
    def make():
        sampler = [0, 1, 2, 9, 4, 5, 9, 9, 3, 2, 1, 0]
        return DataLoader(table(6), 2, sampler=sampler, num_workers=1, timeout=20, on_bad_sample=policy, seed=1)

    whole = drained_table(iter(make()))
    loader = make()
    iterator = iter(loader)
    for expected in whole[:n]:
        if isinstance(expected, str):
            with pytest.raises(IndexError):
                next(iterator)
        else:
            assert next(iterator)[0].tolist() == expected
    again = make()
    again.load_state_dict(loader.state_dict())
    assert drained_table(iter(again)) == whole[n:]


def test_left_early_and_closed():
    loader = DataLoader(table(200), 2, num_workers=2)
    for _ in loader:
        break
    iterator = iter(loader)
    next(iterator)
    loader.close()
    with pytest.raises(RuntimeError, match="iterator invalidated"):
        next(iterator)


def test_persistent_workers():
    loader = DataLoader(table(8), 2, num_workers=2, persistent_workers=True)
    first = passes(loader, 2)
    assert first[0] == first[1] and loader._iterator is iter(loader)
    loader._iterator._shutdown_workers()
    loader._iterator = None
    assert passes(loader) == first[:1]


# --- sizes that only the images know ---


def as_they_are(folder, sizes):
    (folder / "a").mkdir()
    for i, size in enumerate(sizes):
        Image.new("RGB", size, (i, 2 * i, 3 * i)).save(folder / "a" / f"{i}.png")
    return torchvision.datasets.ImageFolder(folder, v2.Compose([v2.Resize(8), v2.PILToTensor()]))


@pytest.mark.parametrize("sizes, batch", [([(16, 20)] * 5, 2), ([(16, 20), (20, 16), (9, 9)], 1)])
def test_images_that_happen_to_stack(tmp_path, sizes, batch):
    images = as_they_are(tmp_path, sizes)
    loader = DataLoader(images, batch, num_workers=2)
    assert passes(loader, 2) == passes(data.DataLoader(images, batch), 2) and runs_natively(loader)


def test_images_that_do_not_stack_are_torchs_error(tmp_path):
    loader = DataLoader(as_they_are(tmp_path, [(16, 20), (20, 16)]), 2, num_workers=2)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)
    assert runs_natively(loader)


# --- from one pass to the next ---


def native_of(loader):
    return loader._engines._native


def test_the_native_loader_stays_open_between_passes(folder):
    loader = DataLoader(images(folder), 2, num_workers=2)
    first = passes(loader)
    native = native_of(loader)
    assert passes(loader) == first and native_of(loader) is native
    loader.set("workers", 1)
    assert passes(loader) == first and native_of(loader) is native and native.get("workers") == 1
    loader.close()
    assert native._core.closed and native_of(loader) is None
    assert passes(loader) == first


def test_another_transform_opens_another(folder):
    loader = DataLoader(images(folder), 2, num_workers=2)
    passes(loader)
    native = native_of(loader)
    loader.dataset.transform = images(folder, v2.RandomHorizontalFlip(1.0)).transform
    flipped = passes(loader)
    assert native._core.closed and native_of(loader) is not native
    assert flipped == passes(data.DataLoader(loader.dataset, 2))
    native = native_of(loader)
    loader.dataset.transform = images(folder, lambda image: image).transform
    passes(loader)
    assert native._core.closed and not runs_natively(loader)


def test_passes_at_once_leave_one():
    loader = DataLoader(table(6), 2, num_workers=2)
    list(zip(loader, loader, strict=True))
    list(zip(loader, loader, strict=True))
    gone = weakref.ref(native_of(loader))
    assert pickle.loads(pickle.dumps(loader._engines))._native is None
    del loader
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("dataset", [table(8), Numbers(8)], ids=["native", "python"])
def test_nothing_ahead_is_an_error_as_torchs(dataset):
    with pytest.raises(AssertionError, match="prefetch_factor"):
        iter(DataLoader(dataset, 2, num_workers=1, prefetch_factor=0))


@pytest.mark.parametrize("in_order", [True, False])
def test_a_batch_may_be_larger_than_any_data_set(folder, in_order):
    (found,) = DataLoader(images(folder), 10**9, num_workers=1, in_order=in_order)
    (expected,) = data.DataLoader(images(folder), 10**9)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_a_trace_counts_passes_and_has_the_users_settings(folder, tmp_path, capsys):
    path = tmp_path / "run.drtrace"
    with DataLoader(images(folder), 4, shuffle=True, num_workers=2, trace=path) as loader:
        assert runs_natively(loader)
        n_samples = len(loader.dataset)
        passes(loader, 2)
        for _ in zip(range(1), loader):
            pass
        state = loader.state_dict()
        loader.load_state_dict(state)
        passes(loader)
    run = trace.read(path)
    settings = run.meta["settings"]
    assert settings["shuffle"] is True and settings["batch_size"] == 4 and "pushed_order" not in settings
    told = [text for _, text in events.listed(run) if text.startswith("start")]
    parts = [(0, 0, n_samples), (1, 0, n_samples), (2, 0, n_samples), (2, 4, n_samples - 4)]
    assert len(told) == 4
    for text, (epoch, base, n) in zip(told, parts):
        resumed = f", resumed after {base}" if base else ""
        assert text.startswith(f"start, epoch {epoch}{resumed}, samples {n}, workers 2")
    assert {run.passes.number(span.epoch, span.end) for span in run.spans} == {0, 1, 2}
    assert cli.main(["trace", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    write_report([("run", run)], tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    for span in run.spans:
        assert str(span.epoch) not in shown and str(span.epoch) not in report
    assert "&quot;shuffle&quot;: true" in report
