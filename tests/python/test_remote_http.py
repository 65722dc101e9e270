"""http:// and https://: folders, lists, shards and packed sets of nginx, and of a server without ranges.

Faults are in test_remote_faults.py, ranges of JPEGs in test_ranges_remote.py."""

import io
import os
import subprocess
import sys
import tarfile
import threading
import time

import pytest
from far import free_port
from fault_proxy import FaultProxy
from imagesets import N_IMAGES, gather, same, train, write_folder
from op_runner import import_torchvision
from servers import make_certificates, nginx, python_server

import drapps

OPTIONS = {"batch_size": 5, "shuffle": True, "seed": 3, "workers": 3, "output": "numpy"}


def made(path, ranks=1, **options):
    """The batches of two epochs, of all ranks."""
    pipe = train(drapps.read(path, **options))
    found = []
    for rank in range(ranks):
        more = {"rank": rank, "world_size": ranks} if ranks > 1 else {}
        with pipe.loader(**OPTIONS, **more) as loader:
            found += gather(loader) + gather(loader)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Sets of all kinds in one folder."""
    place = tmp_path_factory.mktemp("site")
    root = write_folder(place / "photos")
    odd = place / "odd" / "ünï cöde+plus & more"
    odd.mkdir(parents=True)
    for name in ("a b.jpg", "50%.jpg", "q?x#y;z.jpg", "[brackets] 'n'.jpg"):
        (odd / name).write_bytes((root / "ant" / "000.jpg").read_bytes())
    drapps.read(root).pack(place / "packed", shard_bytes=20000)
    for shard in range(3):
        with tarfile.open(place / f"train-{shard}.tar", "w") as tar:
            for path in sorted((root / "bee").iterdir())[2 * shard : 2 * shard + 2]:
                tar.add(path, f"{path.stem}.jpg")
                label = tarfile.TarInfo(f"{path.stem}.cls")
                label.size = 1
                tar.addfile(label, io.BytesIO(b"%d" % shard))
    files = sorted(root.rglob("*.jpg"))
    (place / "list.csv").write_text(
        "path,label\n" + "".join(f"photos/{p.relative_to(root)},{p.parent.name}\n" for p in files)
    )
    (place / "bare").mkdir()
    for name in ("ant", "bee", "cat"):
        (place / "bare" / name).symlink_to(root / name)
    (place / "bare" / "index.txt").write_text("".join(f"{p.relative_to(root)}\n" for p in files))
    return place


@pytest.fixture(scope="module")
def site(place):
    with nginx(place) as url:
        yield url


# --- what can be read ---


def test_folders_by_the_listings_of_the_server(site, place):
    near = made(place / "photos")
    assert same(made(f"{site}/photos"), near)
    assert same(made(f"{site}/photos/"), near)
    assert same(made(f"{site}/json/photos"), near)


def test_a_folder_by_its_list_of_files(site, place):
    """/plain/ lists nothing: index.txt in the folder does."""
    assert same(made(f"{site}/plain/bare"), made(place / "photos"))


def test_names_of_any_characters(site, place):
    for path in (f"{site}/odd", f"{site}/json/odd"):
        near, far = drapps.read(place / "odd"), drapps.read(path)
        assert [s["key"] for s in far] == [s["key"] for s in near] and len(list(far)) == 4


def test_shards(site, place):
    near = made(place / "train-{0..2}.tar")
    for path in ("train-{0..2}.tar", "train-*.tar"):
        assert same(made(f"{site}/{path}"), near)
    assert same(made(f"{site}/plain/train-{{0..2}}.tar"), near)
    assert same(made(f"{site}/train-1.tar"), made(place / "train-1.tar"))


def test_the_index_of_a_shard_is_kept(site, place, tmp_path, monkeypatch):
    """The shard's headers are read once, and again when it is another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with FaultProxy(("127.0.0.1", int(site.rpartition(":")[2]))) as proxy:
        path, requests = f"{proxy.url}/train-0.tar", []

        def read():
            before = proxy.requests
            assert drapps.read(path).dataset.size == 2
            requests.append(proxy.requests - before)

        read()
        read()
        os.utime(place / "train-0.tar", (1, 1))  # of which nginx makes its tag
        read()
        read()
    assert requests[1] < requests[0] == requests[2] > requests[3]


