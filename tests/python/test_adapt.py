"""Native loaders whose knobs a policy turns: settings, decisions, what is shared.  What a policy
decides is tested in C."""

import os
import time

import numpy
import pytest

import drapps

PATIENCE_S = 60


@pytest.fixture
def pipe():
    images = numpy.random.default_rng(1).integers(0, 255, (64, 32, 32, 3), "uint8")
    return drapps.from_arrays(image=images, label=numpy.arange(64)).random_horizontal_flip()


def run(loader, seconds, step=0.0):
    """Epoch after epoch, for at least so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in loader:
            time.sleep(step)
            if time.monotonic() > end:
                break


def run_until(loader, condition, step=0.0):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        run(loader, 0.2, step)


def test_default_policy_decides_and_says_why(pipe):
    with pipe.loader(batch_size=4, output="numpy") as loader:
        assert loader.decisions() == []
        assert loader.stats()["policy"] == "analytic"
        assert "policy: analytic" in loader.explain()
        run_until(loader, loader.decisions, step=0.002)
        decision = loader.decisions()[-1]
        assert isinstance(decision, drapps.Decision)
        assert decision.number >= 1 and decision.reason
        assert set(decision.terms) == set(decision.weights)
        assert 0 <= time.monotonic() - decision.time < PATIENCE_S
        assert loader.decisions(after=decision.number + 100) == []
        assert loader.stats()["decisions"] >= 1


def test_decisions_and_knobs_can_be_read_after_it_is_closed(pipe):
    with drapps.Monitor() as monitor, pipe.loader(batch_size=4, output="numpy", resource_monitor=monitor) as loader:
        run_until(loader, loader.decisions, step=0.002)
        first = loader.decisions()[0]
    assert first in loader.decisions() and loader.get("workers") >= 1
    assert loader.decisions(after=loader.decisions()[-1].number) == []


def test_workers_are_given_back_to_a_consumer_that_sleeps(pipe):
    with pipe.loader(batch_size=4, output="numpy", policy="analytic") as loader:
        before = loader.get("workers")
        run_until(loader, lambda: loader.stats()["decisions"] >= 3, step=0.02)
        assert loader.get("workers") <= before
        assert loader.stats()["knobs"]["workers"] == loader.get("workers")


def test_given_numbers_stay(pipe):
    with pipe.loader(batch_size=4, workers=3, prefetch=5, output="numpy") as loader:
        loader.set("readers", 2)
        run_until(loader, lambda: loader.stats()["decisions"] >= 2, step=0.01)
        assert [loader.get(name) for name in ("workers", "prefetch", "readers")] == [3, 5, 2]


@pytest.mark.parametrize("policy", [row.name for row in drapps.policies()])
def test_same_batches_with_every_policy(pipe, policy):
    def digest(**options):
        with pipe.loader(batch_size=8, shuffle=True, seed=3, output="numpy", **options) as loader:
            return [(images.tobytes(), labels.tolist()) for images, labels in loader]

    assert digest(policy=policy) == digest(workers=0)


def test_wrong_settings_are_named(pipe):
    with pytest.raises(drapps.ArgumentError, match="analytic.*magic"):
        pipe.loader(policy="magic")
    with pytest.raises(drapps.ArgumentError, match="speed"):
        pipe.loader(weights={"speed": 1})
    with pytest.raises(drapps.ArgumentError, match="cpu_limit must be .*, got -1"):
        pipe.loader(cpu_limit=-1)
    with pytest.raises(drapps.ArgumentError, match=r"cpu_limit must be a number from 0.01 to 512 or None, got 0.001"):
        pipe.loader(cpu_limit=0.001)


def test_the_environment_switches_it_off(pipe, monkeypatch):
    monkeypatch.setenv("DRAPPS_POLICY", "off")
    with pipe.loader(policy="climb") as loader:
        assert loader.stats()["policy"] == "fixed"
    monkeypatch.setenv("DRAPPS_POLICY", "magic")
    with pytest.raises(drapps.ArgumentError, match="DRAPPS_POLICY"):
        pipe.loader()


def test_weights_by_name(pipe):
    with pipe.loader(batch_size=4, output="numpy", weights={"energy": 0.5}) as loader:
        run_until(loader, loader.decisions, step=0.002)
        assert loader.decisions()[-1].weights["energy"] == 0.5


def test_loaders_share_a_monitor(pipe):
    with drapps.Monitor(interval=0.02) as monitor:
        loaders = [pipe.loader(batch_size=4, output="numpy", resource_monitor=monitor) for _ in range(2)]
        passes = [iter(loader) for loader in loaders]
        for one in passes:
            next(one)
        snapshot = monitor.wait(monitor.latest().number + 2)
        assert {"fill_fetch", "fill_batch", "in_flight"} <= set(snapshot)
        for loader in loaders:
            loader.close()
        assert "fill_batch" not in monitor.wait(monitor.latest().number + 2)
    with pytest.raises(drapps.StateError, match="closed"):
        pipe.loader(resource_monitor=monitor)


def test_a_loader_outlives_its_monitor(pipe):
    monitor = drapps.Monitor()
    with pipe.loader(batch_size=4, output="numpy", resource_monitor=monitor) as loader:
        monitor.close()
        run_until(loader, loader.decisions, step=0.002)


def threads():
    return sorted(open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task"))


def test_nothing_stays_after_close(pipe):
    with pipe.loader(batch_size=4, output="numpy") as loader:
        run_until(loader, loader.decisions, step=0.002)
        assert "dr-monitor" in threads()
    ours = [name for name in threads() if name.startswith(("dr-", "drapps-"))]
    assert not [name for name in ours if name != "drapps-transfer"]  # stays with its connections until the process ends


def test_reference_and_no_workers_have_no_policy(pipe):
    for options in ({"reference": True}, {"workers": 0}):
        with pipe.loader(batch_size=4, output="numpy", **options) as loader:
            run(loader, 0.4)
            assert loader.decisions() == [] and "dr-monitor" not in threads()


def test_a_forked_child_has_its_own(pipe):
    with pipe.loader(batch_size=4, output="numpy") as loader:
        run_until(loader, loader.decisions, step=0.002)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with pipe.loader(batch_size=4, output="numpy") as own:
                    run(own, 0.5)
                    code = 0 if threads().count("dr-monitor") == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        run(loader, 0.1)


@pytest.mark.parametrize("adaptive", [True, False])
def test_compression_of_the_cache(tmp_path, adaptive):
    flat = drapps.from_arrays(image=numpy.full((40, 64, 64, 3), 7, "uint8"), label=numpy.arange(40)).resize(32)
    with flat.loader(batch_size=4, output="numpy", cache=tmp_path, adaptive_compression=adaptive) as loader:
        assert sum(len(labels) for _, labels in loader) == 40
        codec = loader.stats()["cache_codec"]
        assert ("(as set for " in codec) is not adaptive and "nan" not in codec
