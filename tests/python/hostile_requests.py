"""Requests that were changed at random, and some that are made to do harm: for the tests of the server."""

import collections
import contextlib
import json
import random
import socket


class Requests:
    """A stream of requests that depends on the seed alone."""

    def __init__(self, root, graph, seed):
        self.random = random.Random(seed)
        graph = json.loads(graph)
        path = min((root / "train").glob("*/*.jpg"))
        self.file = f"/v1/sets/train/files/{path.parent.name}/{path.name}"
        self.bodies = [
            {"seed": 1, "epoch": 2, "graph": graph, "outputs": "image",
             "samples": [[i, 0, i % 6, None] for i in range(6)]},
            {"seed": 1, "epoch": 2, "samples": [[0, 0, 0, None, [[0, 100], [200, 300]]], [1, 0, 0, "lz4"]]},
            {"seed": 2**63, "epoch": 0, "graph": graph, "samples": [[0, 0, 5, "zstd:1"], [0, 1, 5, "bf16"]]},
        ]  # fmt: skip
        self.paths = [
            "/v1/health", "/v1/info", "/v1/sets", "/v1/sets/train", "/v1/sets/train/index", "/metrics", self.file,
            "/v1/sets/shards/files/a.tar", "/v1/sets/list.csv/files/train/ant/000.jpg",
        ]  # fmt: skip
        ops = json.dumps({"seed": 0, "epoch": 0, "prefix": 2, "graph": graph})
        self.headers = [
            "Range: bytes=0-10", "Range: bytes=-1", 'If-Match: "x"', "If-None-Match: *", "Expect: 100-continue",
            "Authorization: Bearer aaaaaaaaaaaaaaaaaaaa", "Connection: close", "Content-Length: 5",
            "Transfer-Encoding: chunked", "X-Drapps-Ops: {}", "Accept-Encoding: gzip", 'If-Range: "y"',
            f"X-Drapps-Ops: {ops}",
        ]  # fmt: skip

    # --- what is changed ---

    def number(self):
        return self.random.choice([0, 1, -1, 2, 255, 65535, 65536, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 1e300, -0.5])

    def change_value(self, value):
        """A JSON value with something in it replaced, added or taken away."""
        draw = self.random.random()
        if draw < 0.15:
            return self.random.choice([None, True, [], {}, "", "x" * 300, "\u0000", "../..", self.number(), [[[[]]]]])
        if isinstance(value, dict) and value:
            value = dict(value)
            key = self.random.choice(sorted(value))
            if draw < 0.3:
                del value[key]
            elif draw < 0.4:
                value["extra"] = self.number()
            else:
                value[key] = self.change_value(value[key])
            return value
        if isinstance(value, list) and value:
            value = list(value)
            at = self.random.randrange(len(value))
            if draw < 0.3:
                del value[at]
            elif draw < 0.4:
                value += [value[at]] * self.random.choice([1, 3, 40])
            else:
                value[at] = self.change_value(value[at])
            return value
        if isinstance(value, (int, float)):
            return self.number()
        return self.random.choice(["image", "label", "key", "decode", "no_such", "lz4", "zstd:22", ",", value])

    def change_bytes(self, data):
        data = bytearray(data)
        for _ in range(self.random.choice([1, 1, 2, 8])):
            at = self.random.randrange(len(data) + 1)
            draw = self.random.random()
            if draw < 0.4 and at < len(data):
                data[at] = self.random.randrange(256)
            elif draw < 0.6:
                odd = [b"\r\n", b"\0", b"%00", b"../", b"\xff" * 9, b"[" * 200, b" ", b"%2e%2e%2f"]
                data[at:at] = self.random.choice(odd)
            elif draw < 0.8:
                del data[at : at + self.random.randrange(1, 30)]
            else:
                data[at:at] = data[self.random.randrange(len(data) + 1) :][:50]
        return bytes(data)

    # --- requests ---

    def get(self):
        method = self.random.choice(["GET", "GET", "HEAD", "PUT", "OPTIONS"])
        lines = [f"{method} {self.random.choice(self.paths)} HTTP/1.1", "Host: localhost"]
        lines += self.random.sample(self.headers, self.random.randrange(4))
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def post(self):
        body = self.random.choice(self.bodies)
        for _ in range(self.random.choice([0, 1, 1, 3])):
            body = self.change_value(body)
        data = json.dumps(body).encode()
        if self.random.random() < 0.3:
            data = self.change_bytes(data)
        size = len(data) if self.random.random() < 0.9 else self.random.choice([0, 1, len(data) + 9, 2**40])
        name = self.random.choice(["train", "train", "train", "list.csv", "shards", "none"])
        return b"POST /v1/sets/%b/samples HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
            name.encode(), size, data)  # fmt: skip

    def harm(self):
        """One that is made to do harm, as it is."""
        host, post = b" HTTP/1.1\r\nHost: localhost\r\n", b"POST /v1/sets/train/samples HTTP/1.1\r\nHost: localhost\r\n"
        return self.random.choice([
            b"GET /v1/sets/train/files/" + b"../" * 200 + b"etc/passwd" + host + b"\r\n",
            b"GET /" + b"a" * 100000 + host + b"\r\n",
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
            b"GET " + self.file.encode() + host + b"Range: bytes=" + b"0-1," * 5000 + b"0-1\r\n\r\n",
            post + b"Content-Length: 10000\r\n\r\n" + b"[" * 10000,
            post + b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
            post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
            b"\0" * 2000,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ])  # fmt: skip

    def next(self):
        draw = self.random.random()
        if draw < 0.05:
            return self.harm()
        data = self.post() if draw < 0.6 else self.get()
        return data if self.random.random() < 0.7 else self.change_bytes(data)

    def send(self, port, n):
        """Send n of them, each over a connection of its own; count the statuses (None: closed without an answer)."""
        statuses = collections.Counter()
        for _ in range(n):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as s, contextlib.suppress(ConnectionError):
                s.sendall(self.next())
                with contextlib.suppress(OSError):  # closed already
                    s.shutdown(socket.SHUT_WR)
                statuses[status_of(s)] += 1
        return statuses


def status_of(s):
    """Read an answer to its end; return its status."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := s.recv(65536):
            data = data + part if len(data) < 1000 else data
    words = data.split(b" ", 2)
    return int(words[1]) if data.startswith(b"HTTP/1.") and len(words) > 1 else None
