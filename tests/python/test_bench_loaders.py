"""drapps bench loaders: every workload runs in its quick form, and wrong samples are found."""

import gzip
import json
import pathlib
import struct
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks import volumes
from benchmarks.loaders import case as cases
from benchmarks.loaders import case_table, consumer, rounds, timed_work, volume_sets, workloads
from drapps.bench import bench_command, bench_table
from benchmarks.loaders.workloads import consumers, eight_consumers, published, segmentation


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


# --- every row of the table ---


def quick(name, folder):
    workload = workloads.load(name)
    options = {**workload.options, **workload.quick}
    return workload, {**options, **(workload.prepare(options, str(folder)) if workload.prepare else {})}


@pytest.mark.parametrize("name", workloads.NAMES)
def test_workload_runs(name, tmp_path):
    """Every case but torch under kills, which is there to be seen failing."""
    workload, options = quick(name, tmp_path)
    digests = {}
    for case in workload.cases(options):
        if (name, case.loader) == ("kill", "torch"):
            continue
        figures = workload.run(cases.loader_class(case.loader), case, options)
        assert json.loads(json.dumps(figures)) == figures
        assert all(isinstance(figures.get(column.key), (int, float)) for column in workload.columns
                   if column.key not in workload.partial), case.name
        digests[case.name] = figures.get("digest")
    assert len({digest for digest in digests.values() if digest is not None}) <= 1, digests


@pytest.mark.parametrize("name", workloads.NAMES)
def test_cases_stand_beside_cases(name, tmp_path):
    workload, options = quick(name, tmp_path)
    made = workload.cases(options)
    names = [case.name for case in made]
    assert len(set(names)) == len(names)
    assert all(case.beside is None or case.beside in names for case in made)
    assert set(workload.quick) <= set(workload.options)


def test_unknown_words_are_told():
    with pytest.raises(SystemExit, match="workload must be one of folder.*, got 'nothing'"):
        workloads.load("nothing")
    with pytest.raises(SystemExit, match="tiny: options must be among samples.*, got depth"):
        rounds.run("tiny", {"depth": 3})


# --- the consumer ---


def test_tally_wants_every_key_as_often_as_told():
    tally = consumer.Tally(3)
    tally.add(torch.tensor([2, 0, 1]))
    assert tally.check() == 3
    tally.add(torch.tensor([1]))
    with pytest.raises(consumer.WrongSamples, match="1 of 3 samples were not delivered 1 times: 1 x 2"):
        tally.check()


def test_fingerprint_sees_content_and_key_but_not_order():
    arrays, keys = torch.arange(12.0).reshape(3, 4), torch.tensor([0, 1, 2])
    whole = consumer.fingerprint(keys, arrays)
    parts = [consumer.fingerprint(keys[i:i + 1], arrays[i:i + 1]) for i in (2, 0, 1)]
    assert sum(parts) % (1 << 61) == whole
    assert consumer.fingerprint(keys.flip(0), arrays) != whole
    arrays[1, 2] += 1
    assert consumer.fingerprint(keys, arrays) != whole


def test_utilisation_is_time_in_steps():
    seen = consumer.drain([0, 1, 2, 3], 0.01, lambda batch: None)
    assert len(seen.waits) == 4 and seen.held >= 0.04 and 0 < seen.utilisation <= 1


class Clock:
    """Stands still while nobody sleeps."""

    now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.now += seconds


@pytest.mark.parametrize("look, held", [(0.25, 3.0), (2.0, 6.0)])
def test_looking_at_a_batch_is_part_of_the_step(monkeypatch, look, held):
    monkeypatch.setattr(consumer, "time", clock := Clock())
    seen = consumer.drain([0, 1, 2], 1.0, lambda batch: clock.sleep(look))
    assert (seen.held, seen.wall, seen.waits) == (held, held, [0.0] * 3)


