"""The ends of a connection: a sink, and a source that sends as fast as it can beside a monitor.

    python -m benchmarks.experiments.monitor.net_child sink PORT WINDOW
    python -m benchmarks.experiments.monitor.net_child source ADDRESS PORT CONNECTIONS SECONDS

The sink says "ready" and ends with its standard input.  The source prints a line of JSON.
"""

import json
import socket
import statistics
import sys
import threading
import time

from benchmarks.experiments.monitor.readings import mean, opened

PIECE = bytes(64 * 1024)
SETTLE = 2.0  # seconds until TCP and the sensors have settled
RTT_AT, INFO_BYTES = 68, 104  # tcpi_rtt in struct tcp_info, in microseconds


def rtt_of(connection):
    """Return the kernel's smoothed round trip time in seconds."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    return int.from_bytes(info[RTT_AT : RTT_AT + 4], sys.byteorder) * 1e-6


# --- sink ---


def sink(port, window):
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)  # inherited by accepted connections
    door.bind(("", port))
    door.listen(64)
    threading.Thread(target=_welcome, args=(door,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def _welcome(door):
    while True:
        connection, _ = door.accept()
        threading.Thread(target=_drain, args=(connection,), daemon=True).start()


def _drain(connection):
    buffer = bytearray(256 * 1024)
    while connection.recv_into(buffer):
        pass


# --- source ---


class Sender(threading.Thread):
    """A connection that always has data to send."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.connection = socket.create_connection(address, timeout=30)
        self.sent = 0

    def run(self):
        while True:
            self.sent += self.connection.send(PIECE)


def source(address, port, connections, seconds):
    """Send for some seconds; return rates in bytes per second after settling."""
    with opened(seconds + SETTLE + 5) as monitor:
        senders = [Sender((address, port)) for _ in range(connections)]
        for sender in senders:
            sender.start()
        time.sleep(SETTLE)
        first, begin, sent = monitor.latest().number, time.monotonic(), sum(sender.sent for sender in senders)
        trips = []
        while time.monotonic() < begin + seconds:
            trips += [rtt_of(sender.connection) for sender in senders]
            time.sleep(0.1)
        took, sent = time.monotonic() - begin, sum(sender.sent for sender in senders) - sent
        snapshots = monitor.history(after=first)
    return {"bandwidth": mean(snapshots, "net_bandwidth"), "sent": sent / took, "rtt": mean(snapshots, "net_rtt"),
            "own_rtt": statistics.fmean(trips), "retransmits": mean(snapshots, "net_retransmits")}  # fmt: skip


def main(role, *arguments):
    if role == "sink":
        return sink(*map(int, arguments))
    address, port, connections, seconds = arguments
    print(json.dumps(source(address, int(port), int(connections), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
