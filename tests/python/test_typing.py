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


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What mypy prints about both programs, which it reads in one go: the lines by the program."""
    folder = tmp_path_factory.mktemp("typing")
    (folder / "right.py").write_text(textwrap.dedent(RIGHT))
    (folder / "wrong.py").write_text("import drapps\n" + "\n".join(WRONG))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if "site-packages" not in PACKAGE.parts:  # an installed package is found by itself
            patch.setenv("MYPYPATH", str(PACKAGE.parent))
        lines = api.run(["--strict", "--cache-dir", str(folder / "cache"), "right.py", "wrong.py"])[0].splitlines()
    assert lines[-1].endswith("(checked 2 source files)"), lines
    return lambda name: [line for line in lines[:-1] if line.startswith(name)]


def test_right_use(told):
    assert told("right.py") == []


def test_wrong_use(told):
    for line, (source, code) in enumerate(WRONG.items(), start=2):
        assert any(code in text for text in told(f"wrong.py:{line}:")), source
    assert len(told("")) == len(told("wrong.py"))
