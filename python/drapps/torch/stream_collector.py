"""StreamCollector: posts the batches of an iterable data set, of which each worker process has its own iterator, and
makes batches for the consumer of what comes back.

Batches are asked of the workers in turn, as torch does it; one whose iterator has ended is left out from then on.
"""

from functools import partial

from torch._utils import ExceptionWrapper
from torch.utils.data import get_worker_info
from torch.utils.data._utils.worker import _IterableDatasetStopIteration

from drapps.passes.order import stateful


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


class StreamCollector:
    """The batches of one pass between the order and the consumer.

    saved: the Streams.state() where the pass continues; None: it begins.  size: items of a batch.
    """

    holds = False  # results come in their turn

    def __init__(self, pool, progress, saved, *, size, in_order, batched):
        saved = saved or {"workers": [None] * pool.workers, "turn": 0}
        self._pool, self._progress, self._streams = pool, progress, Streams(saved)
        self._size, self._in_order, self._batched = size, in_order, batched
        self._next_worker = saved["turn"]
        self._asked = {}  # by tag: the worker
        for worker, stream in enumerate(self._streams):
            if stream.items:
                pool.skip_items(worker, stream.items)
        progress.data_state = self._streams.state

    def post(self, work):
        """Posts a batch for the worker whose turn it is; False: none has something left, or the pool is full."""
        worker = self._worker()
        if worker is None or not self._pool.post(work.number, self._size, worker=worker):
            return False
        self._next_worker = (worker + 1) % len(self._streams)
        self._streams[worker].tasks += 1
        self._asked[work.number] = worker
        return True

    def _worker(self):
        """The next one in turn that has something left; None when there is none."""
        streams = self._streams
        most = self._pool.window.batches // max(1, sum(not stream.ended for stream in streams))
        for step in range(len(streams)):
            worker = (self._next_worker + step) % len(streams)
            if not streams[worker].ended and (self._in_order or streams[worker].tasks < most):
                return worker
        return None

    def is_over(self, poster):
        """Whether nothing of the pass is left to be delivered.  The order has no end here."""
        return self._pool.window.in_flight == 0

    def accept(self, result):
        """(batch or its error, samples, what to call once it is delivered) of a result; None: a worker's end."""
        worker, number = self._asked.pop(result.tag), result.tag
        stream = self._streams[worker]
        stream.tasks -= 1
        if isinstance(result.value, _IterableDatasetStopIteration):
            stream.ended = stream.over = True
            return self._progress.delivered_batch(number)
        if isinstance(result.value, ExceptionWrapper):
            value, n, state = result.value, 0, None
        else:
            value, n, state = result.value
            stream.ended |= self._batched and n < self._size
        return value, n, partial(commit, self._progress, number, self._streams, worker, n, state, stream.ended)

    def finish(self):
        """The pass is over."""


def commit(progress, number, streams, worker, *delivered):
    """The consumer has the batch.  (It holds neither the collector nor the pool.)"""
    progress.delivered_batch(number)
    streams.delivered(worker, *delivered)
