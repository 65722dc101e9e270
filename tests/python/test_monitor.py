"""drapps.Monitor: snapshots as mappings, on this machine and on the tree of another."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import drapps
from drapps.monitor import Monitor, sensors

TREES = Path(__file__).parents[1] / "unit" / "monitor" / "trees"


def unpack(text, root):
    """Writes the files of a tree: "== /path" on a line, then the file."""
    for part in ("\n" + text).split("\n== ")[1:]:
        path, _, content = part.partition("\n")
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content + "\n")


def test_this_machine():
    with drapps.Monitor(interval=0.01) as monitor:
        snapshot = monitor.wait(after=12)
        assert snapshot is not None and snapshot.number == 13
        known = {sensor.name for sensor in sensors()}
        assert {"cpu_total", "cpu_own", "mem_used", "mem_available"} <= set(snapshot) <= known
        assert set(snapshot.levels) == set(snapshot)
        assert all(0 <= level <= 1 for level in snapshot.levels.values())
        assert snapshot.modelled <= set(snapshot)
        assert all(0 <= use <= 1 for use in snapshot.cpu) and snapshot.cpu
        assert snapshot["mem_used"] > 0 and "Snapshot(13" in repr(snapshot)
        assert "gone" not in snapshot and snapshot.get("gone") is None


def test_history():
    with Monitor(interval=0.01, history=5) as monitor:
        assert monitor.latest().number >= 1
        monitor.wait(after=9)
        numbers = [snapshot.number for snapshot in monitor.history()]
        assert len(numbers) == 5 and numbers == list(range(numbers[0], numbers[0] + 5))
        assert all(snapshot.number > numbers[3] for snapshot in monitor.history(after=numbers[3]))


def test_interval():
    with Monitor(interval=1.0) as monitor:
        assert monitor.interval == 1.0 and monitor.wait(after=1, timeout=0.0) is None
        monitor.interval = 0.02
        assert monitor.interval == 0.02 and monitor.wait(after=4) is not None
        with pytest.raises(
            drapps.ArgumentError, match="interval must be a number of seconds from 0.01 to 1, got 0.001"
        ):
            monitor.interval = 0.001


@pytest.mark.parametrize("interval", [2.0, "1", None, math.nan, math.inf])
def test_an_interval_that_is_none(interval):
    with pytest.raises(
        drapps.ArgumentError, match=f"interval must be a number of seconds from 0.01 to 1, got {interval!r}"
    ):
        Monitor(interval=interval)


def test_a_root_may_be_a_path(tmp_path):
    with Monitor(root=tmp_path) as monitor:
        assert "cpu_total" not in monitor.latest()


def test_another_machine(tmp_path):
    for name in "ab":
        text = (TREES / "synthetic-half-core-v2" / f"{name}.txt").read_text()
        unpack(text, tmp_path)
        if name == "a":
            monitor = Monitor(interval=0.5, root=str(tmp_path))
    with monitor:
        snapshot = monitor.wait(after=1)
    assert len(snapshot.cpu) == 16 and snapshot["cpu_total"] == pytest.approx(8)
    assert snapshot["mem_used"] == 512 * 2**20 and snapshot.levels["mem_used"] == 0.5
    assert snapshot.modelled == {"power"} and "gpu_busy" not in snapshot


def test_a_device_that_no_driver_tells_of(tmp_path):
    with Monitor(interval=0.05, root=str(tmp_path)) as monitor:
        assert "gpu_busy" not in monitor.wait()
        monitor.add_busy(100)
        number = monitor.latest().number
        assert monitor.wait(after=number + 1)["gpu_busy"] == 1
        with pytest.raises(ValueError, match="must be a non-negative number, got -1"):
            monitor.add_busy(-1)


def test_watch():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Monitor() as monitor:
        monitor.watch(child.pid)
        monitor.unwatch(child.pid)
        child.communicate(b"\n")
        with pytest.raises(drapps.NotFoundError, match=str(child.pid)):
            monitor.watch(child.pid)


def test_closed():
    monitor = Monitor()
    monitor.close()
    monitor.close()
    for call in (monitor.latest, monitor.history, monitor.wait):
        with pytest.raises(drapps.StateError, match="closed"):
            call()


def test_forked():
    with Monitor() as monitor:
        pid = os.fork()
        if pid == 0:
            try:
                monitor.latest()
            except drapps.ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


def test_table():
    table = sensors()
    assert len({sensor.name for sensor in table}) == len(table)
    assert all(sensor.unit and sensor.full and sensor.doc for sensor in table)
    text = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text()
    assert all(f"`{sensor.name}`" in text for sensor in table), "docs/monitor.md lacks a sensor"
