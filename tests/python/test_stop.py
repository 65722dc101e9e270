"""Stopping: Ctrl-C, fork, interpreter exit, kill -9 and resume."""

import json
import signal
import textwrap
import time

import pytest
from imagesets import gather, run_python, same

import drapps

CHAIN = """
import json, os, signal, sys, threading, time
import drapps
def chain(path):
    return (drapps.read(path).decode().random_resized_crop(32).random_horizontal_flip()
            .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD))
"""


def program(body):
    return CHAIN + textwrap.dedent(body)


@pytest.mark.parametrize("workers", [0, 2])
def test_interrupt_then_again(folder, workers):
    """As in a notebook: a cell is interrupted and run again."""
    done = run_python(
        program(
            """
            loader = chain(sys.argv[1]).loader(batch_size=2, workers=int(sys.argv[2]), output="numpy")
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    for batch in loader:
                        pass
            except KeyboardInterrupt:
                print("interrupted")
            loader.set_epoch(0)
            print(sum(len(labels) for _, labels in loader))
            """
        ),
        folder,
        workers,
    )
    assert done.stdout.split() == ["interrupted", "23"], done.stderr


def test_interrupt_while_waiting(folder):
    """Nothing is ready and nothing will be: the epoch's one batch is already taken by a full ring."""
    done = run_python(
        program(
            """
            import numpy
            def slow(sample):
                time.sleep(60)
                return sample
            loader = chain(sys.argv[1]).map(slow).loader(batch_size=2, workers=2, output="numpy")
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                next(iter(loader))
            except KeyboardInterrupt:
                print("interrupted")
            """
        ),
        folder,
        timeout=30,
    )
    assert done.stdout.split() == ["interrupted"], done.stderr


@pytest.mark.parametrize("workers", [0, 2])
def test_fork_in_the_middle(folder, workers):
    done = run_python(
        program(
            """
            loader = chain(sys.argv[1]).loader(batch_size=2, workers=int(sys.argv[2]), output="numpy")
            epoch = iter(loader)
            kept = next(epoch)
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    next(epoch)
                except drapps.ForkedError as error:
                    status = 0 if "parent" in str(error) else 2
                kept = None
                fresh = chain(sys.argv[1]).loader(batch_size=2, workers=2, output="numpy")
                status = status or (0 if sum(len(labels) for _, labels in fresh) == 23 else 3)
                loader.close()
                sys.exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            print(sum(len(labels) for _, labels in epoch) + len(kept[1]))
            """
        ),
        folder,
        workers,
    )
    assert done.stdout.split() == ["23"], done.stderr


def test_fork_while_a_thread_waits(folder):
    """The child has no such thread: closing there waits for nobody."""
    done = run_python(
        program(
            """
            loader = chain(sys.argv[1]).map(lambda s: (time.sleep(0.2), s)[1]).loader(batch_size=2, workers=1)
            native = chain(sys.argv[1]).loader(batch_size=2, workers=1)
            stop = threading.Event()
            def consume(loader):
                while not stop.is_set():
                    for batch in loader:
                        if stop.is_set():
                            break
            threads = [threading.Thread(target=consume, args=(l,)) for l in (loader, native)]
            for thread in threads:
                thread.start()
            for _ in range(10):
                time.sleep(0.02)
                pid = os.fork()
                if pid == 0:
                    for l in (loader, native):
                        l.close()
                        try:
                            iter(l)
                            os._exit(1)
                        except drapps.ForkedError:
                            pass
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            stop.set()
            for thread in threads:
                thread.join()
            print("end")
            """
        ),
        folder,
        timeout=30,
    )
    assert done.stdout == "end\n", done.stderr


