"""Volumes through native pipelines against plain NumPy (benchmarks.volumes)."""

import numpy
import pytest

import drapps
from benchmarks import volumes

SIZES = [(20, 33, 40), (9, 50, 31), (37, 28, 29)]
HAVE = (2.5, 0.9, 1.1)  # the spacing of the cases
PATCH = (24, 20, 28)
BOTH = "image,label"
KINDS = {"image": "volume", "label": "volume_mask"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return volumes.write_cases(tmp_path_factory.mktemp("cases"), SIZES, HAVE)


def decoded(cases):
    return drapps.read(cases[0], labels=cases[1]).decode_volume().decode_volume(labels=True, field="label")


def single(pipe, **options):
    """The samples of a pipeline, in order: (image, label)."""
    shapes = {"image": "list", "label": "list"}
    for images, labels in pipe.loader(batch_size=1, output="numpy", collate=shapes, **options):
        yield images[0], labels[0]


def first(pipe):
    """The first image of a pipeline without labels."""
    return next(iter(pipe.loader(output="numpy", collate={"image": "list"})))["image"][0]


def test_decode_is_what_was_written(cases):
    for (image, label), want_image, want_label in zip(single(decoded(cases)), *cases):
        numpy.testing.assert_array_equal(image[0], volumes.read_nifti(want_image)[0])
        numpy.testing.assert_array_equal(label[0], volumes.read_nifti(want_label)[0])
        assert image.dtype == "float32" and label.dtype == "uint8"


def test_decode_axes_as_nibabel(cases):
    image = first(drapps.read(cases[0][:1]).decode_volume(axes="xyz"))
    numpy.testing.assert_array_equal(image[0], volumes.read_nifti(cases[0][0])[0].transpose())


@pytest.mark.parametrize("fortran", [False, True])
def test_decode_npy(tmp_path, fortran):
    array = numpy.arange(2 * 3 * 4 * 5, dtype="int16").reshape(2, 3, 4, 5)
    numpy.save(tmp_path / "a.npy", numpy.asfortranarray(array) if fortran else array)
    numpy.testing.assert_array_equal(first(drapps.read([tmp_path / "a.npy"]).decode_volume(channels=2)), array)
    with pytest.raises(drapps.Error, match="the file has 2 channels, channels is 1"):
        first(drapps.read([tmp_path / "a.npy"]).decode_volume())


def test_prepared_as_numpy(cases):
    """Labels are equal; images within 1e-5 of their deviation: float32 against float64 interpolation."""
    pipe = decoded(cases).resample_volume(spacing=volumes.SPACING, fields=BOTH)
    pipe = pipe.normalize_intensity(clip=volumes.CLIP, mean=volumes.MEAN, std=volumes.STD, fields=BOTH)
    pipe = pipe.pad_volume(size=PATCH, fields=BOTH)
    for (image, label), *paths in zip(single(pipe), *cases):
        want_image, want_label = volumes.prepare(*paths, patch=PATCH)
        assert image.shape == want_image.shape
        numpy.testing.assert_allclose(image, want_image, rtol=0, atol=1e-5)
        numpy.testing.assert_array_equal(label, want_label)


def native(cases):
    return volumes.native(*cases, patch=PATCH)


def test_native_chain_gives_batches(cases):
    loader = native(cases).loader(batch_size=2, shuffle=True, seed=1, output="numpy")
    shapes = [(images.shape, images.dtype, labels.shape, labels.dtype) for images, labels in loader]
    assert [s[0] for s in shapes] == [(2, 1, *PATCH), (1, 1, *PATCH)]
    assert all(s[1] == "float32" and s[2] == s[0] and s[3] == "uint8" for s in shapes)


def test_same_bytes_for_any_workers(cases):
    runs = [list(single(native(cases), seed=3, workers=w, reference=r)) for w, r in ((0, True), (1, False), (4, False))]
    for other in runs[1:]:
        for (a, b), (c, d) in zip(runs[0], other):
            numpy.testing.assert_array_equal(a, c)
            numpy.testing.assert_array_equal(b, d)


def test_image_and_label_stay_together():
    """Arrays in memory: a part of the volume must be the same part of the label, mirrored alike."""
    place = numpy.arange(2 * 12 * 14 * 16, dtype="int32").reshape(2, 12, 14, 16)
    pipe = drapps.from_arrays(image=place.astype("float32"), label=place, kinds=KINDS)
    pipe = pipe.random_balanced_crop(size=(6, 7, 8), fields=BOTH).random_flip_volume(p=0.5, fields=BOTH)
    corners = set()
    for epoch in range(4):
        for image, label in single(pipe, seed=epoch):
            numpy.testing.assert_array_equal(image.astype("int32"), label)
            corners.add(int(label.ravel()[0]))
    assert len(corners) > 4


def test_oversampling_finds_the_foreground():
    """A single voxel of 8000 is in each oversampled part, and in few others; 0.4 of the samples are oversampled."""
    n, label = 300, numpy.zeros((1, 20, 20, 20), "uint8")
    label[0, 13, 4, 9] = 1
    labels = numpy.broadcast_to(label, (n, *label.shape[1:]))
    pipe = drapps.from_arrays(image=labels.astype("float32"), label=labels, kinds=KINDS)
    loader = pipe.random_balanced_crop(size=4, fields=BOTH).loader(batch_size=50, output="numpy", keep_draws=True)
    oversampled = hits = 0
    for batch in loader.batches():
        for i in range(len(batch.ids)):
            drawn = next(iter(batch.draws(i).values()))
            oversampled += drawn["oversampled"]
            hit = batch["label"][i].any()
            hits += hit
            assert hit or not drawn["oversampled"]
    assert abs(oversampled - 0.4 * n) < 5 * (n * 0.24) ** 0.5
    assert hits < oversampled + 0.1 * n


def test_predicted_cost_orders_samples(cases, tmp_path):
    """What the trace predicts ranks the samples as their sizes do."""
    loader = native(cases).loader(batch_size=1, output="numpy", workers=1, trace=tmp_path / "trace")
    list(loader)
    loader.close()
    cost = {span.id: span.cost for span in drapps.trace.read(tmp_path / "trace").spans if span.kind == "work"}
    voxels = [numpy.prod(volumes.resampled_size(size, HAVE, volumes.SPACING)) for size in SIZES]
    assert sorted(cost, key=cost.get) == list(numpy.argsort(voxels))


def test_stored_volumes_keep_their_spacing(cases, tmp_path):
    """What is kept ends at the first random op; the resampling behind it needs the spacing."""
    pipe = decoded(cases).random_flip_volume(fields=BOTH).resample_volume(spacing=volumes.SPACING, fields=BOTH)
    want = list(single(pipe, seed=2))
    for _ in range(2):
        for (a, b), (c, d) in zip(want, single(pipe, seed=2, cache=tmp_path / "kept")):
            numpy.testing.assert_array_equal(a, c)
            numpy.testing.assert_array_equal(b, d)


def test_spacing_must_be_known():
    pipe = drapps.from_arrays(image=numpy.zeros((1, 4, 4, 4), "float32"), kinds={"image": "volume"})
    with pytest.raises(drapps.Error, match="spacing of this volume is not known"):
        pipe.resample_volume(spacing=1).loader()
    with pytest.raises(drapps.Error, match="either spacing or size"):
        pipe.resample_volume()


def test_damaged_file_is_a_bad_sample(cases, tmp_path):
    bad = tmp_path / "bad.nii"
    bad.write_bytes(b"\x5c\x01\x00\x00" + bytes(400))
    pipe = drapps.read([cases[0][0], bad]).decode_volume()
    with pytest.raises(drapps.Error, match="bad.nii.*decode_volume: nifti"):
        list(pipe.loader(collate={"image": "list"}))
    assert len(list(pipe.loader(collate={"image": "list"}, on_bad_sample="skip"))) == 1
