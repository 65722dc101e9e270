"""drapps experiment sophon: what offload and ranges bring over a slow link."""

import argparse
import importlib
import json

from drapps.printing import print_json, print_table

PARTS = {
    "traffic": ("bytes of every policy, and where samples are smallest: counts", "traffic"),
    "epochs": ("epoch times and bytes of every policy, by the CPU of the store", "policy_epochs"),
    "remote": ("tar shards on nginx: share of the link, beside WebDataset and MosaicML Streaming", "remote"),
    "stages": ("what `drapps profile` says of a loader: accelerator-bound, I/O-bound or CPU-bound", "stage_bounds"),
    "overhead": ("what learning costs in the first epoch", "overhead"),
    "vary": ("a link whose rate varies, and the plans of that time", "vary"),
    "cache": ("what a cache in memory brings over a slow link, by the size of samples", "cache"),
}


def make_parser(part, text):
    parser = argparse.ArgumentParser(prog=f"drapps experiment sophon {part}", description=text.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    return parser


def main(argv=None):
    """Run one part; the rest of the command line is its own."""
    parser = argparse.ArgumentParser(prog="drapps experiment sophon", description=__doc__)
    parts = parser.add_subparsers(dest="part", metavar="part", required=True)
    for name, (text, _) in PARTS.items():
        parts.add_parser(name, help=text, add_help=False)
    args, rest = parser.parse_known_args(argv)
    module = importlib.import_module(f"benchmarks.experiments.sophon.{PARTS[args.part][1]}")
    made = {}

    def make(part, text):
        made["parser"] = make_parser(part, text)
        return made["parser"]

    result = module.main(rest, make)
    shown = made["parser"].parse_known_args(rest)[0]
    if shown.save:
        with open(shown.save, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    if shown.json:
        return print_json(result)
    for title, head, rows in module.tables(result):
        print(f"\n{title}")
        print_table(head, rows)
