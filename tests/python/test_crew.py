"""The binding of worker processes: blocks, claims, results, and processes that are killed."""

import array
import os
import signal
import threading
import time

import pytest

from drapps import _core

WORK, FINISH, LEAVE = 1, 2, 3
OK, BAD = 0, 1


def open_crew(**options):
    return _core.open_crew(**{"max_workers": 2, "max_batches": 8, "address_space": 16 << 20, **options})


def text(tag, slot):
    return b"%07d/%07d" % (tag, slot)


def finish(crew, worker, claim):
    head = crew.block(worker, 4)
    memoryview(head)[:] = b"head"
    crew.finish(worker, claim.batch, head, 4, False)
    assert not head.own


def make(crew, worker, claim):
    for i in range(claim.n):
        crew.begin(worker, i)
        place, slab = crew.place(worker, i, 15 * claim.n_slots)
        memoryview(slab)[place * 15 : place * 15 + 15] = text(claim.tag, claim.first + i)
        ready = crew.done(worker, i, 1, None, False)
        if ready:
            finish(crew, worker, ready)


def run_worker(crew, worker):
    crew.enlist(worker, os.getpid())
    while (claim := crew.claim(worker, -1)).kind != LEAVE:
        make(crew, worker, claim) if claim.kind == WORK else finish(crew, worker, claim)


def start(crew, worker):
    pid = os.fork()
    if pid == 0:
        try:
            run_worker(crew, worker)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def samples_of(result):
    slab = bytes(result.slab)
    for place, (tag, slot, *_) in enumerate(result.samples):
        assert slab[place * 15 : place * 15 + 15] == text(tag, slot)
        yield tag, slot


def test_a_block_is_a_buffer_until_it_is_let_go():
    crew = open_crew()
    block = crew.block(-1, 100)
    view = memoryview(block)
    assert len(block) == block.nbytes == view.nbytes == 100
    assert not view.readonly and block.address % 64 == 0 and block.own
    view[:3] = b"abc"
    del block
    assert crew.stats()["bytes"] > 0  # the view holds it
    del view
    assert crew.stats()["bytes"] == 0


def test_a_block_outlives_its_crew():
    block = open_crew().block(-1, 10)
    memoryview(block)[:] = b"0123456789"
    assert bytes(block) == b"0123456789"


def test_a_claim_has_what_was_posted():
    crew = open_crew()
    assert crew.next(0) == (2, None)
    assert crew.post(7, 3, b"request", array.array("f", [1, 1, 1]), min_claim_ns=2)
    claim = crew.claim(0, 0)
    assert (claim.kind, claim.tag, claim.first, claim.n, claim.n_slots, claim.whole) == (WORK, 7, 0, 2, 3, False)
    assert bytes(claim.request) == b"request" and claim.slab is None and claim.samples == []
    assert crew.next(0) == (1, None)
    assert crew.worker_at(0)[1:4] == (WORK, 7, 0)


def test_errors_of_bad_samples_come_back():
    crew = open_crew()
    crew.post(7, 1, b"")
    crew.claim(0, 0)
    error = crew.block(0, 5)
    memoryview(error)[:] = b"wrong"
    ready = crew.done(0, 0, 1, error, True)
    assert ready.kind == FINISH and bytes(ready.samples[0][6]) == b"wrong"
    crew.finish(0, ready.batch, None, 0, False)
    status, result = crew.next(0)
    assert status == 0 and result.head is None and result.samples[0][3] == BAD
    assert bytes(result.samples[0][6]) == b"wrong"
    del ready, result
    assert crew.stats()["bytes"] == 0


def test_wrong_arguments_are_named():
    crew = open_crew()
    with pytest.raises(ValueError, match="expected are 2 values"):
        crew.post(0, 2, b"", array.array("f", [1]))
    with pytest.raises(ValueError, match="worker 2"):
        crew.bury(2)
    with pytest.raises(RuntimeError, match="no claim"):
        crew.done(0, 0, 1, None, False)
    with pytest.raises(TypeError, match="Block"):
        crew.done(0, 0, 1, b"bytes", False)
    with pytest.raises(ValueError, match="max_workers is 0"):
        _core.open_crew(max_workers=0)


def test_a_ceiling_is_a_number_of_cpus():
    crew = open_crew()
    crew.set_ceiling(0.5)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(_core.ArgumentError, match="CPUs, allowed are 0"):
            crew.set_ceiling(wrong)


def test_a_full_crew_refuses_posts():
    crew = open_crew(max_batches=1)
    assert crew.post(0, 1, b"") is True
    assert crew.post(1, 1, b"") is False
    assert crew.clear(0) is True
    assert crew.post(1, 1, b"") is True


@pytest.mark.parametrize("in_order", [True, False])
def test_processes_that_are_killed_lose_nothing(in_order):
    crew = open_crew(in_order=in_order, max_attempts=100)
    pids = {start(crew, worker): worker for worker in range(2)}
    n_batches, posted, got = 200, 0, []
    while len(got) < 4 * n_batches:
        while posted < n_batches and crew.post(posted, 4, b""):
            posted += 1
        status, result = crew.next(1000)
        got += samples_of(result) if status == 0 else []
        if status == 0 and result.number % 10 == 0:
            victim = next(iter(pids))
            os.kill(victim, signal.SIGKILL)
            os.waitpid(victim, 0)
            worker = pids.pop(victim)
            crew.bury(worker)
            pids[start(crew, worker)] = worker
    crew.close()
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    everything = [(tag, slot) for tag in range(n_batches) for slot in range(4)]
    assert (got if in_order else sorted(got)) == everything
    del result
    assert crew.stats()["bytes"] == 0


def test_a_process_joins_by_descriptor():
    crew = open_crew()
    joined = _core.join_crew(crew.fd)
    crew.post(3, 2, b"")
    for _ in range(2):
        make(joined, 0, joined.claim(0, 0))
    status, result = crew.next(0)
    assert status == 0 and bytes(result.head) == b"head"
    assert list(samples_of(result)) == [(3, 0), (3, 1)]


def test_waiting_ends_by_signals():
    crew = open_crew()
    crew.post(0, 1, b"")
    timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crew.next(-1)
    timer.join()


def test_a_result_that_is_taken_when_a_signal_comes_is_kept():
    crew = open_crew()
    crew.enlist(0, os.getpid())
    for tag in range(2):
        crew.post(tag, 1, b"")
        make(crew, 0, crew.claim(0, 1000))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    crew.post(2, 1, b"")

    def interrupt_then_make():
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the main thread, which sleeps, is not woken by it
        make(crew, 0, crew.claim(0, 1000))

    try:
        assert [crew.next(1000)[1].tag for _ in range(2)] == [0, 1]
        worker = threading.Thread(target=interrupt_then_make)
        worker.start()
        with pytest.raises(KeyboardInterrupt):
            crew.next(-1)
        worker.join()
        assert crew.next(1000)[1].tag == 2 and crew.next(0) == (2, None)
    finally:
        signal.signal(signal.SIGINT, before)
