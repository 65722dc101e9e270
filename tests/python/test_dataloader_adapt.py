"""DataLoader with a policy: what it takes, what it says, that nothing is lost while knobs are
turned, nothing is left."""

import gc
import inspect
import os
import pathlib
import pickle
import threading
import time
from collections import Counter

import psutil
import pytest
import torch
from loadersets import Burning, Numbers, Slow, burn
from torch.utils import data

import drapps
from drapps import DataLoader
from drapps.procpool.tuning import Tuning

pytestmark = pytest.mark.usefixtures("leaves_nothing")


class Endless(data.IterableDataset):
    """24 numbers, one after the other."""

    def __iter__(self):
        return iter(range(24))


def workers():
    """Worker processes of this process that live."""
    found = psutil.Process().children(recursive=True)
    return [p for p in found if psutil.pid_exists(p.pid) and p.name() == "drapps-worker"]


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def monitor():
    with drapps.Monitor() as found:
        yield found


# --- arguments ---


@pytest.mark.parametrize(("options", "text"), [
    ({"policy": "magic"}, r"policy must be one of .*mpc, off, got 'magic'"),
    ({"policy": "analytic:margin=9"}, r"policy: margin must be a number from 1 to 4, got '9'"),
    ({"policy": 3}, r"policy must be text such as 'analytic' or .*, got 3"),
    ({"weights": "beauty=1"}, "beauty"),
    ({"weights": {"energy": -1}}, "energy"),
    ({"weights": {"energy": "much"}}, "energy must be a non-negative number, got 'much'"),
    ({"cpu_limit": 1e-9}, "cpu_limit must be a number from 0.01 to 512 or None, got 1e-09"),
    ({"cpu_limit": 513}, "cpu_limit must be a number from 0.01 to 512 or None, got 513"),
])  # fmt: skip
def test_what_is_not_known_is_said_at_once(options, text):
    with pytest.raises(drapps.ArgumentError, match=text):
        DataLoader(Numbers(4), **options)


def test_a_variable_that_names_no_policy_is_said_at_once(monkeypatch):
    monkeypatch.setenv("DRAPPS_POLICY", "magic")
    with pytest.raises(drapps.ArgumentError, match="DRAPPS_POLICY must be one of .*, got 'magic'"):
        DataLoader(Numbers(4))


def test_off_is_fixed():
    assert DataLoader(Numbers(4), policy="off").stats()["policy"] == "fixed"


def test_without_workers_nothing_is_started(monitor):
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    loader = DataLoader(Numbers(8), 4, num_workers=0, policy="rules", resource_monitor=monitor, weights="draadp")
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before
    assert loader.decisions() == [] and loader.stats()["policy"] == "rules"


def test_a_copy_has_the_settings_and_no_monitor(monitor):
    loader = DataLoader(Numbers(8), 4, policy="rules", weights={"idle": 2}, resource_monitor=monitor)
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.policy == "rules" and copy.resource_monitor is None
    assert torch.cat(list(copy)).tolist() == list(range(8))


# --- passes ---


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"in_order": False}, {"prefetch_factor": 3}], ids=str)
def test_every_sample_comes_once(options, monitor):
    loader = DataLoader(Numbers(60), 4, resource_monitor=monitor, **options)
    for _ in range(2):
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(60))
    knobs = loader.stats()["knobs"]
    assert set(knobs) == {knob.name for knob in drapps.knobs()}
    assert knobs["workers"] == options.get("num_workers", knobs["workers"])


NOT_COUNTS = {"lane_share", "lane_threshold", "cpu_ceiling", "offload"}


def loaders_of_all_kinds(monitor):
    pipe = drapps.from_arrays(x=torch.arange(24).numpy())
    yield DataLoader(Numbers(24), 4, num_workers=1, resource_monitor=monitor)
    yield DataLoader(data.TensorDataset(torch.arange(24)), 4, resource_monitor=monitor)
    yield pipe.loader(batch_size=4, resource_monitor=monitor)
    yield pipe.map(lambda sample: sample).loader(batch_size=4, workers=1, resource_monitor=monitor)


