"""loader.pause(): the same name and meaning for every loader.  What a controller makes of it is tested in C."""

import time

import numpy
import pytest

import drapps

PATIENCE_S = 60


@pytest.fixture
def pipe():
    images = numpy.random.default_rng(1).integers(0, 255, (256, 16, 16, 3), "uint8")
    return drapps.from_arrays(image=images, label=numpy.arange(256))


def until(condition, act=lambda: time.sleep(0.05)):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        act()


def endless(loader):
    while True:
        yield from loader


def paused_text(loader):
    """The reasons in which the controller speaks of a pause."""
    return " ".join(one.reason for one in loader.decisions() if "pause" in one.reason)


def test_batches_are_made_meanwhile_and_given_back(pipe):
    with drapps.Monitor(interval=0.02) as monitor:
        loader = pipe.loader(batch_size=4, output="numpy", resource_monitor=monitor, memory_limit=1 << 26)
        batches = endless(loader)
        until(loader.decisions, lambda: (next(batches), time.sleep(0.002)))
        with loader.pause():
            number = loader.stats()["decisions"]
            until(lambda: "The consumer pauses" in paused_text(loader))
            until(lambda: loader.stats()["ready_batches"] > 30)
            in_pause = loader.decisions()[-1].number
            time.sleep(1.5)
            assert number <= loader.decisions()[-1].number <= in_pause + 1  # nothing is decided
        until(lambda: "The consumer paused for" in paused_text(loader), lambda: (next(batches), time.sleep(0.002)))
        loader.close()


def test_pauses_nest_and_outlive_the_loader(pipe):
    loader = pipe.loader(batch_size=4, output="numpy")
    with loader.pause(), loader.pause():
        next(iter(loader))
        loader.close()
    with pytest.raises(drapps.StateError, match="closed"), loader.pause():
        pass


def test_a_resume_without_a_pause_is_an_error(pipe):
    with pipe.loader(batch_size=4) as loader, pytest.raises(drapps.StateError, match="is not paused"):
        loader._core.pause(False)


def test_what_is_raised_in_a_pause_comes_out(pipe):
    with pipe.loader(batch_size=4) as loader:
        with pytest.raises(ZeroDivisionError), loader.pause():
            raise ZeroDivisionError
        with pytest.raises(drapps.StateError):
            loader._core.pause(False)  # it was ended


def test_chains_with_python_functions_pause(pipe):
    with drapps.Monitor(interval=0.02) as monitor:
        loader = pipe.map(bytes_of).loader(batch_size=4, workers=1, output="numpy", resource_monitor=monitor)
        batches = endless(loader)
        until(loader.decisions, lambda: (next(batches), time.sleep(0.002)))
        with loader.pause():
            time.sleep(0.5)
            number = loader.decisions()[-1].number
            time.sleep(1.5)
            assert loader.decisions()[-1].number == number
        until(lambda: "The consumer paused for" in paused_text(loader), lambda: (next(batches), time.sleep(0.002)))
        loader.close()


def bytes_of(sample):
    return sample


# --- weights while it runs ---


def weights_seen(loader, step):
    found = loader.decisions()
    until(lambda: loader.decisions() and loader.decisions()[-1].number > (found[-1].number if found else 0), step)
    return loader.decisions()[-1].weights["energy"]


@pytest.mark.parametrize("chain", [False, True])
def test_weights_change_while_it_runs(pipe, chain):
    with drapps.Monitor(interval=0.02) as monitor:
        stages, settings = (pipe.map(bytes_of), {"workers": 1}) if chain else (pipe, {})
        settings |= {"resource_monitor": monitor, "weights": {"energy": 0.2}}
        loader = stages.loader(batch_size=4, output="numpy", **settings)
        batches = endless(loader)
        assert weights_seen(loader, lambda: (next(batches), time.sleep(0.002))) == 0.2
        loader.set_weights({"energy": 0.3, "00:00-24:00": {"energy": 0.7}})
        until(lambda: weights_seen(loader, lambda: (next(batches), time.sleep(0.002))) == 0.7)
        with pytest.raises(drapps.ArgumentError, match="speed"):
            loader.set_weights("speed=1")
        loader.set_weights(None)
        until(lambda: weights_seen(loader, lambda: (next(batches), time.sleep(0.002))) == 0)
        loader.close()


def test_wrong_spans_are_named(pipe):
    with pytest.raises(drapps.ArgumentError, match="25:00-06:00"):
        pipe.loader(weights={"25:00-06:00": {"energy": 1}})
    with pytest.raises(drapps.ArgumentError, match="energy must be a non-negative number"):
        pipe.loader(weights={"22:00-06:00": {"energy": "dear"}})
