"""Data sets that hold something open: nobody gets forked workers for them who did not ask for workers."""

import io
import logging
import multiprocessing
import sqlite3
import threading
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from loadersets import Numbers, Stream, lists
from torch.utils import data

from drapps import DataLoader
from drapps.torch.open_files import open_file_in

N = 400


class Rows(Numbers):
    """Numbers of eight digits, read from an open file."""

    def __init__(self, path, n=N):
        super().__init__(n)
        path.write_text("".join(f"{i:8}" for i in range(n)))
        self.file = open(path, "rb", buffering=0)

    def __getitem__(self, i):
        self.file.seek(8 * i)
        return int(self.file.read(8))


@pytest.fixture
def rows(tmp_path):
    found = Rows(tmp_path / "rows")
    yield found
    found.file.close()


def holding(thing, kind=Numbers):
    dataset = kind(4)
    dataset.thing = thing
    return dataset


def test_nobody_moves_the_place_in_anothers_file(rows):
    loader = DataLoader(rows, 4)
    assert "in the caller (the data set holds something open: Rows.file;" in loader.explain()
    assert sum(lists(loader), []) == list(range(N)) and loader.num_workers == 0


def test_workers_that_were_asked_for_are_started(rows):
    assert "in 1 worker process" in DataLoader(rows, 4, num_workers=1).explain()
    loader = DataLoader(rows, 4)
    loader.set("workers", 1)
    assert "in 1 worker process" in loader.explain() and sum(lists(loader), []) == list(range(N))


def test_a_file_that_is_opened_between_passes_counts(tmp_path):
    (tmp_path / "file").touch()
    loader = DataLoader(Numbers(8), 4)
    assert lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]] and loader.num_workers > 0
    with open(tmp_path / "file") as loader.dataset.file:
        assert lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]] and loader.num_workers == 0


def test_it_is_found_where_data_sets_have_it(rows, tmp_path):
    assert open_file_in(rows) == "Rows.file"
    assert open_file_in(data.Subset(rows, [1, 2])) == "Subset.dataset.file"
    assert open_file_in(data.ConcatDataset([Numbers(2), rows])) == "ConcatDataset.datasets[1].file"
    assert open_file_in(holding({"a": [rows.file]})) == "Numbers.thing['a'][0]"
    assert open_file_in(holding(rows.file, Stream)) == "Stream.thing"
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    with zipfile.ZipFile(tmp_path / "zip") as archive:
        assert open_file_in(holding(archive)) == "Numbers.thing.fp"
        both = data.Subset(data.ConcatDataset([holding(archive)] * 2), [0])
        assert open_file_in(both) == "Subset.dataset.datasets[0].thing.fp"
    ours, theirs = multiprocessing.Pipe()
    assert open_file_in(holding(ours)) == "Numbers.thing"
    for end in (ours, theirs):
        end.close()
    connection = sqlite3.connect(tmp_path / "base")
    assert open_file_in(holding(connection)) == "Numbers.thing"
    connection.close()


def test_threads_that_a_child_would_not_have_are_found():
    with ThreadPoolExecutor(1) as pool:
        assert open_file_in(holding(pool)) == "Numbers.thing"
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    assert open_file_in(holding(thread)) is None
    thread.start()
    assert open_file_in(holding(thread)) == "Numbers.thing"
    end.set()
    thread.join()


def test_what_is_harmless_is_passed_over(rows, tmp_path):
    rows.file.close()
    logger = logging.Logger("one of its own")
    logger.addHandler(logging.FileHandler(tmp_path / "log"))
    with open(tmp_path / "written", "w") as written:
        for thing in (rows.file, written, io.BytesIO(b"in memory"), logger, open, io, [1, 2], None):
            assert open_file_in(holding(thing)) is None
    logger.handlers[0].close()


def test_a_module_of_the_users_is_no_handle():
    kind = type("Rows", (Numbers,), {"__module__": "lmdb_rows"})
    assert open_file_in(kind(3)) is None


class Target:
    pass


def test_what_cannot_be_looked_at_is_passed_over():
    assert open_file_in(holding(weakref.proxy(Target()))) is None


def test_a_stream_with_a_file_can_be_resumed(rows):
    states, rest = [], None
    for _ in range(2):  # a second program
        loader = DataLoader(holding(rows.file, Stream), 2)
        assert loader.num_workers == 0
        if states:
            loader.load_state_dict(states[0])
            assert lists(loader) == rest
            continue
        batches = iter(loader)
        next(batches)
        states.append(loader.state_dict())
        rest = [batch.tolist() for batch in batches]
        assert rest


def test_a_loader_that_is_built_anew_has_no_workers_either(rows):
    loader = DataLoader(rows, 4)
    again = DataLoader(rows, 4, num_workers=loader.num_workers, prefetch_factor=loader.prefetch_factor)
    assert "in the caller (the data set holds something open: Rows.file;" in again.explain()


def test_workers_can_be_asked_for_after_all(rows):
    loader = DataLoader(rows, 4)
    assert sum(lists(loader), []) == list(range(N)) and loader.num_workers == 0
    loader.num_workers = 1
    assert "in 1 worker process" in loader.explain() and sum(lists(loader), []) == list(range(N))
    loader = DataLoader(rows, 4)
    lists(loader)
    loader.set("workers", 1)
    assert "in 1 worker process" in loader.explain() and sum(lists(loader), []) == list(range(N))


def test_what_refers_to_itself_has_an_end():
    dataset = holding([])
    dataset.thing.append(dataset)
    assert open_file_in(dataset) is None
