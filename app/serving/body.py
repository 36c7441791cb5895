"""A request body that must arrive within a time limit."""

import time
from collections.abc import Callable
from errno import EPROTO, ETIMEDOUT
from typing import Any

import gevent
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.errors import ParseException
from gunicorn.http.unreader import SocketUnreader

from app.core.event_loop import yield_to_event_loop
from app.serving.connection import Connection
from app.web.client_connection import WorkerBody

# Slow bodies tie up connections: the OWASP Denial of Service Cheat Sheet asks for a minimum rate
# and a maximum time. nginx's client_body_timeout, 60 s between two reads, admits a byte a minute.
BODY_SECONDS = 30.0
# A file sent over a slow line takes minutes. As with Apache's RequestReadTimeout, whose default is
# body=20,MinRate=500, the bytes of a file extend its deadline, but here only up to a limit.
FILE_BYTES_PER_SECOND = 1024
MAX_FILE_SECONDS = 1800.0  # 16 MiB at 9 KiB a second
SLOW, BROKEN = "slow body", "broken chunks"
PIECE_BYTES = 16 * 1024  # some 30 ms of parsing if sent as one-byte chunks
READ_AHEAD_BYTES = 1024
# By default gunicorn reads up to a megabyte ahead, and copies the remainder at every read.
SocketUnreader.max_body_chunk = 128 * 1024  # type: ignore[attr-defined]  # the stubs are older


class TimedBody(WorkerBody):
    """A request body that must arrive in full within BODY_SECONDS; a file extends its deadline.

    Otherwise a client that trickles bytes could hold its connection forever. On a timeout the
    application sees a lost connection, and gunicorn closes it.
    """

    def __init__(self, body: Any, connection: Connection) -> None:
        self._connection = connection
        self._body = body
        self._began = time.monotonic()
        self._ends_at = self._latest_end = self._began + BODY_SECONDS
        self._has_ended = False
        reader = getattr(body, "reader", None)
        # Chunks may be a single byte, and parsing many of them is pure CPU work.
        self._is_chunked = isinstance(reader, ChunkedReader)
        self._counted = reader if isinstance(reader, LengthReader) else None
        self._is_first = connection.reads == 1

    @property
    def connection(self) -> Connection:
        """The connection the request came in on."""
        return self._connection

    @property
    def is_first_of_connection(self) -> bool:
        """Whether this is the first request on its connection."""
        return self._is_first

    def seconds_since_arrival(self) -> float:
        """Return at least how long ago the request arrived; a busy worker picks it up late."""
        return self._connection.seconds_since_data()

    def allow_slow_body(self) -> None:
        """From now on let every FILE_BYTES_PER_SECOND bytes extend the deadline by a second.

        For bodies of an authenticated sender that are not buffered in memory: otherwise slow
        senders could tie up what the bodies occupy.
        """
        self._latest_end = self._began + MAX_FILE_SECONDS

    def limit_rest_of_body(self) -> None:
        """Give the rest of the body, which nobody wants, at most BODY_SECONDS from now."""
        self._latest_end = min(self._latest_end, time.monotonic() + BODY_SECONDS)
        self._ends_at = min(self._ends_at, self._latest_end)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; for a file or a chunked body perhaps fewer than `size`."""
        if self._has_ended:  # gunicorn reads again after every response
            return b""
        if self._ends_at < self._latest_end:
            size = min(size, self._affordable_read_size())
        if self._is_chunked and size > PIECE_BYTES:
            size = PIECE_BYTES
            yield_to_event_loop()
        # A timer is not free, and most bodies arrive together with their headers.
        has_arrived = self._has_arrived(size)
        content = self._body.read(size) if has_arrived else self._in_time(self._body.read, size)
        # Buffered data is read without blocking, so the timeout would never fire.
        if content and time.monotonic() > self._ends_at:
            raise TimeoutError(ETIMEDOUT, SLOW)
        self._has_ended = not content and size != 0
        earned = len(content) / FILE_BYTES_PER_SECOND
        self._ends_at = min(self._latest_end, self._ends_at + earned)
        return content

    def readline(self, *size: int) -> bytes:
        """Return the next line."""
        return self._in_time(self._body.readline, *size)

    def drain(self) -> bool:
        """Drain what the application left unread; return False if the end was not reached.

        Yields between reads: otherwise a client that never stops sending would starve all others.
        """
        try:
            while self.read(PIECE_BYTES):
                yield_to_event_loop()
        except Exception:  # a client that has gone, or one of gunicorn's own errors
            return False
        return True

    def _has_arrived(self, size: int) -> bool:
        """Return whether `size` bytes, or all that remain, are certain to be buffered already."""
        if self._counted is None:
            return False
        missing: int = self._counted.length
        # gunicorn may read this much more than it is asked for.
        wanted = min(size + READ_AHEAD_BYTES, missing) if size >= 0 else missing
        here: int = self._counted.unreader.buf.getbuffer().nbytes
        return here >= wanted

    def _affordable_read_size(self) -> int:
        """Return how much the slowest acceptable sender delivers in half of the time left.

        Bytes extend the deadline only once read, and a read returns only when it has all of them.
        """
        return max(1, int((self._ends_at - time.monotonic()) * FILE_BYTES_PER_SECOND / 2))

    def _in_time(self, read: Callable[..., bytes], *size: int) -> bytes:
        with gevent.Timeout(
            max(0.0, self._ends_at - time.monotonic()), TimeoutError(ETIMEDOUT, SLOW)
        ):
            try:
                return read(*size)
            except ParseException:
                # Treat malformed chunks as a lost connection. The parser's error quotes the body.
                raise OSError(EPROTO, BROKEN) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)
