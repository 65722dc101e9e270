"""DataLoader's worker processes: iterable data sets."""

import os
import random
import signal
import warnings

import pytest
from loadersets import Bookmark, Stream, drained, lists, workers_of
from torch.utils import data

from drapps import DataLoader

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def test_streams_with_states_go_on_in_their_workers():
    def loader():
        return DataLoader(Bookmark(40), 3, num_workers=2)

    whole, saved, again = lists(loader()), loader(), loader()
    iterator = iter(saved)
    begun = [next(iterator).tolist() for _ in range(5)]
    state = saved.state_dict()
    assert [worker[1] for worker in state["dataset"]["workers"]] == [{"at": 9}, {"at": 6}]
    again.load_state_dict(state)
    assert begun + lists(again) == whole


def test_streams_need_the_same_number_of_workers():
    saved = DataLoader(Stream(40), 3, num_workers=2)
    next(iter(saved))
    with pytest.raises(ValueError, match="iterable_workers 2"):
        DataLoader(Stream(40), 3, num_workers=1).load_state_dict(saved.state_dict())


def test_a_killed_worker_of_a_stream_goes_on():
    iterator = iter(DataLoader(Stream(20000), 10, num_workers=2, prefetch_factor=1))
    found = next(iterator).tolist()
    os.kill(random.choice(workers_of(iterator)), signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="was replaced"):
        found += sum(lists(iterator), [])
    assert sorted(found) == list(range(20000))


class OneBad(data.IterableDataset):
    """An iterator that goes on after an error; not a generator, which would not."""

    def __iter__(self):
        self.at = -1
        return self

    def __next__(self):
        self.at += 1
        if self.at == 5:
            raise ValueError("item 5")
        if self.at == 40:
            raise StopIteration
        return self.at


def test_a_stream_goes_on_after_an_error():
    expected = [[0, 1, 2, 3], "ValueError", *(list(range(i, min(i + 4, 40))) for i in range(6, 40, 4))]
    assert drained(iter(data.DataLoader(OneBad(), 4, num_workers=1))) == expected
    assert drained(iter(DataLoader(OneBad(), 4, num_workers=1))) == expected


class MarkedBad(OneBad):
    """The same, which can say where it is."""

    at = -1

    def __iter__(self):
        return self

    def state_dict(self):
        return self.at

    def load_state_dict(self, state):
        self.at = state


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_state_after_an_error_is_that_of_the_last_batch(n):
    saved, again = (DataLoader(MarkedBad(), 2, num_workers=1) for _ in range(2))
    iterator = iter(saved)
    found = [next(iterator).tolist() for _ in range(2)]
    for _ in range(2, n):
        try:
            found.append(next(iterator).tolist())
        except ValueError:
            pass
    again.load_state_dict(saved.state_dict())
    found += [batch for batch in drained(iter(again)) if batch != "ValueError"]
    assert sum(found, []) == [i for i in range(40) if i not in (4, 5)]


def test_a_last_batch_that_ctrl_c_kept_from_the_consumer_is_in_the_state():
    saved, again = (DataLoader(Stream(5), 3, num_workers=1) for _ in range(2))
    iterator = iter(saved)
    assert next(iterator).tolist() == [0, 1, 2]
    iterator._next_data()  # is made and not given
    again.load_state_dict(saved.state_dict())
    assert lists(again) == [[3, 4]]


def test_a_killed_worker_of_a_stream_with_an_error_goes_on():
    iterator = iter(DataLoader(OneBad(), 4, num_workers=1, prefetch_factor=1))
    found = [next(iterator).tolist()]
    with pytest.raises(ValueError, match="item 5"):
        next(iterator)
    found.append(next(iterator).tolist())
    os.kill(workers_of(iterator)[0], signal.SIGKILL)
    with warnings.catch_warnings(action="ignore"):  # the pass may be over before the death is heard of
        found += drained(iterator)
    assert sum(found, []) == [i for i in range(40) if i not in (4, 5)]
