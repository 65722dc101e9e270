import os

class Preview:
    """Samples of a pipeline beside their originals.  A notebook shows it by itself; write(path) makes a page."""

    title: str
    samples: int
    def write(self, path: str | os.PathLike[str]) -> int: ...
    def _repr_html_(self) -> str: ...
