"""Loaders: epochs, batches, workers, shares, settings."""

import gc
import re
import sys
import threading
import weakref

import numpy
import pytest
from imagesets import N_IMAGES, gather, picture, same, train

import drapps
from drapps import _core

TYPES = ("Array", "Batch", "Dataset", "Graph", "Loader", "Runner")


def options(**changes):
    return {"batch_size": 5, "shuffle": True, "seed": 3, "output": "numpy", **changes}


def test_batches_of_an_epoch(pipe):
    loader = pipe.loader(**options())
    assert len(loader) == 5
    got = gather(loader)
    assert [len(ids) for _, _, ids in got] == [5, 5, 5, 5, 3]
    assert sorted(sum((ids for _, _, ids in got), [])) == list(range(N_IMAGES))
    images, labels, _ = got[0]
    assert images.shape == (5, 3, 32, 32) and images.dtype == numpy.float32 and labels.dtype == numpy.int64


def test_iterating_gives_pairs(pipe):
    for images, labels in pipe.loader(**options()):
        assert len(images) == len(labels)


def test_epochs_differ_and_repeat(pipe):
    loader = pipe.loader(**options())
    first, second = gather(loader), gather(loader)
    assert not same(first, second)
    loader.set_epoch(0)
    assert loader.epoch == 0 and same(gather(loader), first)
    assert same(gather(loader), second)


def test_no_samples(tmp_path):
    with pytest.raises(drapps.ArgumentError, match="no samples"):
        drapps.from_arrays(image=numpy.zeros((0, 8, 8, 3), "uint8"))
    with pytest.raises(drapps.Error, match=tmp_path.name):
        drapps.read(tmp_path)


def test_no_batches(pipe):
    loader = pipe.loader(**options(batch_size=100, last="drop"))
    assert len(loader) == 0 and list(loader) == [] and list(loader) == []


def test_one_sample_and_a_batch_larger_than_the_set(pipe):
    one = drapps.from_arrays(image=numpy.full((1, 8, 8, 3), 7, "uint8"), label=numpy.array([4]))
    (images, labels), = one.loader(batch_size=64, output="numpy")
    assert images.shape == (1, 3, 8, 8) and (images == 7).all() and labels.tolist() == [4]
    (images, labels), = pipe.loader(batch_size=1000, output="numpy")
    assert len(images) == N_IMAGES


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 8])
def test_workers_do_not_change_a_byte(pipe, workers):
    with pipe.loader(**options(reference=True)) as reference, pipe.loader(**options(workers=workers)) as loader:
        for _ in range(2):
            assert same(gather(loader), gather(reference))


def test_resized_in_mid_epoch(pipe):
    want = gather(pipe.loader(**options(batch_size=2, workers=0)))
    loader = pipe.loader(**options(batch_size=2, workers=1))
    got = []
    for i, batch in enumerate(loader.batches()):
        got.append((batch["image"].copy(), batch["label"].copy(), list(batch.ids)))
        loader.set("workers", [3, 1, 8, 2][i % 4])
        loader.set("prefetch", [1, 5, 2][i % 3])
    assert same(got, want)
    assert loader.get("workers") in (1, 2, 3, 8)


def test_reference_by_environment(pipe, monkeypatch):
    plain = gather(pipe.loader(**options()))
    monkeypatch.setenv("DRAPPS_REFERENCE", "1")
    assert same(gather(pipe.loader(**options())), plain)


@pytest.mark.parametrize("last, sizes", [("partial", [5, 5, 5, 5, 3]), ("drop", [5] * 4), ("pad", [5] * 5)])
def test_last(pipe, last, sizes):
    loader = pipe.loader(**options(last=last))
    batches = list(loader.batches())
    assert [batch.samples for batch in batches] == sizes and len(loader) == len(sizes)
    assert sum(batch.padded for batch in batches) == (2 if last == "pad" else 0)


@pytest.mark.parametrize("last", ["partial", "drop", "pad"])
def test_ranks_share_the_epoch(pipe, last):
    seen, steps = [], []
    for rank in range(3):
        loader = pipe.loader(**options(batch_size=3, last=last, rank=rank, world_size=3))
        batches = list(loader.batches())
        steps.append(len(batches))
        seen += sum((batch.positions for batch in batches), [])
    if last == "partial":
        assert sorted(seen) == list(range(N_IMAGES))
    else:
        assert len(set(steps)) == 1
        assert len(set(seen)) == len(seen) if last == "drop" else {p % N_IMAGES for p in seen} == set(range(N_IMAGES))


