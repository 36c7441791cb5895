"""A client's connection, for the worker and for long-lived responses."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from socket import (
    MSG_PEEK,
    SHUT_RD,
    SHUT_RDWR,
    SHUT_WR,
    SO_SNDBUF,
    SOL_SOCKET,
)
from types import TracebackType
from typing import Any, Literal

import gevent

from app.serving import tcp_info

SEND_BUFFER_BYTES = 128 * 1024
READABLE = 1  # libev's EV_READ
CLOCK_MONOTONIC_COARSE = 6  # linux/time.h; it advances with the kernel's ticks
KERNEL_TICK_SECONDS = time.clock_getres(CLOCK_MONOTONIC_COARSE)


@dataclass(eq=False, slots=True)
class Connection:
    """A client's connection; `reads` counts the requests awaited on it, including the current."""

    client: Any
    reads: int = 0
    is_idle: bool = False
    is_chunked: bool = False
    _watcher: Any = None

    def seconds_since_data(self) -> float:
        """Return at least how long no data has arrived; 0 if this is not a TCP connection.

        The kernel counts whole ticks and rounds up, hence the subtraction.
        """
        milliseconds = tcp_info.read(self.client, tcp_info.LAST_DATA_RECEIVED)
        return max(0.0, milliseconds / 1000 - KERNEL_TICK_SECONDS)

    def hang_up(self) -> None:
        """Stop waiting for another request.

        Only the reading side is shut down: a request that has arrived is still read and answered.
        gevent's own shutdown() would raise an error in the waiting greenlet instead.
        """
        try:
            self.client._sock.shutdown(SHUT_RD)
        except OSError:
            return  # the client closed first

    def finish_sending(self) -> None:
        """Half-close: tell the client that nothing follows, but keep receiving."""
        try:
            self.client._sock.shutdown(SHUT_WR)
        except OSError:
            return  # the client closed first

    def prepare_long_response(self, *, is_chunked: bool) -> None:
        """Prepare for a response whose client may read slowly for hours."""
        self.is_chunked = is_chunked
        # By default the kernel buffers up to 4 MB per connection.
        self.client.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` when the client disconnects, without reading from it.

        A client that sends more data instead is no longer watched.
        """

        def look() -> None:
            self.unwatch()
            if self._has_left():
                gevent.spawn(left)

        self._watcher = gevent.get_hub().loop.io(self.client.fileno(), READABLE)
        self._watcher.start(look)

    def unwatch(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def disconnect(self) -> None:
        """Disconnect a client that does not read what it is being sent."""
        try:
            self.client._sock.shutdown(SHUT_RDWR)
        except OSError:
            return  # the client closed first

    def send_now(self, data: bytes) -> bytes | None:
        """Send part of the response as gunicorn would, without blocking and so without a greenlet.

        Return what did not fit; None if nothing was sent: trying again reveals the reason.
        """
        framed = b"%X\r\n%b\r\n" % (len(data), data) if self.is_chunked else data
        try:
            sent = self.client._sock.send(framed)
        except OSError:
            return None
        return framed[sent:]

    def send_rest(self, rest: bytes) -> None:
        """Send what did not fit, blocking until the client has made room for it."""
        self.client.sendall(rest)

    def _has_left(self) -> bool:
        try:
            return not self.client._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


class KeepAliveTimeout(gevent.Timeout):
    """The keep-alive timeout for the next request, during which the connection counts as idle."""

    def __init__(self, seconds: float, connection: Connection) -> None:
        super().__init__(seconds)
        self._connection = connection

    def __enter__(self) -> "KeepAliveTimeout":
        self._connection.reads += 1
        self._connection.is_idle = True
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[True] | None:
        """Suppress this timeout: gunicorn takes a missing request as the end of the connection."""
        self._connection.is_idle = False
        super().__exit__(kind, error, trace)
        return True if error is self else None
