"""Hugging Face's data sets stay as they are: their columns, formats and transforms are Python, read batch by batch."""

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Subset

from imagesets import N_IMAGES, picture
from lower_sets import v2

from drapps.torch.lower import lower

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")

CHAIN = v2.Compose([v2.Resize((16, 16)), v2.ToImage()])


def to_tensors(rows):
    """What users give to with_transform: a function of a batch of rows."""
    return {"pixels": [CHAIN(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}


@pytest.fixture(scope="module")
def table(folder):
    paths = sorted(map(str, folder.rglob("*.jpg")))
    columns = {"image": paths, "label": [i % 3 for i in range(len(paths))]}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return datasets.Dataset.from_dict(columns, features=features)


def assert_left_alone(dataset):
    for by_default in (True, False):
        plan = lower(dataset, by_default)
        assert plan.pipe is None and plan.dataset is dataset
        assert plan.lines[0].startswith("Dataset: Python, a data set that is not torch's or torchvision's")
    assert lower(dataset, True, lower(dataset, True)).dataset is dataset


def test_with_transform(table):
    dataset = table.with_transform(to_tensors)
    assert_left_alone(dataset)
    batches = list(DataLoader(lower(dataset, True).dataset, batch_size=5))
    assert sum(len(batch["label"]) for batch in batches) == N_IMAGES
    assert batches[0]["pixels"].shape == (5, 3, 16, 16)


def test_image_column(table):
    assert_left_alone(table)
    assert lower(table, False).dataset[0]["image"].mode == "RGB"


def test_batches_of_rows(table, monkeypatch):
    """torch asks for all rows of a batch at once, and so it stays."""
    dataset = table.with_format("torch", columns=["label"])
    asked = []
    getitems = datasets.Dataset.__getitems__
    monkeypatch.setattr(datasets.Dataset, "__getitems__", lambda self, keys: asked.append(keys) or getitems(self, keys))
    labels = torch.cat([batch["label"] for batch in DataLoader(lower(dataset, True).dataset, batch_size=8)])
    assert labels.tolist() == [i % 3 for i in range(N_IMAGES)]
    assert [len(keys) for keys in asked] == [8, 8, 7]


def test_parts(table):
    part = Subset(table.with_transform(to_tensors), [4, 2])
    plan = lower(part, True)
    assert plan.dataset is part
    assert numpy.array_equal(plan.dataset[1]["pixels"], CHAIN(table[2]["image"].convert("RGB")))


def test_arrays():
    """Images that are stored in the table itself."""
    dataset = datasets.Dataset.from_dict({"image": [picture(i) for i in range(3)]})
    assert_left_alone(dataset)
    assert dataset[1]["image"].size == (64, 48)
