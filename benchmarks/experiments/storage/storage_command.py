"""drapps experiment storage: what shards, codecs, the compression manager and the planner bring, beside others."""

import argparse
import importlib
import json

from drapps.printing import print_json, print_table

PARTS = {
    "shards": ("shards beside plain files, with slow opens, too", "shard_speed"),
    "codecs": ("codecs beside zstd, lz4, blosc2 and pcodec", "codec_peers"),
    "manager": ("the compression manager beside fixed codecs, where CPU time or bandwidth is short", "manager_speed"),
    "planner": ("the planner's choice beside an exhaustive measurement", "plan_choice"),
    "sizes": ("caches and threads, by the size of samples", "size_sweep"),
}
MINUTES = 11  # of a run that is not told otherwise


def make_parser(part, text):
    parser = argparse.ArgumentParser(prog=f"drapps experiment storage {part}", description=text.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    parser.add_argument("--markdown", metavar="FILE", help="also write the tables as Markdown")
    return parser


def add_results(parser):
    """The options of parts that take minutes."""
    parser.add_argument("--results", metavar="FILE", help="keep results here as they are measured; what is there is "
                        "not measured again, so that the same command goes on where it was stopped")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help="begin no further measurement "
                        f"after so long, and print what there is ({MINUTES}; 0: no limit)")  # fmt: skip


def markdown(found):
    """Tables as in docs/benchmarks; found: [(title, head, rows)]."""
    lines = []
    for title, head, rows in found:
        names = [column[0] if isinstance(column, tuple) else column for column in head]
        lines += [f"### {title[0].upper()}{title[1:]}", "", "| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
        lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def main(argv=None):
    """Run one part; the rest of the command line is its own."""
    parser = argparse.ArgumentParser(prog="drapps experiment storage", description=__doc__)
    parts = parser.add_subparsers(dest="part", metavar="part", required=True)
    for name, (text, _) in PARTS.items():
        parts.add_parser(name, help=text, add_help=False)
    args, rest = parser.parse_known_args(argv)
    module = importlib.import_module(f"benchmarks.experiments.storage.{PARTS[args.part][1]}")
    options = {}

    def make(part, text):
        options["parser"] = make_parser(part, text)
        return options["parser"]

    result = module.main(rest, make)
    shown = options["parser"].parse_known_args(rest)[0]
    if shown.save:
        with open(shown.save, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    found = list(module.tables(result))
    if shown.markdown:
        with open(shown.markdown, "w", encoding="utf-8") as file:
            file.write(markdown(found))
    if shown.json:
        return print_json(result)
    for title, head, rows in found:
        print(f"\n{title}")
        print_table(head, rows)
