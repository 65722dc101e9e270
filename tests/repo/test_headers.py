"""Each public header compiles alone, in C11 and in C++, is installed, and documents its functions."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "include"
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
DECLARED = re.compile(r"(?:/\*\*((?:(?!\*/).)*)\*/\s*\n)?(DR_API [^;{]*\);)", re.S)
PARAMETER = re.compile(r"\(\*(\w+)\)\([^)]*\)|(\w+)(?:\[[^\]]*\])?(?=,|\);)")
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


def functions(header):
    """Name, parameters, whether it returns something, and comment of each function that a header declares."""
    for comment, declaration in DECLARED.findall((INCLUDE / header).read_text()):
        returns, name, rest = re.match(r"DR_API (.*?)\b(\w+)(\(.*)", " ".join(declaration.split())).groups()
        parameters = [of_pointer or of_value for of_pointer, of_value in PARAMETER.findall(rest)]
        yield name, [p for p in parameters if p != "void"], returns.strip() != "void", comment


def undocumented(name, parameters, returns, comment):
    """What is missing in the comment of a function, or stands there and is not true."""
    documented = re.findall(r"@param (\w+)", comment)
    if documented != parameters:
        yield f"{name} has the parameters {parameters}, its comment {documented}"
    if returns != ("@return" in comment):
        yield f"{name}: @return"
    summary = comment.split("@")[0].replace("*", "").strip()
    if not summary:
        yield f"{name} has no description"


@pytest.mark.parametrize("header", HEADERS)
def test_documents_each_parameter_and_result(header):
    assert [text for function in functions(header) for text in undocumented(*function)] == []


def test_sees_what_is_not_documented():
    found = list(undocumented("dr_f", ["a", "b"], True, "Do it.\n * @param a It."))
    assert found == ["dr_f has the parameters ['a', 'b'], its comment ['a']", "dr_f: @return"]