@pytest.mark.parametrize("kind", range(4))
def test_counts_are_ints_everywhere(monitor, kind):
    with list(loaders_of_all_kinds(monitor))[kind] as loader:
        assert len(list(loader)) == 6
        stats = loader.stats()
        assert {name for name, value in stats["knobs"].items() if not isinstance(value, int)} == NOT_COUNTS
        assert stats["workers"] == stats["knobs"]["workers"] and isinstance(stats["workers"], int)


def test_the_workers_are_those_that_run(monitor):
    loader = DataLoader(Numbers(400), 4, resource_monitor=monitor, policy="fixed")
    iterator = iter(loader)
    next(iterator)
    iterator._pool.controller.set("workers", 3)  # as the policy does
    assert loader.stats()["workers"] == loader.stats()["knobs"]["workers"] == 3
    assert len(torch.cat(list(iterator))) == 396


def test_what_is_set_between_passes_counts(monitor):
    loader = DataLoader(Numbers(40), 4, resource_monitor=monitor, policy="fixed")
    iterator = iter(loader)
    next(iterator)
    iterator._pool.controller.set("workers", 3)
    list(iterator)
    loader.set("workers", 1)
    assert loader.stats()["workers"] == loader.stats()["knobs"]["workers"] == 1
    iterator = iter(loader)
    assert iterator._n_workers == 1 and len(torch.cat(list(iterator))) == 40


def test_streams_have_a_controller_too(monitor):
    loader = DataLoader(Endless(), 4, num_workers=1, resource_monitor=monitor)
    assert torch.cat(list(loader)).tolist() == list(range(24)) and loader.stats()["knobs"]["workers"] == 1


def test_a_native_pass_has_it_from_the_engine(monitor):
    loader = DataLoader(data.TensorDataset(torch.arange(24)), 4, resource_monitor=monitor, policy="climb")
    assert torch.cat([x for x, in loader]).tolist() == list(range(24))
    stats = loader.stats()
    assert stats["policy"] == "climb" and stats["knobs"]["workers"] >= 1
    loader.close()


def test_a_chain_with_functions_has_a_controller_too(monitor, tmp_path):
    pipe = drapps.from_arrays(x=torch.arange(40).numpy()).map(lambda sample: sample)
    options = {"batch_size": 4, "resource_monitor": monitor, "policy": "rules", "trace": tmp_path / "run.drtrace"}
    with pipe.loader(workers=2, **options) as loader:
        found = [batch["x"] for batch in loader]
        assert sorted(torch.cat([torch.as_tensor(x) for x in found]).tolist()) == list(range(40))
        stats = loader.stats()
        assert stats["policy"] == "rules" and stats["knobs"]["workers"] == 2 and isinstance(loader.decisions(), list)
    assert drapps.trace.read(tmp_path / "run.drtrace").spans


def test_what_is_given_is_pinned():
    given = DataLoader(Numbers(8), 4, num_workers=1, prefetch_factor=2)
    assert given._tuning.pinned == ("workers", "prefetch") and DataLoader(Numbers(8))._tuning.pinned == ()


def test_two_loaders_share_a_monitor(monitor):
    one, other = (DataLoader(Numbers(40), 4, num_workers=1, resource_monitor=monitor) for _ in range(2))
    pairs = zip(one, other, strict=True)
    assert all(torch.equal(a, b) for a, b in pairs) and monitor.latest()["mem_used"] > 0


# --- limits ---


def assert_within(cpus, paid, wall):
    """The bound is one of arithmetic, however busy the machine is: CPU time is given out at the rate of the ceiling."""
    assert paid <= cpus * (wall + 0.02), f"{paid:.2f} s of CPU time in {wall:.2f} s"


@pytest.mark.parametrize("options", [{"policy": "fixed"}, {"in_order": False}, {"batch_size": None}], ids=str)
def test_worker_processes_keep_to_the_cpu_limit(options):
    seconds, n, workers = 0.02, 40, 2
    loader = DataLoader(Burning(n, seconds), **{"batch_size": 4, "num_workers": workers, "cpu_limit": 0.5, **options})
    begin = time.monotonic()
    found = [number for batch in loader for number in batch.reshape(-1).tolist()]
    assert_within(0.5, (n - workers) * seconds, time.monotonic() - begin)  # but for what each is at in the end
    assert sorted(found) == list(range(n)) and loader.stats()["knobs"]["cpu_ceiling"] == 0.5


