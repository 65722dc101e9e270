"""What would it save to run the first ops of a pipeline next to the storage?  Asks a drapps server by plain HTTP.

    python examples/ask_server.py --data photos

Starts `drapps serve` for a folder of images (without --data: some that are made up), asks for each image after 0, 1, 2,
... ops of a training pipeline, and says which form has the fewest bytes.  A client in any language can do the same:
requests are JSON, answers are frames with a head of 40 bytes (docs/serve.md).
"""

import argparse
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy
from PIL import Image

import drapps

HEAD = struct.Struct("<4sBBHQHHIQQ")  # magic, kind, flags, fields, id, prefix, entry, CPU time, size, checksum


def write_images(root, n=12):
    """Make images of several sizes in two folders."""
    for i in range(n):
        (root / "ab"[i % 2]).mkdir(exist_ok=True)
        y, x = numpy.mgrid[0 : 200 + 150 * i, 0 : 300 + 100 * i]
        pixels = numpy.stack([x * (i + 1) // 7, y * 3 // 5, (x + y) // 4], axis=-1) % 256
        Image.fromarray(pixels.astype(numpy.uint8)).save(root / "ab"[i % 2] / f"{i}.jpg", quality=90)


def start(folder):
    """Start a server on a free port; return its process and address."""
    read, write = os.pipe()
    program = [sys.executable, "-m", "drapps.cli", "serve", str(folder), "--port", "0", "--ready-fd", str(write)]
    process = subprocess.Popen(program, pass_fds=[write])
    os.close(write)
    with os.fdopen(read) as ready:
        return process, f"http://127.0.0.1:{int(ready.readline())}"


def get(url, request=None):
    data = json.dumps(request).encode() if request else None
    with urllib.request.urlopen(url, data) as answer:
        return answer.read()


def frames(data):
    """(id, prefix, CPU time in us, bytes) of each sample of an answer."""
    at = 0
    while at < len(data):
        _magic, _kind, _flags, _fields, number, prefix, _entry, cpu_us, size, _sum = HEAD.unpack_from(data, at)
        yield number, prefix, cpu_us, size
        at += HEAD.size + size


def ask(folder):
    pipe = drapps.read(folder).decode().random_resized_crop((224, 224)).random_horizontal_flip().to_dtype(scale=True)
    graph = json.loads(pipe.to_json())
    ops = [node["op"] for node in graph["nodes"]]
    process, address = start(folder)
    try:
        name = json.loads(get(f"{address}/v1/sets"))["sets"][0]["name"]
        n = json.loads(get(f"{address}/v1/sets/{name}"))["samples"]
        entries = [[i, 0, prefix, None] for i in range(n) for prefix in range(len(ops) + 1)]
        best = {}  # sample: (bytes, prefix)
        for first in range(0, len(entries), 1000):
            request = {"seed": 0, "epoch": 0, "graph": graph, "outputs": "image", "samples": entries[first:][:1000]}
            for number, prefix, _cpu_us, size in frames(get(f"{address}/v1/sets/{name}/samples", request)):
                best[number] = min(best.get(number, (size, prefix)), (size, prefix))
    finally:
        process.terminate()
        process.wait()
    for prefix, count in sorted(collections.Counter(prefix for _, prefix in best.values()).items()):
        print(f"{count} of {n} images are smallest {f'after {ops[prefix - 1]}' if prefix else 'as they are stored'}")
    print(f"{sum(size for size, _ in best.values())} bytes in all")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of images, or of folders of images")
    folder = parser.parse_args().data
    if folder:
        return ask(folder)
    with tempfile.TemporaryDirectory() as made:
        write_images(Path(made))
        ask(made)


if __name__ == "__main__":
    main()
