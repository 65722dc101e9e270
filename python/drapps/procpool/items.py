"""The iterator that a worker has over an iterable data set."""

from itertools import chain, repeat

from torch.utils.data._utils.worker import _IterableDatasetStopIteration

OF_ITERATOR = 1 << 63  # tags of random states: apart from those of batches


def restore(dataset, state):
    """Puts a data set where it was, before it is iterated.  One that is its own iterator may need to be iterated first:
    it is put there again then."""
    try:
        dataset.load_state_dict(state)
    except Exception:
        if not hasattr(dataset, "__next__"):
            raise


def iterated_from(dataset, state):
    """An iterator that goes on from a state of the data set."""
    restore(dataset, state)
    iterator = iter(dataset)
    if iterator is dataset:  # which may have begun anew
        dataset.load_state_dict(state)
    return iterator


class Items:
    """The iterator of an iterable data set."""

    def __init__(self, worker):
        self._worker = worker
        self._epoch = self._iterator = None

    def _begin(self, request):
        worker = self._worker
        worker.seed_pipe(request.shared_seed)
        worker.seed_anew(request)
        self._taken, self._ended = 0, False
        state, skipped = self._state(), request.items()[1]
        if state is None or not skipped:
            self._iterator = iter(worker.dataset)
        else:
            self._iterator, self._taken = iterated_from(worker.dataset, state), skipped
        self._epoch = request.epoch

    def _state(self):
        """Of the data set, where the pass goes on; None where it has none."""
        states = self._worker.setup.states
        return states[self._worker.number] if states else None

    def _next(self, request):
        self._worker.seed(request, OF_ITERATOR + self._worker.number, self._taken)
        self._taken += 1
        return next(self._iterator)

    def take(self, claim, request):
        """The next batch, collated; or torch's object that says that there is none."""
        self._worker.shmpool.begin(self._worker.number, 0)
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
        skipped -= self._taken  # which its state has brought it over
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
