"""Segmentation of volumes in plain NumPy: generated cases in NIfTI files, and the ops of the 3D-UNet workload.

The ops are an independent version of the native ones: tests compare the two, and benchmarks use them as the data set
that a user would write in Python.  Arrays are (channels, depth, height, width).
"""

import gzip
import pathlib
import struct

import numpy
import numpy.ma  # noqa: F401, which numpy.unique imports at its first call: 10 ms, in each new worker process

SPACING = (1.6, 1.2, 1.2)  # of KiTS19's preprocessing
CLIP, MEAN, STD = (-79.0, 304.0), 101.0, 76.9
PATCH = (128, 128, 128)
NIFTI_TYPES = {"uint8": 2, "int16": 4, "int32": 8, "float32": 16, "float64": 64}


# --- files ---


def write_nifti(path, array, spacing):
    """Write a (depth, height, width) array as a NIfTI-1 file, gzipped if the name ends in .gz."""
    header = bytearray(352)
    depth, height, width = array.shape
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, width, height, depth, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, NIFTI_TYPES[str(array.dtype)], 8 * array.itemsize)
    struct.pack_into("<8f", header, 76, 1, *reversed(spacing), 0, 0, 0, 0)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[344:348] = b"n+1\0"
    data = bytes(header) + array.astype(array.dtype.newbyteorder("<")).tobytes()
    path = pathlib.Path(path)
    path.write_bytes(gzip.compress(data, 1, mtime=0) if path.suffix == ".gz" else data)


def read_nifti(path):
    """Return (array, spacing) of a little-endian NIfTI-1 file of write_nifti."""
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    width, height, depth = struct.unpack_from("<3h", data, 42)
    kind = {code: name for name, code in NIFTI_TYPES.items()}[struct.unpack_from("<h", data, 70)[0]]
    spacing = struct.unpack_from("<3f", data, 80)[::-1]
    array = numpy.frombuffer(data, numpy.dtype(kind).newbyteorder("<"), depth * height * width, 352)
    return array.reshape(depth, height, width), spacing


def make_case(size, seed):
    """Return a body with an organ and a tumour: (image int16, label uint8) of (depth, height, width)."""
    random = numpy.random.default_rng(seed)
    place = numpy.stack(numpy.meshgrid(*(numpy.linspace(-1, 1, n) for n in size), indexing="ij"))
    label = numpy.zeros(size, "uint8")
    centre = random.uniform(-0.4, 0.4, 3)
    for value, radius in ((1, 0.35), (2, 0.15)):
        label[((place - centre[:, None, None, None]) ** 2).sum(0) < radius**2] = value
    image = 60 * (1 - (place**2).sum(0)) + 90 * label + random.normal(0, 15, size)
    return image.astype("int16"), label


def write_cases(folder, sizes, spacing=SPACING, suffix=".nii.gz", seed=0):
    """Write a case for each size; return lists of images and labels for drapps.read(images, labels=labels)."""
    images, labels = [], []
    for i, size in enumerate(sizes):
        case = pathlib.Path(folder) / f"case_{i:05d}"
        case.mkdir(parents=True)
        image, label = make_case(size, seed + i)
        images.append(str(case / ("imaging" + suffix)))
        labels.append(str(case / ("segmentation" + suffix)))
        write_nifti(images[-1], image, spacing)
        write_nifti(labels[-1], label, spacing)
    return images, labels


# --- offline ops ---


def resampled_size(shape, spacing, wanted):
    """Return the extents after resampling to another spacing."""
    return tuple(max(1, round(n * (have / want))) for n, have, want in zip(shape, spacing, wanted))


def _places(n, to):
    return numpy.arange(to) * ((n - 1) / (to - 1)) if to > 1 else numpy.zeros(1)