def test_functions_of_a_chain_keep_to_the_cpu_limit():
    seconds, n, workers = 0.02, 40, 2
    pipe = drapps.from_arrays(x=torch.arange(n).numpy()).map(lambda sample: (burn(seconds), sample)[1])
    with pipe.loader(batch_size=4, workers=workers, cpu_limit=0.5, policy="fixed") as loader:
        begin = time.monotonic()
        found = torch.cat([torch.as_tensor(batch["x"]) for batch in loader])
        assert_within(0.5, (n - workers) * seconds, time.monotonic() - begin)
        assert found.tolist() == list(range(n)) and loader.stats()["knobs"]["cpu_ceiling"] == 0.5


@pytest.mark.parametrize(("cpu_limit", "most"), [(0.1, 1), (1, 1), (1.5, 2)])
def test_no_more_workers_than_may_be_busy(cpu_limit, most):
    n = min(most, drapps.info()["limits"]["workers"])
    pipe = drapps.from_arrays(x=torch.arange(8).numpy()).map(lambda sample: sample)
    with pipe.loader(cpu_limit=cpu_limit) as loader, pipe.loader(cpu_limit=cpu_limit, workers=3) as given:
        assert (loader.get("workers"), given.get("workers")) == (n, 3)
    assert DataLoader(Numbers(8), cpu_limit=cpu_limit).num_workers == n


def test_a_user_may_turn_the_ceiling_while_it_runs(monitor):
    iterator = iter(DataLoader(Numbers(40), 4, num_workers=1, cpu_limit=0.5, resource_monitor=monitor))
    next(iterator)
    controller = iterator._pool.controller
    assert controller.get("cpu_ceiling") == 0.5
    controller.set("cpu_ceiling", 0)
    assert controller.get("cpu_ceiling") == 0 and len(list(iterator)) == 9


# --- proposals ---


def test_wishes_are_followed_and_nothing_is_lost(monitor):
    iterator = iter(
        DataLoader(Slow(400, range(400), 0.002), 4, num_workers=1, resource_monitor=monitor, policy="fixed")
    )
    found = next(iterator).tolist()
    pool = iterator._pool
    for n in (3, 1, 2):
        pool.follow({"workers": n, "priority": 0})
        found += next(iterator).tolist()
        assert wait_for(lambda n=n: len(workers()) == n)
    for batch in iterator:
        found += batch.tolist()
    assert found == list(range(400))


def test_a_proposal_that_the_user_has_overtaken_is_not_followed(monitor):
    iterator = iter(DataLoader(Slow(40, range(40), 0.002), 4, resource_monitor=monitor, policy="fixed"))
    next(iterator)
    pool = iterator._pool
    pool.resize(3)
    pool.follow(pool.controller)  # as its thread does when it hears of a proposal from before
    assert pool.workers == pool.controller.get("workers") == 3 and len(list(iterator)) == 9


def test_workers_let_others_go_first_and_not_any_more(monitor):
    loader = DataLoader(Slow(200, range(200), 0.002), 4, num_workers=2, resource_monitor=monitor, policy="fixed")
    iterator = iter(loader)
    found = next(iterator).tolist()
    assert wait_for(lambda: len(workers()) == 2)
    iterator._pool.follow({"workers": 2, "priority": -1})
    assert wait_for(lambda: [p.nice() for p in workers()] == [10, 10])
    iterator._pool.follow({"workers": 2, "priority": 0})  # where the kernel refuses that, the workers are new ones
    assert wait_for(lambda: [p.nice() for p in workers()] == [0, 0])
    assert found + torch.cat(list(iterator)).tolist() == list(range(200))