def test_world_size_keeps_global_batches(pipe):
    """A global batch is the same set of samples whichever number of ranks shares it."""
    one = [set(batch.ids) for batch in pipe.loader(**options(batch_size=6, last="drop")).batches()]
    two = [list(pipe.loader(**options(batch_size=3, last="drop", rank=r, world_size=2)).batches()) for r in (0, 1)]
    assert one == [set(a.ids) | set(b.ids) for a, b in zip(*two)]


def test_rank_is_below_world_size(pipe):
    with pytest.raises(ValueError, match="rank must be below world_size = 2, got 2"):
        pipe.loader(**options(rank=2, world_size=2))


def test_rank_auto(pipe, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (
        gather(pipe.loader(**options(rank="auto")))[0][2] == gather(pipe.loader(**options(rank=1, world_size=2)))[0][2]
    )
    assert len(pipe.loader(**options())) == 5  # the environment alone changes nothing


def test_out_of_order_is_exactly_once(pipe):
    loader = pipe.loader(**options(in_order=False, workers=3, batch_size=2, prefetch=4))
    for _ in range(3):
        assert sorted(sum((batch.ids for batch in loader.batches()), [])) == list(range(N_IMAGES))


def test_early_break_then_again(pipe):
    loader = pipe.loader(**options())
    want = gather(pipe.loader(**options()))
    for _ in loader:
        break
    loader.set_epoch(0)
    assert same(gather(loader), want)


def test_a_state_that_is_dropped_is_warned_of(pipe, caplog):
    loader = pipe.loader(**options())
    loader.set_epoch(1)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    for epoch in (1, 0):
        loader.load_state_dict(state)
        loader.set_epoch(epoch)
        said = [record.message for record in caplog.records]
        assert [text.split(":")[0] for text in said] == [
            "set_epoch(0) dropped the state that was loaded, which is of epoch 1"] * (epoch == 0)  # fmt: skip
    assert len(list(loader)) == len(loader)


def test_a_state_of_another_pipeline_or_data_set_says_so(pipe):
    state = pipe.loader(**options()).state_dict()
    with pytest.raises(drapps.ArgumentError, match=r"graph = .*\(another pipeline: its ops or their arguments"):
        pipe.random_vertical_flip().loader(**options()).load_state_dict(state)
    with pytest.raises(drapps.ArgumentError, match=r"data = .*\(another data set: its files"):
        pipe.take(5).loader(**options()).load_state_dict(state)


def test_an_older_iterator_is_given_up(pipe):
    loader = pipe.loader(**options())
    old = iter(loader)
    next(old)
    new = iter(loader)
    with pytest.raises(drapps.StateError, match="iterator invalidated"):
        next(old)
    assert len(list(new)) == 5


def test_kept_batches_outlive_the_loader(pipe):
    with pipe.loader(**options()) as loader:
        kept = list(loader)
    want = gather(pipe.loader(**options()))
    del loader
    assert all((images == w[0]).all() for (images, _), w in zip(kept, want))
    kept[0][0][:] = 1  # the user's alone
    assert (kept[1][0] == want[1][0]).all()


def test_closed_loader(pipe):
    loader = pipe.loader(**options())
    loader.close()
    loader.close()
    with pytest.raises(drapps.StateError, match="closed"):
        iter(loader)
    assert "closed" in repr(loader)


def test_threads_share_an_epoch(pipe):
    epoch = pipe.loader(**options(batch_size=1, workers=2)).batches()
    seen, errors = [], []

    def consume():
        try:
            for batch in epoch:
                seen.extend(batch.ids)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and sorted(seen) == list(range(N_IMAGES))


def test_close_wakes_a_waiting_thread(folder):
    loader = train(folder).loader(**options())
    epoch = iter(loader)
    ended = threading.Event()

    def consume():
        try:
            for _ in epoch:
                pass
        except drapps.Error:
            pass
        ended.set()

    thread = threading.Thread(target=consume)
    thread.start()
    loader.close()
    assert ended.wait(30)
    thread.join()


def test_a_new_pass_loses_nothing_to_old_threads(pipe):
    """Threads that still consume an older pass do not take batches of the newer one."""
    loader = pipe.loader(**options(batch_size=1, workers=2))
    old = loader.batches()

    def consume():
        try:
            for _ in old:
                pass
        except drapps.StateError:
            pass

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = sum((batch.ids for batch in loader.batches()), [])
    for thread in threads:
        thread.join(60)
    assert sorted(seen) == list(range(N_IMAGES))


def test_objects_are_freed(pipe):
    """Each object of the extension holds its type: after use, none is left."""
    def use():
        loader = pipe.loader(**options(keep_draws=True, outputs="image,label,key"))
        for batch in loader.batches():
            batch.fields, batch.ids, batch.positions, batch.bad, batch.draws(0)
        loader.stats(), loader.explain(), loader.state_dict()
        with pytest.raises(drapps.Error):
            loader.set("speed", 3)
        list(pipe.map(lambda sample: sample).random_vertical_flip().loader(**options(workers=0)))
        with pytest.raises(drapps.Error):
            drapps.read(pipe.dataset.name + "/nothing")

    def count():
        gc.collect()
        return [sys.getrefcount(getattr(_core, name)) for name in TYPES]

    use()
    before = count()
    for _ in range(3):
        use()
    assert count() == before


def test_arrays_are_freed():
    array = numpy.zeros((8, 4, 4, 3), "uint8")
    gone = weakref.ref(array)
    loader = drapps.from_arrays(image=array).loader(batch_size=4, output="numpy", workers=2)
    kept = list(loader)
    del array
    assert gone() is not None
    del loader
    gc.collect()
    assert gone() is None and len(kept) == 2


def test_draws(pipe):
    loader = pipe.loader(**options(keep_draws=True))
    draws = next(loader.batches()).draws(0)
    assert set(draws) == {2, 3}
    assert draws[2]["op"] == "random_resized_crop" and isinstance(draws[3]["mirror"], bool)


def test_texts_and_lists(folder):
    pipe = drapps.read(folder).decode()
    batch = next(iter(pipe.loader(batch_size=4, outputs="image,label", collate={"image": "list"}, output="numpy")))
    images, labels = batch
    assert len(images) == 4 and len({image.shape for image in images}) > 1


def test_padding_to_the_largest(folder):
    pipe = drapps.read(folder).decode()
    options_ = {"batch_size": 4, "collate": {"image": "pad"}, "layout": "NHWC", "output": "numpy"}
    fields = next(pipe.loader(**options_).batches())
    sizes = fields["image_sizes"]
    assert fields["image"].shape[1:] == tuple(sizes.max(axis=0)) and sizes.shape == (4, 3)


def test_unequal_images_cannot_be_stacked(folder):
    with pytest.raises(drapps.Error, match="image"):
        list(drapps.read(folder).decode().loader(batch_size=4))


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"batch_size": 0}, "batch_size"),
        ({"last": "maybe"}, "last"),
        ({"on_bad_sample": "cry"}, "on_bad_sample"),
        ({"layout": "CHWN"}, "layout"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"output": "jax"}, "output"),
        ({"workers": -3}, "workers"),
        ({"collate": {"image": "heap"}}, "heap"),
    ],
)
def test_wrong_settings(pipe, changes, text):
    with pytest.raises(ValueError, match=text):
        pipe.loader(**options(**changes))


