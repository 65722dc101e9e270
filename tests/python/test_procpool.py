"""Worker processes: what they make of batches, streams and errors."""

import numpy
import pytest

torch = pytest.importorskip("torch")

import procpool_sets as sets
from drapps.procpool.dataset_pool import NothingPosted
from drapps.procpool.layout import Layout
from procpool_runs import helpers_of_multiprocessing, nothing_is_left  # noqa: F401  (for each test here)
from procpool_runs import batches_of, make, run, same
from torch._utils import ExceptionWrapper
from torch.utils.data import default_collate
from torch.utils.data._utils.worker import _IterableDatasetStopIteration as StreamEnd

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # a worker died that should not


# --- results ---


@pytest.mark.parametrize("collate_fn", [default_collate, sets.as_list])
@pytest.mark.parametrize("dataset", [sets.Squares(), sets.Batched()], ids=["samples", "getitems"])
def test_batches_as_torch_makes_them(dataset, collate_fn):
    batches = batches_of(103, 8)
    with make(dataset, collate_fn) as pool:
        results = run(pool, batches)
        assert [result.tag for result in results] == list(range(len(batches)))
        for batch, result in zip(batches, results, strict=True):
            want = collate_fn([dataset[i] for i in batch])
            if collate_fn is default_collate:
                assert same(result.value, want)
            else:
                pairs = zip(result.value, want, strict=True)
                assert all(numpy.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in pairs)
        with pytest.raises(NothingPosted):
            pool.next(1)


def test_results_stay_when_the_pool_is_gone():
    with make(sets.Squares()) as pool:
        results = run(pool, batches_of(64, 16))
    values = [result.value[0] for result in results]
    del results
    for i, value in enumerate(values):
        assert value[:, 0].tolist() == list(range(16 * i, 16 * i + 16))
        value += 1


def test_samples_that_differ_are_left_to_torch():
    dataset = sets.Unequal()
    with make(dataset, sets.as_list) as pool:
        for result, batch in zip(run(pool, batches_of(40, 8)), batches_of(40, 8), strict=True):
            assert same(result.value, [dataset[i] for i in batch])
    with make(dataset) as pool:
        equal = [[0, 5, 10], [1, 6, 11], [1, 2]]
        results = run(pool, equal)
        for result, batch in zip(results[:2], equal[:2], strict=True):
            assert same(result.value, default_collate([dataset[i] for i in batch]))
        with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
            results[2].value.reraise()


def test_layouts_follow_the_samples():
    dataset = sets.Lengths()
    batches = [[i] * 4 for i in (0, 0, 100, 101, 102, 103, 104, 105)]
    with make(dataset, workers=1) as pool:
        results = run(pool, batches, ahead=1)
        for result, batch in zip(results, batches, strict=True):
            assert same(result.value, default_collate([dataset[i] for i in batch]))
        assert pool._registry.number(Layout.of(dataset[105])) == 1  # it was learnt, not packed for ever


@pytest.mark.parametrize("in_order", [True, False])
def test_strings_go_beside_the_slab(in_order):
    for dataset in (sets.Named(), sets.Named(0.002)):  # one worker has the whole batch, or each a part of it
        with make(dataset, in_order=in_order) as pool:
            for result in run(pool, batches_of(48, 8)):
                want = [dataset[8 * sample.tag + sample.slot] for sample in result.samples]
                assert same(result.value, default_collate(want))
    with make(sets.Named(bad=3), bad="report") as pool:
        assert run(pool, [[1, 3, 4]])[0].value["name"] == ["sample 1", "sample 4"]


def test_no_auto_collation():
    with make(sets.Squares(), sets.identity, auto_collation=False) as pool:
        for i, result in enumerate(run(pool, list(range(20)))):
            assert result.value[1] == i * i and result.value[0].tolist() == [i] * 8


def test_big_arrays():
    with make(sets.Big()) as pool:
        for result, batch in zip(run(pool, batches_of(12, 3), ahead=2), batches_of(12, 3), strict=True):
            assert result.value[0].shape == (3, 10, 1 << 18)
            assert result.value[0][:, -1, -1].tolist() == batch == result.value[1].tolist()


def test_out_of_order_every_sample_once():
    with make(sets.Slow(0.001), in_order=False) as pool:
        results = run(pool, batches_of(100, 8))
        seen = [i for result in results for i in result.value.tolist()]
        assert sorted(seen) == list(range(100))
        for result in results:
            posted = [sample.tag * 8 + sample.slot for sample in result.samples]
            assert posted == result.value.tolist()


