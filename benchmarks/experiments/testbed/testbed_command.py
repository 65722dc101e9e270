"""drapps experiment testbed: run a server and a client on two hosts of one machine, with a slow link between them.

drapps experiment testbed --rate 500 --delay 10 --server "nginx -c my.conf" --port 80 -- wget http://10.99.0.1/
"""

import argparse
import shlex
import time

from drapps.printing import print_table

from benchmarks.experiments.testbed.testbed import STORE, Testbed


def main(argv=None):
    parser = argparse.ArgumentParser(prog="drapps experiment testbed", description=(
        "Run a client against a server with a link of a given rate between them.  The server is at "
        f"{STORE}.  Needs root.  Everything that is made is removed again."))  # fmt: skip
    parser.add_argument("--rate", type=float, default=500, metavar="MBIT", help="Mbit/s of the link (default: 500)")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="from host to host (default: 0)")
    parser.add_argument("--store-cpus", type=float, metavar="N", help="CPU quota of the server (default: none)")
    parser.add_argument("--pin", action="store_true", help="server on the last CPU, client on the first")
    parser.add_argument("--server", metavar="COMMAND", help="a server to start first")
    parser.add_argument("--port", type=int, default=8600, help="where the server listens (default: 8600)")
    parser.add_argument("client", nargs="+", help="the client's command, after --")
    args = parser.parse_args(argv)
    if args.rate <= 0 or args.delay < 0:
        parser.error(f"rate must be positive and delay at least 0, got {args.rate} and {args.delay}")
    with Testbed(args.rate * 1e6, args.delay / 1000, args.store_cpus, args.pin) as bed:
        if args.server:
            bed.start_store(shlex.split(args.server), args.port, stdout=2)
        begin, sent = time.monotonic(), bed.sent()
        done = bed.run_client(args.client)
        seconds, moved = time.monotonic() - begin, bed.sent() - sent
        cpu = bed.store_cpu_seconds()
    print_table(("", ("", "right")), [("seconds", f"{seconds:.2f}"), ("MB sent by the store", f"{moved / 1e6:.1f}"),
                                      ("Mbit/s", f"{moved * 8 / seconds / 1e6:.0f}"),
                                      ("CPU seconds of the store", f"{cpu:.2f}")])  # fmt: skip
    return done.returncode
