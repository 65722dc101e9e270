"""Ctrl-C at any point of a DataLoader's next(): caught, and gone on with, nothing is lost and nothing comes twice."""

import os
import signal
import sys
import traceback

import numpy
import pytest
import torch
from loadersets import Numbers, none_left

import drapps
from drapps import DataLoader

HERE = os.path.dirname(drapps.__file__)


class Stream(torch.utils.data.IterableDataset):
    """24 numbers."""

    def __iter__(self):
        return iter(range(24))


class Interrupter:
    """Sends SIGINT at the n-th point of drapps's code in the main thread since the count began.

    Points are where Python looks for signals: the beginnings of functions and the ends of calls of C.
    """

    def __init__(self):
        self.left, self._pid = 0, os.getpid()

    def profile(self, frame, event, _arg):
        """For sys.setprofile."""
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(HERE) and os.getpid() == self._pid:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)


def interrupted_everywhere(loader, iterator=None):
    """What a pass gives when its first next() is interrupted at its first point, its second one at its second, ..., and
    from the first again whenever one has come to its end; the states after interrupts, and how many there were."""
    iterator, interrupter = iterator or iter(loader), Interrupter()
    found, states, interrupts, n = [], [], 0, 0
    while True:
        n += 1
        interrupter.left = n
        sys.setprofile(interrupter.profile)
        try:
            batch = next(iterator)
        except KeyboardInterrupt:
            interrupts += 1
            states.append((len(found), loader.state_dict()))
            continue
        except StopIteration:
            return found, states, interrupts
        finally:
            sys.setprofile(None)
        found.append(batch)
        n = 0


@pytest.fixture(autouse=True)
def python_handles_sigint():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def loaders():
    return {
        "inline": lambda: DataLoader(Numbers(24), 4, num_workers=0),
        "workers": lambda: DataLoader(Numbers(24), 4, num_workers=2),
        "skip": lambda: DataLoader(Numbers(24), 4, num_workers=2, on_bad_sample="skip"),
        "stream": lambda: DataLoader(Stream(), 4, num_workers=1),
    }


@pytest.fixture(autouse=True)
def leaves_no_process():
    yield
    assert none_left()


@pytest.mark.parametrize("kind", loaders())
def test_nothing_is_lost(kind):
    found, states, interrupts = interrupted_everywhere(loaders()[kind]())
    assert [batch.tolist() for batch in found] == [list(range(i, i + 4)) for i in range(0, 24, 4)]
    assert interrupts > 100 and all(n == yielded(state) for n, state in states)


@pytest.mark.parametrize("in_order", [True, False])
def test_nothing_is_lost_natively(in_order):
    loader = DataLoader(torch.utils.data.TensorDataset(torch.arange(24)), 4, num_workers=1, in_order=in_order)
    found, states, interrupts = interrupted_everywhere(loader)
    assert loader._plan.is_native and len(found) == 6
    assert sorted(torch.cat([x for x, in found]).tolist()) == list(range(24))
    assert interrupts > 100 and all(n == yielded(state) for n, state in states)


def test_no_interrupt_is_lost_while_processes_start():
    """Hooks of fork swallow what a handler raises in them."""
    signals = [signal.SIGINT]  # for the first fork from now on
    os.register_at_fork(after_in_parent=lambda: signals and signal.raise_signal(signals.pop()))
    with pytest.raises(KeyboardInterrupt):
        iter(DataLoader(Numbers(24), 4, num_workers=1))


def ids_of(batches):
    return [i for batch in batches for i in batch.ids]


def rest_of(loader, state):
    """The samples that a loader gives from a state on."""
    with loader:
        loader.load_state_dict(state)
        return ids_of(loader.batches())


@pytest.mark.parametrize("in_order", [True, False])
def test_nothing_is_lost_of_a_pipeline(folder, in_order):
    def make():
        pipe = drapps.read(folder).decode().resize((8, 8))
        return pipe.loader(batch_size=4, workers=1, output="numpy", in_order=in_order)

    loader = make()
    expected = sorted(ids_of(loader.batches()))
    found, states, interrupts = interrupted_everywhere(loader, loader.batches())
    assert sorted(ids_of(found)) == expected and interrupts > 20
    for n, state in states:
        assert sorted(ids_of(found[:n]) + rest_of(make(), state)) == expected


def same(sample):
    return sample


def test_a_state_after_an_interrupt_of_a_chain_with_functions():
    """Its epoch may end then; the state says what was given all the same."""

    def make():
        return drapps.from_arrays(x=numpy.arange(12)).map(same).loader(batch_size=4, workers=0)

    for n in range(1, 1000):
        loader, interrupter = make(), Interrupter()
        batches = loader.batches()
        first = next(batches)
        interrupter.left = n
        sys.setprofile(interrupter.profile)
        try:
            next(batches)
            break
        except KeyboardInterrupt:
            sys.setprofile(None)
            assert ids_of([first]) + rest_of(make(), loader.state_dict()) == list(range(12))
        finally:
            sys.setprofile(None)
    assert n > 10


# --- not caught ---


def interrupted(loader, interrupter, n):
    """A loop that Ctrl-C ends in a next(), at its n-th point."""
    try:
        for _ in loader:
            interrupter.left = n
            sys.setprofile(interrupter.profile)
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("kind", ["workers", "skip", "stream"])
def test_whoever_keeps_the_traceback_keeps_no_workers(kind):
    """As notebooks do, and an interactive Python.  (The first point is the beginning of __next__ itself, where nothing
    can be caught yet.)"""
    kept = []
    for n in range(2, 60, 7):
        loader = loaders()[kind]()
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupted(loader, Interrupter(), n)
        kept.append(caught)
        assert none_left(), n
        assert sum(batch.numel() for batch in loader) == 24  # the next pass
    assert len(kept) > 5


def test_nor_threads(folder):
    loader = DataLoader(torch.utils.data.TensorDataset(torch.arange(24)), 4, num_workers=1)
    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted(loader, Interrupter(), 5)
    assert loader._plan.is_native and not loader._iterators and caught.value.__traceback__ is not None


def test_an_error_of_a_data_set_keeps_its_frames_and_no_workers():
    class Fails(Numbers):
        """With something to look at."""

        def __getitem__(self, i):
            what_is_wrong = i + 1000
            raise ValueError(what_is_wrong)

    def run(workers):
        with pytest.raises(ValueError, match="1000") as caught:
            for _ in DataLoader(Fails(4), 4, num_workers=workers):
                pass
        return caught.tb

    *_, (frame, _) = traceback.walk_tb(run(0))
    assert frame.f_locals["what_is_wrong"] == 1000
    trace = run(1)
    assert none_left() and trace is not None


def yielded(state):
    """Batches that the consumer has, of six."""
    return 6 if state["_iterator_finished"] else state["_num_yielded"]
