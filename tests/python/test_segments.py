"""Segments of JPEGs from a drapps server: the same batches from fewer bytes, whatever becomes of files and server."""

import os
import shutil
import tarfile
import threading

import pytest
from far import Server, SlowLink, StrictServer
from imagesets import picture

import drapps

N, BATCH, EPOCHS = 24, 6, 3
MODES = ("auto", "off", "all", "resize", "fastflow", "sophon", "sophon+", 0, 1, 2, 3, 4, 5)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("DRAPPS_SEEK_INDEX", raising=False)
    monkeypatch.delenv("DRAPPS_RANGES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_images(folder, n=N, seed=0, quality=92):
    """JPEGs with enough rows for parts of them to be worth reading; one is progressive, and is always read whole."""
    for i in range(n):
        path = folder / f"class-{i % 3}" / f"{i:03}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = picture(i + seed, 200 + 8 * (i % 5), 260 + 6 * (i % 7)).effect_spread(20)
        image.save(path, quality=quality, subsampling=i % 3, progressive=i == 5)
    return folder


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "far"
    write_images(root / "photos")
    drapps.read(root / "photos").pack(root / "packed")
    (root / "shards").mkdir()
    with tarfile.open(root / "shards" / "train-0.tar", "w") as tar:
        for path in sorted((root / "photos").rglob("*.jpg")):
            tar.add(path, path.stem + ".jpg")
            label = root / "label"
            label.write_text(path.parent.name[-1])
            tar.add(label, path.stem + ".cls")
            label.unlink()
    return root


@pytest.fixture
def server(root):
    with Server(root) as server:
        yield server


def chain(path):
    """Its crops have more bytes than the files, so that no plan cuts samples for the network's sake."""
    pipe = path if isinstance(path, drapps.Pipeline) else drapps.read(path)
    return (pipe.decode().random_resized_crop(200).random_horizontal_flip().random_vertical_flip()
            .normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD))  # fmt: skip


def loader_of(path, **options):
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5, "workers": 2, "output": "numpy", **options}
    return chain(path).loader(**options)


def rows(loader):
    return [(bytes(batch["image"].tobytes()), batch["label"].tolist(), batch.ids) for batch in loader.batches()]


def made(path, epochs=EPOCHS, **options):
    """What a loader delivers in some epochs, and its statistics afterwards."""
    with loader_of(path, **options) as loader:
        return [rows(loader) for _ in range(epochs)], loader.stats()


def local(path, epochs=EPOCHS, **options):
    return made(path, epochs, ranges="off", **options)[0]


# --- the same batches, from fewer bytes ---


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_and_cut_gives_the_bytes_of_the_local_set(server, root, mode):
    found, stats = made(server.url("photos"), offload=mode, ranges="on")
    assert found == local(root / "photos")
    some = mode in ("auto", "off", "fastflow", "sophon", "sophon+", 0)
    assert (stats["segment_samples"] > 0) == some
    assert stats["segment_failed"] == 0 and stats["range_samples"] == stats["segment_samples"]


@pytest.mark.parametrize("name", ["photos", "packed", "shards"])
def test_bytes_fall_once_files_are_known(server, root, name):
    with loader_of(server.url(name)) as loader:
        sent = []
        for want in local(root / name if name != "shards" else root / "shards" / "train-0.tar"):
            before = loader.stats()["remote_bytes"]
            assert rows(loader) == want
            sent.append(loader.stats()["remote_bytes"] - before)
        stats, text = loader.stats(), str(loader.explain())
    assert stats["segment_samples"] == (EPOCHS - 1) * (N - 1), text  # one is progressive
    assert stats["range_noted"] == N - 1
    assert sent[1] < 0.85 * sent[0] and sent[2] < 0.85 * sent[0]
    assert stats["segment_bytes"] < 0.8 * stats["segment_stored"]
    assert stats["range_bytes_read"] < stats["segment_bytes"]  # with what frames have besides
    assert f"{stats['segment_samples']} in segments" in text


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, True),
        ({"offload": "sophon+"}, True),
        ({"offload": "sophon"}, False),
        ({"offload": "off"}, False),
        ({"offload": "off", "ranges": "on"}, True),
        ({"offload": "sophon", "ranges": "on"}, True),
        ({"ranges": "off"}, False),
        ({"offload": "sophon+", "ranges": "off"}, False),
        ({"seek_index": "off"}, False),
        ({"cache_memory": 64 << 20}, False),
    ],
)
def test_which_options_allow_segments(server, root, options, wanted):
    found, stats = made(server.url("photos"), 2, **options)
    assert found == local(root / "photos", 2)
    assert (stats["segment_samples"] > 0) == wanted


