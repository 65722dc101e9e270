"""drapps top: rates are differences, frames fit, the terminal is left as it was, and what runs is what is shown."""

import fcntl
import json
import math
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from live_runs import made_up, real
from live_status import NOW_NS, SECOND, decision, status

from drapps import live
from drapps.sched import LIMITS
from drapps.top import parts
from drapps.top.frame import draw, help_lines
from drapps.top.rates import SORTS, Loader, Watcher, arrange, rates

GOLDEN = Path(__file__).parents[1] / "golden"
COMMAND = [sys.executable, "-m", "drapps.cli", "top"]


def made(name="imagenet/train", pid=4711, loader=1, factor=1.0, **more):
    before, after = (status(seconds, name, pid, loader, factor, **more) for seconds in (190.9, 191.9))
    return Loader(after, before, NOW_NS)


def some():
    long_name = "s3 shards {0000..1023}.tar with a long name"
    return [made(), made("imagenet/val", 4711, 2, 0.2), made(long_name, 99120, 1, 3.0)]


# --- rates ---


def test_rates_are_differences():
    found = made().rates
    assert found["seconds"] == pytest.approx(1) and found["samples"] == pytest.approx(2560)
    assert found["wait"] == pytest.approx(0.031) and found["step"] == pytest.approx(0.0969)
    assert found["hits"] == pytest.approx(0.6) and found["slow"] == pytest.approx(0.025)


def test_rates_of_nothing():
    still = status(190)
    assert rates(still, still) == {}
    idle = {**status(191), "flow": still["flow"]}
    found = rates(still, idle)
    assert found["samples"] == 0 and "wait" not in found and "step" not in found


def test_the_first_look_is_since_the_start():
    assert Loader(status(100), None, NOW_NS).rates["samples"] == pytest.approx(2560)


def test_a_number_that_another_process_got():
    looks = [[status(100)], [{**status(1), "started_ns": status(1)["started_ns"] + 5}]]
    watcher = Watcher(read=lambda pid: looks.pop(0))
    watcher.poll()
    loaders, _ = watcher.poll()
    assert loaders[0].rates["samples"] > 0


def test_sorted():
    loaders = some()
    assert [x.name for x in arrange(loaders, "rate")][0].startswith("s3")
    assert [x.name for x in arrange(loaders, "name")][:2] == ["imagenet/train", "imagenet/val"]
    assert all(len(arrange(loaders, sort)) == 3 for sort in SORTS)


# --- frames ---


def test_the_help_names_every_limit():
    """Those that the library knows, and no others; and it fits."""
    header = (Path(__file__).parents[2] / "include/drapps/sched.h").read_text(encoding="utf-8")
    table = header[header.index("#define DR_BOUND_MAP") : header.index("typedef enum dr_bound")]
    assert set(LIMITS) == set(re.findall(r'X\([A-Z]+, "([a-z]+)"', table))
    text = "\n".join(line.plain for line in help_lines(100))
    assert all(f"{name:<12} {words}" in text for name, words in LIMITS.items())
    assert all(len(line.plain) <= 40 for line in help_lines(40))


@pytest.mark.parametrize("width, height", [(80, 24), (140, 50)])
def test_golden(width, height):
    lines = draw(some(), ["process 3 (python old.py): written in format 7"], width, height, 1, "q: quit")
    text = "".join(line.plain.rstrip() + "\n" for line in lines)
    path = GOLDEN / f"top-{width}x{height}.txt"
    if "DRAPPS_REGOLD" in os.environ:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("loaders", [[], [made()], some(), [made(f"set {i}", i) for i in range(40)]], ids=len)
def test_every_frame_fits(loaders):
    for width in (1, 20, 60, 79, 80, 100, 131, 132, 200, 400):
        for height in (1, 2, 5, 10, 24, 50, 100):
            lines = draw(loaders, [], width, height, 99)
            assert 1 <= len(lines) <= height and max(line.cell_len for line in lines) <= width


def test_what_is_missing_is_not_shown():
    bare = dict.fromkeys(("sensors", "levels", "flow", "knobs", "bounds"), {})
    text = "\n".join(line.plain for line in draw([made(**bare, cpu=[], decisions=[], last=None)], [], 100))
    assert "imagenet/train" in text and not re.search("memory|GPU|power|decisions", text)


def test_words():
    stale = Loader({**status(100), "time_ns": NOW_NS - 60 * SECOND}, None, NOW_NS)
    assert any("no news for 1:00" in line.plain for line in draw([stale], [], 80))
    bad = made(flow={**status(191.9)["flow"], "bad": 3, "deaths": 1})
    text = "\n".join(line.plain for line in draw([bad], [], 80))
    assert "3 samples left out" in text and "1 worker died" in text
    long = made(last=decision(192, 7200, "word " * 60))
    assert "2:00:00  word word" in "\n".join(line.plain for line in draw([long], [], 80))


