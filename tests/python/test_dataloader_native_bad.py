"""Bad samples in passes that the engine runs: every batch comes, whichever samples are left out, and states know of
them.

A pass that waits for ever ends by its timeout.
"""

import importlib

import pytest
import torch
from imagesets import write_flat_images
from op_runner import import_torchvision

import drapps
from drapps import DataLoader

torchvision = import_torchvision()
v2 = importlib.import_module("torchvision.transforms.v2")

N, BATCH = 24, 4


def dataset(folder, bad):
    write_flat_images(folder, N, bad)
    return torchvision.datasets.ImageFolder(folder, v2.Compose([v2.Resize((4, 4)), v2.PILToTensor()]))


def loader_of(images, on_bad_sample="skip", **options):
    return DataLoader(images, BATCH, num_workers=1, timeout=20, on_bad_sample=on_bad_sample, **options)


def batches_of(passed):
    return [images[:, 0, 0, 0].tolist() for images, _ in passed]


WHERE = {
    "start": range(4), "middle": range(8, 16), "end": range(20, 24), "one": [3], "some": [1, 2, 9, 17], "all": range(N)
}  # fmt: skip


def test_an_error_names_the_file_and_no_seed(tmp_path):
    with pytest.raises(drapps.FormatError, match=r'sample ".*" \(position 3\): decode'):
        batches_of(loader_of(dataset(tmp_path, {3}), on_bad_sample="raise"))


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("where", WHERE)
def test_in_order_batches_are_shorter(tmp_path, where, ahead):
    bad = set(WHERE[where])
    loader = loader_of(dataset(tmp_path, bad), prefetch_factor=ahead)
    whole = [[i for i in range(start, start + BATCH) if i not in bad] for start in range(0, N, BATCH)]
    assert batches_of(loader) == [batch for batch in whole if batch]
    assert "native" in loader.explain() and loader.stats()["bad_samples"] == len(bad)


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("where", WHERE)
def test_out_of_order_batches_are_filled(tmp_path, where, ahead):
    bad = set(WHERE[where])
    loader = loader_of(dataset(tmp_path, bad), prefetch_factor=ahead, in_order=False)
    found = batches_of(loader)
    assert sorted(sum(found, [])) == [i for i in range(N) if i not in bad]
    assert all(len(batch) == BATCH for batch in found[:-1])
    assert "native" in loader.explain() and loader.stats()["bad_samples"] == len(bad)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("n", range(5))
def test_states_count_what_was_left_out(tmp_path, n, in_order):
    bad = {0, 1, 2, 3, 9, 17}
    images = dataset(tmp_path, bad)
    saved = loader_of(images, in_order=in_order)
    iterator = iter(saved)
    begun = batches_of(next(iterator) for _ in range(n))
    again = loader_of(images, in_order=in_order)
    again.load_state_dict(saved.state_dict())
    assert sorted(sum(begun + batches_of(again), [])) == [i for i in range(N) if i not in bad]
    assert saved.stats()["bad_samples"] + again.stats()["bad_samples"] == len(bad)


# --- on_bad_sample="raise": as torch, whose next call goes on with the next batch ---


def step(iterator):
    """What a call of next() gave: a batch, the class of its error, or None at the end."""
    try:
        return next(iterator)[0][:, 0, 0, 0].tolist()
    except StopIteration:
        return None
    except Exception as error:
        return type(error)


def steps_of(iterator):
    return list(iter(lambda: step(iterator), None))


def given(steps):
    return [batch for batch in steps if isinstance(batch, list)]


@pytest.mark.parametrize("where", WHERE)
def test_the_batch_of_a_bad_sample_is_lost_and_no_other(tmp_path, where):
    images = dataset(tmp_path, set(WHERE[where]))
    loader = loader_of(images, "raise")
    expected = steps_of(iter(torch.utils.data.DataLoader(images, BATCH)))
    found = steps_of(iter(loader))
    assert "native" in loader.explain()
    assert given(found) == given(expected)
    assert [isinstance(one, list) for one in found] == [isinstance(one, list) for one in expected]
    assert all(isinstance(one, list) or issubclass(one, OSError) for one in found + expected)


@pytest.mark.parametrize("where", WHERE)
def test_out_of_order_every_sample_is_delivered_or_lost_with_a_bad_one(tmp_path, where):
    bad = set(WHERE[where])
    loader = loader_of(dataset(tmp_path, bad), "raise", in_order=False)
    for _ in range(2):
        found = steps_of(iter(loader))
        samples = sum(given(found), [])
        assert len(found) == N // BATCH and len(samples) == BATCH * len(given(found))
        assert len(set(samples)) == len(samples) and not bad & set(samples)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("n", range(6))
def test_states_count_what_was_lost(tmp_path, n, in_order):
    images = dataset(tmp_path, {1, 9})
    saved, again = (loader_of(images, "raise", in_order=in_order) for _ in range(2))
    iterator = iter(saved)
    begun = [step(iterator) for _ in range(n)]
    again.load_state_dict(saved.state_dict())
    found = begun + steps_of(iter(again))
    samples = sum(given(found), [])
    assert len(found) == N // BATCH and len(samples) == BATCH * len(given(found))
    assert len(set(samples)) == len(samples) and len(given(found)) >= N // BATCH - 2


def test_the_error_names_the_file(tmp_path):
    loader = loader_of(dataset(tmp_path, {2}), "raise")
    with pytest.raises(drapps.FormatError, match=r"002\.png.*position 2"):
        next(iter(loader))


def test_a_file_that_is_gone(tmp_path):
    images = dataset(tmp_path, ())
    loader = loader_of(images, "raise")
    (tmp_path / "a" / "005.png").unlink()
    assert steps_of(iter(loader))[1] is drapps.FileMissingError