def resample(array, size):
    """Resample by linear interpolation in float64; the outermost voxels keep their places."""
    out = array.astype("float64")
    for axis, to in enumerate(size, 1):
        at = _places(out.shape[axis], to)
        low = numpy.minimum(at.astype(int), out.shape[axis] - 1)
        high = numpy.minimum(low + 1, out.shape[axis] - 1)
        weight = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        out = out.take(low, axis) * (1 - weight) + out.take(high, axis) * weight
    return out.astype("float32")


def resample_labels(array, size):
    """Resample by the nearest voxel."""
    for axis, to in enumerate(size, 1):
        at = numpy.minimum((_places(array.shape[axis], to) + 0.5).astype(int), array.shape[axis] - 1)
        array = array.take(at, axis)
    return array


def normalize(array):
    """Clip, then scale to mean 0 and deviation 1 over the training set."""
    return ((array.astype("float32").clip(*CLIP) - numpy.float32(MEAN)) / numpy.float32(STD)).astype("float32")


def pad(array, size=PATCH):
    """Pad to at least `size` by repeating the outermost voxels."""
    missing = [max(0, want - have) for want, have in zip(size, array.shape[1:])]
    return numpy.pad(array, [(0, 0)] + [(n // 2, n - n // 2) for n in missing], mode="edge")


# --- online ops ---


def balanced_crop(image, label, random, size=PATCH, oversampling=0.4):
    """Crop both; with probability `oversampling` around a voxel of a class above 0."""
    room = [have - want for have, want in zip(image.shape[1:], size)]
    start = [int(random.integers(0, n + 1)) for n in room]
    found = numpy.unique(label[label > 0]) if random.random() < oversampling else ()
    if len(found):
        voxels = numpy.argwhere(label[0] == random.choice(found))
        centre = voxels[random.integers(len(voxels))]
        start = [int(numpy.clip(at - want // 2, 0, n)) for at, want, n in zip(centre, size, room)]
    part = (slice(None), *(slice(at, at + want) for at, want in zip(start, size)))
    return image[part], label[part]


def flip(image, label, random, p=1 / 3):
    """Mirror along each axis with probability p."""
    axes = [axis for axis in (1, 2, 3) if random.random() < p]
    return numpy.flip(image, axes), numpy.flip(label, axes)


def brightness(image, random, factor=0.3, p=0.1):
    """Multiply by 1 - factor to 1 + factor with probability p."""
    return image * numpy.float32(random.uniform(1 - factor, 1 + factor)) if random.random() < p else image


def noise(image, random, std=0.1, p=0.1):
    """Add normal noise with a deviation of up to std with probability p."""
    if random.random() >= p:
        return image
    return image + random.normal(0, random.uniform(0, std), image.shape).astype("float32")


# --- both stages, in NumPy and natively ---


def prepare(image_path, label_path, spacing=SPACING, patch=PATCH):
    """Return a stored case resampled, normalised and padded: (image float32, label uint8)."""
    image, have = read_nifti(image_path)
    label, _ = read_nifti(label_path)
    size = resampled_size(image.shape, have, spacing)
    return pad(normalize(resample(image[None], size)), patch), pad(resample_labels(label[None], size), patch)


def augment(image, label, random, patch=PATCH, oversampling=0.4):
    """Apply the online ops to a prepared case."""
    image, label = flip(*balanced_crop(image, label, random, patch, oversampling), random)
    image = noise(brightness(image, random), random)
    return numpy.ascontiguousarray(image), numpy.ascontiguousarray(label)


def native(images, labels, spacing=SPACING, patch=PATCH, oversampling=0.4):
    """Return prepare and augment for these files as a drapps pipeline."""
    import drapps

    both = "image,label"
    pipe = drapps.read(images, labels=labels).decode_volume().decode_volume(labels=True, field="label")
    pipe = pipe.resample_volume(spacing=spacing, fields=both).normalize_intensity(clip=CLIP, mean=MEAN, std=STD)
    pipe = pipe.pad_volume(size=patch, fields=both)
    pipe = pipe.random_balanced_crop(size=patch, oversampling=oversampling, fields=both)
    return pipe.random_flip_volume(fields=both).random_brightness().random_gaussian_noise()
