"""Loaders that come and go: opened, read in part, resized, dropped, hundreds of times; nothing is left behind.

    pytest tests/stress            (make check-stress)
"""

import gc
import hashlib
import os
import random
import threading

import numpy as np
import pytest
from PIL import Image

import drapps

CYCLES = 200
N_IMAGES = 60
SEED = int(os.environ.get("STRESS_SEED", random.randrange(2**32)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(3)
    for i in range(N_IMAGES):
        (root / f"c{i % 4}").mkdir(exist_ok=True)
        shape = (int(rng.integers(20, 200)), int(rng.integers(20, 200)), 3)
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(root / f"c{i % 4}" / f"{i}.jpg")
    return root


def open_loader(folder, **options):
    pipe = drapps.read(folder).decode().random_resized_crop(32).random_horizontal_flip()
    return pipe.loader(batch_size=7, shuffle=True, seed=5, output="numpy", **options)


def digest(batches):
    total = hashlib.sha256()
    for images, labels in batches:
        total.update(np.ascontiguousarray(images).tobytes() + np.ascontiguousarray(labels).tobytes())
    return total.hexdigest()


def count_threads():
    return len(os.listdir("/proc/self/task"))


def count_files():
    return len(os.listdir("/proc/self/fd"))


def test_open_read_some_drop(folder):
    """Partly read loaders leave no files and no growing number of threads, and whole ones always give the same."""
    print("STRESS_SEED =", SEED)
    rng = random.Random(SEED)
    want = digest(open_loader(folder, workers=0))
    assert digest(open_loader(folder, workers=4)) == want
    gc.collect()
    threads, files = count_threads(), count_files()
    for _ in range(CYCLES):
        loader = open_loader(folder, workers=rng.randint(0, 4))
        stop = rng.randint(0, 9)
        if stop == 9:
            assert digest(loader) == want
        for i, _batch in enumerate(loader):
            if i >= stop:
                break
        del loader
    gc.collect()
    assert count_files() <= files
    assert count_threads() <= threads


def test_loaders_side_by_side(folder):
    """Several loaders in several threads share the pool and do not disturb each other."""
    want = digest(open_loader(folder, workers=0))
    got = []

    def read():
        for _ in range(10):
            got.append(digest(open_loader(folder, workers=2)))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [want] * 60
