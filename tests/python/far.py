"""A drapps server for tests, and a slow link before it.

The program (built with -Dtests=true) is looked for in the folder DRAPPS_BUILD, or in build*/ of the project.
"""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def program():
    """The path of drapps-serve; skips the test where it is not built."""
    folders = [os.environ["DRAPPS_BUILD"]] if "DRAPPS_BUILD" in os.environ else sorted(ROOT.glob("build*"))
    for folder in folders:
        path = pathlib.Path(folder) / "tools" / "drapps-serve"
        if path.is_file():
            return str(path)
    if os.environ.get("CI"):
        raise FileNotFoundError(f"drapps-serve in {', '.join(map(str, folders))}")
    return pytest.skip("drapps-serve is not built")


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`drapps serve` over a folder; start and stop as often as a test likes, always at one port."""

    def __init__(self, root, *options, cpus=2):
        self.root, self.options, self.port = root, (*options, "--cpus", str(cpus)), free_port()
        self.process = None
        self.start()

    def start(self):
        """Start it and wait until it answers."""
        ready, told = os.pipe()
        command = [program(), str(self.root), "--port", str(self.port), "--ready-fd", str(told), *self.options]
        self.process = subprocess.Popen(command, pass_fds=(told,), stderr=subprocess.PIPE)
        os.close(told)
        with os.fdopen(ready) as pipe:
            if not pipe.readline():
                raise RuntimeError(self.process.communicate()[1].decode())

    def url(self, name, port=None):
        """The URL of a set."""
        return f"drapps://127.0.0.1:{port or self.port}/{name}"

    def kill(self):
        """End it without a warning."""
        self.process.kill()
        self.process.communicate()

    def reload(self):
        """Have it read tokens and sets again."""
        self.process.send_signal(signal.SIGHUP)

    def close(self):
        """End it."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class SlowLink:
    """A port that leads to another one, by which all connections together get so many bytes a second."""

    def __init__(self, port, bytes_per_s):
        self.to, self.rate = port, bytes_per_s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock, self.free_at = threading.Lock(), 0.0
        self.stopping = False
        self.carried = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.stopping:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _wait_for(self, n):
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + n / self.rate
            self.carried += n
            pause = self.free_at - now
        time.sleep(pause)

    def _carry(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            near.close()
            return
        with near, far:
            while not self.stopping:
                for source in select.select([near, far], [], [], 0.5)[0]:
                    try:
                        data = source.recv(16384)
                        if not data:
                            return
                        if source is far:
                            self._wait_for(len(data))
                        (near if source is far else far).sendall(data)
                    except OSError:
                        return

    def close(self):
        """No more connections."""
        self.stopping = True
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class OlderServer(ThreadingHTTPServer):
    """A server before another one, with its indexes and files, and without its call for samples."""

    daemon_threads = True

    def __init__(self, port):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                request = urllib.request.Request(f"http://127.0.0.1:{port}{self.path}", headers=dict(self.headers))
                try:
                    with urllib.request.urlopen(request) as reply:
                        status, headers, body = reply.status, reply.headers, reply.read()
                except urllib.error.HTTPError as error:
                    status, headers, body = error.code, error.headers, error.read()
                self.send_response(status)
                for name in ("ETag", "Content-Range", "Content-Type"):
                    if headers[name]:
                        self.send_header(name, headers[name])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_error(501)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class StrictServer(OlderServer):
    """A server before another one that refuses ranges with stamps, as one from before there were stamps does."""

    def __init__(self, port):
        super().__init__(port)

        def do_post(handler):
            body = handler.rfile.read(int(handler.headers["Content-Length"]))
            if any(len(entry) > 5 for entry in json.loads(body)["samples"]):
                handler.send_error(400)
                return
            request = urllib.request.Request(f"http://127.0.0.1:{port}{handler.path}", body, method="POST",
                                             headers={"Content-Type": "application/json"})  # fmt: skip
            with urllib.request.urlopen(request) as reply:
                data = reply.read()
                handler.send_response(reply.status)
                handler.send_header("Content-Type", reply.headers["Content-Type"])
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        self.RequestHandlerClass.do_POST = do_post
