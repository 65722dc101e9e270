"""What workers carry: packing, layouts that collate, and seeds; how many batches they begin."""

import ctypes
import io
import pickle
import random
from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy
import pytest
from hypothesis import assume, given, settings, strategies as st

torch = pytest.importorskip("torch")

from drapps.procpool import prefetch_window
from drapps.procpool.layout import MAX_LAYOUTS, LayoutRegistry
from drapps.procpool.torch_pack import caught, pack_failure, unpack_failure
from drapps.procpool.layout import Layout
from drapps.procpool.pack import PackError, Request, Requests, pack, unpack
from drapps.procpool.seeds import SampleSeeds, seed_worker
from torch.utils.data import default_collate
from torch.utils.data._utils.worker import _generate_state

Pair = namedtuple("Pair", "a b")


def same(a, b):
    """Equal in types, dtypes, shapes and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def bits(tensor):
    """The bytes of a tensor, so that NaN equals itself."""
    return tensor.contiguous().resolve_conj().resolve_neg().view(-1).view(torch.uint8) if tensor.numel() else tensor


# --- pack ---


def round_trip(value):
    block, nbytes = pack(value, bytearray)
    assert nbytes == len(block)
    return unpack(block), block


TENSORS = {
    "float": torch.arange(12.0).view(3, 4),
    "bfloat16": torch.ones(3, dtype=torch.bfloat16),
    "bool": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 2j, 3j]),
    "conjugated": torch.tensor([1 + 2j, 3j]).conj(),
    "negated": torch.tensor([1 + 2j, 3j]).conj().imag,
    "strided": torch.arange(12).view(3, 4).t()[::2],
    "scalar": torch.tensor(7),
    "empty": torch.empty(0, 3, dtype=torch.int16),
    "expanded": torch.tensor([1.0]).expand(5),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_come_back(name):
    got, _ = round_trip([TENSORS[name], {"again": TENSORS[name]}])
    assert same(got[0], TENSORS[name].resolve_conj().resolve_neg())
    assert got[0] is got[1]["again"]


def test_tensors_that_torch_pickles_itself():
    leaf = torch.ones(3, requires_grad=True)
    sparse = torch.eye(3).to_sparse()
    parameter = torch.nn.Parameter(torch.ones(2))
    got, _ = round_trip((leaf, sparse, parameter))
    assert got[0].requires_grad and torch.equal(got[0], leaf)
    assert got[1].layout is torch.sparse_coo and torch.equal(got[1].to_dense(), torch.eye(3))
    assert type(got[2]) is torch.nn.Parameter


def test_a_subclass_keeps_its_type_and_attributes():
    class Mine(torch.Tensor):
        pass

    globals()["Mine"], Mine.__qualname__ = Mine, "Mine"  # as a class of a module
    tensor = torch.arange(4).as_subclass(Mine)
    tensor.note = "n"
    got, _ = round_trip(tensor)
    assert type(got) is Mine and got.note == "n" and got.tolist() == [0, 1, 2, 3]


def test_arrays_lie_in_the_block_and_can_be_written():
    got, block = round_trip((numpy.arange(1000), torch.arange(1000), numpy.array(["a", "b"]), "text", 5))
    got[0][0], got[1][0] = 77, 78
    for array in got[:2]:
        start = array.ctypes.data if isinstance(array, numpy.ndarray) else array.data_ptr()
        assert 0 <= start - ctypes.addressof(ctypes.c_char.from_buffer(block)) < len(block)
    again = unpack(block)
    assert again[0][0] == 77 and again[1][0] == 78
    assert again[2].tolist() == ["a", "b"] and again[3:] == ("text", 5)


def test_numpy_of_all_kinds():
    value = [numpy.float32(3), numpy.zeros((0, 2)), numpy.arange(6).reshape(2, 3).T, numpy.array([1, "a"], object),
             numpy.datetime64("2026-01-01")]  # fmt: skip
    got, _ = round_trip(value)
    assert all(map(numpy.array_equal, got, value))


@pytest.mark.parametrize("value", [lambda: 0, [io.StringIO(), open(__file__)], (i for i in ())])
def test_what_cannot_be_pickled_is_named(value):
    with pytest.raises(PackError, match=rf"type builtins\.{type(value).__name__} cannot be sent"):
        pack(value, bytearray)


def test_failures():
    class Local(Exception):
        pass

    for kind, name in ((ValueError, "ValueError"), (Local, "Local"), (KeyError, "KeyError")):
        try:
            raise kind("what was wrong")
        except Exception:
            block, _ = pack_failure(caught(3), bytearray, fatal=kind is KeyError)
        fatal, wrapper = unpack_failure(block)
        assert fatal == (kind is KeyError)
        with pytest.raises(RuntimeError if kind is Local else kind, match="DataLoader worker process 3") as raised:
            wrapper.reraise()
        assert f"{name}" in str(raised.value) and "what was wrong" in str(raised.value)


# --- layouts ---

dtypes = ["bool", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
arrays = st.builds(
    lambda dtype, shape, seed: numpy.random.RandomState(seed).uniform(-9, 9, shape).astype(dtype),
    st.sampled_from(dtypes), st.lists(st.integers(0, 3), max_size=3).map(tuple), st.integers(0, 99),
)  # fmt: skip
leaves = st.one_of(
    st.text(max_size=3), st.binary(max_size=3),
    st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), arrays, arrays.map(numpy.asfortranarray),
    arrays.map(torch.as_tensor), arrays.map(lambda a: torch.as_tensor(a.real).to(torch.bfloat16)),
    arrays.map(lambda a: torch.as_tensor(a).t() if a.ndim == 2 else torch.as_tensor(a)),
    arrays.filter(lambda a: a.size and a.dtype != "u8").map(lambda a: a.reshape(-1)[0]),
)  # fmt: skip
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.builds(Pair, inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


def changed(value, step):
    """The same structure with other numbers."""
    if isinstance(value, dict):
        return {k: changed(v, step) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(changed(v, step) for v in value)
    if isinstance(value, Pair):
        return Pair(*(changed(v, step) for v in value))
    if isinstance(value, (str, bytes)):
        return value[step:]
    if isinstance(value, bool):
        return value ^ (step % 2 == 1)
    if type(value) is int:
        return value // (step + 1)
    if isinstance(value, numpy.generic):
        return value.dtype.type(value * value.dtype.type(step % 2))
    if isinstance(value, numpy.ndarray):
        return numpy.roll(value, step) if step else value
    return value * (step % 2)


def address(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def through_slab(samples, rows):
    layout = Layout.loads(Layout.of(samples[0]).dumps())
    slab = bytearray(layout.nbytes(rows) or 1)
    beside = [layout.write(sample, address(slab), row, rows) for row, sample in enumerate(samples)]
    if None in beside:
        return None, layout, slab, beside
    return layout.collated(slab, len(samples), rows, beside), layout, slab, beside


@given(trees, st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_a_slab_is_what_default_collate_gives(tree, n):
    samples = [changed(tree, i) for i in range(n)]
    assume(Layout.of(tree) is not None)  # there are only strings
    got, layout, slab, beside = through_slab(samples, n + 1)
    assert same(got, default_collate(samples))
    for row, sample in enumerate(samples):
        again = layout.read(slab, row, n + 1, beside[row])
        assert same(default_collate([again]), default_collate([sample]))
        assert type(again) is type(sample)


Mapped = numpy.memmap
MISFITS = [
    ((1, 2.0), (1, 2)), ((1,), (True,)), ((1,), (2**63,)), ((1,), (1, 2)), ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    (numpy.zeros(3), numpy.zeros(4)), (numpy.zeros(3), numpy.zeros(3, "f4")), (torch.zeros(3), torch.zeros(3, 1)),
    (torch.zeros(3), torch.zeros(3).double()), (torch.zeros(3), numpy.zeros(3, "f4")), ([1], (1,)),
    (Pair(1, 2), (1, 2)),
    (torch.zeros(3), torch.zeros(3, requires_grad=True)), (numpy.zeros(3), numpy.zeros(3, ">f8")), (1, "a"),
    (torch.zeros(2, 2), torch.zeros(2, 2).to_sparse()),
    (numpy.zeros((2, 3)).view(Mapped), numpy.zeros((3, 2)).view(Mapped)),
    (numpy.float32(1), numpy.float64(1)),
]  # fmt: skip


@pytest.mark.parametrize("pair", MISFITS, ids=repr)
def test_what_differs_does_not_fit(pair):
    assert through_slab(pair, 2)[0] is None


@pytest.mark.parametrize(
    "sample",
    ["text", b"bytes", None, OrderedDict(a=1), {"a": "text"}, {"a": 1, "b": None}, torch.eye(2).to_sparse(),
     numpy.array("a"), numpy.zeros(2, ">i4"), numpy.uint64(3), numpy.datetime64("2026-01-01"),
     torch.nn.Parameter(torch.ones(1)), {1, 2},
     2j],
    ids=repr,
)  # fmt: skip
def test_what_has_no_layout(sample):
    assert Layout.of(sample) is None


def test_no_layout_when_torch_was_told_to_collate_otherwise():
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map[dict] = lambda batch, *, collate_fn_map=None: "mine"
    try:
        assert Layout.of({"a": 1}) is None
    finally:
        del default_collate_fn_map[dict]


@pytest.mark.parametrize(("sample", "plain"), [
    ((numpy.zeros((2, 3), "f4"), 5), True), ({"a": torch.zeros(3), 7: [1.5, True]}, True), ((b"x", "y", 1), True),
    (numpy.zeros(2, "u1"), True), (Pair(1, 2), False), (numpy.float32(1), False),
    (torch.zeros(2, dtype=torch.bfloat16), False), ({(1, numpy.str_("a")): 1}, False),
])  # fmt: skip
def test_plain_layouts_travel_without_a_pickle(sample, plain, monkeypatch):
    refused = []
    monkeypatch.setattr(pickle, "dumps", lambda tree, dumps=pickle.dumps: refused.append(tree) or dumps(tree))
    layout = Layout.of(sample)
    again = Layout.loads(layout.dumps())
    assert again == layout and bool(refused) is not plain
    assert repr(again.tree) == repr(layout.tree)  # 1 and True are equal, and so are the names of some types


def test_a_long_layout_is_in_the_book(tmp_path):
    with open(tmp_path / "book", "w+b", buffering=0) as file:
        book, layouts = (
            LayoutRegistry(file.fileno()),
            [Layout.of({f"key {i}": 1 for i in range(n)}) for n in (900, 3, 700)],
        )
        assert [book.number(layout) for layout in layouts] == [0, 1, 2]
        assert [LayoutRegistry(file.fileno()).layout(i) for i in range(3)] == layouts


def test_the_book_gives_the_same_number_to_all(tmp_path):
    with open(tmp_path / "book", "w+b", buffering=0) as file:
        one, other = LayoutRegistry(file.fileno()), LayoutRegistry(file.fileno())
        layouts = [Layout.of(numpy.zeros(n)) for n in range(MAX_LAYOUTS + 1)]
        numbers = [(one, other)[n % 2].number(layout) for n, layout in enumerate(layouts)]
        assert numbers == [*range(MAX_LAYOUTS), None]
        for n in (0, 7, MAX_LAYOUTS - 1):
            assert other.number(layouts[n]) == n
            assert LayoutRegistry(file.fileno()).of_slab(one.slab_bytes(layouts[n], n, 5)) == layouts[n]


# --- requests, seeds ---


@pytest.mark.parametrize("indices", [[3, 1, 2], [2**70, 1], ["a", (1, 2)], [numpy.int64(3), True]])
def test_requests(indices):
    request = Request(memoryview(Requests(7, 2**64 - 1, 9).of_slots(indices)))
    assert (request.epoch, request.base_seed, request.shared_seed) == (7, 2**64 - 1, 9)
    got = request.indices(1, 2)
    assert got == indices[1:3] and list(map(type, got)) == list(map(type, indices[1:3]))


def draws():
    return [random.random(), random.gauss(0, 1), numpy.random.rand(), numpy.random.randn(), torch.rand(()).item(),
            torch.randn(()).item()]  # fmt: skip


@pytest.fixture
def generators():
    kept = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(kept[0])
    numpy.random.set_state(kept[1])
    torch.set_rng_state(kept[2])


def test_seeds_depend_on_the_key_alone(generators):
    torch.manual_seed(1234)
    seeds = SampleSeeds()
    seen = {}
    for key in [(1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3), (2**63, 2**64 - 1, 0), (1, 2, 3)]:
        seeds.set(*key)
        assert torch.initial_seed() == 1234
        got = draws()  # one of each pair of normal numbers: the other must not be left for the next sample
        assert seen.setdefault(key, got) == got
    assert len({tuple(values) for values in seen.values()}) == 5
    assert len({value for values in seen.values() for value in values}) == 30


def test_seeds_without_writing_into_objects(generators):
    seeds = SampleSeeds()
    assert seeds._random and seeds._numpy_address and seeds._torch_address
    seeds.set(5, 6, 7)
    want = draws()
    seeds._random = 0
    seeds.set(5, 6, 7)
    assert draws() == want


@pytest.mark.parametrize(("base_seed", "worker"), [(0, 0), (5, 3), (2**63 - 1, 255)])
def test_a_new_worker_has_the_seeds_of_torch(generators, base_seed, worker):
    numpy.random.randn()  # the second number of the pair must not be left
    seed_worker(base_seed, worker)
    got = draws()
    random.seed(base_seed + worker)
    torch.manual_seed(base_seed + worker)
    numpy.random.seed(_generate_state(base_seed, worker))
    assert got == draws()


def test_seeds_are_uniform(generators):
    seeds = SampleSeeds()
    values = []
    for slot in range(2000):
        seeds.set(0, 0, slot)
        values.append((random.random(), numpy.random.rand(), torch.rand(()).item()))
    values = numpy.array(values)
    assert numpy.abs(values.mean(0) - 0.5).max() < 0.03 and numpy.abs(values.std(0) - 12**-0.5).max() < 0.02
    assert numpy.abs(numpy.corrcoef(values.T) - numpy.eye(3)).max() < 0.1


# --- requests ---


def test_indices_of_numpy_stay_what_they_are():
    indices = [numpy.int64(i) for i in (5, -1, 7)]
    data = Requests(0, 1, None).of_slots(indices)
    assert len(data) == len(Requests(0, 1, None).of_slots([5, -1, 7]))
    found = Request(memoryview(data)).indices(1, 2)
    assert found == [-1, 7] and all(type(index) is numpy.int64 for index in found)


class Counted:
    """Counts how often it is unpickled."""

    loads = 0

    def __setstate__(self, state):
        Counted.loads += 1

    def __getstate__(self):
        return {"some": "state"}


def test_a_request_is_unpickled_once_for_its_claims():
    one, other = (bytes(Requests(epoch, 1, None).of_slots([Counted() for _ in range(8)])) for epoch in range(2))
    for slot in range(8):
        Request(memoryview(bytes(bytearray(one)))).indices(slot, 1)
    assert Counted.loads == 8
    Request(memoryview(other)).indices(0, 1)
    assert Counted.loads == 16


# --- prefetch_window.py ---


class Board:
    """What a StartLimit asks of a shmpool and sets in it."""

    def __init__(self):
        self.window, self.busy_ns = None, 0

    def set_window(self, batches):
        self.window = batches

    def worker_at(self, worker):
        return SimpleNamespace(busy_ns=self.busy_ns)


def taken(window, nbytes, n=1, waited=True):
    for _ in range(n):
        window.taken(nbytes, waited)


@pytest.fixture
def clock(monkeypatch):
    now = [0]
    monkeypatch.setattr(prefetch_window.time, "monotonic_ns", lambda: now[0])
    return now


def test_small_batches_are_begun_as_they_are_posted(clock):
    board = Board()
    small = prefetch_window.StartLimit(board, 2, most=4, least=1)
    assert board.window == 1
    taken(small, prefetch_window.SMALL_BYTES // 4)
    assert board.window == 0


@pytest.mark.parametrize(("busy", "waited", "seconds", "begun"), [
    (0.1, True, 1, 2),  # idle, and waited for
    (0.9, True, 1, 1),  # busy
    (0.1, False, 1, 1),  # nobody waits
    (0.1, True, 0.001, 1),  # idle for a moment only
])  # fmt: skip
def test_large_batches_are_begun_one_at_a_time_unless_that_costs(clock, busy, waited, seconds, begun):
    board = Board()
    large = prefetch_window.StartLimit(board, 2, most=4, least=1)
    for _ in range(prefetch_window.CHECK_EVERY):
        clock[0] += int(seconds * 1e9)
        board.busy_ns += int(busy * seconds * 1e9)
        taken(large, prefetch_window.SMALL_BYTES, 1, waited)
    assert board.window == begun


def test_a_long_time_before_a_pass_is_no_reason_for_more_batches(clock):
    board = Board()
    large = prefetch_window.StartLimit(board, 2, most=4, least=1)
    for seconds in (60, *[0.001] * 7, 60, *[0.001] * 7):
        clock[0] += int(seconds * 1e9)
        taken(large, prefetch_window.SMALL_BYTES)
    assert board.window == 1
