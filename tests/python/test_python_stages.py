"""Python functions in a chain: map and filter, in worker processes and in the caller."""

import os
import random
import threading
import time

import numpy
import pytest
from imagesets import N_IMAGES, write_folder
from PIL import Image

import drapps


def images(folder):
    return drapps.read(folder).decode().resize((16, 20))


def numbers(n):
    return drapps.from_arrays(x=numpy.arange(n))


def epoch(pipe, **options):
    options = {"batch_size": 4, "output": "numpy", **options}
    with pipe.loader(**options) as loader:
        return list(loader.batches())


def ids(batches):
    return sum((batch.ids for batch in batches), [])


@pytest.fixture(params=[0, 1, 3])
def workers(request):
    return request.param


def test_map_of_a_field(folder, workers):
    plain = epoch(images(folder))
    mapped = epoch(images(folder).map(lambda image: 255 - image, field="image"), workers=workers)
    assert ids(mapped) == ids(plain) and all(isinstance(batch, drapps.Batch) for batch in mapped)
    with pytest.raises(drapps.UnsupportedError):
        mapped[0].draws(0)
    for a, b in zip(plain, mapped):
        assert (255 - a["image"] == b["image"]).all() and (a["label"] == b["label"]).all()
        assert b["label"].dtype == numpy.int64


def test_map_of_a_sample(folder, workers):
    def describe(sample):
        assert isinstance(sample["label"], int) and sample["image"].shape == (16, 20, 3)
        return {**sample, "mean": float(sample["image"].mean()), "name": f"class {sample['label']}"}

    batch = epoch(images(folder).map(describe), workers=workers, outputs="image,label,mean,name")[0]
    assert list(batch) == ["image", "label", "mean", "name"]
    assert batch["name"][0] == f"class {batch['label'][0]}" and batch["mean"].shape == (4,)


def test_what_functions_add_is_delivered(folder, workers):
    batch = epoch(images(folder).map(lambda sample: {**sample, "weight": 0.5}), workers=workers)[0]
    assert list(batch) == ["image", "label", "weight"] and batch["weight"].tolist() == [0.5] * 4
    batch = epoch(images(folder).map(lambda sample: {"image": sample["image"]}), workers=workers)[0]
    assert list(batch) == ["image"]


def test_native_ops_after_python(folder, workers):
    """What is drawn does not depend on the cut: a function that changes nothing changes no pixel."""
    def chain(middle):
        return middle(images(folder)).random_horizontal_flip().normalize(drapps.IMAGENET_MEAN, drapps.IMAGENET_STD)

    plain = epoch(chain(lambda pipe: pipe), shuffle=True, seed=9)
    cut = epoch(chain(lambda pipe: pipe.map(lambda sample: sample)), shuffle=True, seed=9, workers=workers)
    assert ids(plain) == ids(cut)
    assert all((a["image"] == b["image"]).all() for a, b in zip(plain, cut))


def test_map_before_decode(folder):
    pipe = drapps.read(folder).map(lambda sample: sample).decode().resize((8, 8))
    batches = epoch(pipe, workers=0)
    want = epoch(drapps.read(folder).decode().resize((8, 8)))
    assert all((a["image"] == b["image"]).all() for a, b in zip(batches, want))


def test_filter_fills_batches(folder, workers):
    batches = epoch(images(folder).filter(lambda label: label != 1, field="label"), workers=workers)
    kept = list(range(N_IMAGES))
    labels = numpy.concatenate([batch["label"] for batch in batches])
    assert (labels != 1).all() and [batch.samples for batch in batches[:-1]] == [4] * (len(batches) - 1)
    assert len(labels) == sum(1 for i in kept if i % 3 != 1)


def test_filter_of_everything(folder, workers):
    assert epoch(images(folder).filter(lambda sample: False), workers=workers) == []


def test_random_numbers_do_not_depend_on_workers(folder):
    def noise(sample):
        return {**sample, "a": random.random(), "b": numpy.random.rand(2)}

    pipe = images(folder).map(noise)
    got = [epoch(pipe, workers=n, outputs="a,b", shuffle=True) for n in (0, 1, 3)]
    values = [numpy.concatenate([batch["a"] for batch in batches]) for batches in got]
    assert len(set(values[0].tolist())) == N_IMAGES
    assert (values[0] == values[1]).all() and (values[0] == values[2]).all()
    random.seed(1)
    want = random.random()
    random.seed(1)
    epoch(pipe, workers=0, outputs="a")
    assert random.random() == want  # the caller's generator is left alone


