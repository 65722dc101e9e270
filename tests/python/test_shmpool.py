"""The binding of worker processes: blocks, claims, results, and processes that are killed."""

import array
import os
import signal
import threading
import time

import pytest

from drapps import _core

WORK, FINISH, LEAVE = 1, 2, 3
READY, AGAIN, END = range(3)
OK, BAD = 0, 1


def open_shmpool(**options):
    return _core.open_shmpool(**{"max_workers": 2, "max_batches": 8, "address_space": 16 << 20, **options})


def take(shmpool, timeout_ms):
    box = []
    assert shmpool.next(timeout_ms, box) == READY
    return box.pop()


def text(tag, slot):
    return b"%07d/%07d" % (tag, slot)


def finish(shmpool, worker, claim):
    head = shmpool.block(worker, 4)
    memoryview(head)[:] = b"head"
    shmpool.finish(worker, claim.batch, head, 4, False)
    assert not head.own


def make(shmpool, worker, claim):
    for i in range(claim.n):
        shmpool.begin(worker, i)
        placement = shmpool.place(worker, i, 15 * claim.n_slots)
        memoryview(placement.slab)[placement.slot * 15 :][:15] = text(claim.tag, claim.first + i)
        ready = shmpool.done(worker, i, 1, None, False)
        if ready:
            finish(shmpool, worker, ready)


def run_worker(shmpool, worker):
    shmpool.attach(worker, os.getpid())
    while (claim := shmpool.claim(worker, -1)).kind != LEAVE:
        make(shmpool, worker, claim) if claim.kind == WORK else finish(shmpool, worker, claim)


def start(shmpool, worker):
    pid = os.fork()
    if pid == 0:
        try:
            run_worker(shmpool, worker)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def samples_of(result):
    slab = bytes(result.slab)
    for i, sample in enumerate(result.samples):
        assert slab[i * 15 : i * 15 + 15] == text(sample.tag, sample.slot)
        yield sample.tag, sample.slot


def test_a_block_is_a_buffer_until_it_is_let_go():
    shmpool = open_shmpool()
    block = shmpool.block(-1, 100)
    view = memoryview(block)
    assert len(block) == block.nbytes == view.nbytes == 100
    assert not view.readonly and block.address % 64 == 0 and block.own
    view[:3] = b"abc"
    del block
    assert shmpool.stats()["bytes"] > 0  # the view holds it
    del view
    assert shmpool.stats()["bytes"] == 0


def test_a_block_outlives_its_shmpool():
    block = open_shmpool().block(-1, 10)
    memoryview(block)[:] = b"0123456789"
    assert bytes(block) == b"0123456789"


def test_a_claim_has_what_was_posted():
    shmpool = open_shmpool()
    assert shmpool.next(0, []) == END
    assert shmpool.post(7, 3, b"request", array.array("f", [1, 1, 1]), min_claim_ns=2)
    claim = shmpool.claim(0, 0)
    assert (claim.kind, claim.tag, claim.first, claim.n, claim.n_slots, claim.whole) == (WORK, 7, 0, 2, 3, False)
    assert bytes(claim.request) == b"request" and claim.slab is None and claim.samples == []
    assert shmpool.next(0, []) == AGAIN
    at = shmpool.worker_at(0)
    assert (at.kind, at.tag, at.slot) == (WORK, 7, 0)


def test_errors_of_bad_samples_come_back():
    shmpool = open_shmpool()
    shmpool.post(7, 1, b"")
    shmpool.claim(0, 0)
    error = shmpool.block(0, 5)
    memoryview(error)[:] = b"wrong"
    ready = shmpool.done(0, 0, 1, error, True)
    assert ready.kind == FINISH and bytes(ready.samples[0].block) == b"wrong"
    shmpool.finish(0, ready.batch, None, 0, False)
    result = take(shmpool, 0)
    assert result.head is None and result.samples[0].state == BAD and result.samples[0].error is None
    assert bytes(result.samples[0].block) == b"wrong"
    del ready, result
    assert shmpool.stats()["bytes"] == 0


