"""A TCP proxy that does to connections what networks and overloaded servers do.

    with FaultProxy(("127.0.0.1", port)) as proxy:
        proxy.plan = lambda n: "reset" if n % 7 == 0 else None   # n: the number of a request
        drapps.read(proxy.url + "/set")

A plan says what happens to each request, by its number: None (nothing), "reset" (the connection is cut when the
request has come), "truncate" (the answer is cut in the middle), ("status", code, headers, body) (the proxy answers
itself), ("delay", seconds) (the request is passed on late).  While `dead` is set, new connections are refused and the
others are cut.  `requests` and `methods` count what came, `faults` what was done.
"""

import collections
import contextlib
import re
import socket
import struct
import threading
import time

CHUNK = 65536


def _cut(sock):
    """Close with a reset, so that the other side sees an error and not an end."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        sock.close()


class FaultProxy:
    """See the module."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.plan = lambda n: None
        self.faults = collections.Counter()
        self.requests = 0
        self.methods = collections.Counter()
        self.open = set()
        self._dead = False
        self._lock = threading.Lock()
        self._listener = None

    def __enter__(self):
        self._listen(0)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *error):
        self.dead = True

    def _listen(self, port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @property
    def dead(self):
        """Whether nobody answers."""
        return self._dead

    @dead.setter
    def dead(self, value):
        if value == self._dead:
            return
        self._dead = value
        if not value:
            self._listen(self.port)
            return
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        with self._lock:
            sockets = list(self.open)
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _next(self, head):
        with self._lock:
            number = self.requests
            self.requests += 1
            self.methods[head.partition(b" ")[0].decode()] += 1
        return number, self.plan(number)

    def _serve(self, client):
        server = None
        with self._lock:
            self.open.add(client)
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (head := self._read_head(client)) and not self._dead:
                number, fault = self._next(head)
                kind = fault[0] if isinstance(fault, tuple) else fault
                if kind:
                    self.faults[kind] += 1
                if kind == "reset":
                    return
                if kind == "status":
                    headers, body = fault[2] if len(fault) > 2 else "", fault[3] if len(fault) > 3 else "fault"
                    length = f"Content-Length: {len(body.encode())}\r\n\r\n"
                    content = "" if head.startswith(b"HEAD") else body
                    client.sendall(f"HTTP/1.1 {fault[1]} Fault\r\n{headers}{length}{content}".encode())
                    continue
                if kind == "delay":
                    time.sleep(fault[1])
                if server is None:
                    server = socket.create_connection(self.upstream, timeout=60)
                    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with self._lock:
                        self.open.add(server)
                server.sendall(head)
                if not self._answer(server, client, head.startswith(b"HEAD"), kind == "truncate"):
                    return
        except OSError:
            pass
        finally:
            with self._lock:
                self.open.discard(client)
                self.open.discard(server)
            _cut(client)
            if server is not None:
                server.close()

    @staticmethod
    def _read_head(sock, so_far=b""):
        """A request or an answer's header, and what came with it."""
        while b"\r\n\r\n" not in so_far:
            data = sock.recv(CHUNK)
            if not data:
                return b""
            so_far += data
        return so_far

    def _answer(self, server, client, is_head, truncate):
        """Pass an answer on; False: the connection is to be closed."""
        data = self._read_head(server)
        end = data.find(b"\r\n\r\n") + 4
        length = re.search(rb"\r\ncontent-length: *(\d+)", data[:end], re.IGNORECASE)
        if re.search(rb"\r\ntransfer-encoding: *chunked", data[:end], re.IGNORECASE):
            while not data.endswith(b"\r\n0\r\n\r\n") and (more := server.recv(CHUNK)):
                data += more
            client.sendall(data[: len(data) // 2] if truncate else data)
            return not truncate
        if not data or not length:  # the end of the connection is that of the answer
            client.sendall(data)
            while not truncate and (data := server.recv(CHUNK)):
                client.sendall(data)
            return False
        left = 0 if is_head else int(length[1]) - (len(data) - end)
        stop_at = int(length[1]) // 2 if truncate and not is_head else -1
        sent = len(data) - end
        if stop_at >= 0 and sent >= stop_at:
            client.sendall(data[: end + stop_at])
            time.sleep(0.02)  # it is to arrive before the reset, which would discard it
            return False
        client.sendall(data)
        while left > 0:
            data = server.recv(min(CHUNK, left))
            if not data:
                return False
            client.sendall(data)
            left -= len(data)
            sent += len(data)
            if 0 <= stop_at <= sent:
                time.sleep(0.02)
                return False
        return True