def test_one_in_ten_costs_twenty_times_as_much():
    costs = timed_work.skewed_costs(200, 2.0)
    assert sorted(set(costs)) == [2.0, 40.0] and costs.count(40.0) == 20


def test_steps_in_lockstep_wait_for_all_who_have_a_batch():
    began = []

    class Noted(consumers.Lockstep):
        def meet(self):
            super().meet()
            began.append(threading.current_thread().taken)

    queues = [iter([(0, torch.tensor([k]))] * n) for k, n in ((0, 3), (1, 3), (2, 1))]
    threads, _ = consumers.drain_each(queues, 0.0, Noted(3))
    assert [thread.taken for thread in threads] == [3, 3, 1] and began == [1, 1, 1, 2, 2, 3, 3]


def test_a_consumer_that_fails_holds_nobody_up():
    def failing():
        yield 0, torch.tensor([0])
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        consumers.drain_each([failing(), iter([(0, torch.tensor([1]))] * 3)], 0.0, consumers.Lockstep(2))


# --- bounds ---


def test_bound_of_the_utilisation():
    options = {"step": 10.0, "batch": 2, "workers": 1}
    assert segmentation.bound([5.0] * 20, options) == pytest.approx(100 / 110)  # all work, and the last step
    assert segmentation.bound([4.0] * 20, options) == pytest.approx(100 / 108)  # the first batch, and all steps
    assert segmentation.bound([1.0] * 2 + [8.0] * 18, options) == pytest.approx(100 / 156)
    assert segmentation.bound([5.0] * 20, options, rest=20.0) == pytest.approx(100 / 130)  # CPU time for other things


def test_cpu_time_beside_the_samples_counts_in_a_bound_of_its_own():
    options = {"step": 10.0, "batch": 2, "workers": 1, "costs_ms": [5.0] * 20}
    run = {"au": 0.5, "work_s": 0.1, "consumer_s": 0.03, "children_s": 0.11}
    assert segmentation.rest_ms(run) == pytest.approx(40)
    assert segmentation.share_of_all(run, options) == pytest.approx(0.5 * 150 / 100)


def test_bound_of_eight_accelerators():
    options = eight_consumers.WORKLOAD.options
    made, step = eight_consumers.costs(options), eight_consumers.step_ms(options)
    assert len(made) == 168 and sum(made) / 168 * 16 / 12 == pytest.approx(step)
    assert eight_consumers.least_s(options) * 1e3 == pytest.approx(sum(made) / 12 + step)
    assert eight_consumers.bound(options) == pytest.approx(84 * step / 8 / (sum(made) / 12 + step))


def test_published_costs_are_the_same_for_all_and_other_in_each_epoch():
    options = published.WORKLOAD.options
    assert published.offline_costs(options) == published.offline_costs(options)
    first, second = ([published.online_cost(options, epoch, key) for key in range(160)] for epoch in (0, 1))
    assert first != second and 0.2 < sum(cost > 90 for cost in first) / 160 < 0.6


# --- results ---


class Fails:
    """A workload of two cases, of which one fails or makes other samples."""

    def __init__(self, answers):
        self.answers = answers

    def __call__(self, name, case, options):
        answer = self.answers[case.loader]
        if isinstance(answer, Exception):
            raise answer
        return answer


def result_of(monkeypatch, **answers):
    monkeypatch.setattr(rounds, "run_one", Fails(answers))
    return rounds.run("large", rounds=2, command="drapps bench loaders large")


def test_ratio_and_memory_are_told(monkeypatch):
    result = result_of(monkeypatch, torch={"batches_per_s": 10, "pss_above_mb": 80, "digest": 1},
                       drapps={"batches_per_s": 25, "pss_above_mb": 20, "digest": 1})
    text = case_table.markdown(result)
    assert "| drapps | 25.0 [25.0, 25.0] | 20 [20, 20] | 2.50 x torch |" in text
    assert "The outputs of 4 runs were compared and are equal." in text and "over torch's: 0.25" in text
    assert case_table.good(result)


