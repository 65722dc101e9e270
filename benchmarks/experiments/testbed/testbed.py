"""The testbed: two network namespaces, the link between them, and the processes of each.

    with Testbed(rate=500e6, delay=0.01, store_cpus=0.5, pin=True) as bed:
        bed.start_store([sys.executable, "-m", "drapps", "serve", root], bed.address, 8600)
        bed.run_client([sys.executable, "client.py", f"http://{bed.address}:8600"])

Without a delay the link is a veth pair shaped by `tc tbf`, which costs no process.  With a delay it is slow_link.c,
because the kernel's `netem` is often missing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from benchmarks.experiments.disturb import Quota

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "c" / "slow_link.c"
STORE, CLIENT = "10.99.0.1", "10.99.0.2"
BURST = 1 << 16  # bytes that tbf lets through at once
QUEUE_SECONDS = 0.05  # what may wait for the link
READY_SECONDS = 60


def missing():
    """What this machine lacks for a testbed, in words, or None."""
    if os.geteuid() != 0:
        return "a testbed makes network namespaces, which needs root"
    for program in ("ip", "tc", "cc"):
        if not shutil.which(program):
            return f"a testbed needs the program {program!r} (Debian: iproute2, gcc)"
    probe = f"drapps-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if made.returncode:
        return f"this machine makes no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return None


class Testbed:
    """A store and a client.

    rate: bits per second of the link, in each direction.  delay: seconds from one host to the other.  store_cpus: the
    CPU quota of all processes of the store; None: no limit.  pin: the store's processes run on the last CPU, the
    client's on the first.  Raises SystemExit with the reason where the machine lacks something.
    """

    __test__ = False  # not a test case, whatever its name

    address = STORE

    def __init__(self, rate=500e6, delay=0.0, store_cpus=None, pin=False):
        self.rate, self.delay, self.store_cpus = rate, delay, store_cpus
        cpus = sorted(os.sched_getaffinity(0))
        self._cpus = {"store": {cpus[-1]}, "client": {cpus[0]}} if pin and len(cpus) > 1 else {}
        self._names = {host: f"drapps-{host}-{os.getpid()}" for host in ("store", "client")}
        self._processes, self._quota, self._link, self._folder = [], None, None, None

    def __enter__(self):
        if reason := missing():
            raise SystemExit(reason)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        for name in self._names.values():
            run("ip", "netns", "add", name)
        if self.store_cpus is not None:
            self._quota = Quota()
            self._quota.set(self.store_cpus)
        if self.delay:
            self._open_relay()
        else:
            self._open_veth()

    def _open_veth(self):
        store, client = self._names["store"], self._names["client"]
        run("ip", "link", "add", "link0", "netns", store, "type", "veth", "peer", "name", "link0", "netns", client)
        for name, address in ((store, STORE), (client, CLIENT)):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", "link0")
            run("ip", "-n", name, "link", "set", "link0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._shape("add", self.rate)

    def _shape(self, verb, rate):
        for name in self._names.values():
            run("tc", "-n", name, "qdisc", verb, "dev", "link0", "root", "tbf", "rate", f"{rate:.0f}bit",
                "burst", str(BURST), "latency", f"{QUEUE_SECONDS * 1000:.0f}ms")  # fmt: skip

    def set_rate(self, rate):
        """Change the rate of the link.  Not for a link with a delay."""
        if self.delay:
            raise ValueError("the rate of a link with a delay cannot change")
        self._shape("change", rate)
        self.rate = rate

    def _open_relay(self):
        self._folder = tempfile.TemporaryDirectory(prefix="drapps-testbed-")
        program = pathlib.Path(self._folder.name) / "slow_link"
        run("cc", "-std=c11", "-O2", "-o", program, SOURCE)
        command = [program, self._names["store"], STORE, self._names["client"], CLIENT, f"{self.rate:.0f}",
                   f"{self.delay * 1e6:.0f}", f"{self.rate / 8 * QUEUE_SECONDS:.0f}"]  # fmt: skip
        self._link = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self._link.stdout.readline() != "ready\n":
            raise SystemExit("the link of the testbed could not be made")

    def start(self, host, command, **options):
        """Start a process on a host: "store" or "client".  Options are Popen's."""
        name, cpus = self._names[host], self._cpus.get(host)
        inside = ["ip", "netns", "exec", name, *map(str, command)]
        process = subprocess.Popen(inside, preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)), **options)
        self._processes.append(process)
        if host == "store" and self._quota:
            self._quota.add(process.pid)
        return process

    def start_store(self, command, port, **options):
        """Start a server on the store and wait until it accepts connections at the port."""
        process = self.start("store", command, **options)
        deadline = time.monotonic() + READY_SECONDS
        while not self._accepts(port):
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {process.returncode} before it accepted a connection")
            if time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} does not accept connections at port {port}")
            time.sleep(0.05)
        return process

    def _accepts(self, port):
        probe = f"import socket; socket.create_connection(({STORE!r}, {port}), 1)"
        # From the store itself: the client's link is not to be used before the measurement.
        command = ["ip", "netns", "exec", self._names["store"], sys.executable, "-S", "-c", probe]
        return subprocess.run(command, capture_output=True).returncode == 0

    def run_client(self, command, **options):
        """Run a program on the client; return the finished process, as subprocess.run does."""
        timeout = options.pop("timeout", None)
        process = self.start("client", command, **options)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def sent(self):
        """Bytes that the store has sent to the client, with the headers of the packets."""
        text = subprocess.run(["ip", "netns", "exec", self._names["store"], "cat", "/proc/net/dev"], check=True,
                              capture_output=True, text=True).stdout  # fmt: skip
        line = next(line for line in text.splitlines() if line.strip().startswith("link0:"))
        return int(line.split(":")[1].split()[8])

    def store_cpu_seconds(self):
        """CPU seconds of the store's processes and of their children that have ended."""
        tick = os.sysconf("SC_CLK_TCK")
        total = 0
        for pid in namespace_pids(self._names["store"]):
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended
                continue
            total += sum(map(int, fields[11:15])) / tick
        return total

    def close(self):
        """End the processes and remove the namespaces, the link and the quota."""
        for name in self._names.values():
            for pid in namespace_pids(name):
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
        for process in self._processes:
            process.wait()
        if self._link:
            self._link.kill()
            self._link.wait()
            self._link.stdout.close()
        for name in self._names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        if self._quota:
            self._quota.close()
        if self._folder:
            self._folder.cleanup()


def namespace_pids(name):
    done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
    return [int(pid) for pid in done.stdout.split()]


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
