"""Times the codecs of one library on one array and prints JSON.  Imports nothing of drapps unless asked for it.

    python codec_child.py LIBRARY ARRAY.npy SECONDS
"""

import json
import sys
import time

import numpy as np

REPEATS = 3


def drapps_ways(array):
    import drapps.codec as codec

    def way(spec):
        return spec, lambda: codec.encode(array, spec), codec.decode

    kind = codec.choose(array).data_class
    specs = dict.fromkeys([*codec.candidates(kind, array.dtype.name), "lz4", "zstd:1", "zstd:3", "snappy"])
    if array.dtype.itemsize > 1:
        specs.update(dict.fromkeys(["shuffle+lz4", "shuffle+zstd:1", "bitshuffle+lz4", "bitshuffle+zstd:1"]))
    if array.dtype.kind in "iu" and array.dtype.itemsize == 4:
        specs.update(dict.fromkeys(["u16", "u16+zstd:1", "svb", "bitpack"]))
    return [way(spec) for spec in specs]


def zstd_ways(array):
    import zstandard

    def way(level):
        encoder, decoder = zstandard.ZstdCompressor(level), zstandard.ZstdDecompressor()
        return f"zstd:{level}", lambda: encoder.compress(array), decoder.decompress

    return [way(level) for level in (1, 3, 9)]


def lz4_ways(array):
    import lz4.block

    def way(name, **options):
        return name, lambda: lz4.block.compress(array, **options), lz4.block.decompress

    return [way("lz4"), way("lz4hc", mode="high_compression")]


def blosc2_ways(array):
    import blosc2

    filters = {"shuffle": blosc2.Filter.SHUFFLE, "bitshuffle": blosc2.Filter.BITSHUFFLE}

    def way(name, codec, filter):
        options = {"codec": codec, "filters": [filters[filter]], "clevel": 5, "nthreads": 1,
                   "typesize": array.dtype.itemsize}
        return name, lambda: blosc2.compress2(array, **options), lambda data: blosc2.decompress2(data, nthreads=1)

    return [way(f"{f}+{n}", c, f) for f in filters for n, c in (("lz4", blosc2.Codec.LZ4), ("zstd", blosc2.Codec.ZSTD))]


def pcodec_ways(array):
    from pcodec import ChunkConfig, standalone

    if array.dtype.name not in ("int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"):
        return []
    return [("pcodec:8", lambda: standalone.simple_compress(array, ChunkConfig(compression_level=8)),
             standalone.simple_decompress)]


LIBRARIES = {"drapps": drapps_ways, "zstd": zstd_ways, "lz4": lz4_ways, "blosc2": blosc2_ways, "pcodec": pcodec_ways}


def seconds_of(call, least):
    """The shortest of some calls, which take `least` seconds together."""
    best, begun, n = float("inf"), time.perf_counter(), 0
    while n < REPEATS or time.perf_counter() - begun < least:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        n += 1
    return best


def main():
    library, path, least = sys.argv[1], sys.argv[2], float(sys.argv[3])
    array = np.load(path)
    rows = []
    for name, encode, decode in LIBRARIES[library](array):
        data = encode()
        back = decode(data)
        back = back if isinstance(back, np.ndarray) else np.frombuffer(back, array.dtype)
        if back.tobytes() != array.tobytes():
            sys.exit(f"{library} {name}: decoded to something else")
        rows.append({"codec": name, "ratio": array.nbytes / len(data),
                     "encode": array.nbytes / seconds_of(encode, least),
                     "decode": array.nbytes / seconds_of(lambda d=data, f=decode: f(d), least)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