@pytest.mark.parametrize("workers", [0, 2])
def test_exit_with_live_iterators(folder, workers):
    done = run_python(
        program(
            """
            loader = chain(sys.argv[1]).loader(batch_size=2, workers=int(sys.argv[2]), output="numpy")
            epoch = iter(loader)
            kept = next(epoch)
            mapped = chain(sys.argv[1]).map(lambda sample: sample).loader(batch_size=2, workers=int(sys.argv[2]))
            epoch2 = iter(mapped)
            kept2 = next(epoch2)
            print("end")
            """
        ),
        folder,
        workers,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_exit_while_a_thread_waits(folder):
    done = run_python(
        program(
            """
            loader = chain(sys.argv[1]).loader(batch_size=1, workers=2, output="numpy")
            def consume():
                while True:
                    for batch in loader:
                        pass
            threading.Thread(target=consume, daemon=True).start()
            time.sleep(0.3)
            print("end")
            """
        ),
        folder,
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_workers_end_with_a_killed_parent(folder):
    done = run_python(
        program(
            """
            pids = lambda sample: {"pid": os.getpid()}
            loader = chain(sys.argv[1]).map(pids).loader(batch_size=1, workers=3, outputs="pid", output="numpy")
            for batch in loader:
                print(int(batch["pid"][0]), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        ),
        folder,
    )
    assert done.returncode == -signal.SIGKILL
    pids = set(map(int, done.stdout.split()))
    end = time.monotonic() + 20
    while pids and time.monotonic() < end:
        pids = {pid for pid in pids if is_alive(pid)}
        time.sleep(0.05)
    assert not pids


def is_alive(pid):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- resume ---


def options(**changes):
    return {"batch_size": 4, "shuffle": True, "seed": 5, "output": "numpy", **changes}


@pytest.mark.parametrize("stop", [0, 1, 3, 6])
def test_state_with_other_workers(pipe, stop):
    whole = pipe.loader(**options(workers=2))
    gather(whole)
    want = gather(whole)
    loader = pipe.loader(**options(workers=1))
    loader.set_epoch(1)
    epoch = iter(loader)
    for _ in range(stop):
        next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1024
    other = pipe.loader(**options(workers=3))
    other.load_state_dict(state)
    other.set_epoch(1)  # as a training loop does
    assert other.state_dict() == state
    assert same(gather(other), want[stop:])
    whole.set_epoch(2)
    assert same(gather(other), gather(whole))


def test_state_between_epochs(pipe):
    loader = pipe.loader(**options())
    gather(loader)
    state = loader.state_dict()
    want = gather(loader)
    other = pipe.loader(**options())
    other.load_state_dict(state)
    assert other.epoch == 1 and same(gather(other), want)


def test_state_of_another_loader(pipe):
    state = pipe.loader(**options()).state_dict()
    with pytest.raises(drapps.Error, match="seed"):
        pipe.loader(**options(seed=6)).load_state_dict(state)
    with pytest.raises(drapps.Error, match="batch_size"):
        pipe.loader(**options(batch_size=3)).load_state_dict(state)
    with pytest.raises(drapps.ArgumentError, match="state must be the state of a drapps loader"):
        pipe.loader(**options()).load_state_dict({})


def test_state_with_another_world_size(pipe):
    """Two ranks stop after one global batch; one rank goes on with twice the batch."""
    whole = [batch.ids for batch in pipe.loader(**options(batch_size=4, world_size=1)).batches()]
    loader = pipe.loader(**options(batch_size=4, rank=0, world_size=2))
    next(iter(loader))
    state = loader.state_dict()
    alone = pipe.loader(**options(batch_size=4, world_size=1))
    alone.load_state_dict(state)
    assert [batch.ids for batch in alone.batches()] == whole[2:]


def test_kill_and_resume(folder, pipe, tmp_path):
    """kill -9 in the middle; a new process with other workers goes on from the saved state: the same bytes."""
    source = program(
        """
        import hashlib
        path, state_path, workers, stop = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        loader = chain(path).loader(batch_size=4, shuffle=True, seed=5, workers=workers, output="numpy")
        if os.path.exists(state_path):
            loader.load_state_dict(json.load(open(state_path)))
        for i, (images, labels) in enumerate(loader):
            print(hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest(), flush=True)
            json.dump(loader.state_dict(), open(state_path + ".new", "w"))
            os.replace(state_path + ".new", state_path)
            if i + 1 == stop:
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    whole = run_python(source, folder, tmp_path / "other", 2, -1)
    first = run_python(source, folder, tmp_path / "state", 2, 2)
    second = run_python(source, folder, tmp_path / "state", 3, -1)
    assert first.returncode == -signal.SIGKILL and second.returncode == 0, second.stderr
    assert first.stdout.split() + second.stdout.split() == whole.stdout.split()
    assert len(whole.stdout.split()) == 6
