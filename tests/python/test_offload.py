"""Sets on a drapps server: the same batches whatever the server runs, and whatever happens to it."""

import random
import shutil
import threading
import time

import pytest
from far import OlderServer, Server, SlowLink
from imagesets import picture, write_folder

import drapps

N, BATCH, EPOCHS = 40, 8, 3
MODES = ("auto", "off", "all", "resize", "fastflow", "sophon", "sophon+", 0, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with data sets: images in folders, the same in a tar, one image, one with bad images."""
    root = tmp_path_factory.mktemp("far")
    write_folder(root / "photos", N)
    write_folder(root / "one", 1, classes=("ant",))
    drapps.read(root / "photos").pack(root / "packed")
    bad = write_folder(root / "bad", N)
    for name in ("ant/003.jpg", "cat/017.jpg"):
        path = bad / name
        path.write_bytes(path.read_bytes()[:200])
    return root


@pytest.fixture(scope="module")
def server(root):
    with Server(root) as server:
        yield server


@pytest.fixture
def own_server(root):
    """One that the test may kill."""
    with Server(root) as server:
        yield server


def chain(path):
    pipe = path if isinstance(path, drapps.Pipeline) else drapps.read(path)
    return (pipe.decode().random_resized_crop(32).random_horizontal_flip()
            .normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD))  # fmt: skip


def loader_of(path, **options):
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5, "workers": 2, "output": "numpy", **options}
    return chain(path).loader(**options)


def rows(batch):
    """A batch as bytes, with the ids of its samples."""
    return bytes(batch["image"].tobytes()), batch["label"].tolist(), batch.ids, batch.positions


def made(path, epochs=EPOCHS, between=None, **options):
    """What a loader delivers: rows of all batches, by epoch."""
    with loader_of(path, **options) as loader:
        found = []
        for epoch in range(epochs):
            found.append([rows(batch) for batch in loader.batches()])
            if between is not None:
                between(epoch)
        return found


@pytest.fixture(scope="module")
def near(root):
    """What the local set gives."""
    return made(root / "photos")


# --- the same batches ---


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_and_cut_gives_the_bytes_of_the_local_set(server, near, mode):
    assert made(server.url("photos"), offload=mode) == near


@pytest.mark.parametrize("mode", ["off", "all", 1, 2])
def test_packed_sets(server, root, mode):
    assert made(server.url("packed"), offload=mode) == made(root / "packed")


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_any_number_of_workers(server, near, workers):
    assert made(server.url("photos"), offload="all", workers=workers) == near


def test_reference_mode(server, near):
    assert made(server.url("photos"), 1, reference=True) == near[:1]


def test_the_server_did_run_ops(server):
    with loader_of(server.url("photos"), offload="resize") as loader:
        assert sum(len(batch.ids) for batch in loader.batches()) == N
        stats = loader.stats()
        assert (stats["offload_samples"], stats["offload_plain"], stats["offload_shed"]) == (N, 0, 0)
        assert stats["offload_server_ns"] > 0 and stats["remote_bytes"] > N * 32 * 32 * 3
        assert (stats["offload_policy"], stats["offload_planned"]) == ("resize-off", N)
        assert "offload: resize (resize-off)" in str(loader.explain())


def test_a_number_of_ops_is_where_the_cut_is(server):
    sizes = {}
    for ops in range(5):
        with loader_of(server.url("photos"), offload=ops) as loader:
            before = loader.stats()["remote_bytes"]
            list(loader.batches())
            sizes[ops] = loader.stats()["remote_bytes"] - before
    assert sizes[4] > sizes[1] > sizes[2]  # floats; decoded; crops
    assert abs(sizes[2] - sizes[3]) < sizes[2] / 10  # a mirror leaves the size as it is
    assert sizes[4] > 3.5 * sizes[2]


# --- what the set is ---


def test_the_set_is_the_one_on_the_server(server, root):
    far, local = drapps.read(server.url("photos")).dataset, drapps.read(root / "photos").dataset
    assert far.format == "drapps"
    for what in ("size", "places", "fingerprint", "fields", "classes"):
        assert getattr(far, what) == getattr(local, what)
    assert [far.key(i) for i in range(N)] == [local.key(i) for i in range(N)]


def test_the_index_is_kept_and_asked_for_again(server, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = drapps.read(server.url("photos"))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    second = drapps.read(server.url("photos"))
    assert second.dataset.fingerprint == first.dataset.fingerprint
    for path in kept:  # a damaged one is fetched anew
        path.write_bytes(path.read_bytes()[:-20])
    assert drapps.read(server.url("photos")).dataset.size == N


def test_selections_keep_their_ids(server, root):
    def picked(path):
        return drapps.read(path).select(list(range(30, 2, -3)))

    for mode in ("all", "off", 2):
        assert made(picked(server.url("photos")), offload=mode) == made(picked(root / "photos"))


def test_sets_put_together_are_read_as_they_are_stored(server, root):
    def both(path):
        return drapps.mix([drapps.read(path)[:20], drapps.read(path)[10:]], [2, 1])

    assert made(both(server.url("photos")), 1) == made(both(root / "photos"), 1)


def test_names_that_are_none():
    for name in ("drapps://", "drapps://host", "drapps://host/", "drapps://host/set?x=1", "drapps://me@host/set"):
        with pytest.raises(drapps.ArgumentError, match="must be drapps://host"):
            drapps.read(name)


def test_no_such_set(server):
    with pytest.raises(drapps.FileMissingError, match=r"drapps://127.0.0.1:\d+/nothing: the server has no such"):
        drapps.read(server.url("nothing"))


def test_modes_that_are_none(server):
    with pytest.raises(drapps.ArgumentError, match="offload must be 'auto', 'off', 'all'.*, got 'most'"):
        chain(server.url("photos")).loader(offload="most")


def test_local_sets_have_no_server(root, near):
    assert made(root / "photos", offload="all") == near


# --- small ones ---


@pytest.mark.parametrize("mode", ["auto", "off", "all", 2])
def test_one_sample_and_batches_larger_than_the_set(server, root, mode):
    assert made(server.url("one"), offload=mode) == made(root / "one")
    whole = made(root / "photos", batch_size=100)
    assert made(server.url("photos"), batch_size=100, offload=mode) == whole


def test_no_samples(server):
    with pytest.raises(drapps.ArgumentError, match="has no samples"):
        loader_of(drapps.read(server.url("photos"))[:0])


# --- states and ranks ---


@pytest.mark.parametrize("mode", ["off", "all", 2])
def test_states_go_from_local_to_far_and_back(server, root, near, mode):
    order = [root / "photos", server.url("photos"), root / "photos", server.url("photos")]
    found, state = [], None
    for i, path in enumerate(order):
        with loader_of(path, offload=mode) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = loader.batches()
            found += [rows(next(batches)) for _ in range(2 if i == 3 else 1)]
            state = loader.state_dict()
    assert found == near[0]


@pytest.mark.parametrize("mode", ["off", "resize", 4])
def test_ranks_share_the_set(server, root, mode):
    for rank in range(2):
        far = made(server.url("photos"), 2, offload=mode, rank=rank, world_size=2)
        assert far == made(root / "photos", 2, rank=rank, world_size=2)


def test_pushed_batches(server, root):
    def pushed(path):
        with loader_of(path, shuffle=False, pushed_order=True, offload="all") as loader:
            batches = loader.batches()
            loader.push([3, 1, 3, 3])
            loader.push([39, 0])
            loader.push_end()
            return [rows(batch) for batch in batches]

    assert pushed(server.url("photos")) == pushed(root / "photos")


# --- bad samples ---


def told(path, mode, **options):
    """(rows, bad samples) of an epoch."""
    with loader_of(path, offload=mode, **options) as loader:
        found = [rows(batch) for batch in loader.batches()]
        return found, sorted((row.index, row.name, row.epoch, row.error.replace(str(path), "SET"))
                             for row in loader.bad_samples())


@pytest.mark.parametrize("mode", ["auto", "off", "all", "resize", 1, 3])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_are_what_they_are_locally(server, root, mode, policy):
    far = told(server.url("bad"), mode, on_bad_sample=policy)
    assert far == told(root / "bad", "off", on_bad_sample=policy)
    assert [row[1] for row in far[1]] == ["ant/003.jpg", "cat/017.jpg"]


@pytest.mark.parametrize("mode", ["off", "all"])
def test_a_bad_sample_raises_the_same_error(server, root, mode):
    texts = []
    for path in (server.url("bad"), root / "bad"):
        with loader_of(path, offload=mode, shuffle=False) as loader, pytest.raises(drapps.Error) as raised:
            list(loader.batches())
        texts.append((type(raised.value), str(raised.value).replace(str(path), "SET")))
    assert texts[0] == texts[1]


# --- servers that go away ---


@pytest.mark.parametrize("mode", ["auto", "off", "all", 2])
def test_a_server_that_is_killed_between_epochs_costs_time_alone(own_server, near, mode):
    def restart(epoch):
        if epoch < EPOCHS - 1:
            own_server.kill()
            threading.Timer(0.5, own_server.start).start()

    assert made(own_server.url("photos"), between=restart, offload=mode) == near


@pytest.mark.parametrize("mode", ["off", "all", 2])
def test_a_server_that_is_killed_within_an_epoch_loses_no_sample(own_server, near, mode):
    with loader_of(own_server.url("photos"), offload=mode, prefetch=1) as loader:
        for epoch in range(EPOCHS):
            found = []
            for batch in loader.batches():
                found.append(rows(batch))
                if len(found) == 1 + epoch:
                    own_server.kill()
                    threading.Timer(0.3, own_server.start).start()
            assert found == near[epoch]


def test_a_stall_says_why(own_server):
    with loader_of(own_server.url("photos"), offload="off", prefetch=1) as loader:
        batches = loader.batches()
        next(batches)
        own_server.kill()
        waiting = threading.Thread(target=list, args=(batches,))
        waiting.start()
        end = time.monotonic() + 30
        while "requests are being repeated" not in (text := str(loader.explain())) and time.monotonic() < end:
            time.sleep(0.05)
        own_server.start()
        waiting.join()
        assert "requests are being repeated" in text


def test_a_loader_that_waits_for_a_dead_server_can_be_closed(own_server):
    loader = loader_of(own_server.url("photos"), offload="all", prefetch=1)
    next(iter(loader.batches()))
    own_server.kill()
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < 60  # the timeout of a request is five minutes


def test_a_server_that_stays_away_ends_the_epoch(own_server):
    pipe = drapps.read(own_server.url("photos"), timeout=1)
    with loader_of(pipe, offload="all", prefetch=1, on_bad_sample="skip") as loader:
        batches = loader.batches()
        next(batches)
        own_server.kill()
        with pytest.raises(drapps.StateError, match=rf"127.0.0.1:{own_server.port}"):
            list(batches)


def test_a_revoked_token_names_server_and_set(root, tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text("me a-secret-of-mine photos\n")
    tokens.chmod(0o600)
    monkeypatch.setenv("DRAPPS_TOKEN", "a-secret-of-mine")
    with Server(root, "--tokens", str(tokens)) as server:
        with loader_of(server.url("photos"), offload="all", prefetch=1, on_bad_sample="skip") as loader:
            batches = loader.batches()
            next(batches)
            tokens.write_text("other another-secret-2 photos\n")
            server.reload()
            with pytest.raises(drapps.StateError, match=rf'drapps://127.0.0.1:{server.port}/photos: the server refuses '
                               r'access to set "photos" \(HTTP 40[13]\)'):  # fmt: skip
                for _ in range(20):
                    list(batches)
                    batches = loader.batches()
        monkeypatch.delenv("DRAPPS_TOKEN")
        assert drapps.read(server.url("photos"), credentials="another-secret-2").dataset.size == N
        with pytest.raises(drapps.StateError, match="it wants a token"):
            drapps.read(server.url("photos"))


def test_a_set_that_was_replaced_is_refused(tmp_path):
    write_folder(tmp_path / "set", N)
    with Server(tmp_path) as server:
        with loader_of(server.url("set"), offload="all") as loader:
            list(loader.batches())
            server.kill()
            shutil.rmtree(tmp_path / "set")
            write_folder(tmp_path / "set", N + 3)
            server.start()
            with pytest.raises(drapps.StateError, match="other data under the name"):
                list(loader.batches())
        images = drapps.RemoteImageFolder(server.url("set"))
        server.kill()
        shutil.rmtree(tmp_path / "set")
        write_folder(tmp_path / "set", N)
        server.start()
        with pytest.raises(drapps.StateError, match="other data under the name"):
            images[0]


def test_a_server_without_cpu_sends_samples_as_they_are_stored(root, near):
    with Server(root, cpus=0) as server, loader_of(server.url("photos"), offload="all") as loader:
        assert [rows(batch) for batch in loader.batches()] == near[0]
        stats = loader.stats()
        assert stats["offload_samples"] == 0 and stats["offload_shed"] + stats["offload_plain"] == N


def test_an_older_server_sends_files(server, near):
    with OlderServer(server.port) as older:
        with loader_of(server.url("photos", older.port), offload="all") as loader:
            assert [rows(batch) for batch in loader.batches()] == near[0]
            stats = loader.stats()
        packed = loader_of(server.url("packed", older.port), on_bad_sample="skip")
        with packed, pytest.raises(drapps.StateError, match="plain requests do not have all of this set"):
            list(packed.batches())
    assert (stats["offload_samples"], stats["offload_plain"]) == (0, 0)
    assert "does not know such requests (HTTP 501)" in stats["offload_why"]


# --- plans ---


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A set in which most images shrink when they are cropped, and some grow."""
    root = tmp_path_factory.mktemp("large")
    noise = random.Random(3)
    (root / "set" / "a").mkdir(parents=True)
    for i in range(96):
        size = (64, 64) if i % 4 == 0 else (300 + i, 400)
        image = picture(i, *size)
        image = image.effect_spread(noise.randrange(20, 40)) if i % 4 else image
        image.save(root / "set" / "a" / f"{i:03}.jpg", quality=95)
    return root


@pytest.mark.parametrize("mode", ["auto", "sophon"])
def test_a_slow_link_makes_a_plan(large, mode):
    want = made(large / "set", 8, batch_size=16)
    with Server(large) as server, SlowLink(server.port, 2e6) as link:
        with loader_of(server.url("set", link.port), offload=mode, batch_size=16) as loader:
            carried, found = [0], []
            for _ in range(8):
                found.append([rows(batch) for batch in loader.batches()])
                carried.append(link.carried)
            stats, text = loader.stats(), str(loader.explain())
    assert found == want
    assert stats["offload_phase"] == "planned", text
    assert 0 < stats["offload_planned"] <= 72, text  # the small ones stay
    assert carried[8] - carried[7] < 0.7 * (carried[1] - carried[0]), text
    assert "MB, " in text and "behind random_" in text
    assert stats["offload_plans"] >= 1


def test_a_consumer_whose_first_step_takes_long_needs_no_trials(large):
    """The link would be the bottleneck of a consumer that takes no time, which is not known before a step has ended."""
    with Server(large) as server, SlowLink(server.port, 8e6) as link:
        with loader_of(server.url("set", link.port), batch_size=16, prefetch=2) as loader:
            for _ in loader.batches():
                time.sleep(0.8)
            stats = loader.stats()
    assert (stats["offload_phase"], stats["offload_samples"], stats["offload_plans"]) == ("measuring", 0, 0)
    assert stats["offload_why"].startswith("not I/O-bound")


def test_a_link_that_gets_faster_makes_another_plan(large):
    with Server(large) as server, SlowLink(server.port, 1e6) as link:
        with loader_of(server.url("set", link.port), batch_size=16) as loader:
            def plans(least):
                for _ in range(40):
                    for _ in loader.batches():
                        pass
                    if loader.stats()["offload_plans"] >= least:
                        break
                return loader.stats()["offload_plans"]

            before = plans(1)
            link.rate = 20e6
            assert plans(before + 1) > before > 0


def test_a_slow_consumer_needs_no_offload(large):
    with Server(large) as server:
        with loader_of(server.url("set"), offload="auto", batch_size=16) as loader:
            for _ in range(3):
                for _ in loader.batches():
                    time.sleep(0.08)
            stats = loader.stats()
    assert stats["offload_samples"] == 0
    assert stats["offload_why"].startswith("not I/O-bound")


def test_a_slow_client_needs_no_offload(large):
    pipe = drapps.read
    with Server(large) as server:
        chain = pipe(server.url("set")).decode().random_resized_crop(700).gaussian_blur(9, (1.0, 2.0))
        with chain.loader(batch_size=16, workers=1, output="numpy") as loader:
            for _ in range(3):
                list(loader.batches())
            stats = loader.stats()
    assert stats["offload_samples"] == 0
    assert stats["offload_why"].startswith("not I/O-bound")


def test_the_knob_is_the_share_that_is_prepared(server):
    with loader_of(server.url("photos"), offload="all") as loader:
        assert loader.get("offload") == 1
        loader.set("offload", 0)
        list(loader.batches())
        assert loader.stats()["offload_samples"] == 0
        loader.set("offload", 0.5)
        list(loader.batches())
        assert 0 < loader.stats()["offload_samples"] < N


def test_plans_are_in_the_trace(large, tmp_path):
    trace = tmp_path / "trace"
    with Server(large) as server, SlowLink(server.port, 2e6) as link:
        with loader_of(server.url("set", link.port), offload="auto", batch_size=16, trace=trace) as loader:
            for _ in range(4):
                list(loader.batches())
    lines = [row for row in drapps.trace.read(trace).events if row["event"] == "offload"]
    assert lines and lines[0]["policy"] == "sophon+" and lines[0]["bytes"] < lines[0]["bytes_before"]


def test_draws_that_are_kept_are_the_clients(server, root):
    def draws(path):
        with loader_of(path, offload="all", keep_draws=True) as loader:
            return [[batch.draws(i) for i in range(len(batch.ids))] for batch in loader.batches()]

    assert draws(server.url("photos")) == draws(root / "photos")


def test_a_cache_goes_before_offload(server, near, tmp_path):
    def mean(stats):
        return stats["offload_samples"]

    with loader_of(server.url("photos"), offload="all", cache_memory=64 << 20) as loader:
        found = [[rows(batch) for batch in loader.batches()] for _ in range(EPOCHS)]
        stats = loader.stats()
    assert found == near
    assert stats["cache_memory_hits"] > 0 and mean(stats) == 0


# --- Python functions and worker processes ---


def darker(sample):
    return {**sample, "image": sample["image"] // 2}


@pytest.mark.parametrize("workers", [0, 2])
def test_chains_with_python_functions(server, root, workers):
    def batches(path):
        pipe = drapps.read(path).decode().random_resized_crop(32).map(darker)
        with pipe.loader(batch_size=BATCH, shuffle=True, seed=5, workers=workers, output="numpy") as loader:
            return [(images.tobytes(), labels.tolist()) for images, labels in loader]

    assert drapps.read(server.url("photos"))[3]["label"] == drapps.read(root / "photos")[3]["label"]  # before the fork
    assert batches(server.url("photos")) == batches(root / "photos")


def test_worker_processes_of_data_loaders(server, root):
    from op_runner import import_torchvision

    from drapps import DataLoader, RemoteImageFolder

    import_torchvision()

    def batches(path):
        loader = DataLoader(RemoteImageFolder(path, transform=size_of), BATCH, num_workers=2)
        return [[row.tolist() for row in batch] for batch in loader]

    assert batches(server.url("photos")) == batches(root / "photos")


def size_of(image):
    return image.width * 1000 + image.height


def test_settings_from_a_file(server):
    pipe = drapps.read(server.url("photos")).decode().random_resized_crop(32)
    loader = drapps.DRAPPSLoader(pipe, BATCH, {"loader": {"offload": "resize", "num_workers": 1}})
    assert sum(1 for _ in loader) == N // BATCH
    assert loader.loader.stats()["offload_samples"] == N
    with pytest.raises(drapps.ArgumentError, match="offload"):
        drapps.DRAPPSLoader(pipe, BATCH, {"loader": {"offload": "most"}})


# --- the drop-in ---


def test_data_loaders(server, root):
    import torch
    from op_runner import import_torchvision

    from drapps import DataLoader, RemoteImageFolder

    made_of = import_torchvision().transforms
    transforms = made_of.Compose([made_of.RandomResizedCrop(32), made_of.RandomHorizontalFlip(), made_of.ToTensor()])

    def epochs(path, **options):
        images = RemoteImageFolder(path, transforms)
        loader = DataLoader(images, BATCH, shuffle=True, seed=3, num_workers=2, **options)
        return [[(x, y) for x, y in loader] for _ in range(2)], loader

    want, _ = epochs(root / "photos")
    for mode in ("auto", "off", "all", 2):
        found, loader = epochs(server.url("photos"), offload=mode)
        for a, b in zip(want, found):
            assert all(torch.equal(x, u) and torch.equal(y, v) for (x, y), (u, v) in zip(a, b, strict=True))
        if mode in ("all", 2):
            assert loader.stats()["offload_samples"] == 2 * N
        del loader


def test_items_of_a_remote_folder(server, root):
    import pickle

    from drapps import RemoteImageFolder

    far, local = RemoteImageFolder(server.url("photos")), RemoteImageFolder(root / "photos")
    for what in ("classes", "class_to_idx", "samples", "imgs", "targets"):
        assert getattr(far, what) == getattr(local, what)
    for i in (0, 5, -1):
        assert far[i][0].tobytes() == local[i][0].tobytes() and far[i][1] == local[i][1]
    again = pickle.loads(pickle.dumps(far))
    assert again[3][1] == far[3][1]
    with pytest.raises(IndexError):
        far[N]