def test_many_shards_are_opened_at_a_time(place, tmp_path):
    """Their indexes wait for the server together: the samples are in the order of the shards all the same."""
    for i in range(12):
        with tarfile.open(tmp_path / f"{i:02}.tar", "w") as tar:
            tar.add(place / "photos" / "ant" / "000.jpg", f"{i:02}-a.jpg")
            tar.add(place / "photos" / "ant" / "003.jpg", f"{i:02}-b.jpg")
    with nginx(tmp_path) as url, FaultProxy(("127.0.0.1", int(url.rpartition(":")[2]))) as proxy:
        proxy.plan = lambda n: ("delay", 0.2)
        together = []
        watcher = threading.Thread(target=lambda: [(together.append(len(proxy.open) // 2), time.sleep(0.01))
                                                   for _ in range(300)])  # fmt: skip
        watcher.start()
        dataset = drapps.read(f"{proxy.url}/{{00..11}}.tar", index=False).dataset
        watcher.join()
        assert [dataset.key(i) for i in range(24)] == [f"{i:02}-{x}" for i in range(12) for x in "ab"]
        assert max(together) >= 4
        proxy.plan = lambda n: ("status", 403)
        with pytest.raises(drapps.IOError, match="HTTP 403: access denied"):
            drapps.read(f"{proxy.url}/{{00..11}}.tar", index=False)


def test_packed_sets_are_whole_or_an_error(site, place):
    """Shards that a server does not give at the moment are no lost samples."""
    with FaultProxy(("127.0.0.1", int(site.rpartition(":")[2]))) as proxy:
        assert drapps.read(f"{proxy.url}/packed").dataset.size == N_IMAGES
        opened = proxy.requests
        proxy.plan = lambda n: ("status", 403) if n >= 2 * opened - 3 else None
        with pytest.raises(drapps.IOError, match=r"packed/shard-\d+.tar.*: HTTP 403"):
            drapps.read(f"{proxy.url}/packed")


def test_packed_sets(site, place):
    near = made(place / "packed")
    assert same(made(f"{site}/packed"), near)
    assert same(made(f"{site}/plain/packed"), near)  # its manifest names all files


def test_lists(site, place):
    assert same(made(f"{site}/list.csv"), made(place / "list.csv"))
    (place / "far.csv").write_text(
        "path,label\n" + "".join(f"{site}/photos/{p.relative_to(place / 'photos')},{p.parent.name}\n"
                                 for p in sorted((place / "photos").rglob("*.jpg"))))  # fmt: skip
    far = drapps.read(place / "far.csv")
    assert [s["label"] for s in far] == [s["label"] for s in drapps.read(place / "list.csv")]


def test_lists_of_urls_in_python(site, place):
    paths = sorted((place / "photos").rglob("*.jpg"))[:6]
    far = drapps.read([f"{site}/photos/{p.relative_to(place / 'photos')}" for p in paths], labels=[0] * 6)
    assert [bytes(s["image"]) for s in far] == [p.read_bytes() for p in paths]


def test_a_server_without_ranges(place):
    with python_server(place) as url:
        assert same(made(f"{url}/photos"), made(place / "photos"))
        assert same(made(f"{url}/train-{{0..2}}.tar"), made(place / "train-{0..2}.tar"))


def test_ranks_and_states(site, place):
    assert same(made(f"{site}/photos", ranks=2), made(place / "photos", ranks=2))
    near, far = train(place / "photos"), train(f"{site}/photos")
    with near.loader(**OPTIONS) as loader, far.loader(**OPTIONS) as other:
        batches = iter(loader.batches())
        next(batches), next(batches)
        state = loader.state_dict()
        rest = [b["image"].tobytes() for b in batches]
        other.load_state_dict(state)
        assert [b["image"].tobytes() for b in other.batches()] == rest and rest


# --- the drop-in ---


@pytest.mark.parametrize("workers", [0, 2])
def test_a_folder_as_a_data_set_of_torch(site, place, workers):
    torch = pytest.importorskip("torch")
    import_torchvision()
    from torchvision.transforms import v2

    def images(root):
        return drapps.RemoteImageFolder(root, v2.Compose([v2.RandomResizedCrop(32), v2.PILToTensor()]))

    def epochs(root):
        torch.manual_seed(3)
        loader = drapps.DataLoader(images(root), batch_size=4, shuffle=True, num_workers=workers,
                                   generator=torch.Generator().manual_seed(7))  # fmt: skip
        return [(x.numpy().tobytes(), y.tolist()) for _ in range(2) for x, y in loader]

    far = images(f"{site}/photos")
    assert len(far) == N_IMAGES and far.samples == images(place / "photos").samples
    assert epochs(f"{site}/photos") == epochs(place / "photos")


# --- TLS and rights ---


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_site(place, certificates):
    with nginx(place, certificates[1:]) as url:
        yield url


def test_tls(tls_site, place, certificates, monkeypatch):
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates[0]))
    assert same(made(f"{tls_site}/photos"), made(place / "photos"))
    assert same(made(f"{tls_site}/train-{{0..2}}.tar"), made(place / "train-{0..2}.tar"))


