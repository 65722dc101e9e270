"""Numbers of things in words."""


def counted(n, word, words=None):
    """1 worker, 2 workers.

    >>> counted(1, "batch", "batches"), counted(2, "batch", "batches"), counted(0, "sample")
    ('1 batch', '2 batches', '0 samples')
    """
    return f"{n} {word if n == 1 else words or word + 's'}"
