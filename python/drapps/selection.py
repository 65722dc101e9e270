"""Selection of samples: take, skip, select, split, concat, and single samples by index.

A selected sample keeps its id, and with it its random choices: pipe.take(10) makes the same of a sample as pipe.
Ranges and splits take no memory per sample, a list of indices takes 8 bytes per sample.
"""

import math
from operator import index as as_index

from drapps import _core


class Selecting:
    """The methods of Pipeline that select samples of its source."""

    __slots__ = ()

    # --- fewer samples ---

    def take(self, n):
        """Return a pipeline over the first n samples (or all, if there are fewer).

        >>> len(pipe.take(4))
        4
        """
        return self._cut("take", slice(0, _count("take", n)))

    def skip(self, n):
        """Return a pipeline over all but the first n samples.

        >>> len(pipe.skip(4))
        2
        """
        return self._cut("skip", slice(_count("skip", n), None))

    def select(self, indices):
        """Return a pipeline over the samples with these indices, in this order.

        indices: ints (negative ones count from the end) as a list, range, NumPy array or tensor; or one bool per
            sample.  A sample that occurs several times is augmented differently each time.

        >>> len(pipe.select([5, 0, -1]))
        3
        """
        self._check_positions("select")
        if isinstance(indices, range):
            return self._of(_from_range(self._dataset, indices))
        return self._of(self._dataset.select(_as_array(indices, len(self))))

    def split(self, lengths, seed=0):
        """Return pipelines over random parts of the samples, as torch.utils.data.random_split does.

        lengths: counts that sum to len(pipe), or fractions that sum to 1: counts are rounded down, and the first parts
            get one of the remaining samples each.
        seed: decides which sample goes to which part, the same way in every process.

        >>> train, val = pipe.split([0.5, 0.5], seed=1)
        >>> len(train), len(val)
        (3, 3)
        """
        counts = _split_counts(lengths, len(self))
        shuffled, first, parts = self._dataset.shuffled(_count("split: seed", seed)), 0, []
        for count in counts:
            parts.append(self._of(shuffled.slice(first, 1, count)))
            first += count
        return parts

    # --- more samples ---

    def concat(self, *others):
        """Return a pipeline over the samples of this one, then those of others with the same fields, classes and ops.

        The ids of the others' samples follow those of this pipeline.  pipe + other is the same.

        >>> len(pipe.concat(pipe))
        12
        """
        for other in others:
            if not isinstance(other, type(self)):
                raise _core.ArgumentError(f"concat: others must be pipelines, got {other!r}")
            if not self._same_stages(other):
                raise _core.ArgumentError("concat: the pipelines have different ops; concat the sources, then add ops")
        return self._of(_core.concat((self._dataset, *(other._dataset for other in others))))

    def __add__(self, other):
        return self.concat(other) if isinstance(other, type(self)) else NotImplemented

    # --- single samples ---

    def __getitem__(self, index):
        """pipe[i]: sample i as a dict of NumPy arrays (images as height x width x channels), numbers and texts, as
        map() functions get it, with the random choices of seed 0 and epoch 0.  pipe[a:b]: a pipeline.

        >>> pipe[0]["image"].shape, pipe[-1]["label"], len(pipe[::2])
        ((32, 32, 3), 2, 3)
        """
        if isinstance(index, slice):
            return self._cut("a slice", index)
        self._check_positions("an index")
        try:
            number = as_index(index)
        except TypeError:
            raise TypeError(f"an index must be an int or a slice, got {index!r}; select() takes lists") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"index must be from {-len(self)} to {len(self) - 1}, got {number}")
        return self._sample(number % len(self))

    def __iter__(self):
        """Yield each sample as pipe[i], without samples that a filter drops.  For training, use loader()."""
        for i in range(len(self)):
            sample = self._sample(i)
            if sample is not None:
                yield sample

    def _sample(self, position):
        """Return the sample at a position of the source's order; None if a filter dropped it."""
        runner, self._runner = self._runner, None  # the runner serves one thread at a time
        if runner is None:
            from drapps.stages import SampleRunner

            runner = SampleRunner(self, 0, False, False)
        sample = runner.run(0, position)
        self._runner = runner
        return None if sample is None else dict(sample.fields)

    # --- parts ---

    def _of(self, dataset):
        return type(self)(dataset, self._stages)

    def _cut(self, what, part):
        self._check_positions(what)
        return self._of(_from_range(self._dataset, range(len(self))[part]))

    def _check_positions(self, what):
        if any(getattr(stage, "kind", None) == "filter" for stage in self._stages):
            raise _core.ArgumentError(
                f"{what} after filter(): which samples a filter keeps is known only when it has run; "
                "put it before the filter, or iterate over the pipeline"
            )

    def _same_stages(self, other):
        """Return whether two pipelines have the same stages; size=224 equals size=(224,)."""
        if self.has_python or other.has_python:
            return self._stages == other._stages
        return self.to_json() == other.to_json()


def _from_range(dataset, places):
    return dataset.slice(places.start if len(places) else 0, places.step, len(places))


def _count(what, n):
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 0:
        raise _core.ArgumentError(f"{what} must be a non-negative int, got {n!r}")
    return as_index(n)


def _as_array(indices, n):
    """Return non-negative indices as contiguous int64."""
    import numpy

    array = numpy.asarray(indices)
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise _core.ArgumentError(f"select: indices must be a list of ints, or a bool for each sample, got {indices!r}")
    if array.dtype.kind == "b":
        if array.size != n:
            raise _core.ArgumentError(f"select: indices must be {n} bools, one for each sample, got {array.size}")
        return numpy.flatnonzero(array).astype(numpy.int64)
    if array.size and array.dtype.kind == "u" and array.max() > numpy.iinfo(numpy.int64).max:
        raise _core.ArgumentError(f"select: indices must be below {n}, the number of samples, got {array.max()}")
    array = array.astype(numpy.int64)
    return numpy.where(array < 0, array + n, array) if (array < 0).any() else array


def _split_counts(lengths, n):
    lengths = list(lengths) if hasattr(lengths, "__iter__") else lengths
    if (
        not isinstance(lengths, list)
        or not lengths
        or not all(isinstance(part, (int, float)) and part >= 0 for part in lengths)
    ):
        raise _core.ArgumentError(f"split: lengths must be counts or fractions, got {lengths!r}")
    if math.isclose(sum(lengths), 1) and not (n == 1 and all(isinstance(part, int) for part in lengths)):
        counts = [math.floor(n * part) for part in lengths]
        for i in range(n - sum(counts)):
            counts[i % len(counts)] += 1
        return counts
    if sum(lengths) != n or not all(isinstance(part, int) for part in lengths):
        raise _core.ArgumentError(
            f"split: lengths must be ints that sum to the {n} samples, or fractions that sum to 1, got {lengths!r}"
        )
    return lengths