def test_an_error_names_the_sample(folder, workers):
    def fail(sample):
        if sample["label"] == 2:
            raise LookupError("no such thing")
        return sample

    with pytest.raises(LookupError, match="no such thing") as caught:
        epoch(images(folder).map(fail), workers=workers)
    notes = "\n".join(caught.value.__notes__)
    assert "cat/" in notes and "map(fail)" in notes
    if workers:
        assert "Traceback" in notes and "in fail" in notes


def test_breakpoints_work_in_the_caller(folder):
    pids = set()
    epoch(images(folder).map(lambda s: (pids.add(os.getpid()), s)[1]), workers=0)
    assert pids == {os.getpid()}


def test_processes_end(folder):
    def pid(sample):
        return {**sample, "pid": os.getpid()}

    loader = images(folder).map(pid).loader(batch_size=1, workers=2, outputs="pid", output="numpy")
    pids = {int(batch["pid"][0]) for batch in loader}
    for _ in loader:
        break
    assert sum(1 for _ in loader) == N_IMAGES
    loader.close()
    assert pids and os.getpid() not in pids
    for p in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(p, 0)


def test_state(folder):
    pipe = images(folder).map(lambda sample: sample).filter(lambda label: label != 0, field="label")
    options = {"batch_size": 3, "shuffle": True, "seed": 4, "output": "numpy"}
    want = [batch.ids for batch in pipe.loader(workers=0, **options).batches()]
    loader = pipe.loader(workers=1, **options)
    passed = loader.batches()
    next(passed), next(passed)
    state = loader.state_dict()
    loader.close()
    other = pipe.loader(workers=2, **options)
    other.load_state_dict(state)
    assert [batch.ids for batch in other.batches()] == want[2:]
    with pytest.raises(drapps.ArgumentError, match="seed"):
        pipe.loader(workers=0, **{**options, "seed": 5}).load_state_dict(state)


@pytest.mark.parametrize("policy, samples", [("skip", 8), ("replace", 9)])
def test_bad_samples(tmp_path, policy, samples, workers):
    root = write_folder(tmp_path / "set", n=9)
    (root / "bee" / "004.jpg").write_bytes(b"no picture")
    pipe = images(root).map(lambda sample: sample)
    batches = epoch(pipe, on_bad_sample=policy, workers=workers)
    assert sum(batch.samples for batch in batches) == samples
    (bad,) = sum((batch.bad for batch in batches), [])
    assert bad["key"] == "bee/004.jpg"
    with pytest.raises(drapps.Error, match="004.jpg"):
        epoch(pipe, workers=workers)


def test_a_file_that_is_gone_is_a_bad_sample(tmp_path, workers):
    root = write_folder(tmp_path / "set", n=9)
    pipe = images(root).map(lambda sample: sample)
    (root / "bee" / "004.jpg").unlink()
    assert sum(batch.samples for batch in epoch(pipe, on_bad_sample="skip", workers=workers)) == 8
    with pytest.raises(FileNotFoundError, match="004.jpg"):
        epoch(pipe, workers=workers)


def test_a_thousand_bad_samples_are_enough_with_functions_and_without(tmp_path):
    pipe = images([tmp_path / f"{i}.jpg" for i in range(1001)])
    for chain in (pipe, pipe.map(dict)):
        with pytest.raises(drapps.BadSampleError, match="1000"):
            epoch(chain, on_bad_sample="skip", batch_size=2000)


def test_ranks(folder):
    pipe = images(folder).map(lambda sample: sample)
    seen = [ids(epoch(pipe, rank=rank, world_size=2, workers=0)) for rank in (0, 1)]
    native = [ids(epoch(images(folder), rank=rank, world_size=2)) for rank in (0, 1)]
    assert seen == native


def test_batch_ops_are_refused(folder):
    with pytest.raises(drapps.ArgumentError, match="whole batches"):
        images(folder).map(lambda sample: sample).mixup(num_classes=3).loader()


