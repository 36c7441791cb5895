"""A client's connection, as the worker and answers that last see it."""

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
CLOCK_MONOTONIC_COARSE = 6  # linux/time.h; it moves with the kernel's ticks
KERNEL_TICK_SECONDS = time.clock_getres(CLOCK_MONOTONIC_COARSE)


@dataclass(eq=False, slots=True)
class Connection:
    """A client's connection: `reads` counts the requests waited for, the current one included."""

    client: Any
    reads: int = 0
    waiting: bool = False
    is_chunked: bool = False
    _watcher: Any = None

    def silent_seconds(self) -> float:
        """Return for how long at least nothing has arrived; 0 for what is no TCP connection.

        The kernel counts in its own ticks, and a part of one for a whole one.
        """
        milliseconds = tcp_info.read(self.client, tcp_info.LAST_DATA_RECEIVED)
        return max(0.0, milliseconds / 1000 - KERNEL_TICK_SECONDS)

    def hang_up(self) -> None:
        """End the wait for another request.

        Only the reading side is shut: bytes that have arrived are still read and answered.
        gevent's own shutdown() would instead throw an error into the greenlet that waits.
        """
        try:
            self.client._sock.shutdown(SHUT_RD)
        except OSError:
            return  # the client was faster

    def finish_sending(self) -> None:
        """Tell the client that nothing follows; what it sends is still received."""
        try:
            self.client._sock.shutdown(SHUT_WR)
        except OSError:
            return  # the client was faster

    def expect_long_answer(self, *, is_chunked: bool) -> None:
        """Prepare for an answer whose reader may be slow for hours."""
        self.is_chunked = is_chunked
        # The kernel would keep up to 4 MB for each.
        self.client.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` when the client hangs up, though nobody reads from it.

        A client that sends more instead is not watched any longer.
        """

        def look() -> None:
            self.unwatch()
            if self._has_left():
                gevent.spawn(left)

        self._watcher = gevent.get_hub().loop.io(self.client.fileno(), READABLE)
        self._watcher.start(look)

    def unwatch(self) -> None:
        """Watch no longer."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def cut(self) -> None:
        """Hang up on a client that does not read what is being sent to it."""
        try:
            self.client._sock.shutdown(SHUT_RDWR)
        except OSError:
            return  # the client was faster

    def send_now(self, data: bytes) -> bytes | None:
        """Send a part of the answer as gunicorn would, without waiting and so without a greenlet.

        Return what did not fit; None when nothing was sent: whoever tries again meets the reason.
        """
        framed = b"%X\r\n%b\r\n" % (len(data), data) if self.is_chunked else data
        try:
            sent = self.client._sock.send(framed)
        except OSError:
            return None
        return framed[sent:]

    def send_rest(self, rest: bytes) -> None:
        """Send what did not fit, waiting for the client to read."""
        self.client.sendall(rest)

    def _has_left(self) -> bool:
        try:
            return not self.client._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


class Wait(gevent.Timeout):
    """The keep-alive limit on the wait for a request, which marks the connection as idle."""

    def __init__(self, seconds: float, connection: Connection) -> None:
        super().__init__(seconds)
        self._connection = connection

    def __enter__(self) -> "Wait":
        self._connection.reads += 1
        self._connection.waiting = True
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[True] | None:
        """Swallow this time-out: gunicorn takes the missing request as the end."""
        self._connection.waiting = False
        super().__exit__(kind, error, trace)
        return True if error is self else None
