"""The program `drapps`: results for people and machines, errors in one line."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
from imagesets import N_IMAGES, picture, run_python, write_folder
from PIL import Image

import drapps
from drapps import cli, optable
from drapps.cli.op_text import parse_op
from drapps.printing import print_table


def run(*args):
    command = [sys.executable, "-m", "drapps.cli", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_info():
    facts = json.loads(run("info", "--json").stdout)
    assert facts["version"] == run("--version").stdout.strip()
    assert {"folder", "tar"} <= {row["name"] for row in facts["formats"]}
    assert facts["version"] in run("info").stdout


def test_ops():
    assert {row["name"] for row in json.loads(run("ops", "--json").stdout)} == set(optable.TABLE)
    text = run("ops").stdout
    assert all(name in text for name in optable.TABLE)


def test_one_op():
    assert json.loads(run("ops", "random_horizontal_flip", "--json").stdout)["params"][0]["name"] == "p"
    text = run("ops", "random_horizontal_flip").stdout
    assert "random_horizontal_flip(p=0.5)" in text and "0 to 1" in text


def test_ls(folder):
    facts = json.loads(run("ls", folder, "--json", "-n", "3").stdout)
    assert facts["samples"] == N_IMAGES and len(facts["keys"]) == 3 and facts["classes"] == ["ant", "bee", "cat"]
    text = run("ls", folder).stdout
    assert "ant/000.jpg" in text and f"{N_IMAGES} samples" in text and "3 more" in text


def test_ls_warns_of_images_that_no_codec_reads(tmp_path):
    write_folder(tmp_path, 4)
    assert json.loads(run("ls", tmp_path, "--json").stdout)["unread"] == {}
    assert "warning" not in run("ls", tmp_path).stdout
    for name in ("x.bmp", "y.PPM"):
        picture(1).save(tmp_path / "ant" / name)
    assert json.loads(run("ls", tmp_path, "--json", "-n", "0").stdout)["unread"] == {}
    (tmp_path / "files.txt").write_text("a.jpg\nb.ico\nc.ICO\nd.xpm\ne.gif\n")
    facts = json.loads(run("ls", tmp_path / "files.txt", "--json", "-n", "0").stdout)
    assert facts["unread"] == {".ico": 2, ".xpm": 1}
    assert "warning: no codec reads 2 .ico, 1 .xpm" in run("ls", tmp_path / "files.txt").stdout


def test_profile(folder):
    facts = json.loads(run("profile", folder, "--samples", "8", "--seconds", "0", "--json").stdout)
    ops = [row["op"] for row in facts["ops"]]
    assert "decode" in ops and "random_resized_crop" in ops
    text = run("profile", folder, "--samples", "8", "--seconds", "0").stdout
    assert "decode" in text and "sum" in text


@pytest.mark.parametrize(
    "args, status, text",
    [
        (["ls", "no/such/folder"], 1, "no/such/folder"),
        (["ops", "no_such_op"], 2, "no_such_op"),
        (["ops", "resze"], 2, 'no op "resze"; did you mean resize? `drapps ops` lists them'),
        (["profile", __file__, "photos", "-x"], 2, f"go after --: drapps profile {__file__} -- photos -x"),
        (["fly"], 2, "fly"),
        ([], 2, ""),
        (["profile", "no/such/folder"], 1, "no/such/folder"),
        (["profile", ".", "--samples", "0"], 2, "samples"),
        (["profile", ".", "--seconds", "-1"], 2, "--seconds must be a non-negative number, got -1"),
        (["profile", ".", "--seconds", "nan"], 2, "--seconds must be a non-negative number, got nan"),
        (["profile", ".", "--step-ms", "-5"], 2, "--step-ms must be a non-negative number, got -5"),
        (["profile", __file__, "--seconds", "0"], 2, "must be above 0 for a Python file"),
    ],
)
def test_errors_for_people(args, status, text):
    done = run(*args)
    assert done.returncode == status and text in done.stderr
    assert "Traceback" not in done.stderr


def test_ops_that_are_not_there_are_answered():
    with pytest.raises(drapps.ArgumentError, match="--op: no op 'resiz'; did you mean 'resize'. `drapps ops` lists"):
        parse_op("resiz(64)")
    with pytest.raises(drapps.ArgumentError, match="no op 'qqq'; `drapps ops` lists them"):
        parse_op("qqq")


def test_help_of_bench_says_what_it_is_for():
    text = run("bench", "--help").stdout
    assert "Measure drapps on your files" in text and "arguments, progress, output" not in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help(name):
    done = run(name, "--help")
    assert done.returncode == 0 and "usage: drapps" in done.stdout
    assert name in run("--help").stdout


def test_tables_hold_no_control_characters(capsys):
    print_table(("name",), [("a\x1b[2Jb",)])
    assert capsys.readouterr().out == "name\na\\x1b[2Jb\n"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_names_of_files_do_not_steer_the_terminal(tmp_path, more):
    name = "a\x1b[2J\nb\x9b\u202e\x7f"
    (tmp_path / f"class{name}").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / f"class{name}" / f"file{name}.png")
    done = run("ls", tmp_path, *more)
    assert done.returncode == 0 and "file" in done.stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)
    if more:
        assert name in json.loads(done.stdout)["keys"][0]
    else:
        assert r"classa\x1b[2J\nb\x9b\u202e\x7f" in done.stdout
    done = run("ls", tmp_path / f"no{name}")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_a_closed_pipe():
    command = f"{sys.executable} -m drapps.cli ops --json | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


INTERRUPTED = """
    import signal, sys

    class Finder:
        left = int(sys.argv[1])

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            cls.left -= 1
            if cls.left == 0:
                signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    from drapps.cli import main
    sys.meta_path.insert(0, Finder)
    sys.exit(main(["ops", "--json"]))
"""


def test_interrupted_while_it_imports():
    """At the n-th import since the program's own beginning, until there are not so many."""
    for n in (*range(1, 8), *range(10, 200, 15)):
        done = run_python(INTERRUPTED, n)
        if done.returncode == 0:
            break
        assert (done.returncode, done.stderr) == (130, "drapps: interrupted\n"), n
    assert n > 3


@pytest.mark.parametrize("words", [["bench", "loaders", "tiny"], ["experiment", "adapt"]])
def test_what_needs_a_checkout_says_so(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAPPS_CHECKOUT", raising=False)
    assert cli.main(words) == 2
    assert f"drapps {words[0]} {words[1]} needs a checkout of drapps" in capsys.readouterr().err
    monkeypatch.setenv("DRAPPS_CHECKOUT", str(tmp_path))
    assert cli.main(words) == 2
    assert f"DRAPPS_CHECKOUT is '{tmp_path}'" in capsys.readouterr().err


def test_a_checkout_is_found_by_its_variable_and_around_the_working_folder(tmp_path, monkeypatch):
    from drapps.bench.checkout import find_checkout

    root = pathlib.Path(__file__).parents[2]
    monkeypatch.delenv("DRAPPS_CHECKOUT", raising=False)
    monkeypatch.chdir(root / "tests" / "python")
    assert find_checkout("a test") == root
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAPPS_CHECKOUT", str(root))
    assert find_checkout("a test") == root
