"""The page of all ops, made from the library's table."""

from drapps.optable import TABLE, parameters

GROUPS = (
    ("Decoding and types", lambda row: row["name"].startswith("decode") or row["name"] in ("to_dtype", "normalize")),
    ("Batches", lambda row: "batch" in row["flags"]),
    ("Volumes", lambda row: {"volume", "volume_mask"} & set(row["kinds"])),
    ("Boxes", lambda row: "bounding_boxes" in row["name"] or row["name"] in ("random_iou_crop", "random_zoom_out")),
    ("Automatic augmentation", lambda row: "augment" in row["name"] or row["name"] == "aug_mix"),
    ("Combining ops", lambda row: any(p["type"] in ("ops", "op") for p in row["params"])),
    ("Geometry", lambda row: "mask" in row["kinds"]),
    ("Colour and noise", lambda row: True),
)
HEAD = """# Ops

All ops, with their parameters, ranges and defaults. This page is made from the library's table, as are the methods of
`drapps.Pipeline`, the functions of `drapps.ops` and `drapps ops` on the command line.

Names, arguments, defaults and results of image ops are those of `torchvision.transforms.v2` on PIL images;
[parity](../parity.md) has the tolerance of each. An op acts on all fields of the kinds that it supports, with one
random choice for all of them ([formats](../formats.md#kinds-of-fields)). Every method also takes:

| argument | meaning |
|---|---|
| `field`, `fields` | the fields to act on, instead of all fields of the kinds below |
| `out` | names for the results; default: in place |

"""


def _group(row):
    return next(title for title, test in GROUPS if test(row))


def _allowed(p):
    if "choices" in p:
        return ", ".join(f"`{choice}`" for choice in p["choices"])
    if "min" in p:
        low, high = (f"{p[end]:g}" if p[end] % 1 else str(int(p[end])) for end in ("min", "max"))
        return f"{low} to {high}" if abs(p["min"]) < 1e9 and abs(p["max"]) < 1e9 else ""
    return ""


def _cell(text):
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def _default(p):
    if p.get("required"):
        return "*required*"
    value = p.get("default")
    return f"`{tuple(value) if isinstance(value, list) else value!r}`"


def _op(row):
    random = "batch" in row["flags"] and "batch" or (row["draws"] and "random") or ""
    yield f"### {row['name']}\n"
    yield f"`{row['name']}({', '.join(parameters(row))})`\n"
    yield row["summary"][:1].upper() + row["summary"][1:] + ".\n"
    facts = [f"*{random}*"] if random else []
    if row["kinds"]:
        facts.append("acts on " + ", ".join(row["kinds"]))
    if facts:
        yield "; ".join(facts) + "\n"
    if row["params"]:
        yield "| parameter | type | default | allowed | meaning |\n|---|---|---|---|---|"
        for p in row["params"]:
            yield f"| `{p['name']}` | {p['type']} | {_default(p)} | {_allowed(p)} | {_cell(p['doc'])} |"
        yield ""


def _overview(rows):
    yield "| op | what it does |\n|---|---|"
    for row in rows:
        yield f"| [{row['name']}](#{row['name'].replace('_', '_')}) | {_cell(row['summary'])} |"
    yield ""


def write_page(path):
    """Writes the page."""
    lines = [HEAD]
    for title, _ in GROUPS:
        rows = [row for row in TABLE.values() if _group(row) == title]
        lines += [f"## {title}\n", *_overview(rows)]
        for row in rows:
            lines += _op(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