def test_unknown_output_field(pipe):
    with pytest.raises(drapps.Error, match="depth"):
        pipe.loader(**options(outputs="image,depth"))


def test_explain_says_that_the_seed_decides_the_order(pipe):
    for chain in (pipe, pipe.map(lambda sample: sample)):
        assert "order: shuffled by seed 0 and epoch, the same in every process" in chain.loader(shuffle=True).explain()
        assert "order: shuffled by seed 7" in chain.loader(shuffle=True, seed=7).explain()
        assert "shuffled" not in chain.loader().explain()


def test_stats_explain_profile(pipe):
    loader = pipe.loader(**options())
    list(loader)
    stats = loader.stats()
    assert (stats["samples"], stats["batches"], stats["epochs"], stats["epoch"]) == (N_IMAGES, 5, 1, 0)
    python = pipe.map(lambda sample: sample).loader(**options(workers=0))
    list(python)
    found = python.stats()
    settings = {"workers", "prefetch", "policy", "knobs", "decisions", "wait_ns", "step_ns"}
    counted = {key: value for key, value in found.items() if value is not None and key not in settings}
    assert "samples" in counted and all(stats[key] == value for key, value in counted.items())
    assert "random_resized_crop" in loader.explain()
    sizes = r"a batch takes [\d.]+ (B|KB|MB); limits.*: [\d.]+ [MG]B for all batches, [\d.]+ [MG]B for a worker"
    assert re.search(sizes, loader.explain())
    assert "random_resized_crop" in str(loader.profile(4))
    assert "5 batches of 5" in repr(loader)


