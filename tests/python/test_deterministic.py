"""drapps.deterministic: what is kept, under which key, and that it comes back as it was."""

import os
import threading

import numpy as np
import pytest
from PIL import Image

import drapps
from drapps import cached, plain_serialize
from drapps.digest import Unnamed, code_digest, digest


@pytest.fixture
def cache(tmp_path):
    yield cached.activate(tmp_path / "cache")
    cached.deactivate()


def same(a, b):
    if isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if type(a).__name__ == "Tensor":
        return a.dtype == b.dtype and a.shape == b.shape and bytes(_raw(a)) == bytes(_raw(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def _raw(tensor):
    import torch

    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []


# --- plain values ---

VALUES = [
    None, True, -3, 10**30, 1.5, float("nan"), -0.0, 2 - 1j, "text ä \ud800", b"bytes", bytearray(b""), (), [1, (2,)],
    {"a": 1, 2: ("b", None)}, np.float32(0.1), np.int64(-1), np.bool_(True), np.datetime64("2020-01-02"),
    np.zeros((0, 3)), np.array(7), np.arange(12).reshape(3, 4).T, np.asfortranarray(np.ones((2, 3), "f4")),
    *(np.arange(5).astype(t) for t in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "?",
                                       ">i4", "U3", "S2")),
]  # fmt: skip


def back(value):
    text, block = plain_serialize.pack(value)
    return plain_serialize.unpack(text, bytearray(b"head" * 16 + block), 64)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_plain_value_comes_back(value):
    assert same(value, back(value))
    assert same((1, [value], {"v": value}), back((1, [value], {"v": value})))


def test_tensors_come_back():
    torch = pytest.importorskip("torch")
    for dtype in (torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool,
                  torch.complex64):  # fmt: skip
        assert same(torch.arange(6).to(dtype).reshape(2, 3).T, back(torch.arange(6).to(dtype).reshape(2, 3).T))
    assert same(torch.empty(0, 4), back(torch.empty(0, 4)))
    assert same(torch.tensor(3), back(torch.tensor(3)))
    result = back(torch.zeros(3))
    result += 1  # may be written to


def test_arrays_that_come_back_can_be_written_to():
    array = back(np.zeros(3))
    array[0] = 1


class Point(tuple):
    pass


@pytest.mark.parametrize("value, said", [
    (object(), "the result is a object"),
    ((1, {"a": {1, 2}}), r"the result\[1\]\['a'\] is a set"),
    (Point((1, 2)), "Point"),
    (np.array([object()]), "numpy.ndarray"),
    (np.zeros(2, [("a", "i4")]), "numpy.ndarray"),
    ({(1, 2): 3}, "keys must be str or int, got tuple"),
    (lambda: 0, "function"),
])  # fmt: skip
def test_anything_else_is_an_error_that_names_it(value, said):
    with pytest.raises(TypeError, match=said):
        plain_serialize.pack(value)


def test_tensors_with_gradients_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="torch.Tensor"):
        plain_serialize.pack(torch.zeros(2, requires_grad=True))


# --- digests ---


class Box:
    def __init__(self, **members):
        self.__dict__.update(members)


def test_values_that_differ_have_other_digests():
    values = [*VALUES, [1, 2], (1, 2), [1, [2]], [[1], 2], "1", {"a": [1]}, {"b": [1]}, Box(a=1), Box(a=2), Box(b=1),
              np.zeros(3), np.zeros(3, "f4"), np.zeros((1, 3)), int, len, lambda x: x, lambda x: x + 1,
              ["a"] * 100, ["a"] * 99 + ["b"], [("a", i) for i in range(100)]]  # fmt: skip
    digests = [digest(value) for value in values]
    assert len(set(digests)) == len(digests)
    assert digests == [digest(value) for value in values]


def test_equal_values_have_equal_digests():
    assert digest({"a", "b", "c"}) == digest({"c", "b", "a"})
    assert digest(Box(a=[1, "x"], b=Box(c=np.ones(2)))) == digest(Box(b=Box(c=np.ones(2)), a=[1, "x"]))
    loop = Box(name="loop")
    loop.me = loop
    assert digest(loop) == digest(loop)


def test_what_cannot_be_told_apart_is_an_error():
    with pytest.raises(
        Unnamed, match=r"value.reader is a builtins.list_iterator, which has no attributes that identify it"
    ):
        digest(Box(reader=iter([])))


def test_code_is_told_by_what_it_does():
    def make(text):
        scope = {"__name__": "m"}
        exec(text, scope)
        return scope["f"]

    base = code_digest(make("def f(x):\n    return x + 1"))
    assert base == code_digest(make("\n\ndef f(x):\n    # a comment\n    return x + 1"))
    for other in ("def f(x): return x + 2", "def f(x): return x - 1", "def f(y): return y + 1",
                  "def f(x, z=1): return x + 1", "def f(x): return [x + 1 for _ in x]"):  # fmt: skip
        assert base != code_digest(make(other))


# --- in use ---