def test_names_do_not_steer_the_terminal():
    hostile = "a\nb\x1b[2J\x9b\x7f"
    shown = status(192, name=hostile, policy=hostile, knobs={hostile: 1.0}, last=decision(1, 1, hostile, bound=hostile))
    loaders, complaints = Watcher(read=lambda pid: [shown, {**shown, "unreadable": hostile}]).poll()
    text = "\n".join(line.plain for line in draw(loaders, complaints, 200))
    assert r"a\nb\x1b[2J\x9b\x7f  a\nb" in text and "unreadable" not in text and not re.search("[\x1b\x9b\x7f]", text)


def _damaged(value, rng):
    """A copy of a status in which one thing is another, or gone."""
    copy = json.loads(json.dumps(value))
    place = copy
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = rng.choice(keys)
        if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        if rng.random() < 0.3:
            del place[key]
        else:
            place[key] = rng.choice([None, True, -1, 0, 1e300, math.nan, math.inf, 2**70, "", " ", "x", [], {}, [1]])
        return copy


def test_damaged_statuses_are_shown_or_named():
    rng, unreadable = random.Random(1), 0
    for _ in range(1500):
        shown = _damaged({key: value for key, value in status(192).items() if key not in ("pid", "loader")}, rng)
        loaders, complaints = Watcher(read=lambda pid: [{**shown, "pid": 1, "loader": 1}]).poll()
        assert len(loaders) + len(complaints) == 1
        unreadable += len(complaints)
        draw(loaders, complaints, 100)
        draw(loaders, complaints, 60, 10)
    assert 0 < unreadable < 1500


def test_the_head_of_a_narrow_terminal():
    loaders = [Loader(status(192, loader=i), now_ns=NOW_NS) for i in (1, 2)]
    assert draw(loaders, [], 60, 20, hint="by age (s), tab: next, q: quit")[0].plain.startswith(
        "drapps top   2 loaders in 1 program by age"
    )


def test_numbers_for_people():
    assert [parts.percent(x) for x in (0, 0.0312, 0.0999, 0.5, 1)] == ["0 %", "3.1 %", "10 %", "50 %", "100 %"]
    assert [parts.seconds(x) for x in (0, 2e-6, 0.0123, 0.9, 3, 250)] == [
        "0.0 µs", "2.0 µs", "12.3 ms", "900 ms", "3.0 s", "250 s"]  # fmt: skip
    assert [parts.ago(x) for x in (-1, 59.9, 60, 3600)] == ["0 s", "59 s", "1:00", "1:00:00"]


def test_bars():
    assert [parts.bar(x, "", width=4).plain for x in (-1, 0, 0.01, 0.5, 1, 7)] == [
        "░░░░", "░░░░", "▌░░░", "██░░", "████", "████"]  # fmt: skip
    assert parts.bar(0.25, "", more=0.5, width=4).plain == "█▒▒░"
    assert parts.bar(0.9, "", more=0.9, width=4).plain == "████"


# --- the program ---


def run(folder, *args, **env):
    env = {**os.environ, "DRAPPS_LIVE": str(folder), "COLUMNS": "80", **env}
    return subprocess.run([*COMMAND, *map(str, args)], env=env, capture_output=True, text=True, timeout=60)


def test_once(tmp_path):
    with made_up(tmp_path, "imagenet/train", "imagenet/val"):
        text = run(tmp_path, "--once").stdout
        ascii_text = run(tmp_path, "--once", PYTHONIOENCODING="ascii").stdout
    assert "2 loaders in 1 program" in text and "imagenet/val" in text
    assert re.search(r"\d+ samples/s", text) and "10 % of the consumer's time, step 90.0 ms" in text
    assert "3 of 8 batches, 2 being made" in text and "workers 3" in text and "\x1b" not in text
    assert "memory" in text and "CPU" in text
    assert "3 of 8 batches" in ascii_text and ascii_text.isascii()


def test_json(tmp_path):
    with made_up(tmp_path, "a", "b") as process:
        found = json.loads(run(tmp_path, "--json", "--pid", process.pid).stdout)
        assert [row["name"] for row in found["loaders"]] == ["a", "b"] and found["unreadable"] == []
        rate = found["loaders"][0]["rates"]
        assert rate["samples"] / rate["batches"] == pytest.approx(64) and rate["wait"] == pytest.approx(0.1)
        assert json.loads(run(tmp_path, "--json", "--pid", os.getpid()).stdout)["loaders"] == []


def test_nobody(tmp_path):
    done = run(tmp_path, "--once")
    assert done.returncode == 1 and "No loader is running." in done.stdout
    with made_up(tmp_path, "a"):
        done = run(tmp_path, "--once", "--pid", os.getpid())
    assert done.returncode == 1 and f"No loader is running in process {os.getpid()}; without --pid" in done.stdout


@pytest.mark.parametrize("interval", ["0", "soon", "nan"])
def test_wrong_use(tmp_path, interval):
    done = run(tmp_path, "--interval", interval)
    assert done.returncode == 2 and "0.1 to 3600" in done.stderr


