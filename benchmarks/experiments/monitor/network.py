"""Network: a link of 100 Mbit/s between new namespaces, source - router - sink.

Each namespace exists as long as a process that sleeps in it, so nothing is left after the experiment.  The addresses
are those reserved for documentation, and exist only inside the namespaces.  The limit is in the router: with a limit in
the source's own queue, TCP would throttle itself without delay or loss.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

from benchmarks import child_environment
from benchmarks.experiments.monitor.monitor_findings import NotPossible, judged
from benchmarks.experiments.monitor.readings import run_child

RATE_MBIT, MTU, PORT = 100, 9000, 5001
SINK = "198.51.100.2"
WINDOW = 512 * 1024  # receive window in bytes: smaller than the router's queue, so that nothing is lost
LONG_QUEUE, SHORT_QUEUE = "4mb", "140kb"  # the second is overrun by eight senders
TOOLS = ("ip", "tc", "nsenter", "unshare")


def network(options):
    """Test TCP over a link of 100 Mbit/s, first with a fitting load, then with too many senders."""
    with ExitStack() as stack:
        names = stack.enter_context(_namespaces())
        stack.enter_context(_sink(names["sink"]))
        calm = _send(names, 1, options.seconds, LONG_QUEUE)
        overrun = _send(names, 8, options.seconds, SHORT_QUEUE)
    yield from _compare(calm, overrun)


def _compare(calm, overrun):
    mbit = calm["bandwidth"] * 8e-6
    yield judged(f"{RATE_MBIT} Mbit/s between namespaces: 95 to 101 Mbit/s",
                 f"{mbit:.2f} Mbit/s; the sender counts {calm['sent'] * 8e-6:.2f} without headers", 95 <= mbit <= 101,
                 mbit=mbit, sent=calm["sent"])  # fmt: skip
    yield judged("round trip as TCP_INFO of the connection has it, ± 20 %",
                 f"{calm['rtt'] * 1e3:.2f} of {calm['own_rtt'] * 1e3:.2f} ms: {calm['rtt'] / calm['own_rtt'] - 1:+.1%}",
                 abs(calm["rtt"] / calm["own_rtt"] - 1) <= 0.2, seen=calm["rtt"], own=calm["own_rtt"])  # fmt: skip
    low, high = calm["retransmits"], overrun["retransmits"]
    yield judged("segments that are sent again are seen under overload", f"{low:.3%} of the segments, under overload "
                 f"{high:.2%}", high > 0.001 and high > 10 * low, calm=low, overload=high)  # fmt: skip


# --- namespaces ---


def _check():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise NotPossible(f"there is no program {missing[0]}")
    if os.geteuid() != 0:
        raise NotPossible("network namespaces need root")


@contextmanager
def _namespaces():
    """Return {name: process that holds the namespace}, connected by virtual cables."""
    _check()
    with ExitStack() as stack:
        held = {name: stack.enter_context(_held()) for name in ("source", "router", "sink")}
        _cable(held["source"], held["router"], "left", "192.0.2.1", "192.0.2.2")
        _cable(held["sink"], held["router"], "right", SINK, "198.51.100.1")
        _inside(held["router"], "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        yield held


@contextmanager
def _held():
    """Start a process in a new network namespace."""
    holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)  # ends with us, whatever ends us  # fmt: skip
    try:
        _wait_for_namespace(holder)
        yield holder.pid
    finally:
        holder.stdin.close()
        holder.kill()
        holder.wait()


def _wait_for_namespace(holder):
    own = os.readlink("/proc/self/ns/net")
    for _ in range(200):
        if holder.poll() is not None:
            break
        with suppress(OSError):  # it has just ended
            if os.readlink(f"/proc/{holder.pid}/ns/net") != own:
                return
        time.sleep(0.01)
    raise NotPossible("no network namespace could be made")


def _enter(holder):
    """Return the command prefix to run inside the namespace of a holder."""
    return ["nsenter", f"--net=/proc/{holder}/ns/net", "--"]


def _inside(holder, *command):
    try:
        subprocess.run([*_enter(holder), *command], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:  # a kernel without that device or queue
        raise NotPossible(f"{' '.join(command)}: {error.stderr.strip()}") from None


def _cable(end, router, name, address, gateway):
    """Connect eth0 of an end with an interface of the router."""
    _inside(end, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", str(router))
    for holder, device, own in ((end, "eth0", address), (router, name, gateway)):
        _inside(holder, "ip", "address", "add", f"{own}/30", "dev", device)
        _inside(holder, "ip", "link", "set", device, "mtu", str(MTU), "up")
    _inside(end, "ip", "route", "add", "default", "via", gateway)


# --- traffic ---


@contextmanager
def _sink(holder):
    """Run a program that receives data inside the with block."""
    command = [*_enter(holder), sys.executable, "-m", f"{__package__}.net_child", "sink", str(PORT), str(WINDOW)]
    sink = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=child_environment())
    try:
        if not sink.stdout.readline():
            raise RuntimeError("the sink ended")
        yield
    finally:
        sink.communicate()


def _send(names, connections, seconds, queue):
    """Run a sender in the source; return its counts and the readings of its monitor."""
    _inside(names["router"], "tc", "qdisc", "replace", "dev", "right", "root", "tbf", "rate", f"{RATE_MBIT}mbit",
            "burst", "128kb", "limit", queue)  # fmt: skip
    return run_child("net_child", "source", SINK, PORT, connections, seconds, before=_enter(names["source"]))
