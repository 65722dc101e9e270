"""Layouts that all processes of a pool know, by number: a file in memory to which workers append.

A slab's size says which layout it has: whole pages, and 64 bytes more for each number.
"""

import fcntl
import os
import struct

from drapps.procpool.layout import Layout

PAGE = 4096
STEP = 64
MAX_LAYOUTS = PAGE // STEP
LENGTH = struct.Struct("<I")


def new_layouts():
    """The file, empty."""
    return os.memfd_create("drapps-layouts")


def _end_of(data, at):
    """Of the record there; beyond the data where another process has written only a part of it yet."""
    if at + LENGTH.size > len(data):
        return len(data) + 1
    return at + LENGTH.size + LENGTH.unpack_from(data, at)[0]


class LayoutBook:
    """The layouts in a file, each with its number.  No process keeps the lock for longer than a write."""

    def __init__(self, fd):
        self.fd = fd
        self._known, self._read = [], 0

    def _catch_up(self):
        data, at = self._rest(), 0
        while (end := _end_of(data, at)) <= len(data):
            self._known.append(Layout.loads(data[at + LENGTH.size : end]))
            at = end
        self._read += at

    def _rest(self):
        data = b""
        while more := os.pread(self.fd, PAGE, self._read + len(data)):
            data += more
            if len(more) < PAGE:
                break
        return data

    def layout(self, number):
        """The layout with a number."""
        if number >= len(self._known):
            self._catch_up()
        return self._known[number]

    def number(self, layout):
        """The number of a layout, which is added when it is new; None when the book is full, or cannot hold it."""
        if layout not in self._known:
            fcntl.lockf(self.fd, fcntl.LOCK_EX)
            try:
                self._catch_up()
                if layout not in self._known:
                    data = layout.dumps() if len(self._known) < MAX_LAYOUTS else None
                    if data is None:
                        return None
                    self._append(layout, data)
            finally:
                fcntl.lockf(self.fd, fcntl.LOCK_UN)
        return self._known.index(layout)

    def _append(self, layout, data):
        self._read += os.pwrite(self.fd, LENGTH.pack(len(data)) + data, self._read)
        self._known.append(layout)

    def slab_bytes(self, layout, number, rows):
        """The size of a slab, which says the number."""
        return (layout.nbytes(rows) + PAGE - 1) // PAGE * PAGE + number * STEP

    def of_slab(self, nbytes):
        """The layout of a slab of that size."""
        return self.layout(nbytes % PAGE // STEP)
