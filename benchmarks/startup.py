"""Time to the first batch: `PYTHON startup.py DIR` builds the loader of the workload in a fresh process.

Prints a JSON line.  torch and drapps are imported before the clock starts; --import measures only `import drapps`.
"""

import json
import sys
import time


def import_ms():
    began = time.perf_counter()
    import drapps  # noqa: F401

    return {"import_ms": (time.perf_counter() - began) * 1e3}


def first_batch_ms(root):
    import torch  # noqa: F401
    import drapps

    began = time.perf_counter()
    pipe = drapps.read(root).decode().random_resized_crop(224).random_horizontal_flip()
    pipe = pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)
    loader = pipe.loader(batch_size=64, shuffle=True, seed=0, seek_index="memory")  # writes no file beside the data
    images, _ = next(iter(loader))
    line = {"first_batch_ms": (time.perf_counter() - began) * 1e3, "samples": len(images)}
    loader.close()
    return line


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    print(json.dumps(import_ms() if sys.argv[1] == "--import" else first_batch_ms(sys.argv[1])))
