"""What networks and servers do to web servers' data: nothing is lost, the order is kept, and memory stays bounded.

Real servers (nginx, drapps serve) stand behind the proxy of fault_proxy.py.  Faults of S3 are in test_remote_s3.py,
those of single requests in tests/unit/source/test_transfer.c."""

import resource
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from far import Server
from fault_proxy import FaultProxy
from imagesets import gather, same, train, write_folder
from servers import nginx

import drapps

N = 60
OPTIONS = {"batch_size": 6, "shuffle": True, "seed": 9, "workers": 3, "output": "numpy"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("faults")
    write_folder(root / "photos", N)
    drapps.read(root / "photos").pack(root / "packed", shard_bytes=50000)
    return root


@pytest.fixture(scope="module")
def near(root):
    with train(root / "photos").loader(**OPTIONS) as loader:
        return gather(loader) + gather(loader)


@pytest.fixture(scope="module", params=["nginx", "drapps serve"])
def port(request, root):
    """A real server over the sets."""
    if request.param == "nginx":
        with nginx(root) as url:
            yield "http", int(url.rpartition(":")[2])
    else:
        with Server(root, cpus=1) as server:
            yield "drapps", server.port


@pytest.fixture
def proxy(port):
    with FaultProxy(("127.0.0.1", port[1])) as proxy:
        proxy.scheme = port[0]
        yield proxy


def url_of(proxy, name):
    return f"{proxy.scheme}://127.0.0.1:{proxy.port}/{name}"


FAULTS = {
    "resets": lambda n: "reset" if n % 5 == 4 else None,
    "truncations": lambda n: "truncate" if n % 3 == 2 else None,
    "delays": lambda n: ("delay", 0.5) if n % 10 == 9 else None,
    "too many requests": lambda n: ("status", 429, "Retry-After: 0\r\n") if n % 20 in range(10, 16) else None,
    "overload": lambda n: ("status", 503) if n % 12 in (7, 8) else None,
    "everything": lambda n: {1: "reset", 4: "truncate", 6: ("delay", 0.2), 8: ("status", 503),
                             9: ("status", 429, "Retry-After: 0\r\n")}.get(n % 11),
}  # fmt: skip


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("name", ["photos", "packed"])
def test_nothing_is_lost(proxy, near, faults, name):
    pipe = train(drapps.read(url_of(proxy, name)))
    proxy.plan = FAULTS[faults]
    with pipe.loader(**OPTIONS) as loader:
        assert same(gather(loader) + gather(loader), near)
    assert proxy.faults


def test_opening_survives_faults(proxy, root, near):
    proxy.plan = FAULTS["everything"]
    with train(drapps.read(url_of(proxy, "photos"))).loader(**OPTIONS) as loader:
        assert same(gather(loader) + gather(loader), near)


def test_a_dead_time_of_the_server(proxy, near):
    """Training stalls and goes on; of a minute in the life of a server, a few seconds here."""
    pipe = train(drapps.read(url_of(proxy, "photos")))
    with pipe.loader(**OPTIONS, prefetch=1) as loader:
        batches = loader.batches()
        found = [next(batches)]
        proxy.dead = True
        timer = threading.Timer(3, setattr, (proxy, "dead", False))
        timer.start()
        found += list(batches)
        timer.join()
        found += list(loader.batches())
        rows = [(b["image"].copy(), b["label"].copy(), list(b.ids)) for b in found]
    assert same(rows, near)


def test_a_server_that_stays_away_ends_the_epoch(port, proxy):
    """After the timeout, with an error that names an object or the set, and how long it was tried."""
    pipe = train(drapps.read(url_of(proxy, "photos"), timeout=1.5))
    with pipe.loader(**OPTIONS) as loader:
        batches = loader.batches()
        next(batches)
        proxy.dead = True
        with pytest.raises(
            drapps.Error, match=rf"127.0.0.1:{proxy.port}.*photos.*(connect|given up|refused|no answer)"
        ):
            list(batches)


MEASURE = """
    import sys, drapps
    from imagesets import train
    pipe = train(drapps.read(sys.argv[1]))
    with pipe.loader(batch_size=4, workers=4, shuffle=True, output="numpy", ranges="off", seek_index="off") as loader:
        for epoch in range(int(sys.argv[2])):
            assert sum(len(b.ids) for b in loader.batches()) == int(sys.argv[3])
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kb(url, epochs):
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(MEASURE), url, str(epochs), str(N)], check=True,
                         capture_output=True, text=True, timeout=300, cwd=__file__.rpartition("/")[0])  # fmt: skip
    return int(run.stdout)


def test_memory_is_bounded(proxy):
    """Twelve epochs of faults take no more memory than two without, but for some noise of the allocator."""
    calm = peak_kb(url_of(proxy, "photos"), 2)
    proxy.plan = FAULTS["everything"]
    assert peak_kb(url_of(proxy, "photos"), 12) < calm + 16 * 1024


def test_a_late_answer_is_asked_for_again(port, proxy):
    """One connection out of many that hangs holds up nobody: the request is sent a second time (a straggler)."""
    if proxy.scheme != "http":
        pytest.skip("requests for samples, which use up CPU time, are not sent twice")
    pipe = train(drapps.read(url_of(proxy, "photos")))
    with pipe.loader(**OPTIONS, ranges="off") as loader:
        for _ in range(2):  # it learns how long answers take
            list(loader.batches())
        hang, begun = proxy.requests + 20, time.monotonic()
        proxy.plan = lambda n: ("delay", 15) if n == hang else None
        found = [i for b in loader.batches() for i in b.ids]
        took = time.monotonic() - begun
    assert sorted(found) == list(range(N)) and proxy.faults["delay"] == 1
    assert took < 15  # the delay itself, which nobody waited for


def test_few_requests_at_a_time(root):
    """All loaders of a process share the limit of requests in flight."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert limit > 128
    with nginx(root) as url, FaultProxy(("127.0.0.1", int(url.rpartition(":")[2]))) as proxy:
        proxy.plan = lambda n: ("delay", 0.02)
        pipes = [train(drapps.read(f"{proxy.url}/photos")) for _ in range(3)]
        loaders = [p.loader(**{**OPTIONS, "workers": 40}, prefetch=8) for p in pipes]
        most = 0
        iterators = [iter(loader.batches()) for loader in loaders]
        for _ in range(N // OPTIONS["batch_size"]):
            for iterator in iterators:
                next(iterator)
                most = max(most, len(proxy.open) // 2)
        for loader in loaders:
            loader.close()
    assert 0 < most <= 66  # 64, and those that are being closed
