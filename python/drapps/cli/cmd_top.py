"""drapps top: what the loaders of running programs do, live in the terminal."""

import argparse
import shutil
import sys
import time

HELP = "watch running loaders: rates, queues, the machine, decisions"
ONCE_SECONDS = 0.5  # rates are differences: --once and --json look twice


def add_arguments(parser):
    parser.add_argument("--pid", type=int, action="append", default=[], help="only this process; may be given again")
    parser.add_argument("--interval", type=_seconds, default=1.0, help="seconds between two frames (1)")
    parser.add_argument("--sort", choices=("age", "rate", "wait", "name"), default="age", help="order of loaders (age)")
    parser.add_argument("--once", action="store_true", help="print one frame as text and end; status 1: no loader runs")
    parser.add_argument("--json", action="store_true", help="print all that is known once, as JSON")


def _seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text}: allowed are 0.1 to 3600 seconds")
    return value


def run(args):
    from drapps.top.rates import Watcher

    watcher = Watcher(args.pid)
    if args.json:
        return _json(watcher)
    if args.once or not sys.stdout.isatty():
        return _once(watcher, args.sort)
    from drapps.top.screen import Screen

    Screen(watcher, args.interval, args.sort).run()


def _look_twice(watcher):
    watcher.look()
    time.sleep(ONCE_SECONDS)
    return watcher.look()


def _once(watcher, sort):
    from drapps.top.rates import arrange
    from drapps.top.screen import plain

    loaders, complaints = _look_twice(watcher)
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    print(plain(arrange(loaders, sort), complaints, width), end="")
    return 0 if loaders else 1


def _json(watcher):
    from drapps.printing import print_json

    loaders, complaints = _look_twice(watcher)
    print_json({"loaders": [{**loader.status, "rates": loader.rates} for loader in loaders], "unreadable": complaints})
