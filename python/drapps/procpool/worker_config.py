"""What a pool's processes have in common, and how it gets to a process that was not forked from the trainer."""

import mmap
import os
from dataclasses import dataclass, replace
from multiprocessing.reduction import DupFd
from typing import Any

from drapps import _core
from drapps.procpool.pack import PackError, pack, unpack
from drapps.procpool.worker import Worker


@dataclass(frozen=True)
class Setup:
    """The settings of a pool."""

    dataset: Any
    collate_fn: Any
    worker_init_fn: Any
    states: Any  # of iterable data sets that go on: the state of each worker's, or None
    kind: str  # "map" or "iterable"
    auto_collation: bool
    drop_last: bool
    base_seed: int
    shared_seed: int | None  # of data pipes
    workers: int
    in_order: bool
    seed_samples: bool
    skip_bad: bool  # a sample's error is reported, and its batch made of the others
    shmpool: Any
    layouts: int  # the descriptor of the LayoutBook
    stacks: int  # the descriptor of the file where workers write their Python stacks when asked

    def opened(self):
        """Itself: a forked process has everything."""
        return self

    def parcel(self):
        """Itself for a process that is started afresh."""
        return Parcel(self)

    def new_worker(self, number):
        """A worker, before its process is forked."""
        return Worker(self, number)


class Parcel:
    """A Setup on its way through multiprocessing's pickle to a process that is started afresh.

    The data set goes into a file in memory, buffers apart: it is read there once, and its arrays are mapped.
    """

    def __init__(self, setup):
        self._setup = setup
        self._fd = os.memfd_create("drapps-setup")

    def close(self):
        """When the process is started."""
        os.close(self._fd)

    def __reduce__(self):
        setup = self._setup
        try:
            pack((setup.dataset, setup.collate_fn, setup.worker_init_fn, setup.states), self._map)
        except PackError as error:
            raise error.__cause__ from None
        bare = replace(setup, dataset=None, collate_fn=None, worker_init_fn=None, states=None, shmpool=None)
        fds = (self._fd, setup.shmpool.fd, setup.layouts, setup.stacks)
        return Received, (bare, tuple(map(DupFd, fds)))

    def _map(self, nbytes):
        os.ftruncate(self._fd, nbytes)
        return mmap.mmap(self._fd, nbytes)


class Received:
    """A Parcel that arrived."""

    def __init__(self, bare, fds):
        self._bare, self._fds = bare, fds

    def opened(self):
        """The Setup; what fails here is the data set's own."""
        parts, shmpool, layouts, stacks = (fd.detach() for fd in self._fds)
        memory = mmap.mmap(parts, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        os.close(parts)
        dataset, collate_fn, worker_init_fn, states = unpack(memory)
        return replace(self._bare, dataset=dataset, collate_fn=collate_fn, worker_init_fn=worker_init_fn,
                       states=states, shmpool=_core.join_shmpool(shmpool), layouts=layouts, stacks=stacks)  # fmt: skip
