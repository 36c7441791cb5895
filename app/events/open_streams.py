"""The open streams of one process: whose they are, how many, when each gets its sign of life."""

import threading
from typing import NamedTuple

from prometheus_client import Counter, Gauge

from app.core.runtime import Runtime
from app.events.errors import TooManyStreams, WorkerFull
from app.events.seats import Seats
from app.events.streams import Stream
from app.web.client_connection import ClientConnection

# In ticks, of which the hub makes one a second.
HEARTBEAT_SECONDS = 15
# A browser comes back by itself after a while; so may who was refused.
RETRY_SECONDS = 15

STREAMS = Gauge("storage_event_streams", "Open event streams.", multiprocess_mode="livesum")
REFUSED = Counter("storage_event_streams_refused_total", "Streams refused.", ["reason"])


class Turn(NamedTuple):
    """Whose turn a tick is: streams that came since the last one, and those due a sign of life."""

    fresh: list[Stream]
    due: list[Stream]


class OpenStreams:
    """Takes streams in and lets them go; any thread may ask who is here."""

    def __init__(self, rt: Runtime) -> None:
        self.seats = Seats(rt)
        self._config = rt.config
        self._lock = threading.Lock()
        self._is_open = False
        self._by_user: dict[int, list[Stream]] = {}
        self._count = 0
        # A stream is in one slot; each tick the streams of the next one get their sign of life.
        self._wheel: tuple[set[Stream], ...] = tuple(set() for _ in range(HEARTBEAT_SECONDS))
        self._ticks = 0
        self._fresh: list[Stream] = []

    def open_up(self) -> None:
        """Take streams from now on; called after the fork."""
        self.seats.join()
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """Take no more; for one that is being taken just now `is_open` is false afterwards."""
        with self._lock:
            self._is_open = False

    def is_open(self) -> bool:
        """Tell whether streams are taken."""
        return self._is_open

    def add(self, user_id: int, session_id: str, connection: ClientConnection | None) -> Stream:
        """Return a new stream, which leaves by itself at its end.

        Raises: WorkerFull, TooManyStreams.
        """
        self._reserve(user_id)
        stream = Stream(
            user_id, session_id, connection=connection, lock=self._lock, leave=self._leave
        )
        with self._lock:
            self._by_user.setdefault(user_id, []).append(stream)
            # The slot just passed: its next turn is a whole round away.
            stream.slot = self._ticks % HEARTBEAT_SECONDS
            self._wheel[stream.slot].add(stream)
            # The session may have ended while its stream was not known here yet.
            self._fresh.append(stream)
        return stream

    def holds(self, stream: Stream) -> bool:
        """Tell whether this stream has not left yet."""
        return stream in self._wheel[stream.slot]

    def users(self) -> list[int]:
        """Return who has streams here."""
        with self._lock:
            return list(self._by_user)

    def of_user(self, user_id: int) -> tuple[Stream, ...]:
        """Return the streams of a user, in the order they came."""
        with self._lock:
            return tuple(self._by_user.get(user_id, ()))

    def everybody(self) -> list[Stream]:
        """Return every stream."""
        with self._lock:
            return [stream for theirs in self._by_user.values() for stream in theirs]

    def turn(self) -> Turn:
        """Go on by a tick and return whose turn it is."""
        with self._lock:
            self._ticks += 1
            fresh, self._fresh = self._fresh, []
            return Turn(fresh, list(self._wheel[self._ticks % HEARTBEAT_SECONDS]))

    def _reserve(self, user_id: int) -> None:
        with self._lock:
            has_room = self._count < self._config.sse_per_worker
            self._count += has_room
        if not has_room:
            REFUSED.labels("worker").inc()
            raise WorkerFull(retry_after=RETRY_SECONDS)
        if not self.seats.take(user_id):
            with self._lock:
                self._count -= 1
            REFUSED.labels("user").inc()
            raise TooManyStreams(retry_after=RETRY_SECONDS)
        STREAMS.inc()

    def _leave(self, stream: Stream) -> None:
        with self._lock:
            if not self.holds(stream):
                return
            self._wheel[stream.slot].remove(stream)
            others = self._by_user[stream.user_id]
            others.remove(stream)
            if not others:
                del self._by_user[stream.user_id]
            self._count -= 1
        if stream.connection is not None:
            stream.connection.unwatch()
        STREAMS.dec()
        self.seats.give_back(stream.user_id)
