"""The stubs, as a type checker sees them: right use passes, wrong use is found."""

import pathlib
import textwrap

import pytest

import drapps

api = pytest.importorskip("mypy.api")

PACKAGE = pathlib.Path(drapps.__file__).parent

RIGHT = """
import drapps

pipe = drapps.read("x").decode().random_resized_crop(224, interpolation="bicubic").random_horizontal_flip(p=0.3)
pipe = pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
pipe = pipe.random_apply([drapps.ops.color_jitter(0.4)], p=0.5).map(lambda sample: sample)
with pipe.loader(batch_size=4, last="drop") as loader:
    for images, labels in loader:
        pass
    ids: list[int] = next(iter(loader.batches())).ids
    state: dict[str, object] = loader.state_dict()
n: int = len(pipe)
"""

WRONG = {
    'drapps.read("x").random_horizontal_flip(p="often")': "arg-type",
    'drapps.read("x").resize(8, interpolation="best")': "arg-type",
    'drapps.read("x").loader(last="maybe")': "arg-type",
    "drapps.ops.no_such_op()": "attr-defined",
    'x: str = drapps.read("x").to_json().nothing': "attr-defined",
}


def check(source, tmp_path, monkeypatch):
    """What mypy prints about a program."""
    monkeypatch.chdir(tmp_path)
    if "site-packages" not in PACKAGE.parts:  # an installed package is found by itself
        monkeypatch.setenv("MYPYPATH", str(PACKAGE.parent))
    (tmp_path / "program.py").write_text(textwrap.dedent(source))
    return api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"])[0]


def test_right_use(tmp_path, monkeypatch):
    assert "Success" in check(RIGHT, tmp_path, monkeypatch)


def test_wrong_use(tmp_path, monkeypatch):
    text = check("import drapps\n" + "\n".join(WRONG), tmp_path, monkeypatch)
    for line, (source, code) in enumerate(WRONG.items(), start=2):
        found = [told for told in text.splitlines() if told.startswith(f"program.py:{line}:")]
        assert any(code in told for told in found), f"{source}: {text}"
