"""A drapps server as its own process, and a plain client of it: what the tests of the server talk by."""

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import numpy
import xxhash

import drapps

PROGRAM = Path(drapps.__file__).parent / "drapps-serve"
DTYPES = {1: "u1", 2: "i1", 3: "<u2", 4: "<i2", 5: "<i4", 6: "<i8", 7: "<f2", 8: "<u2", 9: "<f4", 10: "<f8", 11: "?"}
SAMPLE, SEGMENTS, ERROR = range(3)
HEAD = struct.Struct("<4sBBHQHHIQQ")


class Server:
    """A running server; the end of a with block kills it if it still runs."""

    def __init__(self, root, *arguments, host="127.0.0.1", port=0):
        read, write = os.pipe()
        command = [str(PROGRAM), str(root), "--host", host, "--port", str(port), "--ready-fd", str(write), *arguments]
        self.process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.PIPE, text=True)
        os.close(write)
        with os.fdopen(read) as ready:
            text = ready.readline()
        self.messages = ""
        if not text:
            self.messages = self.process.communicate(timeout=60)[1]
            raise RuntimeError(self.messages)
        self.port = int(text)

    def stop(self, how=signal.SIGTERM, timeout=60):
        """Send a signal and wait for the end; return the exit status."""
        self.process.send_signal(how)
        self.messages += self.process.communicate(timeout=timeout)[1]
        return self.process.returncode

    def client(self, **options):
        return Client(self.port, **options)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
            self.messages += self.process.communicate(timeout=60)[1]


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    def json(self):
        return json.loads(self.body)


class Client:
    """Requests over one connection, which is opened again when the server has closed it."""

    def __init__(self, port, token=None, certificate=None, timeout=60):
        self.token = token
        if certificate:
            context = ssl.create_default_context(cafile=certificate)
            self.connection = http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)
        else:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, path, method="GET", body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        self.connection.request(method, path, body, headers)
        return Answer(self.connection.getresponse())

    def samples(self, name, entries, graph=None, seed=0, epoch=0, **more):
        """Ask for samples; return their frames in the order of the entries."""
        request = {"seed": seed, "epoch": epoch, "samples": entries, **more}
        if graph:
            request["graph"] = json.loads(graph)
        answer = self.ask(f"/v1/sets/{name}/samples", "POST", json.dumps(request))
        assert answer.status == 200, answer.body
        assert answer.headers["Content-Type"] == "application/x-drapps-frames"
        return sorted(frames_of(answer.body), key=lambda frame: frame.entry)


class Frame:
    """A frame, by a parser that is not the library's."""

    def __init__(self, head, payload):
        magic, self.kind, flags, self.n_fields, self.id, self.prefix, self.entry, self.cpu_us, _size, total = head
        assert (magic, flags) == (b"DRF1", 0)
        assert xxhash.xxh3_64_intdigest(payload) == total
        self.payload = payload

    @property
    def fields(self):
        """The arrays of a sample; a field in a codec's frame as its bytes."""
        assert self.kind == SAMPLE
        at, fields = 0, []
        for _ in range(self.n_fields):
            size, dtype, n_dims, _layout, form = struct.unpack_from("<Q4B", self.payload, at)
            dims = struct.unpack_from(f"<{n_dims}I", self.payload, at + 12)
            at += 12 + 4 * n_dims + (24 if form & 0x7F in (6, 7) else 0)
            data = self.payload[at : at + size]
            fields.append(numpy.frombuffer(data, DTYPES[dtype]).reshape(dims) if form & 0x80 else data)
            at += size
        assert at == len(self.payload)
        return fields

    @property
    def segments(self):
        """Ranges and their bytes."""
        assert self.kind == SEGMENTS
        n, zero = struct.unpack_from("<II", self.payload)
        assert zero == 0
        ranges = [struct.unpack_from("<QQ", self.payload, 8 + 16 * i) for i in range(n)]
        return ranges, self.payload[8 + 16 * n :]

    @property
    def error(self):
        assert self.kind == ERROR
        return struct.unpack_from("<i", self.payload)[0], self.payload[4:].decode()


def frames_of(data):
    at, frames = 0, []
    while at < len(data):
        head = HEAD.unpack_from(data, at)
        size = head[8]
        assert at + HEAD.size + size <= len(data), "the last frame is cut off"
        frames.append(Frame(head, data[at + HEAD.size : at + HEAD.size + size]))
        at += HEAD.size + size
    return frames


def raw_request(port, data, timeout=20, half_close=True):
    """Send bytes as they are; return what comes until the server closes, or nothing comes for long."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        with contextlib.suppress(OSError):
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
        parts = []
        with contextlib.suppress(OSError):
            while part := s.recv(65536):
                parts.append(part)
    return b"".join(parts)
