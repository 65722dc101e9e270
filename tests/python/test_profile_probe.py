"""drapps.profile: other runs of the loader, and what is read from them."""

import pytest

from drapps import _core, read
from drapps.profile.probe import ChainProbe, Drained, NativeProbe, alone


def probe_of(pipe, outputs="image"):
    return NativeProbe(pipe.dataset, _core.graph_from_json(pipe.to_json()), {"batch_size": 4, "outputs": outputs})


def test_rates_of_a_drained_loader():
    marks = [(10.0 + 0.5 * i, 8 * i) for i in range(41)]
    drained = Drained(marks, cpu=3.2)
    assert drained.rate == drained.steady_rate == pytest.approx(16.0) and drained.cpu == pytest.approx(0.01)


def test_a_pause_does_not_count_for_the_steady_rate():
    marks = [(10.0 + 0.5 * i + (30.0 if i > 12 else 0.0), 8 * i) for i in range(41)]
    drained = Drained(marks, cpu=1.0)
    assert drained.rate == pytest.approx(320 / 50) and drained.steady_rate == pytest.approx(16.0)


def test_too_few_batches_for_a_steady_rate():
    drained = Drained([(0.0, 0), (0.5, 4), (1.0, 8)], cpu=1.0)
    assert drained.steady_rate == drained.rate == pytest.approx(8.0)


def test_an_op_that_keeps_the_size_can_be_left_out(folder):
    pipe = read(folder).decode().resize(32).center_crop(32).gaussian_blur(kernel_size=3).random_horizontal_flip()
    probe = probe_of(pipe)
    assert "gaussian_blur" in probe.ops(4)
    lighter = probe.without("gaussian_blur")
    assert set(lighter.ops(4)) == set(probe.ops(4)) - {"gaussian_blur"}
    assert [probe.without(op) for op in ("decode", "center_crop", "read", "store")] == [None] * 4
    drained = lighter.drain(0.05, workers=2, prefetch=2)
    assert drained.rate > 0 and drained.cpu > 0


def brighter(image):
    return image // 2 + 128


def test_a_chain_without_its_only_function_runs_natively(folder):
    pipe = read(folder).decode().resize(32).center_crop(32).map(brighter, field="image").random_horizontal_flip()
    with pipe.loader(batch_size=4, outputs="image", workers=0) as loader:
        probe = ChainProbe(loader)
        assert "map(brighter)" in probe.ops(4)
        assert probe.without("map(darker)") is None
        assert probe.without("map(brighter)").drain(0.05, workers=2, prefetch=2).rate > 0
    with pipe.map(brighter, field="image").filter(bool, field="label").loader(batch_size=4, workers=0) as loader:
        assert ChainProbe(loader).without("map(brighter)") is None


def test_some_samples_alone(pipe):
    probe = probe_of(pipe)
    facts, usual = alone(probe, 0.5)
    assert facts["again"] >= facts["again_cpu"] > 0 and 0 <= facts["slow_load"] < 1
    assert usual and len(usual) == round((1 - facts["slow_samples"]) * min(probe.size, 256))
    assert probe.drain(0.05, ids=usual[:3], workers=2, prefetch=2).steady_rate > 0
