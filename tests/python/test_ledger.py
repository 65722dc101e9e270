"""The ledger of sample costs: what it predicts, what it keeps, and that nothing odd in a file harms."""

import time

import numpy
import pytest
from imagesets import gather, run_python, same, train
from PIL import Image
from torch.utils.data import Subset

import drapps.ledger
from drapps.ledger import Ledger, fingerprint, hint_of

HEAD_BYTES = 40


class Numbers:
    def __init__(self, n, root="here"):
        self.n = n
        self.root = root

    def __len__(self):
        return self.n


class Hinted(Numbers):
    def cost_hint(self, index):
        return float(index)


def skewed(n=200):
    return numpy.where(numpy.arange(n) % 10 == 0, 20e6, 1e6)


def test_costs_are_remembered_per_sample(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    assert not ledger.predict(numpy.arange(200)).any()
    ledger.note(numpy.arange(100), skewed()[:100])
    costs = ledger.predict(numpy.arange(200))
    assert numpy.allclose(costs[:100], skewed()[:100])
    assert not costs[100:].any()


def test_a_second_run_knows_the_slow_ones(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    ledger.note(numpy.arange(200), skewed())
    ledger.save()
    again = Ledger(Numbers(200), tmp_path)
    assert numpy.allclose(again.predict(numpy.arange(200)), skewed())
    assert not Ledger(Numbers(200, root="elsewhere"), tmp_path).units.any()


def test_the_median_is_that_of_what_was_seen(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    assert ledger.median_ns == 0
    ledger.note(numpy.arange(50), skewed()[:50])
    assert ledger.median_ns == pytest.approx(1e6)


def test_the_spread_is_that_of_what_was_seen(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    assert ledger.spread == (0, 0)
    ledger.note(numpy.arange(50), skewed()[:50])
    assert ledger.spread == pytest.approx((2.9e6, 20e6))


def test_what_two_processes_learnt_is_merged(tmp_path):
    one, other = Ledger(Numbers(200), tmp_path), Ledger(Numbers(200), tmp_path)
    one.note(numpy.arange(100), skewed()[:100])
    other.note(numpy.arange(100, 200), skewed()[100:])
    one.save()
    other.save()
    assert (Ledger(Numbers(200), tmp_path).units > 0).all()


def test_equal_costs_are_not_written(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    ledger.note(numpy.arange(200), numpy.full(200, 1e6))
    ledger.save()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("harm", [
    lambda data: b"",
    lambda data: data[:10],
    lambda data: data[:-1],
    lambda data: b"x" + data[1:],
    lambda data: data[:HEAD_BYTES] + b"\xff" * (len(data) - HEAD_BYTES),
])  # fmt: skip
def test_a_damaged_file_counts_as_none(tmp_path, harm):
    ledger = Ledger(Numbers(200), tmp_path)
    ledger.note(numpy.arange(200), skewed())
    ledger.save()
    (path,) = tmp_path.iterdir()
    path.write_bytes(harm(path.read_bytes()))
    again = Ledger(Numbers(200), tmp_path)
    assert not again.predict(numpy.arange(200)).any()
    again.note(numpy.arange(200), skewed())
    again.save()
    assert (Ledger(Numbers(200), tmp_path).units > 0).all()


def test_a_faster_machine_changes_the_unit_not_the_ranking(tmp_path):
    ledger = Ledger(Numbers(200), tmp_path)
    ledger.note(numpy.arange(200), skewed())
    for _ in range(12):
        ledger.note(numpy.arange(200), skewed() / 4)
    assert numpy.allclose(ledger.predict(numpy.arange(200)), skewed() / 4, rtol=0.05)


def test_unseen_samples_are_predicted_from_a_hint(tmp_path):
    ledger = Ledger(Hinted(1000), tmp_path)
    seen = numpy.arange(100)
    ledger.note(seen, 1e5 * seen + 5e5)
    assert ledger.predict([900])[0] == pytest.approx(9.05e7, rel=0.01)


class Sized(Numbers):
    """Most samples are as large as the next one, some are much larger."""

    def cost_hint(self, index):
        return 3000.0 if index % 10 == 0 else 1000.0


@pytest.fixture
def unhurried(monkeypatch):
    """Hints may take their time."""
    monkeypatch.setattr(drapps.ledger, "GUESS_S", 60)
    monkeypatch.setattr(drapps.ledger, "SLOW_HINT_NS", 60e9)


@pytest.mark.usefixtures("unhurried")
def test_before_anything_was_seen_costs_are_guessed_from_hints():
    ledger = Ledger(Sized(200), folder=None)
    assert ledger.is_guessing and not ledger.is_telling
    slow, fast = ledger.predict([10, 11])
    assert slow == pytest.approx(3 * fast) and ledger.median_ns == pytest.approx(fast)
    assert ledger.spread == pytest.approx((1.2 * fast, 3 * fast), rel=0.1)


@pytest.mark.usefixtures("unhurried")
def test_a_guess_is_of_the_size_of_what_was_seen():
    ledger = Ledger(Sized(200), folder=None)
    ledger.note([1, 2, 3], [70e6, 70e6, 70e6])
    assert ledger.is_guessing and ledger.predict([10, 11]) == pytest.approx([210e6, 70e6])
    assert ledger.median_ns == pytest.approx(70e6)


@pytest.mark.usefixtures("unhurried")
def test_a_hint_that_fails_later_ends_the_guessing(monkeypatch):
    ledger = Ledger(Sized(200), folder=None)
    monkeypatch.setattr(Sized, "cost_hint", lambda self, i: 1 / 0)
    ledger.hint = Sized(200).cost_hint
    assert ledger.is_guessing and not ledger.predict([50, 51]).any()
    assert not ledger.is_guessing and ledger.median_ns == 0 and ledger.spread == (0, 0)


@pytest.mark.usefixtures("unhurried")
def test_once_enough_was_seen_nothing_is_guessed():
    ledger = Ledger(Sized(200), folder=None)
    ledger.note(numpy.arange(40), numpy.full(40, 1e6))  # the hint tells nothing after all
    assert not ledger.is_guessing and not ledger.predict([50, 51]).any()


def test_a_ledger_that_knows_does_not_guess(tmp_path):
    ledger = Ledger(Sized(200), tmp_path)
    ledger.note(numpy.arange(100), skewed()[:100])
    ledger.save()
    again = Ledger(Sized(200), tmp_path)
    assert not again.is_guessing and not again.predict([150]).any()


@pytest.mark.parametrize("hint", [
    lambda self, i: 1000.0,  # all alike
    lambda self, i: float("nan") if i else 1.0,
    lambda self, i: -float(i),
    lambda self, i: 0.0 if i % 10 else 1.0,  # no typical one
    lambda self, i: 1 / (i % 7),  # fails for some
    lambda self, i: time.sleep(0.001) or float(i),
], ids=["alike", "nan", "negative", "zero", "failing", "slow"])  # fmt: skip
def test_hints_that_are_of_no_use_are_not_guessed_from(monkeypatch, hint):
    monkeypatch.setattr(Sized, "cost_hint", hint)
    ledger = Ledger(Sized(200), folder=None)
    assert not ledger.is_guessing and ledger.spread == (0, 0) and not ledger.predict([50, 51]).any()


def test_an_empty_set_has_a_ledger():
    assert not Ledger(Sized(0), folder=None).is_guessing


def test_a_hint_that_tells_nothing_is_not_used():
    ledger = Ledger(Hinted(200), folder=None)
    ledger.note(numpy.arange(100), [1 + (i * 7919) % 100 for i in range(100)])
    assert not ledger.is_estimating and not ledger.predict([150]).any()


def test_file_sizes_are_the_hint_of_a_folder(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    folder = Numbers(1)
    folder.samples = [(str(tmp_path / "a"), 0)]
    assert hint_of(folder)(0) == hint_of(Subset(folder, [0]))(0) == 5
    assert hint_of(Numbers(3)) is None


def test_file_sizes_are_the_hint_of_a_list_of_files(tmp_path):
    scans = Numbers(2)
    scans.names = ["one", "two"]  # of nothing
    scans.scans = [tmp_path / "a", str(tmp_path / "b")]
    assert hint_of(scans) is None
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12")
    assert [hint_of(scans)(i) for i in range(2)] == [5, 2]
    others = Numbers(2)
    others.scans = scans.scans[::-1]
    assert fingerprint(others) != fingerprint(scans)
    scans.n = 3  # not one file for each sample
    assert hint_of(scans) is None


def test_what_only_looks_like_a_folder_or_a_subset_has_no_hint():
    clips = Numbers(4)
    clips.samples = [("a", 0), ("b", 1)]  # two clips of each file
    wrapper = Numbers(2)
    wrapper.dataset, wrapper.indices = Hinted(4), {"a": 3, "b": 1}
    assert hint_of(clips) is None and hint_of(wrapper) is None
    fingerprint(clips), fingerprint(wrapper)


def test_a_hint_that_fails_is_not_asked_again(tmp_path):
    class Broken(Numbers):
        def cost_hint(self, index):
            raise KeyError(index)

    ledger = Ledger(Broken(100), tmp_path)
    ledger.note(numpy.arange(50), skewed(50))
    assert numpy.allclose(ledger.predict(numpy.arange(50)), skewed(50))
    assert ledger.hint is None


def test_a_hint_that_takes_long_is_not_asked_again(tmp_path, monkeypatch):
    ledger = Ledger(Hinted(100), tmp_path)
    ledger.hints = 0  # of the first guess
    monkeypatch.setattr(drapps.ledger, "SLOW_HINT_NS", -1)
    ledger.note(numpy.arange(15), skewed(15))
    assert ledger.hint is not None
    ledger.note(numpy.arange(15, 50), skewed(50)[15:])
    assert ledger.hint is None and ledger.hints == 16
    assert numpy.allclose(ledger.predict(numpy.arange(50)), skewed(50))


def test_fingerprints_tell_sets_apart():
    part = Subset(Numbers(10), [1, 3])
    prints = {fingerprint(d) for d in (Numbers(10), Numbers(11), Numbers(10, "b"), Hinted(10), part)}
    assert len(prints) == 5
    assert fingerprint(Numbers(10)) == fingerprint(Numbers(10))


class Endless:
    """Has no length."""

    files = [__file__]

    def __getitem__(self, index):
        return index


@pytest.mark.parametrize(("dataset", "indices"), [(Endless(), [1, 2]), ({"a": 1, "b": 2}, ["a", "b"])])
def test_subsets_of_anything_have_a_ledger(tmp_path, dataset, indices):
    ledger = Ledger(Subset(dataset, indices), tmp_path)
    ledger.note([0, 1], [1e6, 2e6])
    assert ledger.predict([1]).tolist() == [2e6]


def test_an_unwritable_folder_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    ledger = Ledger(Numbers(200), tmp_path / "file" / "below")
    ledger.note(numpy.arange(200), skewed())
    ledger.save()
    ledger.note(numpy.arange(200), skewed())


FULL_DISK = """
import resource, signal, numpy
from drapps.ledger import Ledger

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
ledger = Ledger(range(200), {folder!r})
ledger.note(numpy.arange(200), [20e6 if i % 10 == 0 else 1e6 for i in range(200)])
ledger.save()
print(ledger.path)
"""


def test_a_file_that_cannot_be_written_whole_is_not_left(tmp_path):
    assert run_python(FULL_DISK.format(folder=str(tmp_path))).stdout.strip() == "None"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_costs_that_vary_stay_in_their_range():
    ledger, rng = Ledger(range(64), folder=None), numpy.random.default_rng(1)
    for _ in range(3000):
        ledger.note(range(64), rng.exponential(1e6, 64))
    assert 1e2 < ledger.unit_ns < 1e10 and 1e5 < numpy.median(ledger.predict(list(range(64)))) < 1e7


# --- native loaders ---


@pytest.fixture
def uneven(tmp_path, monkeypatch):
    """A folder of images of which a fifth take many times as long as the others, and a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DRAPPS_LEDGER", raising=False)
    (tmp_path / "images" / "a").mkdir(parents=True)
    rng = numpy.random.default_rng(1)
    for i in range(40):
        size = (1200, 900, 3) if i % 5 == 0 else (40, 30, 3)
        Image.fromarray(rng.integers(0, 255, size, numpy.uint8)).save(tmp_path / "images" / "a" / f"{i:02}.png")
    return tmp_path / "images"


def native_files(tmp_path):
    return list((tmp_path / "cache").rglob("native-*.ledger"))


def run_native(folder, **options):
    with train(folder).loader(batch_size=4, output="numpy", workers=2, policy="fixed", seed=3, **options) as loader:
        return [gather(loader) for _ in range(2)]


def test_native_loaders_remember_costs(uneven, tmp_path):
    first = run_native(uneven)
    (file,) = native_files(tmp_path)
    units = numpy.frombuffer(file.read_bytes()[HEAD_BYTES:], "<f4")
    assert units.size == 40 and (units > 0).all() and units[::5].mean() > 3 * numpy.delete(units, numpy.s_[::5]).mean()
    assert all(same(a, b) for a, b in zip(first, run_native(uneven)))
    file.write_bytes(b"damaged")
    assert all(same(a, b) for a, b in zip(first, run_native(uneven)))
    assert file.stat().st_size == HEAD_BYTES + 4 * 40


@pytest.mark.parametrize("how", ["lanes", "variable"])
def test_native_loaders_need_not_remember(uneven, tmp_path, monkeypatch, how):
    if how == "variable":
        monkeypatch.setenv("DRAPPS_LEDGER", "off")
    run_native(uneven, lanes=how != "lanes")
    assert not native_files(tmp_path)
