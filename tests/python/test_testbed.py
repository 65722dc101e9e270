"""drapps experiment testbed: what its link carries, what it leaves behind, what it says where it cannot be made."""

import subprocess
import sys

import pytest

from benchmarks.experiments.testbed import testbed, testbed_command
from benchmarks.experiments.testbed.testbed import Testbed

REASON = testbed.missing()
needs_hosts = pytest.mark.skipif(REASON is not None, reason=str(REASON))
FETCH = "import urllib.request, sys; sys.stdout.write(str(len(urllib.request.urlopen(sys.argv[1]).read())))"


def namespaces():
    return subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


def serve(bed, folder):
    server = [sys.executable, "-m", "http.server", "8600", "--bind", bed.address, "--directory", str(folder)]
    bed.start_store(server, 8600, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@needs_hosts
@pytest.mark.parametrize("delay", [0, 0.005])
def test_a_file_crosses_the_link(tmp_path, delay):
    (tmp_path / "file").write_bytes(bytes(3_000_000))
    with Testbed(rate=200e6, delay=delay) as bed:
        serve(bed, tmp_path)
        sent = bed.sent()
        done = bed.run_client([sys.executable, "-c", FETCH, f"http://{bed.address}:8600/file"],
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert done.stdout == "3000000"
        assert 3_000_000 < bed.sent() - sent < 4_000_000
        assert bed.store_cpu_seconds() > 0
    assert "drapps-" not in namespaces()


@needs_hosts
def test_nothing_is_left_after_an_error(tmp_path):
    with pytest.raises(SystemExit, match="ended with 3 before it accepted a connection"), Testbed() as bed:
        bed.start_store([sys.executable, "-c", "raise SystemExit(3)"], 8600)
    assert "drapps-" not in namespaces()


@needs_hosts
def test_the_command(tmp_path, capsys):
    (tmp_path / "file").write_bytes(bytes(100_000))
    server = f"{sys.executable} -m http.server 8600 --bind {testbed.STORE} --directory {tmp_path}"
    status = testbed_command.main(["--server", server, "--", sys.executable, "-c", FETCH,
                                   f"http://{testbed.STORE}:8600/file"])  # fmt: skip
    assert status == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["MB", "sent", "by", "the", "store", "0.1"] in rows


def test_it_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(testbed.os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="needs root"), Testbed():
        pass