def test_wrong_arguments_are_named():
    shmpool = open_shmpool()
    with pytest.raises(ValueError, match="costs must be 2 values"):
        shmpool.post(0, 2, b"", array.array("f", [1]))
    with pytest.raises(ValueError, match="worker must be 0 to 1, got 2"):
        shmpool.reap(2)
    with pytest.raises(RuntimeError, match="no claim"):
        shmpool.done(0, 0, 1, None, False)
    with pytest.raises(TypeError, match="Block"):
        shmpool.done(0, 0, 1, b"bytes", False)
    with pytest.raises(ValueError, match="max_workers must be 1 to 256, got 0"):
        _core.open_shmpool(max_workers=0)


def test_a_ceiling_is_a_number_of_cpus():
    shmpool = open_shmpool()
    shmpool.set_ceiling(0.5)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(_core.ArgumentError, match="ceiling must be 0"):
            shmpool.set_ceiling(wrong)


def test_a_full_shmpool_refuses_posts():
    shmpool = open_shmpool(max_batches=1)
    assert shmpool.post(0, 1, b"") is True
    assert shmpool.post(1, 1, b"") is False
    assert shmpool.clear(0) is True
    assert shmpool.post(1, 1, b"") is True


@pytest.mark.parametrize("in_order", [True, False])
def test_processes_that_are_killed_lose_nothing(in_order):
    shmpool = open_shmpool(in_order=in_order, max_attempts=100)
    pids = {start(shmpool, worker): worker for worker in range(2)}
    n_batches, posted, got, box = 200, 0, [], []
    while len(got) < 4 * n_batches:
        while posted < n_batches and shmpool.post(posted, 4, b""):
            posted += 1
        if shmpool.next(1000, box) != READY:
            continue
        result = box.pop()
        got += samples_of(result)
        if result.number % 10 == 0:
            victim = next(iter(pids))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            worker = pids.pop(victim)
            shmpool.reap(worker)
            pids[start(shmpool, worker)] = worker
    shmpool.close()
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    everything = [(tag, slot) for tag in range(n_batches) for slot in range(4)]
    assert (got if in_order else sorted(got)) == everything
    del result
    assert shmpool.stats()["bytes"] == 0


def test_a_process_joins_by_descriptor():
    shmpool = open_shmpool()
    joined = _core.join_shmpool(shmpool.fd)
    shmpool.post(3, 2, b"")
    for _ in range(2):
        make(joined, 0, joined.claim(0, 0))
    result = take(shmpool, 0)
    assert bytes(result.head) == b"head"
    assert list(samples_of(result)) == [(3, 0), (3, 1)]


def test_waiting_ends_by_signals():
    shmpool = open_shmpool()
    shmpool.post(0, 1, b"")
    timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shmpool.next(-1, [])
    timer.join()


def test_a_result_that_is_taken_when_a_signal_comes_is_in_the_box():
    shmpool = open_shmpool()
    shmpool.attach(0, os.getpid())
    for tag in range(2):
        shmpool.post(tag, 1, b"")
        make(shmpool, 0, shmpool.claim(0, 1000))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    shmpool.post(2, 1, b"")

    def interrupt_then_make():
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the main thread, which sleeps, is not woken by it
        make(shmpool, 0, shmpool.claim(0, 1000))

    try:
        assert [take(shmpool, 1000).tag for _ in range(2)] == [0, 1]
        worker = threading.Thread(target=interrupt_then_make)
        worker.start()
        box = []
        with pytest.raises(KeyboardInterrupt):
            shmpool.next(-1, box)
        worker.join()
        assert [result.tag for result in box] == [2] and shmpool.next(0, box) == END
    finally:
        signal.signal(signal.SIGINT, before)
