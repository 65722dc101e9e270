"""`drapps serve URL`: a server near a web server or an object store, whose sets it offers as those of a folder."""

import subprocess
import time

import pytest
from far import Server, program
from fault_proxy import FaultProxy
from imagesets import write_folder
from serve_client import Client
from servers import KEY, SECRET, nginx, rclone
from test_offload import made

import drapps

N = 40


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("behind") / "sets"
    write_folder(root / "photos", N)
    drapps.read(root / "photos").pack(root / "packed")
    (root / "shards").mkdir()
    tar = next((root / "packed").glob("*.tar"))
    (root / "shards" / "a.tar").write_bytes(tar.read_bytes())
    files = sorted((root / "photos").rglob("*.jpg"))
    (root / "list.csv").write_text(
        "path,label\n" + "".join(f"photos/{p.relative_to(root / 'photos')},{p.parent.name}\n" for p in files)
    )
    return root


@pytest.fixture(scope="module")
def near(root):
    return {name: made(root / name) for name in ("photos", "packed", "shards", "list.csv")}


@pytest.fixture(scope="module")
def web(root):
    """nginx, and a proxy before it, by which a drapps server reads."""
    with nginx(root) as url, FaultProxy(("127.0.0.1", int(url.rpartition(":")[2]))) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def server(web):
    with Server(web.url, cpus=1) as server:
        yield server


@pytest.fixture
def client(server):
    return Client(server.port)


@pytest.mark.parametrize("mode", ["off", "all", 2])
@pytest.mark.parametrize("name", ["photos", "packed", "shards", "list.csv"])
def test_sets_of_a_web_server(server, near, name, mode):
    assert made(server.url(name), offload=mode) == near[name]


def test_the_server_runs_the_ops(server):
    from test_offload import loader_of

    with loader_of(server.url("photos"), offload="all") as loader:
        for _ in loader:
            pass
        assert loader.stats()["offload_samples"] == N


def test_sets_of_an_object_store(root, near, monkeypatch):
    """rclone's buckets are folders: the bucket "sets" has the sets."""
    for name, value in {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with rclone(root.parent) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with Server("s3://sets", cpus=1) as server:
            for name, mode in (("photos", "all"), ("shards", "all"), ("packed", 2), ("list.csv", "off")):
                assert made(server.url(name), offload=mode) == near[name]


def test_sets_and_index(client, root):
    names = [s["name"] for s in client.ask("/v1/sets").json()["sets"]]
    assert names == ["list.csv", "packed", "photos", "shards"]
    photos = client.ask("/v1/sets/photos").json()
    assert photos["samples"] == N and photos["bytes"] == sum(p.stat().st_size for p in (root / "photos").rglob("*.jpg"))


def test_files_and_ranges(client, root):
    path = root / "shards" / "a.tar"
    content = path.read_bytes()
    whole = client.ask("/v1/sets/shards/files/a.tar")
    assert (whole.status, whole.body) == (200, content)
    part = client.ask("/v1/sets/shards/files/a.tar", Range="bytes=1000-2999")
    assert (part.status, part.body) == (206, content[1000:3000])
    assert part.headers["Content-Range"] == f"bytes 1000-2999/{len(content)}"
    assert client.ask("/v1/sets/shards/files/a.tar", Range="bytes=99999999-").status == 416
    tag = whole.headers["ETag"]
    assert client.ask("/v1/sets/shards/files/a.tar", If_None_Match=tag).status == 304
    assert client.ask("/v1/sets/shards/files/a.tar", If_Match='"other"').status == 412
    head = client.ask("/v1/sets/shards/files/a.tar", "HEAD")
    assert (head.status, head.headers["Content-Length"], head.body) == (200, str(len(content)), b"")
    for wrong in ("none.tar", "../photos/ant/000.jpg", "%2e%2e/list.csv", "http://127.0.0.1/x", ""):
        assert client.ask(f"/v1/sets/shards/files/{wrong}").status == 404


def test_files_of_many_blocks(root, web, tmp_path):
    """Larger than what is fetched at a time, by several clients at once."""
    big = root / "shards" / "big.bin"
    big.write_bytes(bytes(range(256)) * 20000)
    try:
        with Server(web.url, cpus=0) as server:
            url = f"http://127.0.0.1:{server.port}/v1/sets/shards/files/big.bin"
            runs = [subprocess.Popen(["curl", "-sS", "-o", str(tmp_path / str(i)), url]) for i in range(4)]
            assert [run.wait(60) for run in runs] == [0] * 4
            assert all((tmp_path / str(i)).read_bytes() == big.read_bytes() for i in range(4))
    finally:
        big.unlink()


def test_faults_between_server_and_store(web, near):
    """What the store does wrong is tried again by the server: its clients see nothing of it."""
    with Server(web.url, cpus=1) as server:
        kinds = {1: "reset", 3: "truncate", 5: ("status", 503), 6: ("delay", 0.1)}
        web.plan = lambda n: kinds.get(n % 8)
        try:
            assert made(server.url("photos"), offload="all") == near["photos"]
            assert made(server.url("shards"), offload="off") == near["shards"]
        finally:
            web.plan = lambda n: None


def test_a_store_that_goes_away_and_comes_back(web, near):
    with Server(web.url, cpus=1) as server:

        def pause(epoch):
            if epoch == 0:
                web.dead = True
                import threading

                threading.Timer(2, setattr, (web, "dead", False)).start()

        assert made(server.url("photos"), between=pause, offload="all") == near["photos"]


def test_the_server_stops_though_the_store_hangs(web):
    """Requests to the store are given up when the time for a graceful end is over."""
    with Server(web.url, "--grace", "1", cpus=1) as server:
        web.plan = lambda n: ("delay", 20)
        try:
            ask = subprocess.Popen(["curl", "-s", f"http://127.0.0.1:{server.port}/v1/sets/shards/files/a.tar"],
                                   stdout=subprocess.DEVNULL)  # fmt: skip
            time.sleep(0.5)
            server.process.terminate()
            server.process.communicate(timeout=15)
            assert server.process.returncode == 0
            ask.kill()
            ask.wait()
        finally:
            web.plan = lambda n: None


def test_an_object_that_changed(root, web):
    """What clients know of a file is what the server said of it: another content is not sent in its place."""
    path = root / "shards" / "b.bin"
    path.write_bytes(b"1" * 3000)
    try:
        with Server(web.url, cpus=0) as server:
            client = Client(server.port)
            first = client.ask("/v1/sets/shards/files/b.bin")
            path.write_bytes(b"2" * 4000)
            again = client.ask("/v1/sets/shards/files/b.bin", If_Match=first.headers["ETag"])
            assert first.body == b"1" * 3000
            assert again.status == 502 and "does not give the file" in again.json()["error"]
            server.reload()
            end = time.monotonic() + 30
            while client.ask("/v1/sets/shards/files/b.bin").body != b"2" * 4000 and time.monotonic() < end:
                time.sleep(0.1)
            assert client.ask("/v1/sets/shards/files/b.bin").body == b"2" * 4000
    finally:
        path.unlink()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/x?token=y", "cannot serve a URL with any of"),
        ("http://nobody.invalid/x", "nobody.invalid"),
        ("ftp://127.0.0.1/x", "ftp"),
    ],
)
def test_urls_that_cannot_be_served(url, why):
    run = subprocess.run([program(), url, "--port", "0"], capture_output=True, text=True, timeout=60)
    assert run.returncode and why in run.stderr