def test_random_numbers_do_not_depend_on_workers():
    batches = batches_of(60, 5)
    runs = []
    for workers in (1, 3):
        with make(sets.Draws(), workers=workers) as pool:
            runs.append([result.value for result in run(pool, batches)])
    for one, three in zip(*runs, strict=True):
        assert same(one[:4], three[:4])
    assert {seed for batch in runs[1] for seed in batch[4].tolist()} <= {5, 6, 7}
    with make(sets.Draws()) as pool:
        assert pool.post(77, [3, 2], keys=[(0, 3), (0, 2)])
        again = pool.next(30).value
        assert same(again[1], runs[0][0][1][[3, 2]]) and same(again[3], runs[0][0][3][[3, 2]])
    with make(sets.Draws(), base_seed=6) as pool:
        assert not same(run(pool, batches[:1])[0].value[1], runs[0][0][1])


def test_what_workers_know():
    with make(sets.Info(), sets.as_list, workers=3) as pool:
        for result in run(pool, batches_of(30, 3)):
            for number, workers, seed, name, pid, threads in result.value:
                assert (workers, seed, name, threads) == (3, 5 + number, "Info", 1)
                assert pool.pids[number] == pid


# --- iterable data sets ---


def take_streams(pool, workers, n):
    """All batches of every worker, as torch asks for them."""
    got, live, tag = {w: [] for w in range(workers)}, set(range(workers)), 0
    owner = {}
    while live:
        for worker in sorted(live):
            assert pool.post(tag, n, worker=worker)
            owner[tag] = worker
            tag += 1
        for _ in range(len(live)):
            result = pool.next(30)
            if isinstance(result.value, StreamEnd):
                assert result.value.worker_id == owner[result.tag]
                live.discard(result.value.worker_id)
            else:
                got[owner[result.tag]].append(result.value)
    return got


@pytest.mark.parametrize("drop_last", [False, True])
def test_iterable(drop_last):
    with make(sets.Stream([10, 3]), kind="iterable", drop_last=drop_last) as pool:
        for _ in range(2):
            got = take_streams(pool, 2, 4)
            assert [b.tolist() for b in got[0]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]][: 2 if drop_last else 3]
            assert [b.tolist() for b in got[1]] == ([] if drop_last else [[1000, 1001, 1002]])
            pool.begin_epoch(6)


def test_an_iterator_can_begin_later():
    with make(sets.Stream([5, 2]), sets.identity, kind="iterable", auto_collation=False) as pool:
        pool.skip_items(0, 3)
        assert take_streams(pool, 2, None) == {0: [3, 4], 1: [1000, 1001]}


def test_iterable_without_batches():
    with make(sets.Stream([3, 2]), sets.identity, kind="iterable", auto_collation=False) as pool:
        assert take_streams(pool, 2, None) == {0: [0, 1, 2], 1: [1000, 1001]}


def test_an_iterator_goes_on_where_its_worker_died(tmp_path):
    with make(sets.Stream([12, 2], tmp_path / "note"), kind="iterable") as pool:
        with pytest.warns(RuntimeWarning, match="worker 0 .* was killed by SIGKILL and was replaced"):
            got = take_streams(pool, 2, 3)
            pool._check_workers()
    assert [b.tolist() for b in got[0]] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


# --- errors ---


def test_an_exception_is_the_result_of_its_batch():
    with make(sets.Faulty()) as pool:
        results = run(pool, [[0, 1], [2, 3, 10, 4], [5, 6]])
    assert results[0].value.tolist() == [0, 1] and results[2].value.tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"(?s)Caught ValueError in DataLoader worker process \d.*index 3 is bad"):
        results[1].value.reraise()
    assert [sample.state for sample in results[1].samples] == [0, 1, 1, 0]


def test_bad_samples_can_be_left_out():
    with make(sets.Faulty(), bad="report") as pool:
        results = run(pool, [[0, 1], [2, 3, 4], [3, 10]])
    assert [r.value if r.value is None else r.value.tolist() for r in results] == [[0, 1], [2, 4], None]
    assert [s.error is None for s in results[1].samples] == [True, False, True]
    with pytest.raises(ValueError, match="index 3 is bad"):
        results[1].samples[1].error.reraise()


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"dataset": sets.Local()}, RuntimeError, r"(?s)Mine.*mine alone"),
        ({"dataset": sets.Unpicklable(), "collate_fn": sets.as_list}, TypeError, "cannot be sent from a worker"),
        ({"dataset": sets.Squares(), "collate_fn": sets.broken_collate}, IndexError, "cannot collate"),
        ({"dataset": sets.Squares(), "worker_init_fn": sets.broken_init}, OSError, "cannot start"),
        ({"dataset": sets.Squares(), "worker_init_fn": sets.broken_init, "bad": "report"}, OSError, "cannot start"),
        ({"dataset": sets.Squares(3).__getitem__}, TypeError, "not subscriptable"),
    ],
)
def test_errors(settings, kind, text):
    with make(**settings) as pool:
        for result in run(pool, [[0, 1, 2], [3, 4]]):
            assert isinstance(result.value, ExceptionWrapper)
            with pytest.raises(kind, match=text):
                result.value.reraise()


def test_settings_are_checked():
    for wrong in ({"workers": 0}, {"workers": 257}, {"kind": "bag"}, {"bad": "ignore"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be .*, got"):
            make(sets.Squares(), **wrong)