def test_where_the_kernel_refuses_workers_are_replaced(monitor, monkeypatch):
    real = os.setpriority

    def refuse(which, pid, nice):
        if nice == 0:
            raise PermissionError
        real(which, pid, nice)

    monkeypatch.setattr(os, "setpriority", refuse)  # the zygote is forked from here
    loader = DataLoader(Slow(200, range(200), 0.002), 4, num_workers=2, resource_monitor=monitor, policy="fixed")
    iterator = iter(loader)
    found = next(iterator).tolist()
    assert wait_for(lambda: len(workers()) == 2)
    before = {p.pid for p in workers()}
    iterator._pool.follow({"workers": 2, "priority": -1})
    assert wait_for(lambda: [p.nice() for p in workers()] == [10, 10])
    iterator._pool.follow({"workers": 2, "priority": 0})
    found += torch.cat(list(iterator)).tolist()
    assert found == list(range(200))
    assert not any(map(psutil.pid_exists, before))


def test_the_number_of_batches_ahead_is_the_controllers(monitor):
    iterator = iter(DataLoader(Numbers(400), 4, num_workers=1, resource_monitor=monitor, policy="fixed"))
    next(iterator)
    controller = iterator._pool.controller
    controller.set("prefetch", 9)
    next(iterator)
    assert iterator._pool.window.batches == 9 and iterator._pool.window.in_flight <= 9
    assert len(torch.cat(list(iterator))) == 392


def test_what_the_user_sets_stays(monitor):
    loader = DataLoader(Numbers(400), 4, num_workers=1, resource_monitor=monitor)
    iterator = iter(loader)
    next(iterator)
    loader.set("workers", 2)
    assert iterator._pool.controller.get("workers") == 2
    assert len(torch.cat(list(iterator))) == 396


# --- the end ---


def threads():
    """The names that the kernel knows, of this process."""
    return [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]


@pytest.mark.parametrize("way", ["break", "close", "error"])
def test_a_pass_that_is_left_leaves_nothing(monitor, way):
    loader = DataLoader(Numbers(400), 4, num_workers=2, resource_monitor=monitor)
    iterator = iter(loader)
    next(iterator)
    assert wait_for(lambda: "drapps-control" in threads())
    if way == "close":
        loader.close()
    elif way == "error":
        iterator._shutdown_workers()
    del iterator
    gc.collect()
    assert wait_for(lambda: not workers())
    assert wait_for(lambda: "drapps-control" not in threads())  # it lets go of its lock before it ends


def test_a_forked_child_ends(monitor):
    iterator = iter(DataLoader(Numbers(40), 4, num_workers=1, resource_monitor=monitor))
    found = next(iterator).tolist()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            del iterator
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert found + torch.cat(list(iterator)).tolist() == list(range(40))


def test_a_trace_of_worker_processes_can_be_read(tmp_path):
    path = tmp_path / "run.drtrace"
    with DataLoader(Numbers(40), 4, num_workers=1, trace=path) as loader:
        assert len(list(loader)) == 10
    found = drapps.trace.read(path)
    kinds = [span.kind for span in found.spans]
    assert (found.meta["data"], found.meta["samples"]) == ("Numbers", 40)
    settings = found.meta["settings"]
    assert (settings["batch_size"], settings["workers"], settings["prefetch"]) == (4, 1, 2)
    assert settings["sampler"] == "SequentialSampler" and settings["seed"] is None
    assert kinds.count("batch") == kinds.count("wait") == 10 and kinds.count("work") == 40
    assert all(span.begin <= span.end for span in found.spans)


class Named(Numbers):
    """Samples by name."""

    def __getitem__(self, name):
        return super().__getitem__(int(name.split("-")[1]))


def work_of(path):
    return [span for span in drapps.trace.read(path).spans if span.kind == "work"]


def test_a_trace_of_worker_processes_names_samples(tmp_path):
    order = torch.randperm(40).tolist()
    with DataLoader(Numbers(40), 4, sampler=order, num_workers=2, trace=tmp_path / "ids") as loader:
        list(loader)
    work = work_of(tmp_path / "ids")
    assert len(work) == 40 and all(order[4 * span.batch + span.slot] == span.id for span in work)
    names = [f"n-{i}" for i in range(8)]
    with DataLoader(Named(8), 4, sampler=names, num_workers=1, trace=tmp_path / "names") as loader:
        list(loader)
    assert sorted(span.key for span in work_of(tmp_path / "names")) == names
    pipe = drapps.from_arrays(x=torch.arange(40).numpy()).map(lambda sample: sample)
    with pipe.loader(batch_size=4, workers=1, trace=tmp_path / "chain") as loader:
        list(loader)
    assert sorted(span.position for span in work_of(tmp_path / "chain")) == list(range(40))


