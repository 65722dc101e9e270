"""drapps ls: the fields, classes and sample keys of a data set."""

import json
import mimetypes
import os
from collections import Counter

from drapps.counted import counted
from drapps.optable import call_text
from drapps.printing import bytes_text, print_json
from drapps.printable import printable

HELP = "list the fields, classes and samples of a data set"


def add_arguments(parser):
    parser.add_argument("path", help="a packed set, a folder, a list, a tar file or a pattern of tar files")
    parser.add_argument("--format", default="auto", help="format of the data (default: auto)")
    parser.add_argument(
        "-n", type=int, default=20, metavar="N", help="number of samples to list (default: 20; -1: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps.packing import manifest_of
    from drapps.pipeline import read

    dataset = read(args.path, format=args.format).dataset
    n = dataset.size if args.n < 0 else min(args.n, dataset.size)
    facts = {
        "name": dataset.name,
        "format": dataset.format,
        "samples": dataset.size,
        "fields": [dict(zip(("name", "kind", "dtype", "dims"), field)) for field in dataset.fields],
        "classes": list(dataset.classes),
        "keys": [dataset.key(i) for i in range(n)],
        "unread": _unread(dataset),
    }
    manifest = manifest_of(dataset)
    if manifest:
        facts["packed"] = {key: manifest[key] for key in ("generation", "shards", "sources", "prefix", "fields")}
    if args.json:
        return print_json(facts)
    _show(facts)


def _unread(dataset):
    """Return {extension: samples} of image files that no codec reads."""
    from drapps.build_info import info

    read = {extension for codec in info()["codecs"] for extension in codec["extensions"]}
    counts = Counter(os.path.splitext(dataset.key(i))[1].lower() for i in range(dataset.size))
    return {extension: n for extension, n in sorted(counts.items()) if extension not in read and _is_image(extension)}


def _is_image(extension):
    return (mimetypes.types_map.get(extension) or "").startswith("image/")


def _samples_text(n):
    return f"{n:,} {'sample' if n == 1 else 'samples'}"


def _show(facts):
    print(f"{printable(facts['name'])}: {facts['format']}, {_samples_text(facts['samples'])}")
    print("fields:", ", ".join(f"{printable(f['name'])} ({_field_text(f)})" for f in facts["fields"]))
    if facts["classes"]:
        names = [printable(name) for name in facts["classes"]]
        print(f"classes: {len(names)}: {', '.join(names[:10])}{' ...' if len(names) > 10 else ''}")
    if "packed" in facts:
        _show_packed(facts["packed"])
    for i, key in enumerate(facts["keys"]):
        print(f"{i:>8}  {printable(key)}")
    if len(facts["keys"]) < facts["samples"]:
        print(f"     ...  {facts['samples'] - len(facts['keys']):,} more (-n {facts['samples']} lists all)")
    if facts["unread"]:
        found = ", ".join(f"{n:,} {extension}" for extension, n in facts["unread"].items())
        print(f"warning: no codec reads {found}: these are bad samples (`drapps info` lists the codecs)")


def _show_packed(packed):
    shards = packed["shards"]
    size = bytes_text(sum(shard["size"] for shard in shards))
    print(f"packed: {counted(len(shards), 'shard')}, {size}, generation {packed['generation']}")
    for source in packed["sources"]:
        print(f"from: {printable(source['name'])}, {_samples_text(source['samples'])}")
    if packed["prefix"]:
        nodes = json.loads(packed["prefix"])["nodes"]
        print("after:", ", ".join(call_text(node).removeprefix("drapps.ops.") for node in nodes))


def _field_text(field):
    if field["kind"] in ("bytes", "text"):
        return field["kind"]
    dims = " x ".join("?" if d < 0 else str(d) for d in field["dims"])
    return " ".join(part for part in (field["kind"], field["dtype"], dims) if part and part != "array")
