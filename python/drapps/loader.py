"""Loader: batches from a pipeline, epoch after epoch.

LoaderBase has what every loader does alike: epochs, iteration, state.  Loader runs natively; a pipeline with Python
stages has its own in pyloader.py.
"""

import atexit
import json
import operator
import os
import threading
import weakref
from numbers import Real

from drapps import _core, metrics, output as outputs
from drapps.arguments import EPOCH, check
from drapps.batch import Batch, deliver
from drapps.counted import counted
from drapps.passes import pass_state as state_checks
from drapps.passes.bad_samples import BadList
from drapps.profiler_range import wait_range
from drapps.sched import check_knob
from drapps.trace import warn_if_broken, warn_if_renamed

GIVEN_UP = "this iteration was given up: the loader was closed, restored or iterated anew"
CANCEL_AGAIN_S = 0.01  # a thread may have come to wait just after it was cancelled

_open_loaders = weakref.WeakSet()


@atexit.register
def _close_all():
    """The interpreter ends: stop threads and processes while everything still exists."""
    for loader in list(_open_loaders):
        loader.close()


class Epoch:
    """One pass over the data: an iterator that any number of threads may share, each batch going to one of them."""

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
        """The next batch, also one that failed.  It is in the box, too, until that is emptied: a call that a signal
        ended loses nothing."""
        return self._loader._next_batch(self._number, box)