def test_other_outputs_cannot_be_overlooked(monkeypatch):
    result = result_of(monkeypatch, torch={"batches_per_s": 10, "pss_above_mb": 80, "digest": 1},
                       drapps={"batches_per_s": 25, "pss_above_mb": 20, "digest": 2})
    assert "**OUTPUTS DIFFER**: drapps" in case_table.markdown(result) and not case_table.good(result)


def test_failure_is_told_with_its_reason(monkeypatch):
    from drapps.bench.runner import PeerError

    result = result_of(monkeypatch, torch=PeerError("worker exited"),
                       drapps={"batches_per_s": 25, "pss_above_mb": 20, "digest": 1})
    assert "torch, round 2: failed: worker exited" in case_table.markdown(result)
    assert case_table.good(result)  # torch's failure is a result, drapps's would not be


def test_command_line_runs_saves_and_writes_a_section(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results-tiny -->\n<!-- /results-tiny -->\nafter\n")
    done = bench_command.main(["loaders", "tiny", "--quick", "--rounds", "1", "--only", "torch", "--set",
                               "batches=[16]",
                         "--save", str(tmp_path / "saved"), "--into", str(page)])
    assert done == 0 and "torch, batches of 16" in capsys.readouterr().out
    saved = json.loads((tmp_path / "saved" / "tiny.json").read_text())
    assert saved["cases"][0]["figures"]["batches_per_s"]["n"] == 1
    assert bench_command.page_of(saved) is case_table and bench_command.page_of({}) is bench_table
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "`drapps bench loaders tiny --rounds 1 --seed 0 --set batches=[16] --quick`" in text


# --- volumes ---


def nifti(order, array, offset):
    """A NIfTI-1 file with values that are to be doubled, less one."""
    header = bytearray(offset)
    struct.pack_into(order + "i", header, 0, 348)
    struct.pack_into(order + "8h", header, 40, 4, *array.shape[::-1], 1, 1, 1, 1)
    struct.pack_into(order + "h", header, 70, 4)
    struct.pack_into(order + "8f", header, 76, 1, 0.5, 0.75, 3, 0, 0, 0, 0)
    struct.pack_into(order + "3f", header, 108, offset, 2, -1)
    return bytes(header) + array.astype(order + "i2").tobytes()


@pytest.mark.parametrize("order", "<>")
def test_foreign_volumes_are_brought_in(tmp_path, order):
    array = np.arange(24).reshape(2, 3, 4)  # z, y, x
    (tmp_path / "from" / "deep").mkdir(parents=True)
    (tmp_path / "to").mkdir()
    (tmp_path / "from" / "deep" / "a.nii.gz").write_bytes(gzip.compress(nifti(order, array, 400)))
    (tmp_path / "from" / "b.nii").write_bytes(b"no volume at all")
    images, labels = volume_sets.bring_in(str(tmp_path / "from"), str(tmp_path / "to"))
    got, spacing = volumes.read_nifti(images[0])
    assert len(images) == 1 and np.array_equal(got, array * 2 - 1) and spacing == (3.0, 0.75, 0.5)
    assert np.array_equal(volumes.read_nifti(labels[0])[0], array > 0)
    with pytest.raises(SystemExit, match="must have a NIfTI file with three axes"):
        volume_sets.bring_in(str(tmp_path / "to" / "nothing"), str(tmp_path))


def test_volumes_differ_widely_in_size():
    counts = [a * b * c for a, b, c in volume_sets.sizes(40, 0.25)]
    assert max(counts) > 100 * min(counts)


def test_every_workload_has_its_place_in_the_documents():
    pages = (pathlib.Path(__file__).parents[2] / "docs" / "benchmarks").glob("*.md")
    page = "".join(page.read_text() for page in pages)
    for name in workloads.NAMES:
        assert page.count(f"<!-- results-{name} -->\n") == page.count(f"<!-- /results-{name} -->") == 1
        assert f"drapps bench loaders {name}" in page
