"""Loader: batches from a pipeline, epoch after epoch.

LoaderBase has what all loaders share: epochs, iteration, state.  Loader runs natively; pyloader.py has the loader of
pipelines with Python stages.
"""

import atexit
import json
import operator
import os
import threading
import weakref
from contextlib import contextmanager
from numbers import Real

from drapps import _core, metrics, output as outputs
from drapps.arguments import EPOCH, check
from drapps.batch import Batch, deliver
from drapps.counted import counted
from drapps.passes import pass_state as state_checks
from drapps.passes.bad_samples import BadList
from drapps.passes.cursor import wait_range
from drapps.sched import check_knob, weights_text
from drapps.trace import warn_if_broken, warn_if_renamed

GIVEN_UP = "iterator invalidated: the loader was closed, restored or iterated again"
CANCEL_AGAIN_S = 0.01  # s: a thread may have begun to wait just after the pass was cancelled

_open_loaders = weakref.WeakSet()


@atexit.register
def _close_all():
    """At interpreter exit, stop threads and processes while modules still exist."""
    for loader in list(_open_loaders):
        loader.close()


class Epoch:
    """One pass over the data: an iterator that threads may share; each batch goes to one of them."""

    __slots__ = ("_boxes", "_loader", "_number", "_wrap")

    def __init__(self, loader, number, wrap, boxes):
        self._loader = loader
        self._number = number
        self._wrap = wrap
        self._boxes = boxes

    def __iter__(self):
        return self

    def __next__(self):
        box = self._boxes.setdefault(threading.get_ident(), [])
        with wait_range():
            batch = self.take(box)
        error = batch.error
        value = None if error else self._wrap(batch)
        del box[:]
        if error:
            raise error
        return value

    def take(self, box):
        """Return the next batch, also one that failed.

        box: a list that also holds the batch until the caller empties it, so that a signal that interrupts the call
        loses no batch.
        """
        return self._loader._next_batch(self._number, box)


