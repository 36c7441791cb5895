"""The open streams of one process: what each has still to send, and who may open one."""

import select
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue

from gevent.monkey import get_original
from prometheus_client import Counter, Gauge
from redis import Redis
from redis.exceptions import RedisError

from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.crypto.tokens import random_hex
from app.events.errors import TooManyStreams, WorkerFull
from app.events.messages import KEEP_ALIVE

# About a thousand events. The bytes of a frame are shared by all streams that queue it.
MAX_QUEUED_BYTES = 256 * 1024
# Also a number of ticks, of which the hub makes one per second.
HEARTBEAT_SECONDS = 15
# When a refused client may retry (Retry-After); browsers also reconnect by themselves.
RETRY_SECONDS = 15
PERMITS_KEY = "gatehouse:user_streams:"
LEASE_SECONDS = 45

# Adds a permit and returns 1, or returns 0 if the account has reached the limit.
_ACQUIRE = f"""
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], ARGV[3] + {SKEW.total_seconds()}, '+inf')
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
"""

STREAMS = Gauge("storage_event_streams", "Open event streams.", multiprocess_mode="livesum")
REFUSED = Counter("storage_event_streams_refused_total", "Streams refused.", ["reason"])


class Stream:
    """One open stream: a bounded queue that the hub fills and the request drains, as its body.

    Some ten thousand may be open at a time, so each holds as little as possible: no database
    connection, request or application context. `opened_with` is the id of its session, a text, or
    of its access token, a number.
    """

    __slots__ = (
        "_end",
        "_queue",
        "_queued_bytes",
        "connection",
        "descriptor",
        "has_ended",
        "is_closed",
        "opened_with",
        "permit",
        "slot",
        "user_id",
    )

    def __init__(
        self,
        user_id: int,
        opened_with: str | int,
        permit: str,
        connection: socket.socket | None,
        end: "Callable[[Collection[Stream]], object]",
    ) -> None:
        self.user_id = user_id
        self.opened_with = opened_with
        self.permit = permit
        self.connection = connection
        self.descriptor = connection.fileno() if connection is not None else None
        self.slot = 0
        self.has_ended = self.is_closed = False
        self._end = end
        self._queue: SimpleQueue[bytes] = SimpleQueue()
        self._queued_bytes = 0
        self._put(KEEP_ALIVE)

    def push(self, frames: bytes, instead: bytes) -> bool:
        """Queue frames; if they do not fit, drop all, queue `instead` and return False."""
        fits = self._queued_bytes + len(frames) <= MAX_QUEUED_BYTES
        if not fits:
            self._clear()
        self._put(frames if fits else instead)
        return fits

    def beat(self) -> None:
        """Queue a heartbeat, unless something else is about to be sent."""
        if self._queue.empty():
            self._put(KEEP_ALIVE)

    def finish(self) -> None:
        """Send nothing more; the response ends once what is being sent is out."""
        self.has_ended = True
        self._clear()
        self._put(b"")  # wakes the request

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> bytes:
        """Return the next frames, blocking until there are some."""
        frames = b"" if self.has_ended else self._queue.get()
        if self.has_ended:
            raise StopIteration
        self._queued_bytes -= len(frames)
        return frames

    def close(self) -> None:
        """Leave; the WSGI server calls this however the response ended (PEP 3333)."""
        self.is_closed = True
        self._end([self])

    def _put(self, frames: bytes) -> None:
        self._queued_bytes += len(frames)
        self._queue.put(frames)

    def _clear(self) -> None:
        with suppress(Empty):
            while True:
                self._queued_bytes -= len(self._queue.get_nowait())


