"""Several consumer threads share one loader: does any of them starve?"""

import threading
import time

from ..case import Case, Column, Workload
from ..consumer import Tally, hold
from ..timed_work import TimedWork


class Locked:
    """Makes an iterator thread-safe, for loaders that do not promise it."""

    def __init__(self, batches):
        self.batches, self.lock = batches, threading.Lock()

    def __next__(self):
        with self.lock:
            return next(self.batches)


class Alone:
    """Each consumer begins its step when its batch is there."""

    def meet(self):
        pass

    def leave(self):
        pass


class Lockstep:
    """Steps of n consumers begin together, as with synchronised gradients; consumers without a
    batch left do not count."""

    def __init__(self, n):
        self._n, self._here, self._round, self._changed = n, 0, 0, threading.Condition()

    def meet(self):
        with self._changed:
            mine = self._round
            self._here += 1
            self._release_if_all_arrived()
            self._changed.wait_for(lambda: self._round != mine)

    def leave(self):
        with self._changed:
            self._n -= 1
            self._release_if_all_arrived()

    def _release_if_all_arrived(self):
        if self._here >= self._n:
            self._here = 0
            self._round += 1
            self._changed.notify_all()


class Consumer(threading.Thread):
    """Takes all batches and holds each for a step; records the keys."""

    def __init__(self, batches, step_s, others):
        super().__init__()
        self.batches, self.step_s, self.others = batches, step_s, others
        self.keys, self.taken, self.held, self.error = [], 0, 0.0, None

    def run(self):
        try:
            while True:
                batch = next(self.batches)
                self.keys.append(batch[-1].clone())
                del batch
                self.taken += 1
                self.others.meet()
                self.held += hold(self.step_s)
        except StopIteration:
            pass
        except BaseException as error:  # raised again by the joining thread
            self.error = error
        finally:
            self.others.leave()


def drain_shared(batches, n, step_s):
    """Drain `batches` with n threads; return (consumers, wall seconds)."""
    return drain_each([batches] * n, step_s)


def drain_each(queues, step_s, others=None):
    """Drain each queue (they may be the same) with a thread; return (consumers, wall seconds).  others: Lockstep."""
    threads = [Consumer(batches, step_s, others or Alone()) for batches in queues]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - began
    for thread in threads:
        if thread.error:
            raise thread.error
    return threads, wall


def shared(batches, loader):
    """Return the iterator: torch's behind a lock, drapps's without."""
    return Locked(batches) if loader == "torch" else batches


def tally_of(threads, n):
    tally = Tally(n)
    for thread in threads:
        for keys in thread.keys:
            tally.add(keys)
    return tally


def run(make, case, options):
    arguments = dict(case.arguments)
    n = arguments.pop("consumers")
    data = TimedWork([options["sample_ms"]] * options["samples"], None)
    threads, wall = drain_shared(shared(iter(make(data, **arguments)), case.loader), n, options["step_ms"] / 1e3)
    tally_of(threads, len(data)).check()
    taken = [thread.taken for thread in threads]
    return {"share": max(taken) / max(1, min(taken)), "wall_s": wall}


def cases(options):
    arguments = {"batch_size": options["batch"], "num_workers": options["workers"]}
    return [Case(f"{loader}, {n} consumers", loader, {**arguments, "consumers": n})
            for n in options["consumers"] for loader in ("torch", "drapps")]


WORKLOAD = Workload(
    title="Consumer threads that share one loader",
    options={"samples": 8000, "batch": 5, "workers": 2, "sample_ms": 1, "step_ms": 20, "consumers": [1, 2, 4, 8]},
    quick={"samples": 100, "step_ms": 5, "consumers": [1, 3]},
    cases=cases, run=run, columns=(Column("largest / smallest share", "share", 3), Column("wall s", "wall_s", 1)),
    notes=lambda result: ["Accelerators emulated.  torch's iterator is behind a lock."],
)
