"""The iterator that a worker has over an iterable data set."""

from itertools import chain, repeat

from torch.utils.data._utils.worker import _IterableDatasetStopIteration

OF_ITERATOR = 1 << 63  # tags of random states: apart from those of batches


class Items:
    """The iterator of an iterable data set."""

    def __init__(self, worker):
        self._worker = worker
        self._epoch = self._iterator = None

    def _begin(self, request):
        worker = self._worker
        worker.seed_pipe(request.shared_seed)
        worker.seed_anew(request)
        self._epoch, self._taken, self._ended = request.epoch, 0, False
        self._iterator = iter(worker.dataset)

    def _next(self, request):
        self._worker.seed(request, OF_ITERATOR + self._worker.number, self._taken)
        self._taken += 1
        return next(self._iterator)

    def take(self, claim, request):
        """The next batch, collated; or torch's object that says that there is none."""
        self._worker.crew.begin(self._worker.number, 0)
        if self._epoch != request.epoch:
            self._begin(request)
            self._catch_up(request)
        try:
            data = self._batch(request.items()[0], request)
        except StopIteration:
            self._ended = True
            return _IterableDatasetStopIteration(self._worker.number)
        return self._worker.setup.collate_fn(data)

    def _catch_up(self, request):
        """To where the pass was that this one continues, and the worker that this one replaces: an error ended its
        batch, and the next one began with the item after it."""
        n, skipped, batches = request.items()
        for size in chain(repeat(None, skipped), repeat(n, batches)):
            try:
                self._batch(size, request)
            except StopIteration:
                self._ended = True
                return
            except Exception:
                continue

    def _batch(self, n, request):
        if self._ended:
            raise StopIteration
        if n is None:
            return self._next(request)
        data = []
        while len(data) < n and not self._ended:
            try:
                data.append(self._next(request))
            except StopIteration:
                self._ended = True
        if not data or (self._worker.setup.drop_last and len(data) < n):
            raise StopIteration
        return data
