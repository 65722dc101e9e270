"""Swap: drapps' DataLoader in the place of torch's, as if the program's import had been changed."""


class Swap:
    """Batches of one pass after another.  arguments, options: what the program called torch's DataLoader with."""

    def __init__(self, arguments, options):
        from drapps import DataLoader

        self._loader = DataLoader(*arguments, **options)
        self._pass = iter(())

    @property
    def native(self):
        """Whether the engine makes the batches."""
        return self._loader.num_workers > 0 and self._loader._is_native()

    def __next__(self):
        for batch in self._pass:
            return batch
        self._pass = iter(self._loader)
        for batch in self._pass:
            return batch
        raise ValueError("a pass has no batches")

    def close(self):
        """Ends its workers."""
        self._pass = iter(())
        self._loader.close()