class LoaderBase:
    """Epochs, iteration and state.

    A subclass defines _start, _next, _cancel, _native_state, _check_inner, _restore and _stop.
    """

    def __init__(self, batches_output):
        self.output = batches_output
        self._epoch = 0  # the epoch that the next iter() starts
        self._pass = 0  # counts iter() calls: an older iterator must not take batches of a newer one
        self._running = False  # an epoch has started and not ended
        self._resume = False  # the next iter() continues where a restored state says
        self._spent = False  # ... and there is nothing left: the last batch of the epoch was delivered
        self._boxes = {}  # by thread: a batch that was taken and not yet delivered
        self._inside = set()  # number of threads that wait for a batch
        self._changed = threading.Condition()  # guards all of the above
        self._bad_list = BadList()
        self._pid = os.getpid()
        _open_loaders.add(self)
        metrics.from_environment()

    # --- iteration ---

    def __iter__(self):
        """Start the next epoch (or continue a restored one).  An epoch that is still running is abandoned."""
        return self._begin(deliver)

    def batches(self):
        """Iterate over drapps.Batch objects, which also have ids, positions, draws and bad samples.

        >>> batch = next(loader.batches())
        >>> len(batch.ids)
        4
        """
        return self._begin(lambda batch: batch)

    def _begin(self, wrap):
        self._check_process()
        with self._changed:
            self._give_up()
            if not self._resume:
                self._start(self._epoch)
                self._spent = False
            self._resume = False
            self._epoch += 1
            self._running = True
            self._boxes = {}
            return Epoch(self, self._pass, wrap, self._boxes)

    def _give_up(self):
        """End the running pass, and wait until no thread waits for its batches."""
        self._pass += 1
        self._inside.discard(threading.get_ident())  # a signal may have kept this thread from leaving
        while self._inside:
            self._cancel()
            self._changed.wait(CANCEL_AGAIN_S)

    def _next_batch(self, number, box):
        try:
            self._enter(number)
            batch = None if self._spent else self._next(box)
        except _core.CancelledError:
            raise _core.StateError(GIVEN_UP) from None
        finally:
            self._leave()
        if batch is None:
            self._running = self._spent = False
            raise StopIteration
        self._bad_list.add_rows(batch.bad, batch.epoch)
        return batch

    def _check_process(self):
        """Raise in a forked child: it has neither threads nor processes, and the lock may be held
        by a missing thread."""
        if os.getpid() != self._pid:
            raise _core.ForkedError("the loader belongs to the parent process; make a new one in this process")

    def _enter(self, number):
        self._check_process()
        with self._changed:
            if number != self._pass:
                raise _core.StateError(GIVEN_UP)
            self._inside.add(threading.get_ident())

    def _leave(self):
        with self._changed:
            self._inside.discard(threading.get_ident())
            self._changed.notify_all()

    def set_epoch(self, epoch):
        """Make the next iter() start that epoch.  A restored state of the same epoch is kept; one of another epoch is
        dropped, and a warning is logged."""
        check(EPOCH, {"epoch": epoch})
        epoch = operator.index(epoch)
        if epoch != self._epoch:
            if self._resume and not self._spent:
                state_checks.warn_of_dropped_state(epoch, self._epoch)
            self._resume = False
        self._epoch = epoch

    @property
    def epoch(self):
        """The running epoch, or the epoch that the next iter() starts."""
        return self._epoch - 1 if self._running else self._epoch

    def bad_samples(self):
        """Return the newest 1000 samples that were left out or replaced, oldest first, as named tuples (index, name,
        error, epoch).

        >>> for bad in loader.bad_samples():
        ...     print(bad.name, bad.error)
        """
        return self._bad_list.newest()

    # --- state ---

    def _held(self):
        """Return the batch whose delivery to this thread a signal interrupted: the next call
        delivers it.  Else None."""
        box = self._boxes.get(threading.get_ident())
        return box[0] if box else None

    def state_dict(self):
        """Return the state of the loader: small, of plain values, valid for any number of workers.

        A batch whose delivery Ctrl-C interrupted does not count as delivered.

        >>> state = loader.state_dict()
        >>> loader.load_state_dict(state)
        """
        return {"loader": self._native_state(), "epoch": self.epoch, "running": self._running or self._resume}

    def load_state_dict(self, state):
        """Continue from a state: the next iter() delivers the batches that were not delivered when it was saved.

        An invalid state raises an error that names the field, and leaves the loader unchanged.
        """
        self._check_state(state)
        self._check_process()
        with self._changed:
            self._give_up()
            self._boxes = {}
            self._restore(state["loader"])
            self._running = False
            self._resume = state["running"]
            self._spent = self._resume and state["loader"]["epoch"] != state["epoch"]
            self._epoch = state["epoch"]

    def _check_state(self, state):
        if not isinstance(state, dict) or not {"loader", "epoch", "running"} <= set(state):
            raise _core.ArgumentError("state must be the state of a drapps loader, with loader, epoch and running")
        inner = state_checks.mapping(state, "loader")
        epoch, running = state_checks.whole(state, "epoch"), state_checks.flag(state, "running")
        self._check_inner(inner)
        # After the last batch of a pass, the inner state is at the beginning of the next pass.
        if running and epoch != inner["epoch"] and (epoch + 1 != inner["epoch"] or inner.get("position")):
            state_checks.wrong("epoch", f"the epoch of the inner state, {inner['epoch']}", epoch)

    # --- closing ---

    def give_up(self):
        """End the running pass when the samples in work are done.  The next iter() starts a new pass."""
        if os.getpid() == self._pid:
            with self._changed:
                self._give_up()
                self._running = False
                self._cancel()

    def close(self):
        """Stop the workers and free the memory.  Batches that are still held stay valid."""
        if os.getpid() == self._pid:
            with self._changed:
                self._give_up()
                self._stop()
        _open_loaders.discard(self)

    def __reduce__(self):
        raise TypeError(f"a drapps.{type(self).__name__} cannot be pickled or copied: it has threads or processes; "
                        "make it where it is used")  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Loader(LoaderBase):
    """Batches from a pipeline without Python stages, made by native threads.

    Made by Pipeline.loader.  Iterating yields (images, labels), or a dict by field name for other outputs.
    """

    timeout_ms = -1  # longest wait for a batch; then TimeoutError
    at_end = None  # called with the loader and its stats() when it is closed
    _last_stats, _last_decisions = None, ()  # those at the time it was closed

    def __init__(self, dataset, graph, output="auto", resource_monitor=None, adaptive_compression=True, **options):
        self._dataset = dataset
        self._batch_size = options["batch_size"]
        monitor = getattr(resource_monitor, "_core", resource_monitor)
        self._core = _core.open_loader(dataset, graph, monitor=monitor, adaptive=adaptive_compression, **options)
        super().__init__(output)
        if options.get("trace") is not None:
            warn_if_renamed(os.fsdecode(options["trace"]), self._trace)
        outputs.choose(output)  # raises here what would fail at the first batch

    def _start(self, epoch):
        self._core.start(epoch)

    def _next(self, box):
        core = box[0] if box else self._core.next(self.timeout_ms, box)
        if core is None:  # no batch reported the bad samples after the last one
            self._bad_list.add_rows(json.loads(self._core.unreported_bad()), self.epoch)
        return None if core is None else Batch(core, outputs.choose(self.output))

    def _cancel(self):
        self._core.cancel()

    def _native_state(self):
        return json.loads(self._core.state(self._held()))

    def _check_inner(self, state):
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as error:
            raise _core.ArgumentError(f"state: loader must be made of plain values: {error}") from None
        self._core.check_state(text)

    def _restore(self, state):
        self._core.restore(json.dumps(state))

    def _stop(self):
        trace = None
        try:
            stats, self._last_decisions = self.stats(), self._core.decisions(0)
            trace, self._last_stats = stats["trace"], stats
            tell, self.at_end = self.at_end, None
            if tell is not None:
                tell(self, stats)
        except _core.Error:  # closed before, or the parent's
            pass
        self._core.close()
        warn_if_broken(trace)

    def __len__(self):
        """Return the number of batches of an epoch for this rank; with pushed_order, of those pushed so far."""
        return self._core.batches()

    # --- an order given by the caller (pushed_order=True) ---

    def push(self, ids, times=None):
        """Push the samples of the next batch of the running epoch.  Work on them starts at once.

        times: how often each sample occurred before, to repeat an epoch in another order with the same random choices.

        >>> loader = pipe.loader(batch_size=2, pushed_order=True)
        >>> batches = loader.batches()
        >>> loader.push([3, 1])
        >>> loader.push_end()
        >>> [batch.ids for batch in batches]
        [[3, 1]]
        """
        if times is None:
            self._core.push(ids)
        else:
            self._core.push_occurrences(ids, times)

    def push_end(self):
        """End the epoch: the iterator stops after the last pushed batch."""
        self._core.push_end()

    def push_past(self, ids, batches=0):
        """Count samples (and batches) as already delivered, without making them, to resume an epoch.

        What is pushed afterwards has the positions, batch numbers and random choices of the whole epoch.
        """
        self._core.push_past(ids, batches)

    def prefetch_window(self, wanted):
        """Return how many batches to keep in flight: `wanted`, or more if the policy sets the knob "prefetch" higher.

        >>> with pipe.loader(batch_size=2, pushed_order=True, prefetch=4) as loader:
        ...     loader.prefetch_window(3)
        3
        """
        return self._core.prefetch_window(wanted)

    def set_replacements(self, ids):
        """Choose the samples that may replace bad ones.  Call it once, before the first epoch.

        >>> loader = pipe.loader(batch_size=2, pushed_order=True, on_bad_sample="replace")
        >>> loader.set_replacements([0, 1, 2])
        >>> loader.close()
        """
        self._core.set_replacements(ids)

    # --- looking inside ---

    def stats(self):
        """Return counters and times since the loader was opened, as a dict; docs/stats.md lists them."""
        facts = json.loads(self._core.stats())
        facts["knobs"] = {knob: self._core.get(knob) for knob in facts["knobs"]}  # JSON has one kind of number
        return facts

    def last_stats(self):
        """Return stats(), of a closed loader those at the time it was closed."""
        return self._last_stats if self._core.closed and self._last_stats else self.stats()

    @property
    def policy(self):
        """Return the name of the policy that runs, one of drapps.policies()."""
        return self.last_stats()["policy"]

    @property
    def _trace(self):
        """Return the trace's part of stats(); None without a trace and for a closed loader."""
        return None if self._core.closed else self.stats()["trace"]

    def decisions(self, after=0):
        """Return the last decisions of the policy with numbers above `after`, oldest first: a list of drapps.Decision.

        They can be read after the loader is closed, too.

        >>> for decision in loader.decisions():
        ...     print(decision.reason)
        """
        from drapps.sched import Decision

        if self._core.closed:
            return [one for one in map(Decision.of, self._last_decisions) if one.number > after]
        return [Decision.of(facts) for facts in self._core.decisions(after)]

    def explain(self):
        """Return a description of what runs: ops, shapes, fusion, workers, memory budget."""
        return self._core.explain()

    def running(self):
        """Return the samples in work, longest first: dicts with worker (below 0: a reader), id, key and seconds.

        >>> for at in loader.running():
        ...     print(at["key"], at["seconds"])
        """
        return json.loads(self._core.running())

    def profile(self, samples=64):
        """Measure the ops: means over some samples that are run in this thread, CPU time in microseconds.

        Returns a dict.  ops: op, field, us, in_bytes and out_bytes of each op, run unfused.  read_us, store_us: before
        and after the ops.  sum_us: the sum of all these.  cpu_us: the same by the thread's clock.  fused_us: a sample
        as the loader runs it, with ops fused and only the needed region decoded.

        >>> facts = loader.profile(4)
        >>> [(op["op"], op["out_bytes"]) for op in facts["ops"]][-1]
        ('resize', 3072)
        """
        return json.loads(self._core.profile(samples))

    def set(self, knob, value):
        """Set a knob, one of drapps.knobs(), while the loader runs.  The policy no longer changes it.

        >>> loader.set("prefetch", 4)
        >>> loader.get("prefetch")
        4
        """
        if not isinstance(value, Real):
            check_knob(knob, value)  # raises an error with the allowed values
        self._core.set(knob, value)

    @contextmanager
    def pause(self):
        """Say that what runs inside the `with` block is no training: an evaluation, a checkpoint.

        The policy decides nothing meanwhile and does not take the silence for a slow consumer.  Batches are made ahead
        as far as memory allows; afterwards all knobs are what they were.  Pauses nest.

        >>> with loader.pause():
        ...     accuracy = 0.5  # evaluate, save a checkpoint
        """
        self._set_paused(True)
        try:
            yield
        finally:
            if not self._core.closed:
                self._set_paused(False)

    def _set_paused(self, paused):
        self._core.pause(paused)

    def set_weights(self, weights):
        """Change what the policy aims for while the loader runs; weights: as for the loader, None: "step".

        >>> loader.set_weights({"energy": 0.4})
        """
        self._core.set_weights(weights_text(weights))

    def get(self, knob):
        """Return the value of a knob; of a closed loader, its last value."""
        knobs = self._last_stats["knobs"] if self._core.closed and self._last_stats else {}
        return knobs[knob] if knob in knobs else self._core.get(knob)

    def __repr__(self):
        if self._core.closed:
            return "<drapps.Loader, closed>"
        return (
            f"<drapps.Loader of {self._dataset.name}: {counted(len(self), 'batch', 'batches')} of {self._batch_size}, "
            f"epoch {self.epoch}, {counted(self.get('workers'), 'worker')}>"
        )
