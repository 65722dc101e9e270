"""Selective preprocessing next to the storage: the experiments around `drapps serve`."""