class Numbers:
    """A data set that counts how often it really works."""

    made = 0

    def __init__(self, root):
        self.root = root

    @drapps.deterministic
    def prepare(self, i, scale=1):
        Numbers.made += 1
        return np.full((3, 4), i * scale, "f4"), f"{self.root}/{i}"


def made_by(call):
    before = Numbers.made
    result = call()
    return Numbers.made - before, result


def test_without_a_cache_it_runs_plainly():
    data = Numbers("a")
    assert made_by(lambda: [data.prepare(1), data.prepare(1)])[0] == 2


def test_with_a_cache_it_runs_once(cache):
    data = Numbers("a")
    made, first = made_by(lambda: [data.prepare(i) for i in range(5)])
    again, second = made_by(lambda: [data.prepare(i) for i in range(5)])
    assert (made, again) == (5, 0)
    assert all(map(same, first, second))
    (stats,) = cache.stats().values()
    assert (stats["hits"], stats["misses"], stats["written"]) == (5, 5, 5)


def test_the_next_run_finds_it(cache):
    data = Numbers("a")
    data.prepare(3)
    cached.activate(cache.folder)
    assert made_by(lambda: Numbers("a").prepare(3))[0] == 0


def test_other_data_arguments_and_keys_are_kept_apart(cache):
    assert made_by(lambda: Numbers("a").prepare(1))[0] == 1
    assert made_by(lambda: Numbers("b").prepare(1))[0] == 1
    assert made_by(lambda: Numbers("a").prepare(1, 2))[0] == 1
    assert made_by(lambda: Numbers("a").prepare(1, scale=2))[0] == 1
    cached.activate(cache.folder, key="other")
    assert made_by(lambda: Numbers("a").prepare(1))[0] == 1


def test_what_cannot_be_told_apart_asks_for_a_key(cache):
    data = Numbers(iter([]))
    with pytest.raises(drapps.ArgumentError, match=r"prepare: value.root is a builtins.list_iterator.*key=\.\.\."):
        data.prepare(1)


def test_a_key_of_the_users_own(cache):
    calls = []

    class Files:
        def __init__(self, name):
            self.name, self.handle = name, iter([])

        @drapps.deterministic(key=lambda self, i: (self.name, i))
        def prepare(self, i):
            calls.append((self.name, i))
            return i

    assert [Files("a").prepare(1), Files("a").prepare(1), Files("b").prepare(1), Files("a").prepare(2)] == [1, 1, 1, 2]
    assert calls == [("a", 1), ("b", 1), ("a", 2)]


def test_results_that_cannot_be_kept_are_an_error(cache):
    @drapps.deterministic
    def prepare(i):
        return {i}

    with pytest.raises(TypeError, match=r"prepare: the result is a set, which is not kept"):
        prepare(1)


def test_damage_is_made_again(cache, tmp_path):
    data = Numbers("a")
    _, want = made_by(lambda: data.prepare(1))
    (path,) = (tmp_path / "cache").rglob("*.drst")
    content = bytearray(path.read_bytes())
    content[-100] ^= 255
    path.write_bytes(content)
    cached.activate(cache.folder)
    made, got = made_by(lambda: data.prepare(1))
    assert made == 1
    assert same(got, want)


