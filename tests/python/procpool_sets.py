"""Data sets for the tests of worker processes: in a module, which a process that is started afresh can import."""

import os
import random
import signal
import time

import numpy
import torch


class Squares:
    """(array of the index, its square)."""

    def __init__(self, n=1000, width=8):
        self.n, self.width = n, width

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return numpy.full(self.width, index, numpy.float32), index * index


class Draws(Squares):
    """What the global generators give."""

    def __getitem__(self, index):
        return index, random.random(), numpy.random.rand(), torch.rand(()).item(), torch.initial_seed()


class Batched(Squares):
    """Takes a whole batch of indices."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Unequal(Squares):
    """Arrays of several lengths, and text."""

    def __getitem__(self, index):
        return {"array": torch.arange(index % 5), "name": f"sample {index}"}


class Named(Squares):
    """A number and a text, which take a moment to make."""

    def __init__(self, seconds=0.0, bad=None):
        super().__init__()
        self.seconds, self.bad = seconds, bad

    def __getitem__(self, index):
        time.sleep(self.seconds)
        if index == self.bad:
            raise ValueError("bad")
        return {"number": index, "name": f"sample {index}", "parts": (str(index), torch.tensor(index))}


class Lengths(Squares):
    """The first hundred samples are shorter."""

    def __getitem__(self, index):
        return torch.full((5 if index < 100 else 9,), index)


class Big(Squares):
    """10 MB arrays."""

    def __getitem__(self, index):
        return numpy.full((10, 1 << 18), index, numpy.float32), index


class Faulty(Squares):
    """Some samples raise."""

    def __getitem__(self, index):
        if index % 7 == 3:
            raise ValueError(f"index {index} is bad")
        return index


class Local(Squares):
    """Raises an exception that cannot be pickled."""

    def __getitem__(self, index):
        class Mine(Exception):
            pass

        raise Mine("mine alone")


class Unpicklable(Squares):
    """A sample that cannot leave its process."""

    def __getitem__(self, index):
        return lambda: index


class Killer(Squares):
    """One sample kills its worker: always, or only the first time when it has a file to note that."""

    def __init__(self, note=None):
        super().__init__()
        self.note = note

    def __getitem__(self, index):
        if index == 13 and not (self.note and os.path.exists(self.note)):
            if self.note:
                open(self.note, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Slow(Squares):
    """Each sample takes a moment."""

    def __init__(self, seconds=0.003, stuck=None):
        super().__init__()
        self.seconds, self.stuck = seconds, stuck

    def __getitem__(self, index):
        time.sleep(1000 if index == self.stuck else self.seconds)
        return index


class Info(Squares):
    """What a worker knows of itself."""

    def __getitem__(self, index):
        info = torch.utils.data.get_worker_info()
        return info.id, info.num_workers, info.seed, type(info.dataset).__name__, os.getpid(), torch.get_num_threads()


class Stream(torch.utils.data.IterableDataset):
    """Each worker's own numbers, as many as its number says."""

    def __init__(self, lengths, note=None, seconds=0.0):
        self.lengths, self.note, self.seconds = lengths, note, seconds

    def __iter__(self):
        worker = torch.utils.data.get_worker_info().id
        for i in range(self.lengths[worker]):
            time.sleep(self.seconds)
            if self.note and worker == 0 and i == 7 and not os.path.exists(self.note):
                open(self.note, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield worker * 1000 + i


def as_list(samples):
    """A collate_fn that leaves samples as they are."""
    return list(samples)


def identity(sample):
    """A collate_fn for single samples."""
    return sample


def broken_collate(samples):
    """A collate_fn that fails."""
    raise IndexError("cannot collate")


def broken_init(worker):
    """A worker_init_fn that fails."""
    raise OSError(f"worker {worker} cannot start")
