"""drapps top: a live view of the loaders of running programs in the terminal."""

import argparse
import shutil
import sys
import time

HELP = "watch running loaders: rates, queues, the machine, decisions"
ONCE_SECONDS = 0.5  # rates are differences: --once and --json poll twice


def add_arguments(parser):
    parser.add_argument("--pid", type=int, action="append", default=[], help="show only this process; may be repeated")
    parser.add_argument("--interval", type=_seconds, default=1.0, help="seconds between two polls (default: 1)")
    parser.add_argument(
        "--sort", choices=("age", "rate", "wait", "name"), default="age", help="order of the loaders (default: age)"
    )
    parser.add_argument(
        "--once", action="store_true", help="print one frame as text and exit; status 1: no loader runs"
    )
    parser.add_argument("--json", action="store_true", help="print everything once as JSON and exit")


def _seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"must be a number from 0.1 to 3600, got {text!r}")
    return value


def run(args):
    from drapps.top.rates import Watcher

    watcher = Watcher(args.pid)
    if args.json:
        return _json(watcher)
    if args.once or not sys.stdout.isatty():
        return _once(watcher, args.sort, args.pid)
    from drapps.top.screen import Screen

    Screen(watcher, args.interval, args.sort).run()


def _look_twice(watcher):
    watcher.poll()
    time.sleep(ONCE_SECONDS)
    return watcher.poll()


def _once(watcher, sort, pids):
    from drapps.top.rates import arrange
    from drapps.top.screen import plain

    loaders, complaints = _look_twice(watcher)
    if pids and not loaders:
        complaints += [f"No loader is running in process {pid}; without --pid, all are shown." for pid in pids]
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    print(plain(arrange(loaders, sort), complaints, width), end="")
    return 0 if loaders else 1


def _json(watcher):
    from drapps.printing import print_json

    loaders, complaints = _look_twice(watcher)
    print_json({"loaders": [{**loader.status, "rates": loader.rates} for loader in loaders], "unreadable": complaints})
