"""JPEGs read in ranges over HTTP: what the server sends, counted by its own log."""

import os

import numpy as np
import pytest
from servers import nginx, python_server
from test_ranges import (
    EPOCHS,
    as_tar,
    assert_equal,
    crops,
    files_of,
    images,  # noqa: F401  a fixture
    n_sequential,
    run,
    write_image,
)

import drapps


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    monkeypatch.delenv("DRAPPS_SEEK_INDEX", raising=False)
    monkeypatch.delenv("DRAPPS_RANGES", raising=False)


@pytest.mark.parametrize("ranges", ["auto", "on"])
def test_a_folder_of_a_web_server(images, ranges):  # noqa: F811
    with nginx(images) as url:
        want, whole = run(crops(drapps.read(f"{url}/")), "off")
        got, stats = run(crops(drapps.read(f"{url}/")), ranges)
    assert_equal(got, want)
    assert stats["range_samples"] == stats["range_reads"] == (EPOCHS - 1) * n_sequential()
    assert stats["range_again"] == 0
    saved = stats["range_bytes_stored"] - stats["range_bytes_read"]
    assert saved > 0.2 * stats["range_bytes_stored"]
    assert stats["bytes_read"] == whole["bytes_read"] - saved


def test_shards_of_a_web_server(images):  # noqa: F811
    as_tar(images)
    with nginx(images.parent) as url:
        path = f"{url}/train-{{0..2}}.tar"
        want, _ = run(crops(drapps.read(path)), "off")
        got, stats = run(crops(drapps.read(path)), "auto")
    assert_equal(got, want)
    assert stats["range_samples"] >= (EPOCHS - 1) * n_sequential()
    assert stats["range_bytes_read"] < 0.8 * stats["range_bytes_stored"]


def test_a_replaced_object_is_noticed(images):  # noqa: F811
    with nginx(images) as url:
        pipe = crops(drapps.read(f"{url}/"))
        with pipe.loader(batch_size=8, seed=3, workers=2, outputs="image", output="numpy", ranges="on",
                         seek_index="memory") as loader:  # fmt: skip
            for epoch in range(2):
                loader.set_epoch(epoch)
                for _ in loader:
                    pass
            for i, path in enumerate(files_of(images)[:6]):
                write_image(path.parent / "new", 100 + 10 * i)
                os.replace(path.parent / "new", path)
            loader.set_epoch(2)
            got = [np.array(batch["image"]) for batch in loader]
            stats = loader.stats()
        want, _ = run(crops(drapps.read(f"{url}/")), "off", range(2, 3), shuffle=False)
    assert_equal(got, want)
    assert stats["range_again"] >= 4


def test_a_server_without_ranges(images):  # noqa: F811
    """It sends whole files, whatever is asked for: the batches are the same."""
    with python_server(images) as url:
        want, _ = run(crops(drapps.read(f"{url}/")), "off", range(2))
        got, _ = run(crops(drapps.read(f"{url}/")), "on", range(2))
    assert_equal(got, want)
