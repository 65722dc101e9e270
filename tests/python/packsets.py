"""Data sets of every kind to pack, and what tests do with packed sets."""

import json
import pathlib

import numpy
from PIL import Image
from imagesets import picture, train

import drapps

SMALL = 24_000  # bytes of a shard: some samples of the sets here


def write_list(folder, tmp_path):
    """A list of the folder's files, with masks, texts, numbers, boxes."""
    rows = []
    (tmp_path / "masks").mkdir()
    for i, path in enumerate(sorted(pathlib.Path(folder).rglob("*.jpg"))):
        mask = tmp_path / "masks" / f"{i}.png"
        width, height = Image.open(path).size
        picture(i, height, width).convert("L").save(mask)
        row = {"path": str(path), "label": i % 4, "mask": str(mask), "caption": f"Bild {i}: \"größer\"\n" * (i % 3),
               "weight": i / 3, "boxes": [[0, 1, 5 + i, 9.5]] * (i % 3 + 1)}  # fmt: skip
        rows.append(json.dumps(row))
    path = tmp_path / "list.jsonl"
    path.write_text("\n".join(rows))
    return path


def everything(pipe, **options):
    """All fields of all samples, as pipe[i] has them."""
    return [pipe[i] for i in range(len(pipe))]


def assert_same_samples(a, b):
    assert len(a) == len(b)
    for x, y in zip(everything(a), everything(b)):
        assert list(x) == list(y)
        for name in x:
            if isinstance(x[name], numpy.ndarray):
                assert x[name].dtype == y[name].dtype and numpy.array_equal(
                    x[name], y[name], equal_nan=x[name].dtype.kind == "f"
                )
            else:
                assert x[name] == y[name] and type(x[name]) is type(y[name])


def batches(pipe, **options):
    """(fields by name, ids) of the batches of two epochs."""
    options = {"batch_size": 5, "shuffle": True, "seed": 3, "output": "numpy", **options}
    found = []
    with pipe.loader(**options) as loader:
        for _ in range(2):
            for batch in loader.batches():
                found.append(({name: batch[name] for name in batch.keys()}, list(batch.ids)))
    return found


def assert_same_batches(a, b, **options):
    """Equal bytes, whatever is drawn."""
    first, second = batches(a, **options), batches(b, **options)
    assert len(first) == len(second) > 0
    for (x, ids), (y, others) in zip(first, second):
        assert ids == others and list(x) == list(y)
        for name in x:
            if isinstance(x[name], numpy.ndarray):
                assert x[name].dtype == y[name].dtype and x[name].tobytes() == y[name].tobytes()
            else:
                assert [as_plain(v) for v in x[name]] == [as_plain(v) for v in y[name]]


def as_plain(value):
    return value.tolist() if hasattr(value, "tolist") else bytes(value) if isinstance(value, memoryview) else value


def shards_of(folder):
    return json.loads((pathlib.Path(folder) / "drapps-set.json").read_text())["shards"]


def tree(folder):
    """{name: bytes} of all files below a folder, but for what drapps learns beside them."""
    root = pathlib.Path(folder)
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*"))
            if path.is_file() and not path.name.endswith(".drapps-seek")}  # fmt: skip


__all__ = ["SMALL", "as_plain", "assert_same_batches", "assert_same_samples", "batches", "drapps", "shards_of", "train",
           "tree", "write_list"]  # fmt: skip
