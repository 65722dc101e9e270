"""Kept: the native loader of a DataLoader from one pass to the next, which then begins without a pause."""

import threading


class Kept:
    """At most one native loader that no pass uses, and what it was opened with."""

    def __init__(self):
        self._key = self._native = None
        self._lock = threading.Lock()

    def take(self, key):
        """The loader that was opened with the same; None: there is none.  One of something else is closed."""
        with self._lock:
            found, self._native = self._native, None
        if found is not None and self._key != key:
            found.close()
            return None
        return found

    def put(self, key, native):
        """A pass is over: its loader waits for the next.  Of passes that ran at once, one loader is kept."""
        with self._lock:
            if self._native is None:
                self._key, self._native, native = key, native, None
        if native is not None:
            native.close()

    def close(self):
        """Closes what is kept."""
        with self._lock:
            native, self._native = self._native, None
        if native is not None:
            native.close()

    def __reduce__(self):
        """Copies of a DataLoader, in this process or another, have loaders of their own."""
        return Kept, ()