def test_a_forked_child_runs_plainly(cache):
    data = Numbers("a")
    data.prepare(1)
    child = os.fork()
    if child == 0:
        os._exit(made_by(lambda: data.prepare(1))[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.parametrize("disk, verdict", [(1e18, "pays"), (1e-9, "does not pay")])
def test_auto_compares_a_call_with_reading_its_result(tmp_path, monkeypatch, disk, verdict):
    import time

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cached, "DISK_BYTES_PER_S", disk)

    @drapps.deterministic
    def slow(i):
        time.sleep(0.005)
        return i

    with cached.using(cached.Cache("auto")) as cache:
        for i in range(cached.TRIALS):
            assert slow(i) == i
        (stats,) = cache.stats().values()
        assert stats["why"].startswith(f"{verdict}: a call takes")
        slow(0)
        (after,) = cache.stats().values()
        assert after["hits"] - stats["hits"] == (verdict == "pays")
        assert any(tmp_path.rglob("*.drst")) == (verdict == "pays")


# --- in pipelines ---


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stage_of_a_pipeline(tmp_path, workers):
    log = tmp_path / "log"

    def darker(image):
        with open(log, "a") as f:
            f.write("x")
        return image // 2

    images = np.random.default_rng(0).integers(0, 256, (12, 8, 6, 3), dtype=np.uint8)
    pipe = drapps.from_arrays(image=images, label=np.arange(12)).map(darker, field="image", deterministic=True)

    def epochs(**options):
        log.write_text("")
        with pipe.random_horizontal_flip().loader(batch_size=4, workers=workers, output="numpy", **options) as loader:
            return [x.copy() for _ in range(2) for x, _ in loader], len(log.read_text())

    want, plain_calls = epochs()
    got, calls = epochs(cache=tmp_path / "cache")
    again, later = epochs(cache=tmp_path / "cache")
    assert (plain_calls, later) == (24, 0)
    assert 12 <= calls <= 24  # workers see each other's within a second
    assert all(map(np.array_equal, got, want)) and all(map(np.array_equal, again, want))


# --- native ops before functions ---


def brighter(image):
    return image + np.random.default_rng(int(image[0, 0, 0])).integers(1, 3)


def cached_epochs(pipe, **options):
    """(batches of two epochs, hits of this process, what explain says)"""
    counts, plain = [], cached.Cache.__init__

    def noted(self, *args, **more):
        plain(self, *args, **more)
        counts.append(self.counts)

    options = {"workers": 0, "output": "numpy", **options}
    with pytest.MonkeyPatch.context() as patch, pipe.loader(batch_size=4, shuffle=True, **options) as loader:
        patch.setattr(cached.Cache, "__init__", noted)
        batches = [batch.values() if isinstance(batch, dict) else batch for _ in range(2) for batch in loader]
        got = [[np.array(value) for value in batch] for batch in batches]
        return got, sum(one["cache_hits"] for one in counts), loader.explain()


def equal(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for p, q in zip(a, b) for x, y in zip(p, q))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("chain, kept", [
    (lambda pipe: pipe.decode().resize((24, 20)).map(brighter, field="image"), "resize"),
    (lambda pipe: pipe.decode().resize((24, 20)).random_crop(16).random_horizontal_flip()
     .map(brighter, field="image").random_horizontal_flip(), "resize"),
    (lambda pipe: pipe.decode().resize((24, 20)).normalize(mean=[0.5] * 3, std=[0.2] * 3)
     .map(lambda image: image * 2, field="image"), "resize"),
    (lambda pipe: pipe.decode().resize((24, 20)).random_crop(16)
     .map(brighter, field="image", deterministic=True), "resize"),
])  # fmt: skip
def test_ops_before_a_function_are_kept(folder, tmp_path, chain, kept, workers):
    pipe = chain(drapps.read(folder))
    want, none, _ = cached_epochs(pipe, workers=workers)
    first, _, text = cached_epochs(pipe, workers=workers, cache=tmp_path / "cache")
    again, later, _ = cached_epochs(pipe, workers=workers, cache=tmp_path / "cache")
    assert equal(first, want) and equal(again, want) and none == 0
    assert f"of the ops up to {kept}" in text and (workers or later >= 2 * 23)


def test_of_a_marked_function_that_follows_directly_the_result_is_kept(folder, tmp_path):
    pipe = drapps.read(folder).decode().resize((24, 20)).map(brighter, field="image", deterministic=True)
    _, _, text = cached_epochs(pipe, cache=tmp_path / "cache")
    assert "up to" not in text
    _, hits, text = cached_epochs(drapps.read(folder).map(len, field="image"), cache=tmp_path / "cache")
    assert hits == 0 and "up to" not in text


def test_volumes_before_a_function_are_kept(tmp_path):
    for i in range(6):
        np.save(tmp_path / f"{i}.npy", np.random.default_rng(i).random((1, 8, 9, 7), np.float32))
    pipe = (drapps.read([tmp_path / f"{i}.npy" for i in range(6)]).decode_volume().resample_volume(size=(6, 6, 6))
            .random_flip_volume().map(lambda volume: volume + 1, field="image"))  # fmt: skip
    want, _, _ = cached_epochs(pipe)
    cached_epochs(pipe, cache=tmp_path / "cache")
    got, hits, text = cached_epochs(pipe, cache=tmp_path / "cache")
    assert equal(got, want) and hits == 12 and "up to resample_volume" in text


def test_a_changed_file_and_other_ops_are_made_again(tmp_path):
    for i, picture in enumerate(np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), np.uint8)):
        Image.fromarray(picture).save(tmp_path / f"{i}.png")

    def chain(size):
        paths = [tmp_path / f"{i}.png" for i in range(5)]
        return drapps.read(paths).decode().resize((size, size)).map(brighter, field="image")

    cached_epochs(chain(8), cache=tmp_path / "cache")
    assert cached_epochs(chain(8), cache=tmp_path / "cache")[1] == 10
    Image.new("RGB", (16, 16), (9, 9, 9)).save(tmp_path / "3.png")
    got, hits, _ = cached_epochs(chain(8), cache=tmp_path / "cache")
    assert equal(got, cached_epochs(chain(8))[0]) and hits == 9  # the changed one was found in the second epoch
    got, hits, _ = cached_epochs(chain(7), cache=tmp_path / "cache")
    assert equal(got, cached_epochs(chain(7))[0]) and hits == 5


def test_ops_before_a_function_in_memory(folder):
    pipe = drapps.read(folder).decode().resize((24, 20)).map(brighter, field="image")
    got, hits, _ = cached_epochs(pipe, cache_memory=8 << 20)
    assert equal(got, cached_epochs(pipe)[0]) and hits == 23


def test_caches_of_threads_do_not_mix(tmp_path):
    one, other = cached.Cache(tmp_path / "one"), cached.Cache(tmp_path / "other")
    with cached.using(one):
        thread = threading.Thread(target=lambda: seen.append(getattr(cached._here, "cache", None)))
        seen = []
        with cached.using(other):
            thread.start()
            thread.join()
            assert cached._here.cache is other
        assert cached._here.cache is one
    assert seen == [None] and not vars(cached._here)