def test_notes_are_kept_for_the_next_run(server, root):
    want = local(root / "photos", 1)
    first, stats = made(server.url("photos"), 1)
    assert first == want and stats["segment_samples"] == 0
    again, stats = made(server.url("photos"), 1)
    assert again == want and stats["segment_samples"] == N - 1


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_any_number_of_workers(server, root, workers):
    found, stats = made(server.url("photos"), workers=workers)
    assert found == local(root / "photos") and stats["segment_samples"] > N


def test_selections_mixtures_and_concatenations(server, root):
    def picked(path):
        return drapps.read(path).select(list(range(20, 2, -3)))

    def mixed(path):
        return drapps.mix([drapps.read(path)[:15], drapps.read(path)[10:]], [2, 1])

    for both in (picked, mixed):
        found, stats = made(both(server.url("photos")), seek_index="memory")
        assert found == local(both(root / "photos"))
        assert stats["range_samples"] > 0 and stats["range_again"] == 0
        assert stats["range_bytes_read"] < 0.9 * stats["range_bytes_stored"]


def test_data_loaders(server, root):
    import torch
    from op_runner import import_torchvision

    from drapps import DataLoader, RemoteImageFolder

    made_of = import_torchvision().transforms
    transforms = made_of.Compose([made_of.RandomResizedCrop(200), made_of.RandomHorizontalFlip(), made_of.ToTensor()])

    def epochs(path):
        loader = DataLoader(RemoteImageFolder(path, transforms), BATCH, shuffle=True, seed=3, num_workers=2)
        return [[(x, y) for x, y in loader] for _ in range(EPOCHS)], loader.stats()

    want, _ = epochs(root / "photos")
    found, stats = epochs(server.url("photos"))
    for a, b in zip(want, found, strict=True):
        assert all(torch.equal(x, u) and torch.equal(y, v) for (x, y), (u, v) in zip(a, b, strict=True))
    assert stats["segment_samples"] > N


# --- files and servers that change ---


@pytest.mark.parametrize("same_size", [False, True])
def test_changed_files_are_read_whole(server, root, same_size):
    with loader_of(server.url("photos"), offload="off", ranges="on") as loader:
        assert [rows(loader) for _ in range(2)] == local(root / "photos", 2)
        for path in sorted((root / "photos").rglob("*.jpg"))[:6]:
            data = path.read_bytes()
            write_images(root / "new", 1, seed=77, quality=50)
            new = (root / "new" / "class-0" / "000.jpg").read_bytes()
            path.write_bytes(new.ljust(len(data), b"\0") if same_size else new)
        shutil.rmtree(root / "new")
        with loader_of(root / "photos", ranges="off", seek_index="memory") as near:
            near.set_epoch(2)
            want = rows(near)
        before = loader.stats()
        assert rows(loader) == want
        stats = loader.stats()
    assert 5 <= stats["segment_failed"] <= 6  # one may be the progressive one
    assert stats["segment_samples"] - before["segment_samples"] == N - 1 - stats["segment_failed"]


