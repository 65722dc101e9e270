"""drapps ops: all ops of the library, or one op with its parameters."""

import difflib

from drapps.printing import print_json, print_table

HELP = "list the ops, or show one with its parameters"


def add_arguments(parser):
    parser.add_argument("name", nargs="?", help="an op")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps import _core
    from drapps.optable import TABLE

    if args.name and args.name not in TABLE:
        near = difflib.get_close_matches(args.name, TABLE, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise _core.ArgumentError(f'no op "{args.name}"; {hint}`drapps ops` lists them')
    if args.json:
        return print_json(TABLE[args.name] if args.name else list(TABLE.values()))
    if args.name:
        return _show(TABLE[args.name])
    print_table(("op", "kind", "summary"), [(row["name"], _kind(row), row["summary"]) for row in TABLE.values()])


def _kind(row):
    return "batch" if "batch" in row["flags"] else "random" if "random" in row["flags"] else ""


def _show(row):
    from drapps.optable import parameters

    print(f"{row['name']}({', '.join(parameters(row))})")
    print(f"    {row['summary']} (version {row['version']})")
    for title, rows in (("parameters", row["params"]), ("drawn for each sample", row["draws"])):
        if rows:
            print(f"\n{title}:")
            print_table(("name", "type", "default", "allowed", "description"), [_parameter(p) for p in rows])


def _parameter(p):
    default = "" if p.get("required") else repr(p.get("default"))
    return p["name"], p["type"], default, _allowed(p), p["doc"]


def _allowed(p):
    if "choices" in p:
        return " ".join(p["choices"])
    return f"{p['min']:g} to {p['max']:g}" if "min" in p else ""
