"""Each public header compiles alone, in C11 and in C++, and is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "include"
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
COMPILERS = {"c": ("cc", "-std=c11"), "c++": ("c++", "-std=c++11")}


def compile_alone(language, header):
    command, standard = COMPILERS[language]
    if not shutil.which(command):
        pytest.skip(f"no {language} compiler here")
    flags = [standard, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]
    # Twice: the second time the include guard must hold.
    text = f"#include <{header}>\n#include <{header}>\nint main(void);\n"
    return subprocess.run([command, *flags, "-x", language, "-"], input=text, capture_output=True, text=True)


@pytest.mark.parametrize("language", COMPILERS)
@pytest.mark.parametrize("header", HEADERS)
def test_compiles_alone(language, header):
    done = compile_alone(language, header)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", HEADERS)
def test_is_installed(header):
    assert f"'{header}'" in (INCLUDE / "meson.build").read_text(), "missing in include/meson.build"


@pytest.mark.parametrize("header", [h for h in HEADERS if h != "drapps/drapps.h"])
def test_is_part_of_the_whole(header):
    assert f"#include <{header}>" in (INCLUDE / "drapps/drapps.h").read_text()
