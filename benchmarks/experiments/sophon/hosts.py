"""The servers and the client of the experiments, on the hosts of a testbed."""

import json
import pathlib
import subprocess
import sys

import drapps

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(drapps.__file__).parent / "drapps-serve"
PORT, WEB_PORT = 9470, 8080
NGINX = """
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.err;
daemon off;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen {port}; location / {{ root {root}; autoindex on; }} }}
}}
"""


def start_drapps(bed, root, cpus):
    """`drapps serve` on the store, with so many CPUs for ops; return where its sets are."""
    command = [PROGRAM, root, "--host", bed.address, "--port", PORT, "--cpus", cpus]
    bed.start_store(command, PORT, stdout=subprocess.DEVNULL)
    return f"drapps://{bed.address}:{PORT}"


def start_nginx(bed, folder, root):
    """nginx on the store.  folder: for its own files.  Return the address of root."""
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, root=root, port=WEB_PORT))
    bed.start_store(["nginx", "-e", folder / "nginx.err", "-c", config], WEB_PORT, stdout=subprocess.DEVNULL)
    return f"http://{bed.address}:{WEB_PORT}"


def run_child(bed, child, case, python=sys.executable, timeout=1800):
    """Run a program of this folder on the client; return its lines of JSON."""
    done = bed.run_client([python, HERE / child, json.dumps(case)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{child} {case}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_epochs(bed, case):
    """The lines of epoch_child.py: one of each epoch, and the last."""
    *epochs, last = run_child(bed, "epoch_child.py", case)
    return epochs, last
