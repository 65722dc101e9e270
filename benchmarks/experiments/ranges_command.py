"""drapps experiment ranges: which part of a folder's bytes random crops read, by one range of a file or by several.

Counts bytes, takes no times.  Files that cannot be read in ranges (progressive JPEGs, other formats) count whole.
"""

import argparse
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from drapps.printing import print_json, print_table

FORMS = {  # name: bytes between two ranges that are read together
    "one range": 2**63 - 1,
    "ranges 4 KB apart": 4096,
    "all ranges": 0,
}


@contextmanager
def environment(**values):
    """Variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: str(value) for name, value in values.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def drain(loader, epoch):
    loader.set_epoch(epoch)
    for _ in loader:
        pass


def crops_of(pipe, args):
    return pipe.decode().random_resized_crop(args.size).random_horizontal_flip()


def open_loader(pipe, args, ranges):
    return pipe.loader(batch_size=16, seed=args.seed, shuffle=True, ranges=ranges, outputs="image", output="numpy",
                       collate={"*": "list"}, on_bad_sample="skip", max_bad=2**31)  # fmt: skip


def counted(loader, epochs):
    """What some epochs read: (bytes, bytes of what is stored, samples in ranges, ranges)."""
    before = loader.stats()
    for epoch in epochs:
        drain(loader, epoch)
    after = loader.stats()
    grown = {key: after[key] - before[key] for key in ("bytes_read", "range_bytes_read", "range_bytes_stored",
                                                       "range_samples", "range_reads")}  # fmt: skip
    stored = grown["bytes_read"] - grown["range_bytes_read"] + grown["range_bytes_stored"]
    return {"bytes_read": grown["bytes_read"], "bytes_stored": stored, "samples": grown["range_samples"],
            "reads": grown["range_reads"]}  # fmt: skip


def measure(pipe, args, gap, learn_all):
    """One form, with an index of its own.  learn_all: each image is decoded as a whole first."""
    with tempfile.TemporaryDirectory() as cache, environment(XDG_CACHE_HOME=cache, DRAPPS_RANGES_GAP=gap):
        whole = open_loader(pipe.decode(), args, "off")
        if learn_all:
            drain(whole, 0)
        with open_loader(crops_of(pipe, args), args, "on") as loader:
            drain(loader, 0)
            found = counted(loader, range(1, 1 + args.epochs))
        whole.close()
        found["index_bytes"] = sum(path.stat().st_size for path in Path(cache).rglob("*.drapps-index"))
    return found


def main(argv=None):
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="drapps experiment ranges", description=__doc__)
    parser.add_argument("folder", help="a folder of images")
    parser.add_argument("--epochs", type=int, default=5, help="crops of each image (5)")
    parser.add_argument("--size", type=int, default=224, help="of RandomResizedCrop (224)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    args = parser.parse_args(argv)
    if args.epochs < 1 or args.size < 1:
        parser.error(f"epochs and size must be at least 1, got {args.epochs} and {args.size}")
    result = run(args)
    if args.save:
        Path(args.save).write_text(json.dumps(result, indent=1), encoding="utf-8")
    if args.json:
        return print_json(result)
    print_table(*table(result))


def run(args):
    """Shares of the stored bytes by form, and what a decoded crop would take."""
    import drapps

    pipe = drapps.read(args.folder, format="flat")
    sizes = [path.stat().st_size for path in Path(args.folder).rglob("*") if path.is_file()]
    crop = 3 * args.size**2
    forms = {name: measure(pipe, args, gap, True) for name, gap in FORMS.items()}
    forms["one range, points from crops alone"] = measure(pipe, args, FORMS["one range"], False)
    return {
        "folder": str(args.folder), "images": pipe.dataset.size, "epochs": args.epochs, "crop_bytes": crop,
        "file_bytes": sum(sizes), "smaller_of_file_and_crop": sum(min(size, crop) for size in sizes), "forms": forms,
    }  # fmt: skip


def table(result):
    """(head, rows) of the printed table."""
    rows = [["the smaller of file and decoded crop", f"{result['smaller_of_file_and_crop'] / result['file_bytes']:.3f}",
             "", "", ""]]  # fmt: skip
    for name, form in result["forms"].items():
        rows.append([name, f"{form['bytes_read'] / form['bytes_stored']:.3f}",
                     f"{form['samples'] / (result['images'] * result['epochs']):.3f}",
                     f"{form['reads'] / max(form['samples'], 1):.1f}",
                     f"{form['index_bytes'] / result['file_bytes']:.4f}"])  # fmt: skip
    return ["form", "bytes", "images in ranges", "reads each", "index"], rows
