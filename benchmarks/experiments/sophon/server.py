"""drapps experiment serve: `drapps serve` as a web server, as one of several tenants, and over a long time.

    drapps experiment serve files --data IMAGES      plain reads a second beside nginx, of the same files, by wrk
    drapps experiment serve tenants --data IMAGES    what a client gets while another asks for all that it can
    drapps experiment serve soak --data IMAGES       memory of the server under load

Rounds of two servers alternate.  A server's figure is the median of its rounds.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import drapps
from drapps.printing import print_table

PROGRAM = Path(drapps.__file__).parent / "drapps-serve"
NGINX = """
{user}
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/nginx.err;
daemon off;
events {{ worker_connections 2048; }}
http {{
    access_log {log};
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ root {root}; }}
    }}
}}
"""
# wrk: each request another file, in a random order that depends on the thread alone.
PATHS = """
local paths = {{}}
for line in io.lines("{file}") do paths[#paths + 1] = line end
local n = 0
function setup(thread) n = n + 1; thread:set("seed", n) end
function init(args) math.randomseed(seed) end
function request() return wrk.format("GET", "{before}" .. paths[math.random(#paths)]) end
"""
IMAGE_ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def serving(root, *arguments):
    """(process, port) of a drapps server."""
    read, write = os.pipe()
    process = subprocess.Popen([PROGRAM, root, "--port", "0", "--ready-fd", str(write), *arguments], pass_fds=[write],
                               stderr=subprocess.DEVNULL)  # fmt: skip
    os.close(write)
    try:
        with os.fdopen(read) as ready:
            text = ready.readline()
        if not text:
            raise SystemExit(f"drapps serve {root} did not start")
        yield process, int(text)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def nginx(root, folder, workers, log):
    """The port of an nginx with the same files."""
    port = free_port()
    where = f"{folder}/nginx.log" if log else "off"
    user = "user root;" if os.getuid() == 0 else ""  # else root's nginx could not read folders of root alone
    (folder / "nginx.conf").write_text(NGINX.format(
        user=user, workers=workers, folder=folder, port=port, root=root, log=where))  # fmt: skip
    process = subprocess.Popen(["nginx", "-e", folder / "nginx.err", "-c", folder / "nginx.conf"])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/")
                break
            time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def image_paths(root):
    """Paths of the images below a folder, relative to it."""
    found = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.suffix.lower() in IMAGE_ENDINGS)
    if not found:
        raise SystemExit(f"{root}: no image in it")
    return found


def set_name(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/v1/sets")
    return json.loads(connection.getresponse().read())["sets"][0]["name"]


def wrk(port, script, args, seconds):
    """(requests a second, bytes a second) of one run."""
    command = ["wrk", "-t", str(args.threads), "-c", str(args.connections), "-d", f"{round(seconds)}s", "-s", script,
               f"http://127.0.0.1:{port}/"]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if re.search(r"Non-2xx|Socket errors: (?!connect 0, read 0, write 0, timeout 0)", out):
        raise SystemExit(out)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    number, unit = re.search(r"Transfer/sec:\s+([\d.]+)([KMG]?)B", out).groups()
    return rate, float(number) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[unit]


def run_files(args, folder):
    """Requests a second of both servers, and their ratio by round."""
    (folder / "paths").write_text("\n".join(image_paths(args.data)) + "\n")
    log = [] if not args.log else ["--access-log", str(folder / "drapps.log")]
    with (serving(args.data, "--io-threads", str(args.workers), *log) as (_, ours),
          nginx(args.data, folder, args.workers, args.log) as theirs):  # fmt: skip
        scripts = {}
        for name, port, before in [("drapps", ours, f"/v1/sets/{set_name(ours)}/files/"), ("nginx", theirs, "/")]:
            script = folder / f"{name}.lua"
            script.write_text(PATHS.format(file=folder / "paths", before=before))
            scripts[name] = (port, script)
            wrk(port, script, args, 1)  # warms the page cache
        rounds = []
        for number in range(args.rounds):
            names = ["drapps", "nginx"] if number % 2 else ["nginx", "drapps"]
            rounds.append({name: wrk(*scripts[name], args, args.seconds) for name in names})
    ratios = [r["drapps"][0] / r["nginx"][0] for r in rounds]
    result = {}
    for name in ("drapps", "nginx"):
        requests, moved = zip(*(r[name] for r in rounds), strict=True)
        result[name] = {"requests_per_s": statistics.median(requests), "bytes_per_s": statistics.median(moved)}
    rows = [(name, f"{r['requests_per_s']:.0f}", f"{r['bytes_per_s'] / 1e6:.0f}") for name, r in result.items()]
    print_table(("server", ("requests/s", "right"), ("MB/s", "right")), rows)
    print(f"drapps / nginx: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    return {**result, "ratios": ratios}


class Tenant(threading.Thread):
    """A client that keeps a number of requests in flight.  While it is told to, it counts its samples, those whose ops
    ran at the server, and the CPU time that these took."""

    def __init__(self, port, token, requests, ops):
        super().__init__(daemon=True)
        self.port, self.token, self.requests, self.ops = port, token, requests, ops
        self.offloaded = self.all = self.cpu_us = 0
        self.counting, self.over = threading.Event(), threading.Event()
        self.lock = threading.Lock()

    def run(self):
        workers = [threading.Thread(target=self.work, args=(k,)) for k in range(self.requests)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def work(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        epoch = number * 1000000
        while not self.over.is_set():
            name, n, graph = self.ops
            body = json.dumps({"seed": 0, "epoch": epoch, "graph": graph, "outputs": "image",
                               "samples": [[(epoch * 7 + i) % n, 0, 2, None] for i in range(32)]})  # fmt: skip
            connection.request("POST", f"/v1/sets/{name}/samples", body, {"Authorization": f"Bearer {self.token}"})
            frames = frames_of(connection.getresponse().read())
            if self.counting.is_set():
                with self.lock:
                    self.offloaded += sum(prefix > 0 for prefix, _ in frames)
                    self.cpu_us += sum(cpu_us for prefix, cpu_us in frames if prefix)
                    self.all += len(frames)
            epoch += 1


def frames_of(data):
    """(how many ops ran, CPU time in us) of each frame of an answer."""
    at, frames = 0, []
    while at < len(data):
        frames.append((int.from_bytes(data[at + 16 : at + 18], "little"),
                       int.from_bytes(data[at + 20 : at + 24], "little")))  # fmt: skip
        at += 40 + int.from_bytes(data[at + 24 : at + 32], "little")
    return frames


def cpu_rates(tenants, seconds):
    """Start tenants; return the CPU seconds a second that each got."""
    for tenant in tenants:
        tenant.start()
    time.sleep(min(2, seconds))  # until the budget's reserve is used up
    for tenant in tenants:
        tenant.counting.set()
    time.sleep(seconds)
    result = [tenant.cpu_us * 1e-6 / seconds for tenant in tenants]
    for tenant in tenants:
        tenant.over.set()
    for tenant in tenants:
        tenant.join()
    return result


def run_tenants(args, folder):
    """A client alone, then beside one with many times as many requests in flight.  Its share is half of the budget, or
    what it asks for."""
    tokens = folder / "tokens"
    tokens.write_text("good good0good0good0good *\nbad bad00bad00bad00bad00 *\n")
    tokens.chmod(0o600)
    graph = json.loads(drapps.read(args.data).decode().random_resized_crop((224, 224)).to_json())
    rounds = []
    for _ in range(args.rounds):
        with serving(args.data, "--cpus", str(args.cpus), "--tokens", str(tokens)) as (_, port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/v1/sets", headers={"Authorization": "Bearer good0good0good0good"})
            a_set = json.loads(connection.getresponse().read())["sets"][0]
            ops = (a_set["name"], a_set["samples"], graph)
            alone = cpu_rates([Tenant(port, "good0good0good0good", 2, ops)], args.seconds)[0]
            both = cpu_rates([Tenant(port, "good0good0good0good", 2, ops),
                              Tenant(port, "bad00bad00bad00bad00", 32, ops)], args.seconds)  # fmt: skip
        rounds.append({"alone": alone, "good": both[0], "bad": both[1],
                       "of_share": both[0] / min(alone, args.cpus / 2)})  # fmt: skip
    rows = [(f"{k}", *(f"{r[name]:.3f}" for name in ("alone", "good", "bad")), f"{r['of_share']:.2f}")
            for k, r in enumerate(rounds)]  # fmt: skip
    print_table(("round", *((f"CPU s/s {name}", "right") for name in ("alone", "beside it", "of the other")),
                 ("of its share", "right")), rows)  # fmt: skip
    return {"rounds": rounds, "of_share": statistics.median(r["of_share"] for r in rounds)}


def resident(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_soak(args, folder):
    """Plain reads and samples for a long time; the server's memory, ten times."""
    graph = json.loads(drapps.read(args.data).decode().random_resized_crop((224, 224)).to_json())
    (folder / "paths").write_text("\n".join(image_paths(args.data)) + "\n")
    with serving(args.data, "--cpus", str(args.cpus)) as (process, port):
        name, script = set_name(port), folder / "soak.lua"
        script.write_text(PATHS.format(file=folder / "paths", before=f"/v1/sets/{name}/files/"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", f"/v1/sets/{name}")
        tenant = Tenant(port, "", 4, (name, json.loads(connection.getresponse().read())["samples"], graph))
        tenant.start()
        tenant.counting.set()
        memory, part = [], max(args.minutes * 60 / 10, 1)
        for _ in range(10):
            wrk(port, script, args, round(part))
            memory.append(resident(process))
            print(f"{memory[-1] / 2**20:.1f} MiB", flush=True)
        tenant.over.set()
        tenant.join()
    print(f"from the second to the last tenth: {memory[-1] / memory[1]:.3f} times; {tenant.all} samples")
    return {"memory_bytes": memory, "samples": tenant.all}


PARTS = {"files": run_files, "tenants": run_tenants, "soak": run_soak}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="drapps experiment serve", description=(
        "Measure `drapps serve`: plain reads beside nginx (needs nginx and wrk), clients beside each other, and its "
        "memory over time (needs wrk).  On an idle machine."))  # fmt: skip
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, required=True, help="a folder of images, or of folders of images")
    parser.add_argument("--seconds", type=float, default=10, help="of a run (default: 10)")
    parser.add_argument("--rounds", type=int, default=6, help="default: 6")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="threads or processes of each server that "
                        "answer (default: one a CPU)")  # fmt: skip
    parser.add_argument("--threads", type=int, default=1, help="of wrk (default: 1)")
    parser.add_argument("--connections", type=int, default=32, help="of wrk (default: 32)")
    parser.add_argument("--log", action="store_true", help="files: both servers write an access log")
    parser.add_argument("--cpus", type=float, default=0.5, help="tenants, soak: CPU budget of ops (default: 0.5)")
    parser.add_argument("--minutes", type=float, default=60, help="soak: default 60")
    parser.add_argument("--json", type=Path, help="write the result there, too")
    args = parser.parse_args(argv)
    args.data = args.data.resolve()
    for program in {"files": ("nginx", "wrk"), "soak": ("wrk",)}.get(args.part, ()):
        if not shutil.which(program):
            parser.error(f"{args.part} needs {program}, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        result = PARTS[args.part](args, Path(folder))
    if args.json:
        args.json.write_text(json.dumps({"part": args.part, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
