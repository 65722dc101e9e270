"""TIFF files made tag by tag, also such as no program would write."""

import struct
import zlib
from dataclasses import dataclass, field

NONE, LZW, DEFLATE, PACKBITS = 1, 5, 8, 32773
BYTE, SHORT, LONG, LONG8 = 1, 3, 4, 16
SIZES = {BYTE: 1, SHORT: 2, LONG: 4, LONG8: 8}


@dataclass
class Tiff:
    """What the tags say.  None leaves a tag out; `rows` are bytes as they lie in a strip or tile, for each plane."""

    width: int = 21
    height: int = 17
    bits: int = 8
    samples: int = 3
    photometric: int | None = 2
    compression: int = NONE
    planar: int = 1
    format: int | None = None
    fill_order: int | None = None
    extra: tuple | None = None
    orientation: int | None = None
    colors: list | None = None  # 3 << bits numbers of 16 bits
    predictor: int | None = None
    rows_per_strip: int | None = 5
    tile: tuple | None = None
    big_endian: bool = False
    big: bool = False  # BigTIFF
    more: dict = field(default_factory=dict)  # tag: (type, values)

    def chunk_shape(self):
        """Pixels of a strip or tile."""
        return self.tile or (self.width, min(self.rows_per_strip or self.height, self.height))

    def chunks(self, rng):
        """Random bytes for each of them."""
        width, height = self.chunk_shape()
        in_plane = 1 if self.planar == 2 else self.samples
        row = (width * in_plane * self.bits + 7) // 8
        for _plane in range(self.samples if self.planar == 2 else 1):
            for y in range(0, self.height, height):
                rows = height if self.tile else min(height, self.height - y)
                for _x in range(0, self.width, width):
                    yield rng.randbytes(row * rows)

    def tags(self, offsets, counts):
        """{number: (type, values)}."""
        long = LONG8 if self.big else LONG
        tags = {256: (LONG, [self.width]), 257: (LONG, [self.height]), 258: (SHORT, [self.bits] * self.samples),
                259: (SHORT, [self.compression]), 277: (SHORT, [self.samples]),
                284: (SHORT, [self.planar])}  # fmt: skip
        single = {262: self.photometric, 266: self.fill_order, 274: self.orientation, 317: self.predictor}
        tags.update({tag: (SHORT, [value]) for tag, value in single.items() if value is not None})
        if self.format is not None:
            tags[339] = (SHORT, [self.format] * self.samples)
        if self.extra is not None:
            tags[338] = (SHORT, list(self.extra))
        if self.colors is not None:
            tags[320] = (SHORT, self.colors)
        if self.tile:
            tags.update({322: (LONG, [self.tile[0]]), 323: (LONG, [self.tile[1]])})
        elif self.rows_per_strip:
            tags[278] = (LONG, [self.rows_per_strip])
        tags.update({324 if self.tile else 273: (long, offsets), 325 if self.tile else 279: (long, counts)})
        return sorted({**tags, **self.more}.items())

    def bytes(self, rng):
        """The file: header, chunks, values, directory."""
        order, magic = ">" if self.big_endian else "<", 43 if self.big else 42
        head = 16 if self.big else 8
        body, offsets, counts = bytearray(), [], []
        for chunk in self.chunks(rng):
            packed = compress(chunk, self.compression)
            offsets.append(head + len(body))
            counts.append(len(packed))
            body += packed + bytes(len(packed) % 2)
        entries = []
        for tag, (kind, values) in self.tags(offsets, counts):
            letter = {BYTE: "B", SHORT: "H", LONG: "I", LONG8: "Q"}[kind]
            data = struct.pack(f"{order}{len(values)}{letter}", *values)
            word = "Q" if self.big else "I"
            room = 8 if self.big else 4
            if len(data) > room:
                place = struct.pack(order + word, head + len(body))
                body += data + bytes(-len(data) % 8)
            else:
                place = data.ljust(room, b"\0")
            entries.append(struct.pack(f"{order}HH{word}", tag, kind, len(values)) + place)
        at = head + len(body)
        count = struct.pack(order + ("Q" if self.big else "H"), len(entries))
        start = b"MM" if self.big_endian else b"II"
        if self.big:
            start += struct.pack(order + "HHHQ", magic, 8, 0, at)
        else:
            start += struct.pack(order + "HI", magic, at)
        return start + bytes(body) + count + b"".join(entries) + bytes(8)


def compress(data, kind):
    """Packed as simply as the scheme allows."""
    if kind == DEFLATE:
        return zlib.compress(data)
    if kind == PACKBITS:
        return b"".join(bytes([len(p) - 1]) + p for p in (data[i : i + 100] for i in range(0, len(data), 100)))
    if kind == LZW:
        bits = "".join(("100000000" if i % 200 == 0 else "") + f"{v:09b}" for i, v in enumerate(data)) + f"{257:09b}"
        return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    return data
