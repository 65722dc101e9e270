"""Data sets of volumes for 3D-UNet with the ops of ../volumes.py: all ops at each access, or offline results from
files.

The volumes are NIfTI files: generated cases, or a user's own, converted to the form that ../volumes.py reads.
"""

import glob
import gzip
import os
import struct

import numpy as np
from torch.utils.data import Dataset

from benchmarks import volumes

SPACING = (2.4, 0.9, 0.9)  # mm, of the generated cases
TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4"}  # number types of NIfTI


class Volumes(Dataset):
    """The data set.  Random choices depend only on key and epoch, so all loaders make the same samples."""

    def __init__(self, images, labels, crop):
        self.images, self.labels, self.patch, self.epoch = images, labels, (crop,) * 3, 0

    def __len__(self):
        return len(self.images)

    def offline(self, key):
        return volumes.prepare(self.images[key], self.labels[key], patch=self.patch)

    def __getitem__(self, key):
        return self.online(key, *self.offline(key))

    def online(self, key, image, label):
        rng = np.random.default_rng([self.epoch, key])
        return *volumes.augment(image, label, rng, self.patch), key


class OfflinePass(Dataset):
    """Writes the result of the offline ops for each volume; the sample is its key."""

    def __init__(self, data, folder):
        self.data, self.folder = data, folder

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        image, label = self.data.offline(key)
        np.savez(os.path.join(self.folder, f"{key}.npz"), image=image, label=label)
        return key


class AfterOffline(Dataset):
    """Reads the files of OfflinePass and runs the online ops."""

    def __init__(self, data, folder):
        self.data, self.folder = data, folder

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        with np.load(os.path.join(self.folder, f"{key}.npz")) as stored:
            return self.data.online(key, stored["image"], stored["label"])


# --- files ---


def sizes(n, scale):
    """Return n sizes like those of KiTS19, scaled: 53 to 734 slices of 64 to 512 squared."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        slices, side = rng.uniform(53, 734), rng.choice([64, 128, 256, 512])
        yield tuple(max(4, round(float(extent) * scale)) for extent in (slices, side, side))


def read_any(path):
    """Return (array in order z, y, x; spacing) of a NIfTI-1 file with three axes, any byte order and number type."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        data = f.read()
    order = "<" if struct.unpack_from("<i", data, 0)[0] == 348 else ">"
    dims, kind = struct.unpack_from(order + "8h", data, 40), struct.unpack_from(order + "h", data, 70)[0]
    if dims[0] < 3 or max(dims[4:dims[0] + 1], default=1) > 1 or kind not in TYPES:
        raise ValueError(f"{path}: must have three axes of a plain number type, got {dims[0]} of type {kind}")
    offset, slope, shift = struct.unpack_from(order + "3f", data, 108)
    array = np.frombuffer(data, order + TYPES[kind], int(np.prod(dims[1:4])), int(offset)).reshape(dims[3:0:-1])
    if slope not in (0.0, 1.0) or shift:
        array = array * np.float32(slope) + np.float32(shift)
    spacing = struct.unpack_from(order + "3f", data, 80)[::-1]
    return array.astype(array.dtype.newbyteorder("=")), tuple(abs(s) or 1.0 for s in spacing)


def bring_in(source, folder):
    """Convert all volumes below a folder to cases, with values above 0 as the organ.  Other files are skipped."""
    images, labels = [], []
    for path in sorted(glob.glob(os.path.join(source, "**", "*.nii*"), recursive=True)):
        try:
            array, spacing = read_any(path)
        except (ValueError, struct.error, OSError, EOFError):
            continue
        for made, name, part in ((images, "imaging", array.astype(np.float32)), (labels, "label", array > 0)):
            made.append(os.path.join(folder, f"{len(made)}-{name}.nii.gz"))
            volumes.write_nifti(made[-1], part if part.dtype != bool else part.astype(np.uint8), spacing)
    if not images:
        raise SystemExit(f"{source}: must have a NIfTI file with three axes, found none")
    return images, labels


def write_files(options, folder):
    """A Workload.prepare: writes the files of the set once for all runs; a user's files are repeated as needed."""
    if not options["data"]:
        images, labels = volumes.write_cases(folder, sizes(options["volumes"], options["scale"]), SPACING)
    else:
        images, labels = bring_in(options["data"], folder)
    times = -(-options["volumes"] // len(images))
    return {"images": (images * times)[:options["volumes"]], "labels": (labels * times)[:options["volumes"]]}


def make_set(options, kind=Volumes):
    return kind(options["images"], options["labels"], options["crop"])