def spans_by_epoch(path):
    """{epoch: {kind: how many}}."""
    found = {}
    for span in drapps.trace.read(path).spans:
        found.setdefault(span.epoch, Counter())[span.kind] += 1
    return found


@pytest.mark.parametrize("persistent", [True, False])
def test_spans_of_worker_processes_have_their_epoch(tmp_path, persistent):
    options = {"num_workers": 1, "persistent_workers": persistent, "trace": tmp_path / "run"}
    with DataLoader(Numbers(12), 4, **options) as loader:
        assert [len(list(loader)) for _ in range(3)] == [3, 3, 3]
    each = {"work": 12, "batch": 3, "wait": 3, "step": 2}
    assert spans_by_epoch(tmp_path / "run") == dict.fromkeys(range(3), each)


def test_a_pass_that_goes_on_has_the_epoch_it_had(tmp_path):
    saved = DataLoader(Numbers(12), 4, num_workers=0)
    list(saved)
    next(iter(saved))
    with DataLoader(Numbers(12), 4, num_workers=1, trace=tmp_path / "run") as loader:
        loader.load_state_dict(saved.state_dict())
        assert len(list(loader)) == 2
    assert set(spans_by_epoch(tmp_path / "run")) == {1}


def test_spans_of_a_chain_have_their_epoch(tmp_path):
    pipe = drapps.from_arrays(x=torch.arange(12).numpy()).map(lambda sample: sample)
    with pipe.loader(batch_size=4, workers=1, trace=tmp_path / "run") as loader:
        list(loader)
        loader.set_epoch(7)
        list(loader)
    found = spans_by_epoch(tmp_path / "run")
    assert {epoch: (kinds["work"], kinds["batch"]) for epoch, kinds in found.items()} == {0: (12, 3), 7: (12, 3)}


def test_a_long_wait_is_one_wait(tmp_path):
    """The trainer looks after its workers meanwhile, ten times a second."""
    with DataLoader(Slow(3, {1}, 1.0), 1, num_workers=1, trace=tmp_path / "run") as loader:
        list(loader)
    spans = drapps.trace.read(tmp_path / "run").spans
    waited, stepped = ({span.batch: span.end - span.begin for span in spans if span.kind == kind}
                       for kind in ("wait", "step"))  # fmt: skip
    assert waited[1] > 0.2 and waited[1] > stepped[0]


def made_with_trace(path):
    yield DataLoader(Numbers(24), 4, num_workers=1, trace=path)
    yield DataLoader(data.TensorDataset(torch.arange(24)), 4, trace=path)
    yield drapps.from_arrays(x=torch.arange(24).numpy()).map(dict).loader(batch_size=4, workers=1, trace=path)


@pytest.mark.parametrize("kind", range(3))
def test_a_full_disk_ends_the_trace_and_nothing_else(kind):
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    loader = list(made_with_trace("/dev/full"))[kind]
    assert len(list(loader)) == 6
    told = loader.stats()["trace"]
    assert told["path"] == "/dev/full" and told["state"] == "failed" and "No space left" in told["error"]
    with pytest.warns(RuntimeWarning, match="writing /dev/full failed: No space left on device"):
        loader.close()


@pytest.mark.parametrize("kind", range(3))
def test_the_state_of_a_trace(tmp_path, kind):
    with list(made_with_trace(tmp_path / "run"))[kind] as loader:
        list(loader)
        assert loader.stats()["trace"] == {"path": str(tmp_path / "run"), "state": "writing", "error": None}
    with list(made_with_trace(None))[kind] as loader:
        list(loader)
        assert loader.stats()["trace"] is None


