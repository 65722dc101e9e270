"""The metrics endpoint, by a real HTTP client and a parser of the format that is not ours."""

import math
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from loadersets import Slow
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import drapps
from drapps import metrics


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAPPS_LIVE", str(tmp_path / "live"))


@pytest.fixture
def shown(folder):
    """A loader of this process, as soon as it shows itself; it is in mid-epoch."""
    loader = drapps.read(folder).decode().resize(64).center_crop(56).loader(batch_size=4, workers=1)
    for _ in range(2000):
        for _batch in loader:
            if "drapps_sensor_mem_used_bytes" in metrics.text():
                yield loader
                return
    raise AssertionError("the loader does not show itself")


def parse(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def get(url, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
        return answer.status, answer.headers, answer.read().decode()


def value(families, name, /, **labels):
    """The one sample of that name with these labels among its own."""
    family = next(f for f in families.values() if name in {sample.name for sample in f.samples})
    found = [s.value for s in family.samples if s.name == name and labels.items() <= s.labels.items()]
    assert len(found) == 1
    return found[0]


def test_format(shown, folder):
    families = parse(metrics.text())
    assert all(name.startswith("drapps_") for name in families) and all(f.documentation for f in families.values())
    assert value(families, "drapps_build_info", version=drapps.__version__) == 1
    assert value(families, "drapps_loader_info", policy="analytic", name=str(folder)) == 1
    assert families["drapps_samples"].type == "counter" and families["drapps_wait_seconds"].unit == "seconds"
    assert families["drapps_ready_batches"].type == "gauge"
    assert value(families, "drapps_batch_samples", name=str(folder)) == 4
    assert value(families, "drapps_knob_workers", name=str(folder)) == 1
    assert value(families, "drapps_sensor_mem_used_bytes") > 0
    assert {s.labels["bound"] for s in families["drapps_decisions"].samples} >= {"cpu", "consumer", "memory"}
    assert len(families["drapps_cpu_use_ratio"].samples) == os.cpu_count()


def histogram(families, name):
    """(count, sum, [(end, count of those below), ...]) of the one loader."""
    samples = families[name].samples
    bins = [(float(s.labels["le"]), s.value) for s in samples if s.name == f"{name}_bucket"]
    return value(families, f"{name}_count"), value(families, f"{name}_sum"), bins


def test_histograms(shown):
    for _batch in shown:
        pass
    for _ in range(2000):  # what is shown is a tenth of a second old
        families = parse(metrics.text())
        if value(families, "drapps_batches_total") == histogram(families, "drapps_consumer_wait_seconds")[0] > 0:
            break
        time.sleep(0.01)
    for name in ("drapps_consumer_wait_seconds", "drapps_batch_latency_seconds"):
        family = families[name]
        assert family.type == "histogram" and family.unit == "seconds"
        count, total, bins = histogram(families, name)
        ends, below = [end for end, _ in bins], [n for _, n in bins]
        assert len(bins) == 10 and ends == sorted(set(ends)) and ends[-1] == math.inf
        assert below == sorted(below) and below[-1] == count > 0 and total > 0
    assert value(families, "drapps_latency_seconds_total") == pytest.approx(
        histogram(families, "drapps_batch_latency_seconds")[1]
    )


def test_histograms_of_worker_processes():
    with drapps.DataLoader(Slow(4000, range(4000), 0.001), 4, num_workers=1) as loader:
        for _batch in loader:
            families = parse(metrics.text())
            if "drapps_sensor_mem_used_bytes" in families:
                waits = histogram(families, "drapps_consumer_wait_seconds")
                if waits[0] > 0:
                    break
        else:
            raise AssertionError("no wait is counted")
    count, total, bins = histogram(families, "drapps_batch_latency_seconds")
    assert bins[-1] == (math.inf, count) and count > 0 and total > count * 0.004  # of four samples each
    assert waits[1] <= value(families, "drapps_wait_seconds_total") + 1e-6


def test_decisions_by_knob(shown):
    turns = parse(metrics.text())["drapps_turns"]
    assert {s.labels["knob"] for s in turns.samples} == {knob.name for knob in drapps.knobs()}
    assert all(s.name == "drapps_turns_total" and s.value >= 0 for s in turns.samples)


def test_every_table_is_there(shown):
    names = set(parse(metrics.text()))
    for knob in drapps.knobs():
        assert f"drapps_knob_{knob.name}" in names
    for part in ("samples", "batches", "wait_seconds", "step_seconds", "cpu_seconds", "read_bytes", "limit_bytes"):
        assert f"drapps_{part}" in names


def test_the_manual_names_what_is_there(shown):
    manual = (Path(__file__).parents[2] / "docs" / "watch.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`drapps_.*?) \|", manual, re.MULTILINE)
    named = set(re.findall(r"drapps_\w+", " ".join(rows)))
    served = {sample.name for family in parse(metrics.text()).values() for sample in family.samples}
    assert named - served <= {"drapps_reward", "drapps_cpu_throttled_seconds_total"}  # after a decision; in a cgroup
    mine = {name for name in served if not re.match("drapps_(sensor|knob|cpu_use)_", name)}
    assert mine <= named


def test_numbers_move(shown):
    first = value(parse(metrics.text()), "drapps_samples_total")
    for _ in range(2000):
        for _batch in shown:
            pass
        if value(parse(metrics.text()), "drapps_samples_total") > first:
            return
    raise AssertionError(f"{first} samples, and no more")


def test_over_http(shown):
    with metrics.start("127.0.0.1:0") as server:
        assert re.fullmatch(rf"http://127.0.0.1:{server.port}/metrics", server.url) and "metrics" in repr(server)
        status, headers, text = get(server.url)
        assert status == 200 and "drapps_samples" in parse(text)
        assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        status, headers, text = get(server.url, "HEAD")
        assert status == 200 and int(headers["Content-Length"]) > 0 and text == ""
    assert repr(server) == "Server(stopped)"
    with pytest.raises(OSError):
        get(server.url)
    server.stop()


def test_a_port_may_be_a_number():
    with metrics.start(0) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/metrics"


@pytest.mark.parametrize(
    "path, method, status", [("/", "GET", 404), ("/metricsx", "GET", 404), ("/metrics", "PUT", 405)]
)
def test_refused(path, method, status):
    with metrics.start("0") as server, pytest.raises(urllib.error.HTTPError) as error:
        get(server.url.removesuffix("/metrics") + path, method)
    assert error.value.code == status
    error.value.close()


def test_many_at_once(shown):
    pages, lock = [], threading.Lock()

    def scrape(url):
        for _ in range(5):
            text = get(url)[2]
            with lock:
                pages.append(text)

    with metrics.start("127.0.0.1:0") as server:
        threads = [threading.Thread(target=scrape, args=(server.url,)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(pages) == 80 and all("drapps_samples" in parse(page) for page in pages)


def test_errors():
    with pytest.raises(drapps.ArgumentError, match="address must be PORT"):
        metrics.start("example.org:80")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(drapps.IOError, match="cannot listen on 127.0.0.1"):
            metrics.start(f"127.0.0.1:{other.getsockname()[1]}")


def test_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with metrics.start("[::1]:0") as server:
        assert get(server.url)[0] == 200 and "[::1]" in server.url


PROGRAM = """
import os, urllib.request
from drapps import metrics
metrics.from_environment()
metrics.from_environment()
port = int(os.environ["DRAPPS_METRICS"]) + int(os.environ.get("LOCAL_RANK", 0))
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").status)
"""


def run(program, **env):
    return subprocess.run([sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True,
                          timeout=60)  # fmt: skip


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as other:
        return other.getsockname()[1]


def test_by_the_environment():
    done = run(PROGRAM, DRAPPS_METRICS=str(free_port()))
    assert done.stdout == "200\n", done.stderr


def test_what_the_environment_gets_wrong_is_a_warning():
    done = run("from drapps import metrics; metrics.from_environment()", DRAPPS_METRICS="nine")
    assert done.returncode == 0 and 'RuntimeWarning: DRAPPS_METRICS: metrics: address must be PORT' in done.stderr
    twice = "import warnings; warnings.simplefilter('always')\nfrom drapps import metrics\n"
    twice += 2 * "metrics.from_environment()\n"
    assert run(twice, DRAPPS_METRICS="nine").stderr.count("RuntimeWarning") == 1
