"""drapps info: version, CPU level, codecs, ops, the limits and sensors of this machine."""

import json

from drapps.printing import bytes_text, print_json, print_table

HELP = "version, CPU level, codecs, formats, limits and sensors"


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from drapps import _core

    facts = json.loads(_core.info())
    facts.setdefault("formats", json.loads(_core.formats_json()))
    facts.setdefault("codecs", json.loads(_core.codecs_json()))
    facts["sensors"] = _sensors()
    if args.json:
        return print_json(facts)
    print_table(("what", "value"), list(_rows(facts)))


def _sensors():
    """Return the sensors of this machine, from the monitor's second snapshot: the first lacks rates."""
    from drapps.monitor import Monitor

    with Monitor() as monitor:
        return list(monitor.wait() or monitor.latest())


def _rows(facts, prefix=""):
    for key, value in facts.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, dict):
            yield from _rows(value, f"{name} ")
        else:
            yield name, _text(key, value)


def _text(key, value):
    if isinstance(value, list):
        return ", ".join(_entry(entry) for entry in value) or "none"
    if key == "quota_cpus" and not value:
        return "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if key.endswith(("bytes", "memory", "memory_limit")) and isinstance(value, int) and value:
        return bytes_text(value)
    return str(value)


def _entry(entry):
    if not isinstance(entry, dict):
        return str(entry)
    library = entry.get("library")
    return f"{entry.get('name')} ({library})" if library else str(entry.get("name"))
