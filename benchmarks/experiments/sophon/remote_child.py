"""drapps reads a remote set for some seconds, and prints a line of JSON.

    python remote_child.py '{"source": "http://10.99.0.1:8080/packed", "ops": true, "ranges": "off", "seconds": 10}'
"""

import itertools
import json
import pathlib
import sys

import drapps

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from link_meter import measure  # noqa: E402


def main():
    case = json.loads(sys.argv[1])
    pipe = drapps.read(case["source"])
    if case["ops"]:
        pipe = pipe.decode().random_resized_crop(224).random_horizontal_flip()
        pipe = pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
    options = {name: case[name] for name in ("ranges", "offload") if name in case}
    options.update(batch_size=64, shuffle=True, seed=1, output="raw", outputs=["image", "label"])
    with pipe.loader(**options) as loader:
        result = measure(itertools.chain.from_iterable(loader.batches() for _ in itertools.count()), case["seconds"],
                         lambda batch: len(batch.ids))  # fmt: skip
        stats = loader.stats()
        lines = [line for line in loader.explain().splitlines() if line.startswith(("offload:", "ranges:"))]
    knobs = {name: stats["knobs"].get(name) for name in ("workers", "readers", "prefetch")}
    print(json.dumps({**result, "explain": lines, "knobs": knobs}))


if __name__ == "__main__":
    main()