class Permits:
    """The permits of one worker; each open stream holds one, so an account has only so many.

    A permit is a member of a sorted set of its account, scored by when it expires, for all workers
    of all instances. Its worker renews it with every heartbeat, so those of a dead worker lapse,
    and a Redis that lost its data learns of them again. While Redis is down, each worker counts
    only its own streams.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._name = ""
        self._numbers = count()

    def join(self) -> None:
        """Choose this worker's name; must be called after the fork, or all would share one."""
        self._name = random_hex()

    def acquire(self, user_id: int) -> str | None:
        """Return a new permit; None if the account has reached its limit."""
        now, permit = self._now(), f"{self._name}-{next(self._numbers)}"
        most = self._rt.config.sse_per_user
        arguments = now, most, now + LEASE_SECONDS, permit, LEASE_SECONDS
        try:
            is_free = self._rt.redis.fail_fast.run_script(
                _ACQUIRE, [f"{PERMITS_KEY}{user_id}"], *arguments
            )
        except RedisError:
            return permit
        return permit if is_free else None

    def renew(self, streams: Collection[Stream]) -> None:
        """Extend the permits of these streams; due more often than every LEASE_SECONDS."""
        expires_at = self._now() + LEASE_SECONDS

        def extend(redis: Redis) -> None:
            with redis.pipeline(transaction=False) as pipeline:
                for stream in streams:
                    pipeline.zadd(f"{PERMITS_KEY}{stream.user_id}", {stream.permit: expires_at})
                    pipeline.expire(f"{PERMITS_KEY}{stream.user_id}", LEASE_SECONDS)
                pipeline.execute()

        if streams:
            self._rt.redis.fail_fast.attempt(extend)
        # Some may have ended while the others were renewed.
        self.release([stream for stream in streams if stream.has_ended])

    def release(self, streams: Collection[Stream]) -> None:
        """Release the permits of these streams; while Redis is down, they lapse."""

        def remove(redis: Redis) -> None:
            with redis.pipeline(transaction=False) as pipeline:
                for stream in streams:
                    pipeline.zrem(f"{PERMITS_KEY}{stream.user_id}", stream.permit)
                pipeline.execute()

        if streams:
            self._rt.redis.fail_fast.attempt(remove)

    def _now(self) -> float:
        return self._rt.clock.now().timestamp()


class OpenStreams:
    """Adds streams, finds them, and removes them when they end."""

    def __init__(self, rt: Runtime) -> None:
        self.permits = Permits(rt)
        self.ticks = 0
        self._config = rt.config
        self._lock = threading.Lock()
        self._is_open = False
        self._by_user: dict[int, list[Stream]] = {}
        self._count = 0
        # Streams whose session has not been checked since they were added.
        self._fresh: list[Stream] = []
        # gevent's own would start a watcher for each connection at every look.
        self._poll = get_original("select", "poll")()
        self._by_descriptor: dict[int, Stream] = {}

    def open_up(self) -> None:
        """Accept streams from now on; must be called after the fork."""
        self.permits.join()
        self._is_open = True

    def close(self) -> None:
        """Accept no more; `is_open` is False from now on, also for a stream being added."""
        self._is_open = False

    def is_open(self) -> bool:
        """Return whether streams are accepted."""
        return self._is_open

    def add(self, user_id: int, opened_with: str | int, connection: socket.socket | None) -> Stream:
        """Return a new stream, which removes itself when it ends.

        Raises: WorkerFull, TooManyStreams.
        """
        with self._lock:
            if self._count >= self._config.sse_per_worker:
                REFUSED.labels("worker").inc()
                raise WorkerFull(retry_after=RETRY_SECONDS)
            self._count += 1
        has_room = len(self.of_user(user_id)) < self._config.sse_per_user
        permit = self.permits.acquire(user_id) if has_room else None
        if permit is None:
            self._count -= 1
            REFUSED.labels("user").inc()
            raise TooManyStreams(retry_after=RETRY_SECONDS)
        stream = Stream(user_id, opened_with, permit, connection, self.end)
        # The last slot, whose next turn is a whole round away.
        stream.slot = self.ticks % HEARTBEAT_SECONDS
        with self._lock:
            self._by_user.setdefault(user_id, []).append(stream)
            self._fresh.append(stream)
            if stream.descriptor is not None:
                self._by_descriptor[stream.descriptor] = stream
                self._poll.register(stream.descriptor, select.POLLRDHUP)
        STREAMS.inc()
        return stream

    def end(self, streams: Collection[Stream]) -> list[Stream]:
        """End these streams and remove them; return those that had not ended before."""
        ended = []
        with self._lock:
            for stream in streams:
                if not stream.has_ended:
                    stream.finish()
                    self._remove(stream)
                    ended.append(stream)
        STREAMS.dec(len(ended))
        self.permits.release(ended)
        return ended

    def users(self) -> list[int]:
        """Return the ids of the users who have streams here."""
        return list(self._by_user)

    def of_user(self, user_id: int) -> list[Stream]:
        """Return the streams of a user, oldest first."""
        return list(self._by_user.get(user_id, ()))

    def all(self) -> list[Stream]:
        """Return all streams."""
        return [stream for user in self.users() for stream in self.of_user(user)]

    def take_fresh(self) -> list[Stream]:
        """Return the streams that were added since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def left(self) -> list[Stream]:
        """Return the streams whose client has disconnected."""
        return [self._by_descriptor[descriptor] for descriptor, _ in self._poll.poll(0)]

    def _remove(self, stream: Stream) -> None:
        others = self._by_user[stream.user_id]
        others.remove(stream)
        if not others:
            del self._by_user[stream.user_id]
        self._count -= 1
        if stream.descriptor is not None:
            del self._by_descriptor[stream.descriptor]
            self._poll.unregister(stream.descriptor)
