"""Data sets and helpers for the tests of DataLoader; at module level, so that spawned workers find them."""

import gc
import random
import time

import numpy
import psutil
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Numbers(Dataset):
    """0, 1, 2, ... as tensors."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(f"{i} of {self.n}")
        return torch.tensor(i)


class Pairs(Numbers):
    """An array, a label and a name."""

    def __getitem__(self, i):
        return numpy.full((2, 3), i, "float32"), i, f"n{i}"


class Rolls(Numbers):
    """What the three global generators give at each sample."""

    def __getitem__(self, i):
        return torch.tensor([random.random(), numpy.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class Many(Numbers):
    """Gets whole batches at once."""

    def __getitems__(self, indices):
        return [torch.tensor(i * 10) for i in indices]


class Ranges(Numbers):
    """Gets batches as slices."""

    def __getitems__(self, part):
        return [torch.tensor(i) for i in range(self.n)[part]]


class Faulty(Numbers):
    """Some samples cannot be made."""

    def __init__(self, n, bad):
        super().__init__(n)
        self.bad = set(bad)

    def __getitem__(self, i):
        if i in self.bad:
            raise ValueError(f"no sample {i}")
        return torch.tensor(i)


class Slow(Numbers):
    """Some samples take long."""

    def __init__(self, n, slow, seconds):
        super().__init__(n)
        self.slow, self.seconds = set(slow), seconds

    def __getitem__(self, i):
        if i in self.slow:
            time.sleep(self.seconds)
        return torch.tensor(i)


class Burning(Numbers):
    """Numbers that take so many seconds of CPU time each."""

    def __init__(self, n, seconds):
        super().__init__(n)
        self.seconds = seconds

    def __getitem__(self, i):
        burn(self.seconds)
        return super().__getitem__(i)


class Stream(IterableDataset):
    """Counts; each worker takes its part."""

    def __init__(self, n, split=True):
        self.n, self.split = n, split

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info and self.split else (0, 1)
        return iter(range(first, self.n, step))


class SizedStream(Stream):
    """With a length, which may be wrong."""

    def __len__(self):
        return self.n // 2


class Bookmark(Stream):
    """A stream that can say where it is."""

    def __init__(self, n):
        super().__init__(n)
        self.at, self.restored = 0, 0

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        while first + self.at * step < self.n:
            self.at += 1
            yield first + (self.at - 1) * step
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]
        self.restored += 1


class Cards:
    """A sampler with a state of its own, on which alone its order hangs; another one in each pass."""

    def __init__(self, n):
        self.n, self.at, self.turn = n, 0, 0

    def __iter__(self):
        while self.at < self.n:
            self.at += 1
            yield (self.at * 7 + self.turn) % self.n
        self.at, self.turn = 0, self.turn + 1

    def __len__(self):
        return self.n

    def state_dict(self):
        return {"at": self.at, "turn": self.turn}

    def load_state_dict(self, state):
        self.at, self.turn = state["at"], state["turn"]


def burn(seconds):
    """Uses CPU time of this process."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def lists(loader):
    """The batches of a pass, as lists."""
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in loader]


def drained(iterator):
    """Batches as lists, and the names of errors."""
    found = []
    while True:
        try:
            found.append(next(iterator).tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)


def workers_of(iterator):
    """The worker processes of a pass."""
    return list(iterator._pool.pids.values())


def who(_):
    """The worker that makes a sample."""
    info = get_worker_info()
    return info.id, info.num_workers, info.seed


class Who(Numbers):
    """(worker, workers, seed) at each sample."""

    def __getitem__(self, i):
        return torch.tensor(who(i))


class Nested(Numbers):
    """Each sample is a small pass of a loader of its own."""

    def __getitem__(self, i):
        from drapps import DataLoader

        return sum(int(batch.sum()) for batch in DataLoader([i, i], batch_size=2))


class Holding(Numbers):
    """Each sample is a pass of a loader that was made before."""

    def __init__(self, n, inner):
        super().__init__(n)
        self.inner = inner

    def __getitem__(self, i):
        return sum(int(torch.as_tensor(batch[0] if isinstance(batch, list) else batch).sum()) for batch in self.inner)


class Shared(Numbers):
    """Says which step it is and notes what was asked for, in memory that it shares with the trainer."""

    def __init__(self, n):
        super().__init__(n)
        self.step = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.asked = torch.nn.Parameter(torch.zeros(n).share_memory_(), requires_grad=False)
        self.same = [self.asked[:3], self.asked[3:]]

    def __getitem__(self, i):
        self.same[i // 3][i % 3] += 1
        return self.step.clone()


def children():
    """Workers of this process, and what they were forked from, that live."""
    found = psutil.Process().children(recursive=True)
    return [p for p in found if psutil.pid_exists(p.pid) and p.name().startswith("drapps-")]


def none_left(seconds=10):
    """Waits for processes to be gone."""
    end = time.monotonic() + seconds
    gc.collect()  # an exception that was caught may hold the frame that holds the iterator
    while children() and time.monotonic() < end:
        time.sleep(0.02)
    return not children()
