"""Data sets of volumes: everything at each access, or with the offline part taken from files."""

import os

import numpy as np
from torch.utils.data import Dataset

from . import volumes


class Volumes(Dataset):
    """Volumes that are generated, or of files.  Random choices depend on key and epoch alone: all loaders agree."""

    def __init__(self, n, scale, crop, files=None):
        self.n, self.scale, self.crop, self.files, self.epoch = n, scale, crop, files, 0

    def __len__(self):
        return self.n

    def raw(self, key):
        if not self.files:
            return volumes.generate(key, self.scale)
        image, spacing = volumes.read_nifti(self.files[key % len(self.files)])
        return image, (image > 0).astype(np.uint8), spacing

    def offline(self, key):
        return volumes.offline(*self.raw(key), self.crop)

    def __getitem__(self, key):
        return self.online(key, *self.offline(key))

    def online(self, key, image, label):
        rng = np.random.default_rng([self.epoch, key])
        return *volumes.online(image, label, self.crop, rng), key


class OfflinePass(Dataset):
    """Writes what the offline ops make of each volume; the sample is its key."""

    def __init__(self, data, folder):
        self.data, self.folder = data, folder

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        image, label = self.data.offline(key)
        np.savez(os.path.join(self.folder, f"{key}.npz"), image=image, label=label)
        return key


class AfterOffline(Dataset):
    """Reads what OfflinePass wrote, and runs the online ops."""

    def __init__(self, data, folder):
        self.data, self.folder = data, folder

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        with np.load(os.path.join(self.folder, f"{key}.npz")) as stored:
            return self.data.online(key, stored["image"], stored["label"])


def make_set(options, kind=Volumes):
    files = volumes.find_nifti(options["data"]) if options["data"] else None
    return kind(options["volumes"], options["scale"], options["crop"], files)
