"""An HTTP endpoint with the metrics of this process's loaders, for Prometheus and other readers of OpenMetrics."""

import warnings
from typing import Any

from drapps import _core


class Server:
    """A running endpoint.  It ends by stop(), at the end of a with block, or with the process."""

    def __init__(self, address: str | int) -> None:
        address = str(address)
        self._core: Any = _core.metrics_start(address)
        self._host = address.rpartition(":")[0] or "127.0.0.1"
        self.port = _core.metrics_port(self._core)

    @property
    def url(self) -> str:
        """The address of the metrics."""
        return f"http://{self._host}:{self.port}/metrics"

    def stop(self) -> None:
        """Stop the endpoint; a second call does nothing."""
        self._core = None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Server({self.url!r})" if self._core else "Server(stopped)"


_running: list[Server] = []  # keeps servers alive whose object the caller dropped
_warned: list[str] = []  # problems with the variable that a warning was given for: each loader tries again


def start(address: str | int = "127.0.0.1:9464") -> Server:
    """Start an endpoint.

    address: a port (on 127.0.0.1) as text or a number, "address:port" or "[address]:port"; port 0: any free port.
        An address other than 127.0.0.1, ::1 or localhost opens it to the network, without a password.

    >>> import drapps
    >>> with drapps.metrics.start("127.0.0.1:0") as server:
    ...     print(server.url.endswith("/metrics"))
    True
    """
    server = Server(address)
    _running[:] = [old for old in _running if old._core] + [server]
    return server


def text() -> str:
    """Return the metrics as an endpoint would answer now."""
    return _core.metrics_text()


def from_environment() -> None:
    """Start the endpoint that DRAPPS_METRICS asks for, once per process.  Failures are warnings."""
    try:
        _core.metrics_from_environment()
    except _core.Error as error:
        if str(error) not in _warned:
            _warned.append(str(error))
            warnings.warn(f"DRAPPS_METRICS: {error}", RuntimeWarning, stacklevel=2)
