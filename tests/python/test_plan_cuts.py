"""Edges and strategies, against brute force on generated pipelines."""

import random

import numpy
import pytest

import drapps
from drapps.optable import Op
from drapps.pipeline import Pipeline
from drapps.plan.cuts import edges_of
from drapps.plan.measured_epochs import hash_epoch
from drapps.plan.materials import store_cut
from drapps.plan.stage_costs import cut_costs, form_of
from drapps.plan.strategies import (
    FILES,
    MEMORY,
    PAGE,
    SHARDS,
    STORE,
    Form,
    Material,
    Strategy,
    codecs_for,
    materials_of,
)
from drapps.stages import Sample

SETTLED = [
    ("resize", {"size": [40, 44]}),
    ("grayscale", {"num_output_channels": 3}),
    ("pad", {"padding": 2}),
    ("center_crop", {"size": 32}),
    ("to_dtype", {"dtype": "uint8"}),
]
RANDOM = [
    ("random_crop", {"size": 24}),
    ("random_horizontal_flip", {}),
    ("color_jitter", {"brightness": 0.5}),
    ("gaussian_blur", {"kernel_size": 3}),
    ("random_invert", {}),
]


@drapps.deterministic
def darker(sample):
    return {**sample, "image": sample["image"] // 2}


def stays(sample):
    return {**sample, "image": sample["image"] + 1}


def chain(folder, rng):
    """decode, then up to five stages: settled, random, Python functions that are marked or not."""
    pipe, kinds = drapps.read(folder).decode(), []
    for _ in range(rng.randrange(6)):
        kind = rng.choice(("settled", "settled", "settled", "random", "marked", "unmarked", "filter"))
        kinds.append(kind)
        if kind == "marked":
            pipe = pipe.map(darker)
        elif kind == "unmarked":
            pipe = pipe.map(stays)
        elif kind == "filter":
            pipe = pipe.filter(drapps.deterministic(lambda sample: True))
        else:
            pipe = pipe.op(Op(*rng.choice(SETTLED if kind == "settled" else RANDOM)))
    return pipe, kinds


def draws(pipe, n_seeds=7):
    """Whether what the stages make depends on the seed."""
    found = set()
    for seed in range(n_seeds):
        with pipe.loader(6, seed=seed, workers=0, output="raw", collate={"image": "list"}) as loader:
            found.add(hash_epoch(loader).digest)
    return len(found) > 1


@pytest.mark.parametrize("seed", range(16))
def test_edges_of_random_chains(folder, seed):
    pipe, kinds = chain(folder, random.Random(seed))
    edges = edges_of(pipe)
    assert [edge.stages for edge in edges] == list(range(len(pipe.stages) + 1))
    assert edges[0].legal and edges[1].legal and edges[0].label == "raw" and edges[1].label == "after decode"
    ended = ""
    for i, kind in enumerate(kinds, 2):
        ended = ended or ("" if kind in ("settled", "marked") else kind)
        assert edges[i].legal == (not ended), (pipe, edges)
        if ended:
            says = {
                "random": "draws at random",
                "unmarked": "stays) is not marked",
                "filter": "which samples an epoch has",
            }
            assert says[ended] in edges[i].why
        elif "filter" not in kinds[: i - 1]:
            assert not draws(Pipeline(pipe.dataset, pipe.stages[:i]))
    first = next((i for i, kind in enumerate(kinds, 2) if kind == "random"), None)
    if first and not {"unmarked", "filter"} & set(kinds[: first - 2]):
        assert draws(Pipeline(pipe.dataset, pipe.stages[:first]))


def test_a_scaled_decode_is_not_cut_from_its_reader(folder):
    pipe = drapps.read(folder).decode(fast_decode=True).resize((16, 16)).random_horizontal_flip()
    assert [edge.legal for edge in edges_of(pipe)] == [True, False, True, False]
    assert "fraction of the size" in edges_of(pipe)[1].why


def test_edges_say_what_would_be_stored(folder):
    edge = edges_of(drapps.read(folder).decode().resize((16, 20)).random_horizontal_flip())[2]
    assert {"name": "image", "form": "image uint8 HWC (16, 20, 3)", "bytes": 960} in edge.fields


@pytest.mark.parametrize(
    "ops, cut",
    [
        ("decode", 1),
        ("decode,resize", 2),
        ("decode,resize,to_dtype", 2),
        ("decode,resize,random_invert,to_dtype", 2),
        ("", None),
        ("random_invert", None),
    ],
)
def test_the_store_keeps_what_the_library_says(folder, ops, cut, tmp_path):
    """store_cut follows the rule of src/graph/prefix.c: the ops that explain() names are as many."""
    image = numpy.zeros((6, 8, 8, 3), "uint8")
    pipe = drapps.read(folder) if "decode" in ops else drapps.from_arrays(image=image, label=numpy.arange(6))
    for name in filter(None, ops.split(",")):
        pipe = pipe.op(Op(name, {"size": [9, 9]} if name == "resize" else {}))
    assert store_cut(pipe, edges_of(pipe)) == cut
    with pipe.loader(2, cache=tmp_path / "kept", collate={"*": "list"}) as loader:
        said = loader.explain()
    kept = ", ".join(ops.split(",")[:cut]) if cut else "no op before the first random one"
    assert kept in said[said.index("cache:") :]


def test_the_store_keeps_marked_functions(folder):
    pipe = drapps.read(folder).decode().map(darker).random_horizontal_flip()
    assert store_cut(pipe, edges_of(pipe)) == 2
    assert store_cut(drapps.read(folder).decode().map(stays), edges_of(drapps.read(folder).decode().map(stays))) == 1
    none = drapps.read(folder).decode(fast_decode=False).random_crop(8, pad_if_needed=True)
    assert store_cut(none.map(stays), edges_of(none.map(stays))) == 1
    assert store_cut(drapps.read(folder).map(stays), edges_of(drapps.read(folder).map(stays))) is None


# --- materials and strategies ---


def test_materials_against_brute_force(folder):
    pipe = drapps.read(folder).decode().resize((16, 16)).random_horizontal_flip()
    edges = edges_of(pipe)
    forms = {0: Form(False, 1), 1: Form(True, 1), 2: Form(True, 4)}
    want = {
        Material(0, FILES, "", (), "raw"),
        Material(0, SHARDS, "", (), "raw"),
        Material(2, STORE, "", (), "after resize"),
    }
    want |= {Material(k, SHARDS, codec, (), edges[k].label) for k in (1, 2) for codec in codecs_for(forms[k])}
    found = materials_of(edges, forms, packed_stages=3, store=2)
    assert set(found) == want and len(found) == len(want)
    assert materials_of(edges, forms, packed_stages=1) == [m for m in found if m.stages <= 1 and m.layout != STORE]
    assert len({Strategy(m, cache).name for m in found for cache in (PAGE, MEMORY)}) == 2 * len(found)


def test_what_is_compressed_already_stays():
    assert codecs_for(Form(False, 1)) == ("",)
    assert "" in codecs_for(Form(True, 1)) and not any("shuffle" in codec for codec in codecs_for(Form(True, 1)))
    assert any("shuffle" in codec for codec in codecs_for(Form(True, 4)))


@pytest.mark.parametrize(
    "value, form",
    [
        (b"\xff\xd8\xff" + bytes(5000), Form(False, 1)),
        (b"\x89PNG" + bytes(5000), Form(False, 1)),
        (b"\x1f\x8b" + bytes(5000), Form(False, 1)),
        (bytes(5000), Form(True, 1)),
        (numpy.random.default_rng(0).bytes(5000), Form(False, 1)),
        (numpy.zeros((9, 9), "float32"), Form(True, 4)),
        (numpy.zeros((3, 0)), Form(False, 8)),
        ("text " * 100, Form(True, 1)),
        (7, Form(False, 8)),
    ],
)
def test_forms(value, form):
    assert form_of(Sample(0, {"x": value}, {})) == form


def test_costs_leave_out_what_cannot_be_read(folder, tmp_path):
    (tmp_path / "a").mkdir()
    for i, file in enumerate(sorted(folder.rglob("*.jpg"))[:8]):
        (tmp_path / "a" / f"{i}.jpg").write_bytes(b"broken" if i == 2 else file.read_bytes())
    pipe = drapps.read(tmp_path).decode().resize((8, 8))
    costs = cut_costs(pipe, {0, 1, 2}, range(8))
    assert len(costs[0].bytes) == 8 and len(costs[1].bytes) == len(costs[2].bytes) == 7
    assert costs[2].bytes == [8 * 8 * 3 + 8 + len(f"a/{i}.jpg") for i in range(8) if i != 2]
