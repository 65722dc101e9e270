"""The interface of a peer of the bench: a class in its own file of peers/, and a row in the table there."""


class Peer:
    """A loader that runs the workload, in the peer's own process."""

    def __init__(self, files, cache):
        """Make the loader.  files: workload.Files.  cache: folder for a converted copy of them."""
        self.files = files
        self.cache = cache

    def version(self):
        """Return the versions of the libraries that do the work."""
        raise NotImplementedError

    def prepare(self):
        """Convert the files if the loader cannot read them directly.  Not measured."""

    def batches(self, settings):
        """Yield endless batches as NumPy arrays (N, 3, 224, 224) float32, shuffled, epoch after epoch."""
        raise NotImplementedError

    def pixels(self, boxes):
        """Return the sample of each box ({"index", "box": [x, y, w, h], "flip"}) as float32 (3, 224, 224).

        Uses the same functions as `batches`.  None for a peer that cannot crop a given box.
        """
        return None


def installed(*packages):
    """Return "name version" of each distribution, separated by commas."""
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in packages)
