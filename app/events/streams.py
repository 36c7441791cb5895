"""One open stream: a bounded queue that the hub fills and the request drains."""

import threading
from collections.abc import Callable

from app.events.messages import KEEP_ALIVE
from app.web.client_connection import ClientConnection

# About a thousand events. The bytes of a frame are shared by all streams that queue it.
MAX_QUEUED_BYTES = 256 * 1024


class Stream:
    """The body of one response, as a WSGI iterable.

    Some ten thousand may be open at a time, so each holds as little as possible: no database
    connection, request or application context. While the request sleeps and the client keeps up,
    the hub writes to the socket itself, since waking a request costs more than all other work for
    an event. `lock` is shared with the registry of streams; nothing blocks while it is held.
    """

    __slots__ = (
        "_ended",
        "_is_waiting",
        "_leave",
        "_lock",
        "_queue",
        "_queued_bytes",
        "_rest",
        "_wake",
        "connection",
        "session_id",
        "slot",
        "user_id",
    )

    def __init__(
        self,
        user_id: int,
        session_id: str,
        *,
        connection: ClientConnection | None,
        lock: threading.Lock,
        leave: Callable[["Stream"], None],
    ) -> None:
        self.user_id = user_id
        self.session_id = session_id
        self.connection = connection
        self.slot = 0
        self._lock = lock
        self._leave = leave
        self._queue = [KEEP_ALIVE]
        self._queued_bytes = len(KEEP_ALIVE)
        self._rest = b""
        self._is_waiting = False
        self._ended = False
        self._wake = threading.Lock()
        self._wake.acquire()

    # --- the hub's side ------------------------------------------------------------------------

    def push(self, frames: bytes, instead: bytes) -> bool:
        """Send frames at once or queue them.

        If they do not fit, drop them and the whole queue, queue `instead` and return False.
        """
        with self._lock:
            if self._ended or self._try_send(frames):
                return True
            fits = self._queued_bytes + len(frames) <= MAX_QUEUED_BYTES
            if not fits:
                self._queue = []
                self._queued_bytes = 0
                frames = instead
            self._queue.append(frames)
            self._queued_bytes += len(frames)
            self._wake_up()
            return fits

    def beat(self) -> None:
        """Send a heartbeat, unless something else is about to be sent."""
        with self._lock:
            if not self._queue and not self._ended and not self._try_send(KEEP_ALIVE):
                self._queue.append(KEEP_ALIVE)
                self._queued_bytes += len(KEEP_ALIVE)
                self._wake_up()

    def end(self) -> None:
        """Send nothing more; the response ends once what is being sent is out."""
        with self._lock:
            self._ended = True
            self._queue = []
            self._wake_up()

    def client_left(self) -> None:
        """End the stream and abort what is being sent: the client has disconnected."""
        self.end()
        if self.connection is not None:
            self.connection.disconnect()

    def _try_send(self, frames: bytes) -> bool:
        """Send frames right away if the request sleeps, so that it is not sending itself.

        Return whether they were sent, or are left to the request in part.
        """
        if not self._is_waiting or self.connection is None:
            return False
        rest = self.connection.send_now(frames)
        if rest:
            self._rest = rest
            self._wake_up()
        return rest is not None

    def _wake_up(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._wake.release()

    # --- the request's side --------------------------------------------------------------------

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> bytes:
        """Return everything that is queued, blocking until there is something."""
        while True:
            self._send_rest()
            with self._lock:
                if self._ended:
                    raise StopIteration
                if self._queue:
                    frames, self._queue, self._queued_bytes = self._queue, [], 0
                    return frames[0] if len(frames) == 1 else b"".join(frames)
                self._is_waiting = True
            self._wake.acquire()

    def _send_rest(self) -> None:
        if self._rest and self.connection is not None:
            rest, self._rest = self._rest, b""
            self.connection.send_rest(rest)

    def close(self) -> None:
        """Leave the registry; the WSGI server calls this however the response ended (PEP 3333)."""
        self.end()
        self._leave(self)
