"""One open stream: a bounded queue that the hub fills and the request empties."""

import threading
from collections.abc import Callable

from app.events.messages import KEEP_ALIVE
from app.web.client_connection import ClientConnection

# About a thousand events. Every frame is shared by all streams that wait to send it.
MAX_QUEUED_BYTES = 256 * 1024


class Stream:
    """The body of one answer, as WSGI iterates over it.

    Ten thousand of these are open at a time, so each holds next to nothing: no connection to a
    database, no request, no application context. While its request sleeps and the client reads,
    the hub sends by itself, since waking a request costs more than everything else about an event.
    `lock` is the hub's; nothing waits while it is held.
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
        """Send frames, or queue them to be sent.

        When they do not fit, what is queued and they are dropped and `instead` is queued: False.
        """
        with self._lock:
            if self._ended or self._is_sent(frames):
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
        """Send a sign of life, unless something else is about to be sent."""
        with self._lock:
            if not self._queue and not self._ended and not self._is_sent(KEEP_ALIVE):
                self._queue.append(KEEP_ALIVE)
                self._queued_bytes += len(KEEP_ALIVE)
                self._wake_up()

    def end(self) -> None:
        """Send nothing more; the answer ends as soon as what is just being sent is out."""
        with self._lock:
            self._ended = True
            self._queue = []
            self._wake_up()

    def client_left(self) -> None:
        """End it, and whatever is just being sent: nobody reads that any more."""
        self.end()
        if self.connection is not None:
            self.connection.cut()

    def _is_sent(self, frames: bytes) -> bool:
        """Send frames right away if the request sleeps, so that nothing else is being sent."""
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
        """Return everything that is queued, waiting until there is something."""
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
        """Leave the hub; WSGI calls this whatever became of the answer."""
        self.end()
        self._leave(self)
