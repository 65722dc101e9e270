"""What a peer of the bench is: one class in one file of peers/, and one row in the table there."""


class Peer:
    """A loader that does the workload.  Made in the peer's own process."""

    def __init__(self, files, cache):
        """files: workload.Files.  cache: folder for a converted copy of them."""
        self.files = files
        self.cache = cache

    def version(self):
        """Versions of what does the work."""
        raise NotImplementedError

    def prepare(self):
        """Converts the files where the loader cannot read them as they are.  Not measured."""

    def batches(self, settings):
        """Endless batches as NumPy arrays (N, 3, 224, 224) float32, shuffled, epoch after epoch."""
        raise NotImplementedError

    def pixels(self, boxes):
        """For each box ({"index", "box": [x, y, w, h], "flip"}) the sample as float32 (3, 224, 224).

        By the same functions as in `batches`.  None for a peer that cannot be told what to crop.
        """
        return None


def installed(*packages):
    """"name version" of each distribution, with commas."""
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in packages)