def test_a_certificate_that_nobody_trusts(site, tls_site, certificates, monkeypatch):
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(drapps.IOError, match=rf"{tls_site}/photos/?: TLS: .*certificate"):
        drapps.read(f"{tls_site}/photos")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates[0]))
    name = tls_site.replace("127.0.0.1", "localhost")
    with pytest.raises(drapps.IOError, match=rf"{name}/photos/?: TLS: .*localhost"):
        drapps.read(f"{name}/photos")
    with pytest.raises(drapps.IOError, match="TLS: "):
        drapps.read(site.replace("http:", "https:") + "/photos")


def test_tokens(site, place):
    near = made(place / "photos")
    assert same(made(f"{site}/private/photos", credentials="open sesame"), near)
    for credentials in (None, "wrong", "user:password"):
        with pytest.raises(drapps.IOError, match=rf"{site}/private/photos/?: HTTP 403: access denied"):
            drapps.read(f"{site}/private/photos", credentials=credentials)


def test_tokens_are_in_no_message(site):
    with pytest.raises(drapps.Error) as error:
        drapps.read(f"{site}/private/photos?signature=hidden", credentials="hidden")
    assert "hidden" not in str(error.value)


# --- errors name the object ---


def test_what_is_not_there(site):
    for path in ("nothing", "nothing/", "nothing.tar", "nothing.csv", "photos/ant/none.jpg"):
        with pytest.raises(drapps.FileMissingError, match=rf"{site}/{path}/?: HTTP 404: not found"):
            drapps.read(f"{site}/{path}")


def test_a_folder_that_nobody_lists(site):
    with pytest.raises(drapps.Error, match=rf"{site}/plain/photos/?: HTTP 403.*no list of the files as index.txt"):
        drapps.read(f"{site}/plain/photos")


def test_an_object_that_went_away(site, place):
    (place / "gone").mkdir()
    source = (place / "photos" / "ant" / "000.jpg").read_bytes()
    for i in range(3):
        (place / "gone" / f"{i}.jpg").write_bytes(source)
    pipe = drapps.read(f"{site}/gone", format="flat")
    (place / "gone" / "1.jpg").unlink()
    assert pipe[0]["key"] == "0.jpg"
    with pytest.raises(drapps.Error, match=rf"{site}/gone/1.jpg: HTTP 404: not found"):
        pipe[1]  # noqa: B018


def test_nobody_there():
    url = f"http://127.0.0.1:{free_port()}/set"
    with pytest.raises(drapps.IOError, match=rf"{url}/?: .*onnect"):
        drapps.read(url)
    with pytest.raises(drapps.IOError, match=r"http://nobody.invalid/set/?: .*(resolve|Resolv)"):
        drapps.read("http://nobody.invalid/set")


@pytest.mark.parametrize("url", ["http://", "http:///x", "https://:80/x"])
def test_urls_that_are_none(url):
    with pytest.raises(drapps.Error, match=url):
        drapps.read(url)


