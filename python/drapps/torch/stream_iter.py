"""StreamIter: a pass over an iterable data set, of which each worker process has its own iterator.

Batches are asked of the workers in turn, as torch does it; one whose iterator has ended is left out from then on.
"""

from functools import partial

from torch._utils import ExceptionWrapper
from torch.utils.data import get_worker_info
from torch.utils.data._utils.worker import _IterableDatasetStopIteration

from drapps.passes.order import stateful
from drapps.torch import init_fns
from drapps.torch.worker_iter import WorkerIter


class Noting:
    """A collate_fn that also says how many samples it got, and where the data set is after them."""

    def __init__(self, collate, batched):
        self._collate, self._batched = collate, batched

    def __call__(self, samples):
        dataset = get_worker_info().dataset
        state = dataset.state_dict() if stateful(dataset) else None
        return self._collate(samples), len(samples) if self._batched else 1, state


class Stream:
    """What was delivered of one worker's iterator."""

    def __init__(self, saved=None):
        self.items, self.state, self.over = saved or (0, None, False)
        self.ended = self.over  # is not asked any more; over: and all that it gave is delivered
        self.tasks = 0  # asked for and not answered

    def saved(self):
        return self.items, self.state, self.over


class Streams(list):
    """Those of all workers, and whose turn it is.  Progress keeps it when the iterator is gone."""

    def __init__(self, saved):
        super().__init__(map(Stream, saved["workers"]))
        self.turn = saved["turn"]

    def delivered(self, worker, n, state, over):
        """The consumer has n more items of a worker; the state of its data set after them, and whether these were all.
        An error that came in their place has none, and a state of its own neither."""
        stream = self[worker]
        stream.items, stream.state, stream.over = stream.items + n, state if n else stream.state, over
        self.turn = (worker + 1) % len(self)

    def state(self):
        return {"workers": [stream.saved() for stream in self], "turn": self.turn}


class StreamIter(WorkerIter):
    """Whatever comes next."""

    def _open(self, loader, resume):
        saved = resume["dataset"]["workers"] if resume else []
        return self._open_pool(loader, self._dataset, Noting(self._collate_fn, self._auto_collation), kind="iterable",
                                worker_init_fn=init_fns.of_workers(loader, self),
                                states=[state for _, state, _ in saved])  # fmt: skip

    def _setup(self, loader, resume):
        saved = resume["dataset"] if resume else {"workers": [None] * self._n_workers, "turn": 0}
        self._streams = Streams(saved)
        self._size, self._in_order = loader.batch_size, loader.in_order
        self._next_worker = saved["turn"]
        self._asked = {}  # by tag: the worker
        for worker, stream in enumerate(self._streams):
            if stream.items:
                self._pool.skip_items(worker, stream.items)
        self._progress.data_state = self._streams.state

    # --- posting ---

    def _worker(self):
        """The next one in turn that has something left; None when there is none."""
        most = self._ahead() // max(1, sum(not stream.ended for stream in self._streams))
        for step in range(self._n_workers):
            worker = (self._next_worker + step) % self._n_workers
            stream = self._streams[worker]
            if not stream.ended and (self._in_order or stream.tasks < most):
                return worker
        return None

    def _post(self, work):
        worker = self._worker()
        if worker is None or not self._pool.post(work.number, self._size, worker=worker):
            return False
        self._next_worker = (worker + 1) % self._n_workers
        self._streams[worker].tasks += 1
        self._asked[work.number] = worker
        return True

    def _over(self):
        return self._under_way == 0

    # --- results ---

    def _accept(self, result):
        worker, number = self._asked.pop(result.tag), result.tag
        stream = self._streams[worker]
        stream.tasks -= 1
        if isinstance(result.value, _IterableDatasetStopIteration):
            stream.ended = stream.over = True
            return self._progress.delivered(number)
        if isinstance(result.value, ExceptionWrapper):
            value, n, state = result.value, 0, None
        else:
            value, n, state = result.value
            stream.ended |= self._auto_collation and n < self._size
        return value, n, partial(commit, self._progress, number, self._streams, worker, n, state, stream.ended)


def commit(progress, number, streams, worker, *delivered):
    """The consumer has the batch.  (It does not hold the iterator.)"""
    progress.delivered(number)
    streams.delivered(worker, *delivered)
