"""The consumer: takes batches, counts samples by their keys, holds each batch as long as an accelerator does."""

import time
import zlib


class WrongSamples(Exception):
    """Samples were delivered twice, never, or with wrong content."""


class Tally:
    """Counts the deliveries of each of n keys."""

    def __init__(self, n):
        self.counts = [0] * n

    def add(self, keys):
        for key in keys.tolist():
            self.counts[key] += 1

    def check(self, times=1):
        """Raise unless every key was delivered `times` times; return the number of samples."""
        wrong = {key: count for key, count in enumerate(self.counts) if count != times}
        if wrong:
            some = ", ".join(f"{key} x {count}" for key, count in list(wrong.items())[:5])
            raise WrongSamples(f"{len(wrong)} of {len(self.counts)} samples were not delivered {times} times: {some}")
        return sum(self.counts)


def fingerprint(keys, arrays):
    """Return a digest of samples and their content that does not depend on their order."""
    total = 0
    for key, array in zip(keys.tolist(), arrays.numpy()):
        total += (zlib.crc32(memoryview(array).cast("B")) + 1) * (2 * key + 1)
    return total % (1 << 61)


def whole_digest(loader, n):
    """Run an epoch with every byte hashed and every key counted; not timed.  Batches are (array, keys)."""
    tally, total = Tally(n), 0
    for arrays, keys in loader:
        tally.add(keys)
        total += fingerprint(keys, arrays)
    tally.check()
    return total % (1 << 61)


class Drained:
    """The consumer's figures of one epoch; times in seconds."""

    def __init__(self, wall, held, waits, first=0.0, end=0.0):
        self.wall, self.held, self.waits = wall, held, waits
        self.first, self.end = first, end  # from iter() to the first batch; from the last step to the end of the epoch

    @property
    def utilisation(self):
        """The share of the time in which the emulated accelerator had a batch."""
        return self.held / self.wall


def hold(seconds, began=None):
    """Emulate a step of an accelerator: wait until `began` + seconds without CPU; return the time it took."""
    began = time.perf_counter() if began is None else began
    time.sleep(max(0.0, began + seconds - time.perf_counter()))
    return time.perf_counter() - began


def drain(loader, step_s, take):
    """Run an epoch, from the call of iter() to its end, with a step for every batch.

    take(batch) runs at the beginning of the step: an accelerator does not wait for the host meanwhile.
    """
    waits, held, first, began = [], 0.0, 0.0, time.perf_counter()
    batches = iter(loader)
    while True:
        asked = time.perf_counter()
        try:
            batch = next(batches)
        except StopIteration:
            now = time.perf_counter()
            return Drained(now - began, held, waits, first, now - asked)
        got = time.perf_counter()
        waits.append(got - asked)
        first = first or got - began
        take(batch)
        del batch
        if step_s:
            held += hold(step_s, got)


def take_keys(tally):
    """Return a `take` for batches whose last part are the keys."""
    return lambda batch: tally.add(batch[-1])
