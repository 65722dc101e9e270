"""drapps burn: patterns are what they say and repeat; each load is made, for as long as was asked."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "drapps.cli", "burn"]


def run(*args):
    return subprocess.run([*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=60)


def test_it_asks_for_seconds():
    done = run("cpu")
    assert done.returncode == 2 and done.stderr.startswith('burn: missing option "--seconds"')


def levels(*args):
    """The level every 0.1 s."""
    done = run("cpu", "--show", *args)
    assert done.returncode == 0, done.stderr
    return [float(line.split()[1]) for line in done.stdout.splitlines()]


def test_steady():
    assert levels("--seconds", 0.5, "--level", 0.25) == [0.25] * 5


def test_step():
    assert levels("--seconds", 0.8, "--pattern", "step", "--period", 0.25) == [1, 1, 1, 0, 0, 1, 1, 1]


def test_periodic():
    found = levels("--seconds", 2, "--pattern", "periodic", "--period", 1, "--level", 0.5)
    assert found[0] == 0 and found[5] == 0.5 and found[:10] == found[10:] and max(found) == 0.5


def test_random_by_seed():
    args = ("--seconds", 20, "--pattern", "random", "--period", 0.1, "--level", 0.5)
    found = levels(*args, "--seed", 1)
    assert found == levels(*args, "--seed", 1) != levels(*args, "--seed", 2)
    assert all(0 <= level < 0.5 for level in found) and len(set(found)) > 100
    assert 0.2 < sum(found) / len(found) < 0.3


def test_trace(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text("# seconds level\n0.2 1\n\n0.4 0.5 # half\n")
    assert levels("--seconds", 0.6, "--trace", trace) == [0, 0, 1, 1, 0.5, 0.5]


@pytest.mark.parametrize("text", ["", "1 2\n", "1 0.5\n0.5 0.5\n", "x\n", "1 0.5 7\n"])
def test_wrong_trace(tmp_path, text):
    trace = tmp_path / "trace"
    trace.write_text(text)
    done = run("cpu", "--seconds", 1, "--trace", trace)
    assert done.returncode == 2 and "seconds level" in done.stderr


@pytest.mark.parametrize("kind", ["cpu", "memory", "io", "net"])
def test_loads(kind, tmp_path):
    done = run(kind, "--seconds", 0.3, "--threads", 2, "--size", 4, "--path", tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["kind"] == kind and facts["threads"] == 2 and facts["seconds"] >= 0.3
    assert facts["cpu_seconds"] > 0 and (facts["bytes"] > 0) == (kind != "cpu")
    assert not list(tmp_path.iterdir())


def test_level_zero_does_nothing():
    idle = json.loads(run("cpu", "--seconds", 0.5, "--level", 0).stdout)
    busy = json.loads(run("cpu", "--seconds", 0.5, "--level", 1).stdout)
    assert idle["cpu_seconds"] < busy["cpu_seconds"]


def catches_sigterm(pid):
    """Whether the program runs already and has its handler: Python in front of it has none."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return int(caught[1], 16) >> (signal.SIGTERM - 1) & 1


def test_ends_on_signal():
    with subprocess.Popen([*COMMAND, "cpu", "--seconds", "600"], stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None and not catches_sigterm(child.pid):
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        text = child.communicate(timeout=30)[0]
    assert child.returncode == 0 and json.loads(text)["seconds"] < 600


@pytest.mark.parametrize(
    "args",
    [(), ("cpu",), ("fire", "--seconds", 1), ("cpu", "--seconds", -1), ("cpu", "--seconds", 1, "--level", 2),
     ("cpu", "--seconds", 1, "--pattern", "wild"), ("cpu", "--seconds", 1, "--threads", 0), ("cpu", "--hot")],
)  # fmt: skip
def test_wrong_use(args):
    done = run(*args)
    assert done.returncode == 2 and "usage: drapps burn" in done.stderr and not done.stdout


@pytest.mark.parametrize(("option", "value", "allowed"), [
    ("threads", "0", "1 to 1024"), ("size", "x", "1 to 1000000"), ("seed", "-1", "0 to 1000000"),
    ("level", "2", "0 to 1"), ("seconds", "-1", "0.001 to 86400"), ("period", "0", "0.001 to 86400"),
])  # fmt: skip
def test_wrong_numbers_are_named(option, value, allowed):
    done = run("cpu", f"--{option}={value}")
    assert done.returncode == 2 and f'burn: --{option} must be {allowed}, got "{value}"\n' in done.stderr


def test_help():
    done = run("--help")
    assert done.returncode == 0 and "step:" in done.stdout
