"""DataLoader's worker processes: samples of any kind travel; those that cannot be sent are made in the caller."""

import threading
import warnings
from collections import namedtuple

import numpy
import pytest
import torch
from loadersets import Numbers
from torch.utils import data

from drapps import DataLoader

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def test_numpy_and_python_objects_travel():
    class Things(Numbers):
        def __getitem__(self, i):
            return {"array": numpy.arange(i), "text": str(i), "tensor": torch.ones(i)}

    samples = list(DataLoader(Things(4), None, num_workers=2, collate_fn=dict))
    assert [sample["text"] for sample in samples] == ["0", "1", "2", "3"]
    assert all(sample["array"].tolist() == list(range(i)) for i, sample in enumerate(samples))


class Closures(Numbers):
    """Samples that no pickle holds; from some index on."""

    def __init__(self, n, first=0):
        super().__init__(n)
        self.first = first

    def __getitem__(self, i):
        return (lambda: i) if i >= self.first else i


def called(batches):
    return [[sample() if callable(sample) else sample for sample in batch] for batch in batches]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("first", [0, 10])
def test_samples_that_cannot_be_sent_are_made_inline_where_nobody_said_workers(first, in_order):
    options = {"batch_size": 4, "shuffle": True, "collate_fn": list, "in_order": in_order}
    torch.manual_seed(3)
    expected = called(data.DataLoader(Closures(24, first), **options))
    torch.manual_seed(3)
    loader = DataLoader(Closures(24, first), **options)
    with pytest.warns(RuntimeWarning, match="num_workers=0.*cannot be sent") as warned:
        found = called(loader)
    assert sorted(found) == sorted(expected) and (found == expected or not in_order) and len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 6 and loader.num_workers == 0 and loader.stats()["batches"] == 12


class Nested(Numbers):
    """Samples of a type that no pickle finds, with tensors, for which the batch has rows."""

    Sample = namedtuple("Sample", ["image", "label"])

    def __getitem__(self, i):
        return self.Sample(torch.full((3,), i), i)


@pytest.mark.parametrize("batch_size", [4, None])
def test_named_tuples_of_a_nested_class_are_made_inline_where_nobody_said_workers(batch_size):
    with pytest.warns(RuntimeWarning, match="cannot be sent"):
        found = list(DataLoader(Nested(8), batch_size))
    assert all(type(batch) is Nested.Sample for batch in found)
    assert torch.stack([batch.image[..., 0] for batch in found]).flatten().tolist() == list(range(8))


def test_named_tuples_of_a_nested_class_are_an_error_that_says_so():
    with pytest.raises(TypeError, match="Sample cannot be sent from a worker process"):
        list(DataLoader(Nested(8), 4, num_workers=2))


def test_a_pass_that_went_inline_has_a_state():
    loader = DataLoader(Closures(24), 4, collate_fn=list)
    with pytest.warns(RuntimeWarning, match="cannot be sent"):
        iterator = iter(loader)
        first = [next(iterator), next(iterator)]
    state = loader.state_dict()
    again = DataLoader(Closures(24), 4, collate_fn=list, num_workers=0)
    again.load_state_dict(state)
    assert called([*first, *again]) == called([*first, *iterator]) == [[*range(i, i + 4)] for i in range(0, 24, 4)]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("first", [0, 10, 50, 59])
def test_threads_that_share_an_iterator_go_inline_together(first, in_order):
    iterator = iter(DataLoader(Closures(60, first), 1, collate_fn=list, in_order=in_order))
    found, errors = [], []

    def consume():
        try:
            for batch in iterator:
                found.extend(called([batch])[0])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == [] and sorted(found) == list(range(60))


@pytest.mark.parametrize("options", [{"num_workers": 1}, {"persistent_workers": True}], ids=str)
def test_samples_that_cannot_be_sent_are_an_error_of_workers_that_were_asked_for(options):
    with pytest.raises(TypeError, match="cannot be sent from a worker process"):
        list(DataLoader(Closures(8), 4, collate_fn=list, **options))
