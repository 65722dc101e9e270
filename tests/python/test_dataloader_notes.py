"""An exception of a data set names the sample: its index, and its file where the data set has a list of them."""

import pytest
import torch
from loadersets import Faulty
from torch.utils import data

from drapps import DataLoader


class Files(data.Dataset):
    """Samples that are files, one of which cannot be used."""

    def __init__(self, folder, bad):
        self.bad, self.paths = bad, [str(folder / f"{i}.txt") for i in range(8)]
        for path in self.paths:
            open(path, "w").close()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError("too small")
        return torch.tensor(i)


def notes_of(loader, kind):
    with pytest.raises(kind) as caught:
        list(loader)
    assert type(caught.value) is kind
    return getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize("options", [{}, {"in_order": False}, {"batch_size": None}, {"record": True}], ids=str)
@pytest.mark.parametrize("workers", [0, 2])
def test_the_index_is_named(workers, options):
    loader = DataLoader(Faulty(12, [7]), **{"batch_size": 4, "num_workers": workers} | options)
    assert notes_of(loader, ValueError) == ["in sample 7"]


@pytest.mark.parametrize("options", [{}, {"in_order": False}, {"batch_size": None}, {"record": True}], ids=str)
@pytest.mark.parametrize("workers", [0, 2])
def test_so_is_the_file(workers, options, tmp_path):
    dataset = Files(tmp_path, 5)
    loader = DataLoader(dataset, **{"batch_size": 2, "num_workers": workers} | options)
    assert notes_of(loader, KeyError) == [f"in sample 5 ({dataset.paths[5]})"]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("workers", [0, 2])
def test_of_a_batch_that_is_asked_for_at_once_all_are_named(workers, in_order, tmp_path):
    """As Subset is: which of them it was, it does not say."""
    part = data.Subset(Files(tmp_path, 5), [6, 5, 4])
    assert notes_of(DataLoader(part, 2, num_workers=workers, in_order=in_order), KeyError) == [
        "in one of the samples 0, 1"
    ]
    assert notes_of(DataLoader(part, 1, num_workers=workers, in_order=in_order), KeyError) == [
        f"in sample 1 ({part.dataset.paths[5]})"
    ]


def test_of_many_some_are_named(tmp_path):
    part = data.Subset(Faulty(40, [7]), range(40))
    assert notes_of(DataLoader(part, 20, num_workers=0), ValueError) == [
        "in one of the samples 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
    ]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_warning_names_both(workers, tmp_path, caplog):
    dataset = Files(tmp_path, 5)
    assert len(list(DataLoader(dataset, 2, num_workers=workers, on_bad_sample="skip"))) == 4
    assert [record.message for record in caplog.records] == [
        f"bad sample 5 ({dataset.paths[5]}) (skipped): KeyError: 'too small'"
    ]


def test_an_exception_that_is_raised_twice_has_one_note():
    class Same(Faulty):
        """Raises what it raised before."""

        error = ValueError("again")

        def __getitem__(self, i):
            raise self.error

    iterator = iter(DataLoader(Same(4, []), 4, sampler=[0, 0, 0, 0] * 2, num_workers=0))
    for _ in range(2):
        with pytest.raises(ValueError, match="again"):
            next(iterator)
    assert Same.error.__notes__ == ["in sample 0"]


@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_collate_fn_names_no_sample(workers, batch_size):
    def fails(samples):
        raise ValueError("not these")

    assert notes_of(DataLoader(Faulty(12, []), batch_size, num_workers=workers, collate_fn=fails), ValueError) == []
