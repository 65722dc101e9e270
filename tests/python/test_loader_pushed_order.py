"""Loaders whose order the caller gives, batch by batch."""

import threading

import numpy as np
import pytest

import drapps
from drapps import _core

N = 50


@pytest.fixture(scope="module")
def pipe():
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (N, 12, 10, 3), dtype=np.uint8)
    arrays = drapps.from_arrays(image=images, label=np.arange(N))
    return arrays.random_crop(8).random_horizontal_flip()


def open_loader(pipe, **options):
    return pipe.loader(pushed_order=True, output="numpy", seed=4, **options)


def read(loader, batches, epoch=0):
    loader.set_epoch(epoch)
    given = loader.batches()
    for ids in batches:
        loader.push(ids)
    loader.push_end()
    return [(batch.ids, batch.positions, batch["image"].copy()) for batch in given]


def same(a, b):
    return len(a) == len(b) and all(x[:2] == y[:2] and np.array_equal(x[2], y[2]) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_as_pushed(pipe, workers):
    batches = [[3, 1, 2], [49], np.array([7, 7, 0, 12, 13]), range(10, 14)]
    with open_loader(pipe, batch_size=4, workers=workers) as loader:
        got = read(loader, batches)
        assert len(loader) == 4
        assert same(got, read(loader, batches))
    assert [ids for ids, _, _ in got] == [list(ids) for ids in batches]
    assert [p for _, positions, _ in got for p in positions] == list(range(13))


def test_out_of_order_fills_batches(pipe):
    with open_loader(pipe, batch_size=4, workers=2, in_order=False) as loader:
        got = read(loader, [range(4), range(4, 8), [8, 9, 10]])
    assert sorted(i for ids, _, _ in got for i in ids) == list(range(11))
    assert [len(ids) for ids, _, _ in got] == [4, 4, 3]
    assert all(ids == positions for ids, positions, _ in got)


def test_kept_batches_stay_together(pipe):
    batches = [[1, 2, 3], [5], [8, 9]]
    with open_loader(pipe, workers=2, in_order=False, keep_batches=True) as loader:
        got = read(loader, batches)
    assert sorted(ids for ids, _, _ in got) == batches


def test_an_epoch_is_gone_on_with(pipe):
    batches = [[3, 1], [1, 3], [1, 4], [4, 4]]
    with open_loader(pipe, batch_size=2, workers=2) as loader:
        whole = read(loader, batches, epoch=6)
        loader.set_epoch(6)
        rest = loader.batches()
        loader.push_past([3, 1, 1, 3], batches=2)
        loader.push(batches[2])
        loader.push(batches[3])
        loader.push_end()
        got = [(batch.ids, batch.positions, batch["image"].copy()) for batch in rest]
    assert same(got, whole[2:])


def test_an_epoch_is_made_again_in_another_order(pipe):
    batches = [[3, 1], [1, 3], [1, 4]]
    with open_loader(pipe, batch_size=2, workers=2) as loader:
        (a, b, c) = (images for _, _, images in read(loader, batches, epoch=6))
        loader.set_epoch(6)
        again = loader.batches()
        loader.push([1, 1], [2, 1])
        loader.push([1, 4], [0, 0])
        with pytest.raises(ValueError, match="times must be 2 ints, one for each id, got 1"):
            loader.push([1, 4], [0])
        loader.push_end()
        got = [batch["image"].copy() for batch in again]
    assert np.array_equal(got[0], [c[0], b[0]]) and np.array_equal(got[1], [a[1], c[1]])


def test_pushed_from_another_thread(pipe):
    with open_loader(pipe, batch_size=1, workers=2) as loader:
        batches = loader.batches()

        def feed():
            for i in range(N):
                loader.push([i])
            loader.push_end()

        thread = threading.Thread(target=feed)
        thread.start()
        assert [batch.ids[0] for batch in batches] == list(range(N))
        thread.join()


def test_a_wait_may_end(pipe):
    with open_loader(pipe, workers=1) as loader:
        iter(loader)
        with pytest.raises(TimeoutError):
            loader._core.next(1)
        loader.push([1])
        assert loader._core.next(60_000).ids == [1]


def test_mistakes_are_named(pipe):
    with open_loader(pipe, workers=1) as loader:
        with pytest.raises(_core.StateError, match="start must come before"):
            loader.push([1])
        iter(loader)
        with pytest.raises(_core.ArgumentError, match=f"must be 0 to {N - 1}, got {N}"):
            loader.push([0, N])
        with pytest.raises(_core.ArgumentError, match="samples, got 0"):
            loader.push([])
        with pytest.raises(OverflowError):
            loader.push([-1])
        with pytest.raises(TypeError):
            loader.push([0.5])
        with pytest.raises(_core.StateError, match="the caller gives the order"):
            loader.state_dict()
        with pytest.raises(ValueError, match="batches must be a non-negative int, got -1"):
            loader.push_past([], -1)
    with pytest.raises(_core.ArgumentError, match="pushed_order"):
        pipe.loader(pushed_order=True, shuffle=True)
    with pytest.raises(_core.StateError, match="pushed_order"):
        pipe.loader().push([1])
