"""What loaders and pipelines say of themselves, and to who wants to pickle them."""

import copy
import pickle
import re

import numpy
import pytest
from loadersets import Numbers
from torch.utils import data

import drapps
from drapps import DataLoader


class Stream(data.IterableDataset):
    """Numbers."""

    def __iter__(self):
        return iter(range(4))


def pipe():
    return drapps.from_arrays(x=numpy.arange(4))


@pytest.mark.parametrize("loader, text", [
    (lambda: DataLoader(Numbers(8), 4, num_workers=2),
     "<drapps.DataLoader of Numbers with 8 samples: batches of 4, 2 workers>"),
    (lambda: DataLoader(Numbers(8), None, num_workers=0),
     "<drapps.DataLoader of Numbers with 8 samples: single samples, no workers>"),
    (lambda: DataLoader(Numbers(8), num_workers=1, batch_sampler=data.BatchSampler(range(8), 2, False)),
     "<drapps.DataLoader of Numbers with 8 samples: batches of BatchSampler, 1 worker>"),
    (lambda: DataLoader(Stream(), 2, num_workers=0),
     "<drapps.DataLoader of Stream: batches of 2, no workers>"),
])  # fmt: skip
def test_a_data_loader_tells_what_it_is(loader, text):
    assert repr(loader()) == text


def test_one_is_not_many():
    one = drapps.from_arrays(x=numpy.arange(1))
    texts = [repr(one.loader(1, workers=1)), repr(one.map(abs).loader(1, workers=1)),
             one.map(abs).loader(1, workers=1).explain(),
             repr(DataLoader(Numbers(1), 1, num_workers=1)),
             DataLoader(Numbers(1), 1, num_workers=1).explain()]  # fmt: skip
    for text in texts:
        assert not re.search(r"\b1 (batches|samples|workers|processes|worker processes|threads)\b", text), text


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy], ids=["pickle", "copy"])
def test_what_cannot_be_pickled_says_what_to_do(copied):
    with pytest.raises(TypeError, match="a drapps.Pipeline cannot be pickled: .* build the pipeline where it is used"):
        copied(pipe())
    for chain, kind in ((pipe(), "Loader"), (pipe().map(abs), "PythonLoader")):
        with chain.loader(batch_size=2, workers=0) as loader:
            with pytest.raises(TypeError, match=f"a drapps.{kind} cannot be pickled or copied: .* make it where it is"):
                copied(loader)
