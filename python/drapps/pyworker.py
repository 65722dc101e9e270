"""Worker processes for Python stages.

The parent sends (task, epoch, positions); a worker answers with one outcome per position.  Arrays travel as pickle
protocol 5 with their buffers beside it.  A worker ends when its pipe closes or its parent is gone.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from multiprocessing import connection
from typing import NamedTuple

from drapps import _core
from drapps.stages import UserError

LOOK_FOR_PARENT_S = 5.0

# Errors of a sample's data, which on_bad_sample decides about.
BAD_DATA = (_core.FormatError, _core.IOError, _core.LimitError, _core.UnsupportedError, _core.FileMissingError)


class Outcome(NamedTuple):
    """What became of a position: "sample", "dropped" by a filter, "bad" (unreadable), or "failed" (in Python)."""

    position: int
    what: str
    sample: object = None
    id: int = -1
    key: str = ""
    error: object = None


def outcome_of(runner, epoch, position):
    """Runs one sample.  Errors of user functions come back as "failed", those of the data as "bad"."""
    try:
        sample = runner.run(epoch, position)
    except UserError as error:
        return Outcome(position, "failed", error=error.__cause__)
    except BAD_DATA as error:
        sample_id, _ = runner.place(epoch, position)
        return Outcome(position, "bad", id=sample_id, key=runner.dataset.key(sample_id), error=error)
    if sample is None:
        return Outcome(position, "dropped")
    return Outcome(position, "sample", sample=sample, id=sample.id)


# --- messages ---


def send(conn, value):
    """Sends a value; its arrays go without being copied into the pickle."""
    buffers = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    conn.send_bytes(len(buffers).to_bytes(4, "little") + head)
    for buffer in buffers:
        conn.send_bytes(buffer.raw())


def receive(conn):
    """The value of one send."""
    head = conn.recv_bytes()
    n_buffers = int.from_bytes(head[:4], "little")
    return pickle.loads(memoryview(head)[4:], buffers=[bytearray(conn.recv_bytes()) for _ in range(n_buffers)])


def portable(outcome):
    """The outcome with an error that can be pickled, and its traceback as a note."""
    if outcome.what != "failed":
        return outcome
    error = outcome.error
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"traceback in the worker process:\n{text}")
    return outcome._replace(error=error)


# --- the process ---


def work(conn, others, make_runner):
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the workers
    for other in others:
        other.close()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    parent = os.getppid()
    runner = None
    while True:
        while not conn.poll(LOOK_FOR_PARENT_S):
            if os.getppid() != parent:
                return
        try:
            task, epoch, positions = receive(conn)
        except EOFError:
            return
        try:
            runner = runner or make_runner()
            outcomes = [portable(outcome_of(runner, epoch, position)) for position in positions]
        except Exception as error:
            outcomes = [portable(Outcome(positions[0], "failed", error=error))]
        send(conn, (task, outcomes))


class Worker:
    """The parent's end of a worker process."""

    def __init__(self, others, make_runner):
        context = multiprocessing.get_context("fork")  # functions need not be picklable
        self.conn, theirs = context.Pipe()
        self.tasks = 0  # sent and not answered
        self.process = context.Process(
            target=work, args=(theirs, [self.conn, *others], make_runner), daemon=True, name="drapps-worker"
        )
        self.process.start()
        theirs.close()

    def send(self, task, epoch, positions):
        self.tasks += 1
        try:
            send(self.conn, (task, epoch, positions))
        except ConnectionError:
            raise _core.Error(self.death()) from None

    def receive(self):
        try:
            answer = receive(self.conn)
        except (EOFError, ConnectionError):
            raise _core.Error(self.death()) from None
        self.tasks -= 1
        return answer

    def death(self):
        """Why the process is gone, in words."""
        self.process.join(1)
        code = self.process.exitcode
        how = f"signal {signal.Signals(-code).name}" if code and code < 0 else f"status {code}"
        hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return f"worker process {self.process.pid} ended with {how}{hint}; its samples are lost, iterate again"

    def end(self):
        self.conn.close()
        self.process.terminate()
        self.process.join()


class WorkerPool:
    """Worker processes that answer tasks in any order."""

    def __init__(self, n, make_runner):
        self.workers = []
        self.pid = os.getpid()
        for _ in range(n):
            self.workers.append(Worker([worker.conn for worker in self.workers], make_runner))

    def free(self, most):
        """The worker with the fewest tasks, or None when all have `most`."""
        worker = min(self.workers, key=lambda w: w.tasks)
        return worker if worker.tasks < most else None

    def drain(self):
        """Takes the answers to tasks of a pass that was given up."""
        for worker in self.workers:
            while worker.tasks:
                worker.receive()

    def answers(self):
        """Waits for at least one answer: (task, outcomes) pairs."""
        ready = connection.wait([worker.conn for worker in self.workers if worker.tasks])
        return [worker.receive() for worker in self.workers if worker.conn in ready]

    def end(self):
        """Ends the processes; in a forked child they belong to the parent and are left alone."""
        if os.getpid() == self.pid:
            for worker in self.workers:
                worker.end()
        self.workers = []
