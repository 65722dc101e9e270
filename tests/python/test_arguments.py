"""Every argument of a loader is checked: a wrong value is an error that names the argument and the value."""

import inspect
import os

import pytest
import torch
from loadersets import Numbers

import drapps
from drapps.arguments import DATALOADER, LOADER


class Odd:
    """Of no use for any argument."""

    def __repr__(self):
        return "<odd>"


def defaults(function):
    """{argument: default}, without self and, of DataLoader, those that torch's has, too: torch checks these."""
    torchs = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    others = {"self"} if function is drapps.Pipeline.loader else {"self", *torchs}
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in others}


TABLES = {"loader": (LOADER, drapps.Pipeline.loader), "DataLoader": (DATALOADER, drapps.DataLoader.__init__)}

# What is wrong for an argument beside Odd(), by what the rule says.
WRONG = {
    "a positive int": ["4", 0, -1, 2.5, 10**30],
    "a non-negative int": ["4", -1, 0.5, [1], 10**30],
    "an int": ["4", 0.5],
    "from": [-1, 1000, "2"],
    "number": ["2", -0.5, float("nan")],
    "True or False": ["no", 2, []],
    "a path": [3, 0.5],
    "names of fields": [3, [1, 2]],
    "{field": [3, {"image": 3}],
    "' or '": ["nonsense", 3, ["drop"]],
    "drapps.Monitor": ["yes", 1],
}


def cases():
    for kind, (table, _) in TABLES.items():
        for name, rule in table.items():
            wrong = [value for words, values in WRONG.items() if words in rule.words for value in values]
            for value in [Odd(), *wrong]:
                if not (name == "collate" and isinstance(value, str)):
                    yield pytest.param(kind, name, value, id=f"{kind}-{name}-{value!r}")


@pytest.mark.parametrize(("kind", "name", "value"), list(cases()))
def test_wrong_values_are_named(pipe, kind, name, value):
    make = pipe.loader if kind == "loader" else lambda **options: drapps.DataLoader(Numbers(4), **options)
    with pytest.raises((TypeError, ValueError)) as raised:
        make(**{name: value})
    text = str(raised.value)
    if name == "weights" and isinstance(value, str):  # the library reads these
        assert text.startswith("weights: ") and f'"{value}"' in text
    else:
        assert text.startswith(f"{name} must be ") and text.endswith(f", got {value!r}")


@pytest.mark.parametrize("kind", TABLES)
def test_the_table_has_every_argument_and_takes_its_default(kind):
    table, function = TABLES[kind]
    assert table.keys() == defaults(function).keys()
    for name, value in defaults(function).items():
        assert table[name].test(value), name


@pytest.mark.parametrize("kind", TABLES)
def test_the_stub_has_every_argument(kind):
    import ast
    import pathlib

    table, _ = TABLES[kind]
    stub = {"loader": "pipeline.pyi", "DataLoader": "torch/dataloader.pyi"}[kind]
    tree = ast.parse((pathlib.Path(drapps.__file__).parent / stub).read_text())
    name = {"loader": "loader", "DataLoader": "__init__"}[kind]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    named = [{arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]} for node in functions]
    assert any(table.keys() <= names for names in named)


def test_numbers_of_other_libraries_are_numbers(pipe):
    numpy = pytest.importorskip("numpy")
    with pipe.loader(batch_size=numpy.int64(2), shuffle=numpy.bool_(True), workers=numpy.int32(0), seed=numpy.uint64(3),
                     prefetch=numpy.int8(2), cpu_limit=numpy.float32(1)) as loader:  # fmt: skip
        assert len(next(loader.batches()).ids) == 2
    loader = drapps.DataLoader(
        Numbers(4), torch.tensor(2).item(), shuffle=numpy.bool_(False), num_workers=numpy.int64(0)
    )
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("functions", [False, True])
def test_rules_that_are_none(pipe, functions):
    pipe = pipe.map(lambda sample: sample) if functions else pipe
    with pytest.raises(drapps.ArgumentError, match="collate must be {field: rule} or None, got 'stack'"):
        pipe.loader(collate="stack")


@pytest.mark.parametrize("functions", [False, True])
@pytest.mark.parametrize("epoch", [-1, "1", 1.5, None, 2**64])
def test_what_is_no_epoch_is_refused(pipe, functions, epoch):
    loader = (pipe.map(lambda sample: sample) if functions else pipe).loader(4, workers=0)
    with pytest.raises(drapps.ArgumentError, match="^epoch must be "):
        loader.set_epoch(epoch)
    assert loader.epoch == 0


def test_paths_of_bytes_are_paths(pipe, tmp_path):
    with pipe.loader(4, cache=os.fsencode(tmp_path)) as loader:
        assert len(list(loader)) == len(loader)


def test_long_values_are_cut(pipe):
    with pytest.raises(ValueError) as raised:
        pipe.loader(batch_size="x" * 10000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("last", ["partial", "drop", "pad"])
def test_last(pipe, last):
    with pipe.loader(batch_size=4, last=last) as loader:
        assert len(loader) == (len(pipe) // 4 if last == "drop" else -(-len(pipe) // 4))