def test_a_damaged_shard_makes_the_bad_samples_of_a_local_one(root):
    """Its stamps are those of the manifest, so that ranges are sent; the decoder finds the damage, or the checksum of the
    whole member does."""
    with Server(root) as server, loader_of(server.url("packed"), on_bad_sample="skip", shuffle=False) as loader:
        assert [len(rows(loader)) for _ in range(2)] == [N // BATCH] * 2
        (shard,) = (root / "packed").glob("*.tar")
        data = bytearray(shard.read_bytes())
        for i in range(200_000, len(data) - 200_000, 100_000):
            data[i : i + 3000] = bytes([0xFF, 0x01] * 1500)
        stamp = shard.stat()
        with open(shard, "r+b") as file:
            file.write(data)
        os.utime(shard, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        far = rows(loader)
        bad = {row.index for row in loader.bad_samples()}
        stats = loader.stats()
    assert stats["range_again"] > 0 and bad
    with loader_of(root / "packed", on_bad_sample="skip", shuffle=False, ranges="off", seek_index="memory") as near:
        near.set_epoch(2)
        want = rows(near)
        known = {row.index for row in near.bad_samples()}
    assert bad <= known
    if bad == known:
        assert far == want


def test_a_server_that_dies_costs_time_alone(root):
    want = local(root / "photos")
    options = {"offload": "off", "ranges": "on", "prefetch": 1}
    with Server(root) as server, loader_of(server.url("photos"), **options) as loader:
        for epoch in range(EPOCHS):
            found = []
            for batch in loader.batches():
                found.append((bytes(batch["image"].tobytes()), batch["label"].tolist(), batch.ids))
                if len(found) == 1 + epoch:
                    server.kill()
                    threading.Timer(0.3, server.start).start()
            assert found == want[epoch]
        assert loader.stats()["segment_samples"] == (EPOCHS - 1) * (N - 1)


@pytest.mark.parametrize("name", ["photos", "packed"])
def test_a_server_before_segments_sends_whole_samples(server, root, name):
    with StrictServer(server.port) as older:
        found, stats = made(server.url(name, older.port), offload="off", ranges="on")
    assert found == local(root / name)
    assert stats["segment_samples"] == 0 and 0 < stats["segment_failed"] <= N  # those in flight
    assert stats["offload_plain"] == EPOCHS * N  # and none by requests for files


# --- plans ---


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Images of which crops are neither always more nor always less than their segments."""
    root = tmp_path_factory.mktemp("large")
    (root / "set" / "a").mkdir(parents=True)
    for i in range(64):
        picture(i, 300 + i, 400 + 2 * i).effect_spread(30).save(root / "set" / "a" / f"{i:03}.jpg", quality=50 + i // 2)
    return root


def far_crops(path, mode, **options):
    pipe = drapps.read(path).decode().random_resized_crop(140).random_horizontal_flip()
    return pipe.loader(batch_size=16, shuffle=True, seed=2, workers=2, output="numpy", offload=mode, **options)


def carried(large, mode, epochs=8, **options):
    """(what was delivered, bytes of each epoch, statistics, explain()) over a slow link."""
    with Server(large) as server, SlowLink(server.port, 3e6) as link:
        with far_crops(server.url("set", link.port), mode, **options) as loader:
            found, sent = [], [0]
            for _ in range(epochs):
                found.append([bytes(batch["image"].tobytes()) for batch in loader.batches()])
                sent.append(link.carried)
            return found, [b - a for a, b in zip(sent, sent[1:], strict=False)], loader.stats(), str(loader.explain())


def test_sophon_plus_sends_less_than_sophon(large):
    with far_crops(large / "set", "off", ranges="off") as loader:
        want = [[bytes(batch["image"].tobytes()) for batch in loader.batches()] for _ in range(8)]
    found, sophon, stats, text = carried(large, "sophon")
    assert found == want and stats["segment_samples"] == stats["offload_packed"] == 0, text
    found, plus, stats, text = carried(large, "sophon+")
    assert found == want, text
    assert stats["offload_phase"] == "planned" and stats["segment_samples"] > 0, text
    assert plus[-1] < 0.9 * sophon[-1], (plus, sophon, text)
    found, whole, stats, text = carried(large, "sophon+", ranges="off")
    assert found == want and stats["segment_samples"] == 0, text
    assert stats["offload_packed"] > 0 and "(compressed)" in text
    assert plus[-1] < whole[-1] < sophon[-1], (plus, whole, sophon, text)


def test_plans_in_the_trace_have_segments(large, tmp_path):
    carried(large, "auto", trace=tmp_path / "trace")
    lines = [row for row in drapps.trace.read(tmp_path / "trace").events if row["event"] == "offload"]
    assert lines[-1]["segments"] > 0 and lines[-1]["bytes"] < lines[-1]["bytes_before"]
