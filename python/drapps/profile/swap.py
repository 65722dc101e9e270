"""Swap: drapps.DataLoader in place of torch's, as if the program's import had been changed."""


class Swap:
    """Batches of one pass after another.  arguments, options: those of the program's call of torch's DataLoader."""

    def __init__(self, arguments, options):
        from drapps import DataLoader

        self._loader = DataLoader(*arguments, **options)
        self._pass = iter(())

    @property
    def native(self):
        """Return whether the batches are made natively."""
        return self._loader.num_workers > 0 and self._loader._is_native()

    def __next__(self):
        for batch in self._pass:
            return batch
        self._pass = iter(self._loader)
        for batch in self._pass:
            return batch
        raise ValueError("the pass has no batches")

    def close(self):
        """End the workers."""
        self._pass = iter(())
        self._loader.close()
