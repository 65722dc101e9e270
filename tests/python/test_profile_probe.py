"""drapps.profile: other runs of the loader, and what is read from them."""

import pytest

from drapps import _core
from drapps.profile.probe import Drained, NativeProbe, alone


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
    from drapps import read

    pipe = read(folder).decode().resize(32).center_crop(32).gaussian_blur(kernel_size=3).random_horizontal_flip()
    probe = probe_of(pipe)
    assert "gaussian_blur" in probe.ops(4)
    graph = probe.graph_without("gaussian_blur")
    assert "gaussian_blur" not in graph.json() and "random_horizontal_flip" in graph.json()
    assert [probe.graph_without(op) for op in ("decode", "center_crop", "read", "store")] == [None] * 4
    drained = probe.drain(0.05, graph=graph, workers=2, prefetch=2)
    assert drained.rate > 0 and drained.cpu > 0


def test_some_samples_alone(pipe):
    probe = probe_of(pipe)
    facts, usual = alone(probe, 0.5)
    assert facts["again"] >= facts["again_cpu"] > 0 and 0 <= facts["slow_load"] < 1
    assert usual and len(usual) == round((1 - facts["slow_samples"]) * min(probe.size, 256))
    assert probe.drain(0.05, ids=usual[:3], workers=2, prefetch=2).steady_rate > 0