def test_a_step_is_with_the_batch_that_was_taken(tmp_path):
    with DataLoader(Numbers(12), 4, num_workers=1, trace=tmp_path / "run") as loader:
        list(loader)
    spans = drapps.trace.read(tmp_path / "run").spans
    assert sorted(span.batch for span in spans if span.kind == "step") == [0, 1]
    assert sorted((span.batch, span.slot) for span in spans if span.kind == "wait") == [(0, 4), (1, 4), (2, 4)]


# --- the names of the first descriptions ---


def test_draadp_has_its_signature():
    parameters = inspect.signature(drapps.DRAADPDataLoader).parameters
    assert list(parameters) == ["dataset", "batch_size", "resource_monitor", "adaptive_compression", "prefetch_factor",
                                "kwargs"]  # fmt: skip
    defaults = [p.default for p in parameters.values()][1:5]
    assert defaults == [32, None, True, 2] and issubclass(drapps.DRAADPDataLoader, data.DataLoader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_draadp_gives_what_torch_gives(num_workers):
    found = []
    for make in (data.DataLoader, drapps.DRAADPDataLoader):
        generator = torch.Generator().manual_seed(5)
        found.append(list(make(Numbers(50), batch_size=8, shuffle=True, num_workers=num_workers, generator=generator)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_settings_are_those_of_the_class():
    loader = drapps.DRAADPDataLoader(Numbers(8))
    assert loader.weights == "draadp" and loader.batch_size == 32 and loader.prefetch_factor == 2
    assert isinstance(loader._tuning, Tuning) and loader._tuning.pinned == ()


@pytest.mark.parametrize("batch_size, least", [(1, 4), (3, 2), (8, 2)])
def test_no_policy_leaves_workers_without_a_sample(batch_size, least):
    """Those of a batch are spread over the workers: where it has few, as many batches are in flight."""
    with DataLoader(Slow(48, range(48), 0.01), batch_size, num_workers=4) as loader:
        loader._tuning.learnt["prefetch"] = 2  # as the policy of an earlier pass may have left it
        iterator = iter(loader)
        assert iterator._pool.window.batches == least
        assert sum(len(batch) for batch in iterator) == 48


class Sized(Numbers):
    """Arrays of so many bytes."""

    def __init__(self, n, nbytes):
        super().__init__(n)
        self.nbytes = nbytes

    def __getitem__(self, i):
        return torch.full((self.nbytes,), i % 256, dtype=torch.uint8)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("nbytes, least", [(1 << 10, 6), (8 << 20, 2)])
def test_small_batches_are_made_as_far_ahead_as_torchs(nbytes, least, in_order):
    """Whatever a policy says: a slow sample is begun as early then."""
    with DataLoader(Sized(24, nbytes), 2, num_workers=3, in_order=in_order, lanes=False) as loader:
        loader._tuning.learnt["prefetch"] = 1  # as the policy of an earlier pass may have left it
        iterator = iter(loader)
        next(iterator)
        assert iterator._pool.window.batches >= least and (least == 2) == (iterator._pool.window.batches == 2)


def test_a_pass_begins_with_the_workers_that_the_last_ones_policy_left(tmp_path, monkeypatch):
    """Also with more than there are CPUs, and whether a trace is written or not."""
    monkeypatch.setattr("drapps.torch.workers.usual_workers", lambda *_: 2)
    for trace in (None, tmp_path / "run.drtrace"):
        with DataLoader(Slow(48, range(48), 0.01), 4, trace=trace) as loader:
            loader._tuning.learnt["workers"] = 4  # as the policy of an earlier pass may have left it
            iterator = iter(loader)
            next(iterator)
            assert iterator._pool.workers == 4


def test_decisions_are_numbered_over_all_passes(tmp_path):
    path = tmp_path / "run.drtrace"
    with DataLoader(Slow(60, range(60), 0.02), 4, num_workers=1, trace=path) as loader:
        for _ in range(2):
            for _ in loader:
                pass
        told = loader.stats()["decisions"]
    numbers = [decision.number for decision in drapps.trace.read(path).decisions]
    assert len(numbers) >= 2 and numbers == list(range(1, len(numbers) + 1)) and told == numbers[-1]
