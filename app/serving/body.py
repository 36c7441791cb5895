"""A request's body, for which a client has so much time and no more."""

import time
from collections.abc import Callable
from errno import EPROTO, ETIMEDOUT
from typing import Any

import gevent
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.errors import ParseException
from gunicorn.http.unreader import SocketUnreader

from app.core.turns import take_turns
from app.serving.connection import Connection
from app.web.client_connection import WorkerBody

# Slow bodies hold connections (OWASP, Denial of Service Cheat Sheet): it wants a lowest rate and a
# longest time. nginx's client_body_timeout alone, 60 s between two reads, lets a byte a minute in.
BODY_SECONDS = 30.0
# Who sends a file over a bad line needs minutes. As with Apache's RequestReadTimeout, whose default
# is body=20,MinRate=500, a file earns its time by arriving, and here not without end.
FILE_BYTES_PER_SECOND = 1024
LONGEST_FILE_SECONDS = 1800.0  # 16 MiB at 9 KiB a second
SLOW, BROKEN = "slow body", "broken chunks"
PIECE_BYTES = 16 * 1024  # as chunks of one byte they take some 30 ms
READ_AHEAD_BYTES = 1024
# By default gunicorn reads up to a megabyte ahead, and copies what is left of it at every read.
SocketUnreader.max_body_chunk = 128 * 1024  # type: ignore[attr-defined]  # the stubs are older


class TimedBody(WorkerBody):
    """A request's body, which must have arrived in full within BODY_SECONDS; a file earns more.

    A client that sends a byte now and then would otherwise hold its connection for ever. The
    application sees a lost connection, and gunicorn hangs up.
    """

    def __init__(self, body: Any, connection: Connection) -> None:
        self._connection = connection
        self._body = body
        self._began = time.monotonic()
        self._ends_at = self._latest_end = self._began + BODY_SECONDS
        self._has_ended = False
        reader = getattr(body, "reader", None)
        # Chunks may be of one byte, and to take many of them apart is all computing.
        self._is_chunked = isinstance(reader, ChunkedReader)
        self._counted = reader if isinstance(reader, LengthReader) else None
        self._is_first = connection.reads == 1

    @property
    def connection(self) -> Connection:
        """The connection the request came over."""
        return self._connection

    @property
    def is_first_of_connection(self) -> bool:
        """Whether no other request came over it before."""
        return self._is_first

    def waited_seconds(self) -> float:
        """Return how long the request has been here at least; a busy worker takes it late."""
        return self._connection.silent_seconds()

    def expect_file(self) -> None:
        """From now on let FILE_BYTES_PER_SECOND bytes that arrive earn another second.

        For bodies whose sender is known and that are not collected in memory: to send them slowly
        is to hold what they need.
        """
        self._latest_end = self._began + LONGEST_FILE_SECONDS

    def expect_nothing(self) -> None:
        """From now on the rest, which nobody wants, has no longer than any other body."""
        self._latest_end = min(self._latest_end, time.monotonic() + BODY_SECONDS)
        self._ends_at = min(self._ends_at, self._latest_end)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; of a file, or in chunks, perhaps fewer than asked for."""
        if self._has_ended:  # gunicorn asks again after every answer
            return b""
        if self._ends_at < self._latest_end:
            size = min(size, self._bearable_bytes())
        if self._is_chunked and size > PIECE_BYTES:
            size = PIECE_BYTES
            take_turns()
        # A timer has its price, and the bodies of most requests came with their headers.
        has_arrived = self._has_arrived(size)
        content = self._body.read(size) if has_arrived else self._in_time(self._body.read, size)
        # What has already arrived is read without waiting, so no time-out strikes.
        if content and time.monotonic() > self._ends_at:
            raise TimeoutError(ETIMEDOUT, SLOW)
        self._has_ended = not content and size != 0
        earned = len(content) / FILE_BYTES_PER_SECOND
        self._ends_at = min(self._latest_end, self._ends_at + earned)
        return content

    def readline(self, *size: int) -> bytes:
        """Return the next line."""
        return self._in_time(self._body.readline, *size)

    def throw_away(self) -> bool:
        """Read what the application left; False when it did not come to its end.

        Without letting others run, a client that sends without end would be read from alone.
        """
        try:
            while self.read(PIECE_BYTES):
                take_turns()
        except Exception:  # a sender that has gone, or what this server raises itself
            return False
        return True

    def _has_arrived(self, size: int) -> bool:
        """Tell whether so many bytes, or all that are missing, are surely here already."""
        if self._counted is None:
            return False
        missing: int = self._counted.length
        # gunicorn may read so much more than it is asked for.
        wanted = min(size + READ_AHEAD_BYTES, missing) if size >= 0 else missing
        here: int = self._counted.unreader.buf.getbuffer().nbytes
        return here >= wanted

    def _bearable_bytes(self) -> int:
        """Return what even the slowest sender can bring in half of the time that is left.

        Bytes earn their time once they have been read, and a read ends when it has all of them.
        """
        return max(1, int((self._ends_at - time.monotonic()) * FILE_BYTES_PER_SECOND / 2))

    def _in_time(self, read: Callable[..., bytes], *size: int) -> bytes:
        with gevent.Timeout(
            max(0.0, self._ends_at - time.monotonic()), TimeoutError(ETIMEDOUT, SLOW)
        ):
            try:
                return read(*size)
            except ParseException:
                # Chunks that are none: who sends them has gone. The error's text repeats the body.
                raise OSError(EPROTO, BROKEN) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)