def test_results_of_many_kinds(folder):
    torch = pytest.importorskip("torch")
    pipe = images(folder).map(lambda s: {"t": torch.ones(3), "l": [1, 2], "b": b"xy", "n": numpy.float32(2)})
    (batch, *_) = epoch(pipe, workers=1, output="torch")
    assert batch["t"].shape == (4, 3) and batch["l"].dtype == torch.int64 and batch["b"] == [b"xy"] * 4
    assert batch["n"].dtype == torch.float32
    with pytest.raises(drapps.ArgumentError, match="must be an array"):
        epoch(images(folder).map(lambda s: {"x": object()}), workers=0)
    with pytest.raises(drapps.ArgumentError, match="must return a dict"):
        epoch(images(folder).map(lambda s: 3), workers=0)


def test_slow_functions_run_side_by_side(folder):
    """Two workers are in the function at once at least one time."""
    def spans(sample):
        begin = time.monotonic()
        time.sleep(0.02)
        return {"span": numpy.array([begin, time.monotonic()]), "pid": os.getpid()}

    batches = epoch(images(folder).map(spans), workers=2, outputs="span,pid")
    rows = [(*span, pid) for batch in batches for span, pid in zip(batch["span"], batch["pid"])]
    assert any(a[2] != b[2] and a[0] < b[1] and b[0] < a[1] for a in rows for b in rows)


def test_beside_native_loaders_at_work(folder):
    """Worker processes are forked while native threads run; both deliver everything."""
    stop = threading.Event()
    native = images(folder).loader(batch_size=2, workers=2, output="numpy")
    counts = []

    def consume():
        while not stop.is_set():
            counts.append(sum(len(labels) for _, labels in native))

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        for _ in range(5):
            assert len(ids(epoch(images(folder).map(lambda sample: sample), workers=2))) == N_IMAGES
    finally:
        stop.set()
        thread.join()
    assert set(counts) == {N_IMAGES}


@pytest.mark.parametrize("setting", [{"keep_draws": True}, {"seek_index": "off"}, {"collate": {"*": "list"}}])
def test_settings_that_need_a_native_chain_are_refused(setting):
    with pytest.raises(drapps.UnsupportedError, match=next(iter(setting))):
        numbers(4).map(lambda sample: sample).loader(batch_size=2, **setting)


@pytest.mark.parametrize("rule, layout", [("pad", "NHWC"), ("pad", "NCHW"), ("ragged", "NHWC"), ("list", "NHWC"),
                                          ("list", "NCHW")])  # fmt: skip
def test_batches_are_put_together_by_the_rules_of_the_library(tmp_path, rule, layout):
    """Images of other heights alone, so that rows, the first extent of NHWC, may be ragged."""
    for i, height in enumerate((5, 9, 2, 7)):
        pixels = numpy.random.default_rng(i).integers(0, 256, (height, 6, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
    options = {"collate": {"image": rule}, "layout": layout, "outputs": "image"}
    pipe = drapps.read(tmp_path).decode()
    (native,), (chain,) = epoch(pipe, **options), epoch(pipe.map(lambda sample: sample), workers=0, **options)
    assert list(native) == list(chain) and len(native) == (1 if rule == "list" else 2)
    for name in native:
        assert len(native[name]) == len(chain[name])
        for one, other in zip(native[name], chain[name]):
            assert numpy.array_equal(one, other) and numpy.asarray(one).dtype == numpy.asarray(other).dtype


@pytest.mark.parametrize("setting", [{"prefetch": 65}, {"last": "x"}, {"rank": 2}, {"cpu_limit": -1},
                                     {"cpu_limit": float("nan")}, {"cpu_limit": 0.001}, {"cpu_limit": 1000},
                                     {"policy": "magic"}, {"weights": "beauty=1"}])  # fmt: skip
def test_settings_out_of_range(setting):
    with pytest.raises(drapps.ArgumentError, match=next(iter(setting))):
        numbers(4).map(lambda sample: sample).loader(batch_size=2, **setting)


def test_a_field_that_there_is_not(folder):
    pipe = drapps.read(folder)
    for add in (pipe.map, pipe.filter):
        with pytest.raises(drapps.NotFoundError, match="field must be one of .*image, label.*, got 'img'"):
            add(lambda image: image, field="img")
    pipe.decode(out="pixels").map(lambda image: image, field="pixels")
    renamed = pipe.decode().resize((8, 8)).map(lambda sample: {"img": sample["image"]})
    assert epoch(renamed.map(lambda image: image, field="img"), workers=0)
    with pytest.raises(drapps.NotFoundError, match="field must be one of img.*, got 'image'"):
        epoch(renamed.map(lambda image: image, field="image"), workers=0)