# --- what goes over the wire ---


def test_each_object_is_fetched_once_an_epoch(site, place):
    with FaultProxy(("127.0.0.1", int(site.rpartition(":")[2]))) as proxy:
        pipe = train(drapps.read(f"{proxy.url}/photos"))
        with pipe.loader(**OPTIONS, ranges="off") as loader:
            for epoch in range(3):
                before = proxy.requests
                assert sum(len(b.ids) for b in loader.batches()) == N_IMAGES
                if epoch:  # the first has begun before the count
                    assert proxy.requests - before <= N_IMAGES
            stats = loader.stats()
        assert stats["bytes_read"] == 3 * sum(p.stat().st_size for p in (place / "photos").rglob("*.jpg"))


def test_ranks_fetch_each_object_once_together(place):
    """Ranks agree on the order without a word: of an epoch each object goes to one of them."""
    with nginx(place) as url, FaultProxy(("127.0.0.1", int(url.rpartition(":")[2]))) as proxy:
        pipe = train(drapps.read(f"{proxy.url}/photos")).take(20)
        before = proxy.methods["GET"]
        ids = []
        for rank in range(4):
            with pipe.loader(**{**OPTIONS, "prefetch": 1}, rank=rank, world_size=4) as loader:
                ids += [i for b in loader.batches() for i in b.ids]
        assert sorted(ids) == list(range(20)) and proxy.methods["GET"] - before == 20


def test_processes_of_a_program_leave_in_peace(site):
    """Nothing waits for the thread that carries out requests when the program ends, whatever it was doing."""
    program = f"""
import drapps
loader = drapps.read({site + "/photos"!r}).decode().random_resized_crop(32).loader(batch_size=4, workers=2)
next(iter(loader))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert not run.stderr


# --- caches ---


def count_of(proxy, pipe, **options):
    before = proxy.requests
    with pipe.loader(**OPTIONS, **options) as loader:
        found = gather(loader) + gather(loader)
    return found, proxy.requests - before


def test_a_cache_on_disk_is_in_the_way_of_no_truth(site, place, tmp_path):
    """What is cached is not asked for again; a cache that is deleted, cut off or damaged costs requests alone."""
    near = made(place / "photos")
    with FaultProxy(("127.0.0.1", int(site.rpartition(":")[2]))) as proxy:
        pipe, cache = train(drapps.read(f"{proxy.url}/photos")), tmp_path / "cache"
        found, first = count_of(proxy, pipe, cache=cache)
        assert same(found, near) and first >= N_IMAGES
        found, again = count_of(proxy, pipe, cache=cache)
        assert same(found, near) and again <= 2
        for path in cache.rglob("*"):
            if path.is_file() and path.stat().st_size > 1000:
                os.truncate(path, path.stat().st_size // 2)
        found, damaged = count_of(proxy, pipe, cache=cache)
        assert same(found, near) and damaged > 2
        subprocess.run(["rm", "-r", str(cache)], check=True)
        found, deleted = count_of(proxy, pipe, cache=cache)
        assert same(found, near) and deleted >= N_IMAGES


def test_a_cache_in_memory(site, place):
    near = made(place / "photos")
    with FaultProxy(("127.0.0.1", int(site.rpartition(":")[2]))) as proxy:
        pipe = train(drapps.read(f"{proxy.url}/photos"))
        before = proxy.methods["GET"]
        found, _ = count_of(proxy, pipe, cache_memory=64 << 20)
        assert same(found, near)
        assert proxy.methods["GET"] - before == N_IMAGES  # two epochs, each object once


def test_a_cache_outlives_the_server(place, tmp_path):
    """What is there needs no server; what a server has in the meantime is noticed by its tag."""
    near = made(place / "photos")
    port = free_port()
    with nginx(place, port=port) as url:
        pipe = train(drapps.read(f"{url}/photos"))
        with pipe.loader(**OPTIONS, cache=tmp_path / "cache") as loader:
            first = gather(loader)
    with pipe.loader(**OPTIONS, cache=tmp_path / "cache") as loader:
        assert same(gather(loader), first)
    assert same(first, near[: len(first)])