def test_profile_of_a_branch(tmp_path):
    """Five ops, two of them on the same image.  (That times are those of the ops is a matter of tests/unit/loader.)"""
    for i in range(4):
        picture(i, 400, 500).save(tmp_path / f"{i}.jpg")
    pipe = drapps.read(tmp_path).decode().random_resized_crop(224, out="a").random_resized_crop(96, out="b")
    pipe = pipe.random_horizontal_flip(field="a").normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD, field="a")
    facts = pipe.loader(outputs="a,b").profile(8)
    assert [(op["op"], op["field"]) for op in facts["ops"]] == [
        ("decode", "image"), ("random_resized_crop", "a"), ("random_resized_crop", "b"),
        ("random_horizontal_flip", "a"), ("normalize", "a")]  # fmt: skip
    assert all(op["us"] > 0 for op in facts["ops"]) and facts["fused_us"] > 0
    parts = [facts["read_us"], *(op["us"] for op in facts["ops"]), facts["store_us"]]
    assert facts["sum_us"] == pytest.approx(sum(parts)) and facts["sum_us"] <= facts["cpu_us"]


def test_profile_gives_the_sizes_of_the_usual_chain(tmp_path):
    """Bytes of the file, of the image, and after each op on 224 x 224 pixels: a byte, and then a
    float, for each value."""
    path = tmp_path / "one.jpg"
    picture(0, 400, 500).save(path)
    pipe = (
        drapps.read(tmp_path).decode().random_resized_crop(224).random_horizontal_flip().to_dtype("float32", scale=True)
    )
    ops = pipe.normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD).loader().profile(3)["ops"]
    sizes = [ops[0]["in_bytes"], *(op["out_bytes"] for op in ops)]
    assert sizes == [path.stat().st_size, 400 * 500 * 3, 150528, 150528, 602112, 602112]


# --- texts, bytes and other columns ---


def test_columns_travel_with_the_sample(folder, tmp_path):
    names = ["ant/000.jpg", "bee/001.jpg", "cat/002.jpg"]
    rows = [f'{name},{i + 5},"a {name[:3]}, ü"' for i, name in enumerate(names)]
    (tmp_path / "list.csv").write_text("\n".join(["path,label,caption", *rows]) + "\n", encoding="utf-8")
    pipe = drapps.read(tmp_path / "list.csv", root=str(folder)).decode().resize((8, 8))
    batch = next(pipe.loader(batch_size=3, outputs="image,label,caption", output="numpy").batches())
    assert batch["caption"] == ["a ant, ü", "a bee, ü", "a cat, ü"] and batch["label"].tolist() == [5, 6, 7]
    assert list(batch.fields) == ["image", "label", "caption"] and len(batch) == 3
    with pytest.raises(drapps.NotFoundError, match="the batch has image, label, caption"):
        batch["depth"]


def test_files_as_bytes(folder):
    pipe = drapps.read(folder)
    batch = next(pipe.loader(batch_size=2, outputs="image,key").batches())
    assert batch["image"] == [(folder / key).read_bytes() for key in batch["key"]]


def test_seek_index(pipe):
    """Every mode gives the same pixels; statistics say what is known."""
    passes, stats = {}, {}
    for mode in ("off", "memory", "auto"):
        loader = pipe.loader(**options(seek_index=mode))
        passes[mode] = [[numpy.array(images) for images, _ in loader] for _ in range(2)]
        stats[mode] = loader.stats()
        loader.close()
    for mode in ("memory", "auto"):
        assert all((a == b).all() for one, other in zip(passes["off"], passes[mode]) for a, b in zip(one, other))
        assert stats[mode]["seek_found"] + stats[mode]["seek_missed"] > stats[mode]["seek_images"] > 0
    assert stats["off"]["seek_images"] == stats["off"]["seek_memory_bytes"] == 0
    with pytest.raises(drapps.ArgumentError, match="seek_index must be 'auto', 'memory' or 'off', got 'disk'"):
        pipe.loader(**options(seek_index="disk"))


def test_padding_goes_on_like_a_python_chain(pipe):
    """The two kinds of loader agree on every position, id and pixel, padding included."""
    changes = {"last": "pad", "batch_size": 4, "rank": 2, "world_size": 3}
    native = list(pipe.loader(**options(**changes)).batches())
    mapped = list(pipe.map(lambda sample: sample).loader(**options(workers=0, **changes)).batches())
    assert [(b.number, b.ids, b.positions, b.padded) for b in native] == [
        (b.number, b.ids, b.positions, b.padded) for b in mapped]  # fmt: skip
    assert all((a["image"] == b["image"]).all() for a, b in zip(native, mapped))
    assert sum(b.padded for b in native) > 0