class LoaderBase:
    """Epochs, iteration and state; a subclass gives _start, _next, _cancel, _native_state, _check_inner,
    _restore and _stop."""

    def __init__(self, batches_output):
        self.output = batches_output
        self._epoch = 0  # the epoch that the next iter() begins
        self._pass = 0  # counts calls of iter(); an older iterator must not take the newer one's batches
        self._running = False  # an epoch was begun and has not ended
        self._resume = False  # the next iter() continues where a restored state says
        self._spent = False  # ... and nothing is left there: the epoch's last batch had been delivered
        self._boxes = {}  # by thread: a batch that was taken, until it is given
        self._inside = set()  # threads that wait for a batch
        self._changed = threading.Condition()  # for all of the above
        self._bad_list = BadList()
        self._pid = os.getpid()
        _open_loaders.add(self)
        metrics.from_environment()

    # --- iteration ---

    def __iter__(self):
        """Begins the next epoch (or continues a restored one); an epoch that runs is given up."""
        return self._begin(deliver)

    def batches(self):
        """Like iterating the loader, but gives drapps.Batch objects: ids, positions, draws, bad samples.

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
        """Ends the pass that runs: threads that wait for its batches leave before anything else begins."""
        self._pass += 1
        self._inside.discard(threading.get_ident())  # a signal may have kept it from leaving
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
        """A forked child has neither the threads nor the processes, and the lock may be held by a thread that is not
        there."""
        if os.getpid() != self._pid:
            raise _core.ForkedError("the loader belongs to the parent process; open one here")

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
        """Makes the next iter() begin that epoch.  A restored state of the same epoch is kept."""
        check(EPOCH, {"epoch": epoch})
        epoch = operator.index(epoch)
        if epoch != self._epoch:
            self._resume = False
        self._epoch = epoch

    @property
    def epoch(self):
        """The epoch that runs, or that the next iter() begins."""
        return self._epoch - 1 if self._running else self._epoch

    def bad_samples(self):
        """The samples that were left out or replaced, oldest first and at most the newest 1000: a list of named tuples
        (index, name, error, epoch).

        >>> for bad in loader.bad_samples():
        ...     print(bad.name, bad.error)
        """
        return self._bad_list.newest()

    # --- state ---

    def _held(self):
        """A batch that this thread was being given when a signal came: the next call gives it.  None: there is none."""
        box = self._boxes.get(threading.get_ident())
        return box[0] if box else None

    def state_dict(self):
        """Where the consumer is: small, made of plain values, valid for another number of workers.

        A batch that Ctrl-C kept from it does not count as delivered.

        >>> state = loader.state_dict()
        >>> loader.load_state_dict(state)
        """
        return {"loader": self._native_state(), "epoch": self.epoch, "running": self._running or self._resume}

    def load_state_dict(self, state):
        """Continues from a state: the next iter() delivers the batches that had not been delivered then.

        A state that is wrong is an error that names the field, and the loader goes on as if nothing was asked.
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
            raise _core.ArgumentError("not a state of a drapps loader: needs loader, epoch and running")
        inner = state_checks.mapping(state, "loader")
        epoch, running = state_checks.whole(state, "epoch"), state_checks.flag(state, "running")
        self._check_inner(inner)
        # After the last batch of a pass the inside is at the beginning of the next one.
        if running and epoch != inner["epoch"] and (epoch + 1 != inner["epoch"] or inner.get("position")):
            state_checks.wrong("epoch", f"that of the pass inside, {inner['epoch']}", epoch)

    # --- closing ---

    def give_up(self):
        """Ends the pass that runs, after what is being made now; the next iter() begins anew."""
        if os.getpid() == self._pid:
            with self._changed:
                self._give_up()
                self._running = False
                self._cancel()

    def close(self):
        """Stops workers and frees memory.  Batches that are still held stay valid."""
        if os.getpid() == self._pid:
            with self._changed:
                self._give_up()
                self._stop()
        _open_loaders.discard(self)

    def __reduce__(self):
        raise TypeError(f"a drapps.{type(self).__name__} cannot be pickled or copied: it has threads or processes; make it "
                        "where it is used")  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Loader(LoaderBase):
    """Batches from a pipeline without Python stages: all work is done by native threads.

    Made by Pipeline.loader.  Iterating gives (images, labels), or a dict by field name where the outputs are others.
    """

    timeout_ms = -1  # for a batch: then TimeoutError
    at_end = None  # called with itself and stats() when it is closed
    _last_stats, _last_decisions = None, ()  # as they were when it was closed

    def __init__(self, dataset, graph, output="auto", resource_monitor=None, adaptive_compression=True, **options):
        self._dataset = dataset
        self._batch_size = options["batch_size"]
        monitor = getattr(resource_monitor, "_core", resource_monitor)
        self._core = _core.open_loader(dataset, graph, monitor=monitor, adaptive=adaptive_compression, **options)
        super().__init__(output)
        if options.get("trace") is not None:
            warn_if_renamed(os.fsdecode(options["trace"]), self._trace)
        outputs.choose(output)  # says now what would fail at the first batch

    def _start(self, epoch):
        self._core.start(epoch)

    def _next(self, box):
        core = box[0] if box else self._core.next(self.timeout_ms, box)
        if core is None:  # of the bad samples after the last batch, none has told
            self._bad_list.add_rows(json.loads(self._core.untold()), self.epoch)
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
        """Batches of an epoch for this rank; with pushed_order, those pushed so far."""
        return self._core.batches()

    # --- an order given by the caller (pushed_order=True) ---

    def push(self, ids, times=None):
        """The next batch of the epoch that iter() began is made of these samples; work begins at once.

        times: how often each came before in an epoch that is made again in another order: it draws what it drew there.

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
        """No further batch comes in this epoch: the iterator ends after the last one pushed."""
        self._core.push_end()

    def push_past(self, ids, batches=0):
        """Counts samples (and batches) as pushed and delivered before, without making them: goes on with an epoch.

        What is pushed then has the positions, batch numbers and random draws that it has in the whole epoch.
        """
        self._core.push_past(ids, batches)

    def prefetch_window(self, wanted):
        """Batches to keep pushed and not yet delivered: `wanted`, or more while the policy sets the knob "prefetch".

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
        """Counters and times since the loader was opened, as a dict; docs/stats.md lists them."""
        facts = json.loads(self._core.stats())
        facts["knobs"] = {knob: self._core.get(knob) for knob in facts["knobs"]}  # JSON has one kind of number
        return facts

    def last_stats(self):
        """stats(); of a closed loader, as they were then."""
        return self._last_stats if self._core.closed and self._last_stats else self.stats()

    @property
    def policy(self):
        """Who turns the knobs while it runs: a name of drapps.policies()."""
        return self.last_stats()["policy"]

    @property
    def _trace(self):
        """What stats() says of the trace; None where there is none, and of a closed loader."""
        return None if self._core.closed else self.stats()["trace"]

    def decisions(self, after=0):
        """The last decisions of the policy with numbers above `after`, oldest first: a list of drapps.Decision.

        They can be read after the loader is closed, too.

        >>> for decision in loader.decisions():
        ...     print(decision.reason)
        """
        from drapps.sched import Decision

        if self._core.closed:
            return [one for one in map(Decision.of, self._last_decisions) if one.number > after]
        return [Decision.of(facts) for facts in self._core.decisions(after)]

    def explain(self):
        """What runs: ops, shapes, fusion, workers, budget, as text."""
        return self._core.explain()

    def running(self):
        """What the threads are at, who is longest at it first: a list of dicts with worker (below 0: one that only
        reads), id and key of the sample, and seconds since it was begun.

        >>> for at in loader.running():
        ...     print(at["key"], at["seconds"])
        """
        return json.loads(self._core.running())

    def profile(self, samples=64):
        """What the ops cost, as a dict: means over some samples that are run in this thread, CPU time in microseconds.

        ops: op, field, us, in_bytes and out_bytes of each, unfused; read_us and store_us: before and after them. sum_us is
        their sum and cpu_us what the thread's clock says of the same. fused_us is a sample as the loader runs it, which
        decodes only what is needed and runs several ops as one.

        >>> facts = loader.profile(4)
        >>> [(op["op"], op["out_bytes"]) for op in facts["ops"]][-1]
        ('resize', 3072)
        """
        return json.loads(self._core.profile(samples))

    def set(self, knob, value):
        """Changes a setting while it runs, a name of drapps.knobs(): the policy leaves it alone from then on.

        >>> loader.set("prefetch", 4)
        >>> loader.get("prefetch")
        4
        """
        if not isinstance(value, Real):
            check_knob(knob, value)  # says what is allowed
        self._core.set(knob, value)

    def get(self, knob):
        """The value of a setting; of a closed loader, what it was."""
        knobs = self._last_stats["knobs"] if self._core.closed and self._last_stats else {}
        return knobs[knob] if knob in knobs else self._core.get(knob)

    def __repr__(self):
        if self._core.closed:
            return "<drapps.Loader, closed>"
        return (
            f"<drapps.Loader of {self._dataset.name}: {counted(len(self), 'batch', 'batches')} of {self._batch_size}, "
            f"epoch {self.epoch}, {counted(self.get('workers'), 'worker')}>"
        )