def test_a_killed_program_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAPPS_LIVE", str(tmp_path))
    with made_up(tmp_path, "x") as process:
        assert [row["pid"] for row in live.read()] == [process.pid]
    assert list(tmp_path.iterdir()) and live.read() == [] and not list(tmp_path.iterdir())


def test_another_format(tmp_path, monkeypatch):
    """The head that all formats share, locked by its writer: this process."""
    monkeypatch.setenv("DRAPPS_LIVE", str(tmp_path))
    head = struct.pack("<8sIIiIQQ32s160s", b"DRLIVE\r\n", 7, 0, 1234, 1, 0, 0, b"9.9", b"python new.py")
    with (tmp_path / "1.live").open("wb") as file:
        file.write(head)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        loaders, complaints = Watcher().poll()
    assert loaders == [] and "1234" in complaints[0] and "format 7" in complaints[0] and "new.py" in complaints[0]


def test_a_real_loader(tmp_path, folder):
    with real(tmp_path, folder) as process:
        for _ in range(100):
            found = json.loads(run(tmp_path, "--json").stdout)["loaders"]
            if found and found[0]["rates"].get("samples"):
                break
        text = run(tmp_path, "--once").stdout
    assert found[0]["pid"] == process.pid and found[0]["name"] == str(folder)
    assert found[0]["flow"]["batch_samples"] == 4 and found[0]["knobs"]["workers"] == 1
    assert found[0]["rates"]["samples"] > 0
    assert "1 loader in 1 program" in text


# --- the terminal ---


class Terminal:
    """A pseudo-terminal in which `drapps top` runs; `frame` is what the screen shows."""

    def __init__(self, folder, *args, columns=80, rows=24):
        self.master, slave = os.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        env = {**os.environ, "DRAPPS_LIVE": str(folder), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        env = {key: value for key, value in env.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.slave = slave
        self.process = subprocess.Popen(
            [*COMMAND, *args], env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))  # fmt: skip
        self.raw = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        for _ in range(100):
            if not select.select([self.master], [], [], 0.1)[0]:
                return
            self.raw += os.read(self.master, 65536)

    @property
    def seen(self):
        return self.raw.decode(errors="replace")

    @property
    def frame(self):
        last = self.seen.rpartition("\x1b[H")[2]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).replace("\r", "").split("\n")

    def wait_for(self, condition):
        for _ in range(300):
            self.read()
            if condition(self.frame):
                return
        raise AssertionError("\n".join(self.frame))

    def end(self):
        """The exit status, once everything is as it was before."""
        for _ in range(300):
            self.read()
            if self.process.poll() is not None:
                break
        self.read()
        assert termios.tcgetattr(self.slave) == self.before
        assert "\x1b[?1049h" in self.seen and self.seen.rindex("\x1b[?1049l") > self.seen.rindex("\x1b[?1049h")
        assert self.seen.rindex("\x1b[?25h") > self.seen.rindex("\x1b[?25l") and "Traceback" not in self.seen
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def shows(text):
    return lambda frame: any(text in line for line in frame)


def test_live(tmp_path):
    with made_up(tmp_path, "imagenet/train"), Terminal(tmp_path, "--interval", "0.2") as terminal:
        terminal.wait_for(shows("10 % of the consumer's time, step 90.0 ms"))
        terminal.wait_for(lambda frame: len(frame) == 24 and max(map(len, frame)) == 80)
        terminal.resize(140, 40)
        terminal.wait_for(lambda frame: len(frame) == 40 and max(map(len, frame)) == 140)
        assert shows("limited by workers")(terminal.frame)
        terminal.press("q")
        assert terminal.end() == 0


def test_a_loader_that_comes_and_goes(tmp_path):
    with Terminal(tmp_path, "--interval", "0.2") as terminal:
        terminal.wait_for(shows("No loader is running."))
        with made_up(tmp_path, "imagenet/train"):
            terminal.wait_for(shows("imagenet/train"))
        terminal.wait_for(shows("No loader is running."))
        terminal.press("\x03")
        assert terminal.end() == 0


def test_keys(tmp_path):
    with made_up(tmp_path, "one", "two"), Terminal(tmp_path, "--interval", "0.3") as terminal:
        terminal.wait_for(shows("▸ one"))
        terminal.press("\t")
        terminal.wait_for(shows("▸ two"))
        terminal.press("\x1b[B")
        terminal.wait_for(shows("▸ one"))
        terminal.press("k")
        terminal.wait_for(shows("▸ two"))
        terminal.press("s")
        terminal.wait_for(shows("by rate (s)"))
        terminal.press("?")
        terminal.wait_for(shows("other programs use the CPUs"))
        terminal.press("?")
        terminal.wait_for(shows("by rate (s)"))
        terminal.press("q")
        assert terminal.end() == 0


def test_ended_from_outside(tmp_path):
    with Terminal(tmp_path) as terminal:
        terminal.wait_for(shows("No loader is running."))
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 0
