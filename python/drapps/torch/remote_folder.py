"""RemoteImageFolder: what torchvision's ImageFolder is to a folder, for a set on a drapps server or behind another URL.

A DataLoader of drapps reads it natively, so that the server may run the first of its transforms (docs/offload.md); any
other code gets a PIL image and a label of each item, as from ImageFolder.
"""

import functools
import io
import os

from torch.utils import data

from drapps import _core
from drapps.pipeline import read


class RemoteImageFolder(data.Dataset):
    """Images and their classes, on a drapps server, a web server or an object store.

    root: "drapps://host[:port]/set", "drapps+https://...", "s3://...", "https://...", or any other path that
        drapps.read() takes.
    timeout, credentials: as for drapps.read().
    transform, target_transform: called with each PIL image, and with each label.

    Attributes as those of ImageFolder: classes, class_to_idx, samples (key, label), imgs, targets.

    >>> from drapps import RemoteImageFolder
    >>> images = RemoteImageFolder(folder)
    >>> image, label = images[0]
    >>> image.mode, images.classes[label]
    ('RGB', 'ant')
    """

    def __init__(self, root, transform=None, target_transform=None, *, timeout=None, credentials=None):
        self._source = {"timeout": timeout, "credentials": credentials}
        self.root, self.transform, self.target_transform = root, transform, target_transform
        self._open()
        fields = [field[0] for field in self.native.fields]
        if "image" not in fields or "label" not in fields:
            raise _core.ArgumentError(f"{root}: must have the fields image and label, has {', '.join(fields)}")
        self.classes = list(self.native.classes or ())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def _open(self):
        self.native = read(self.root, **self._source).dataset
        self._reader = None, None

    def __len__(self):
        """Return the number of images."""
        return self.native.size

    def __getitem__(self, index):
        """Return (image, label), transformed."""
        from PIL import Image

        content, label = self.fetch(index)
        with Image.open(io.BytesIO(content)) as image:
            image = image.convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label

    def fetch(self, index):
        """Return (bytes of the file, label) of one item."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.root}: index {index} of {len(self)} images")
        pid, runner = self._reader
        if pid != os.getpid():  # a runner is of one process
            runner = _core.open_runner(self.native, _core.graph_from_json('{"version":1,"nodes":[]}'), "image,label",
                                       False)  # fmt: skip
            self._reader = os.getpid(), runner
        image, label = (field[4] for field in runner.run(0, 0, range(len(self))[index], 0))
        return bytes(image), int.from_bytes(bytes(label), "little", signed=True)

    @functools.cached_property
    def samples(self):
        """[(key, label), ...] of all images."""
        return [(key, self.class_to_idx[key.partition("/")[0]]) for key in map(self.native.key, range(len(self)))]

    @property
    def imgs(self):
        """As samples."""
        return self.samples

    @property
    def targets(self):
        """[label, ...] of all images."""
        return [label for _, label in self.samples]

    @property
    def fingerprint(self):
        """What the set is, wherever it lies: for states."""
        return f"{self.native.fingerprint:016x}"

    def __getstate__(self):
        """Without what is open: who gets it opens the set anew."""
        return {name: value for name, value in vars(self).items() if name not in ("native", "_reader")}

    def __setstate__(self, state):
        """Open the set."""
        vars(self).update(state)
        self._open()

    def __repr__(self):
        """Root and number of images."""
        return f"RemoteImageFolder({self.root!r}): {len(self)} images, {len(self.classes)} classes"
