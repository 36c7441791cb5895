"""Registry of one process's open streams: their users, their number and their heartbeats."""

import threading
from typing import NamedTuple

from prometheus_client import Counter, Gauge

from app.core.runtime import Runtime
from app.events.errors import TooManyStreams, WorkerFull
from app.events.stream_limiter import StreamLimiter
from app.events.streams import Stream
from app.web.client_connection import ClientConnection

# Also a number of ticks, of which the hub makes one per second.
HEARTBEAT_SECONDS = 15
# When a refused client may retry (Retry-After); browsers also reconnect by themselves.
RETRY_SECONDS = 15

STREAMS = Gauge("storage_event_streams", "Open event streams.", multiprocess_mode="livesum")
REFUSED = Counter("storage_event_streams_refused_total", "Streams refused.", ["reason"])


class Tick(NamedTuple):
    """The streams of one tick: those added since the last one, and those due a heartbeat."""

    fresh: list[Stream]
    due: list[Stream]


class OpenStreams:
    """Adds streams and removes them when they end; thread-safe."""

    def __init__(self, rt: Runtime) -> None:
        self.limiter = StreamLimiter(rt)
        self._config = rt.config
        self._lock = threading.Lock()
        self._is_open = False
        self._by_user: dict[int, list[Stream]] = {}
        self._count = 0
        # Timing wheel: a stream is in one slot; each tick, the next slot's streams get a heartbeat.
        self._wheel: tuple[set[Stream], ...] = tuple(set() for _ in range(HEARTBEAT_SECONDS))
        self._ticks = 0
        self._fresh: list[Stream] = []

    def open_up(self) -> None:
        """Accept streams from now on; must be called after the fork."""
        self.limiter.join()
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """Accept no more; `is_open` is False from now on, also for a stream being added."""
        with self._lock:
            self._is_open = False

    def is_open(self) -> bool:
        """Return whether streams are accepted."""
        return self._is_open

    def add(self, user_id: int, session_id: str, connection: ClientConnection | None) -> Stream:
        """Return a new stream, which removes itself when it ends.

        Raises: WorkerFull, TooManyStreams.
        """
        self._reserve(user_id)
        stream = Stream(
            user_id, session_id, connection=connection, lock=self._lock, leave=self._leave
        )
        with self._lock:
            self._by_user.setdefault(user_id, []).append(stream)
            # The current slot, whose next turn is a whole revolution away.
            stream.slot = self._ticks % HEARTBEAT_SECONDS
            self._wheel[stream.slot].add(stream)
            # Checked at the next tick: the session may have ended before its stream was added here.
            self._fresh.append(stream)
        return stream

    def holds(self, stream: Stream) -> bool:
        """Return whether this stream has not been removed yet."""
        return stream in self._wheel[stream.slot]

    def users(self) -> list[int]:
        """Return the ids of the users who have streams here."""
        with self._lock:
            return list(self._by_user)

    def of_user(self, user_id: int) -> tuple[Stream, ...]:
        """Return the streams of a user, oldest first."""
        with self._lock:
            return tuple(self._by_user.get(user_id, ()))

    def everybody(self) -> list[Stream]:
        """Return all streams."""
        with self._lock:
            return [stream for theirs in self._by_user.values() for stream in theirs]

    def advance(self) -> Tick:
        """Advance the wheel by one tick and return the streams to handle."""
        with self._lock:
            self._ticks += 1
            fresh, self._fresh = self._fresh, []
            return Tick(fresh, list(self._wheel[self._ticks % HEARTBEAT_SECONDS]))

    def _reserve(self, user_id: int) -> None:
        with self._lock:
            has_room = self._count < self._config.sse_per_worker
            self._count += has_room
        if not has_room:
            REFUSED.labels("worker").inc()
            raise WorkerFull(retry_after=RETRY_SECONDS)
        if not self.limiter.acquire(user_id):
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
        self.limiter.release(stream.user_id)
