"""The connection to Redis, and the channel names this service uses."""

from collections import deque
from queue import LifoQueue
from time import perf_counter
from typing import Any

from redis import BlockingConnectionPool, ConnectionPool, Redis
from redis.backoff import ExponentialBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

from app.core import wait_times
from app.core.readable import is_readable

SETTINGS_CHANNEL = "gatehouse:settings"
SESSIONS_CHANNEL = "gatehouse:sessions"
# Known to the file side of the product as well (decision A22).
EVENTS_CHANNEL = "gatehouse:storage_events"

PATIENCE_SECONDS = 2.0
IMPATIENCE_SECONDS = 0.25
# As many as a worker under load has requests that ask at once; they are made when they are needed.
# Whoever waits for one in vain has to take it for a Redis that does not answer, and then nothing is
# counted: 64 switched the rate limits off once 450 clients never paused.
CONNECTIONS = 1024
# One that nobody needed for so long is closed, or the peaks of all workers would add up.
IDLE_SECONDS = 60.0
# redis-py would keep 64 KiB for each, as it does for the one that reads what others publish.
READ_BYTES = 4096
LISTENING_READ_BYTES = 65_536
ASK_SECONDS = 2
# Written to see whether anything can be; no one reads it, and several may write it at a time.
WRITTEN_TO_SEE = "gatehouse:written_to_see"
WRITTEN_MS = 1000
# What CLIENT LIST shows; made once, or each new connection would look its version up on disk.
DRIVER = DriverInfo()


class TimedRedis(Redis):
    """Redis, which tells requests how long they waited for it."""

    def execute_command(self, *command: Any, **options: Any) -> Any:
        """Send a command and return the answer."""
        began = perf_counter()
        try:
            return self._ask(command, options)
        finally:
            wait_times.add_redis(perf_counter() - began)

    def _ask(self, command: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Do what redis-py does, without the metrics it would keep of each command."""
        connection = self.connection_pool.get_connection()
        try:
            return connection.retry.call_with_retry(
                lambda: self._send_command_parse_response(  # type: ignore[no-untyped-call]
                    connection, command[0], *command, **options
                ),
                lambda _error: connection.disconnect(),  # type: ignore[no-untyped-call]
            )
        finally:
            self.connection_pool.release(connection)


class PrefilledQueue(LifoQueue[Any]):
    """Begins with a place for each connection; redis-py would put them in one by one."""

    def _init(self, maxsize: int) -> None:
        self.queue = [None] * maxsize


class Connections(BlockingConnectionPool):
    """Hands out again, as it is, the connection that was used last.

    redis-py reads from each one first, and keeps books of them, which together cost as much as half
    a command. Here one that has something to read, a farewell or what nobody waited for, goes to
    redis-py, and so does every connection while somebody waits for one. Those used last being used
    again, the others show by their age that there are more than it takes: each release closes one.
    """

    def reset(self) -> None:
        """Begin with no connection, as also after a fork."""
        self._kept: deque[tuple[Any, float]] = deque()  # each with the time of its release
        self._asking: list[None] = []  # one for each caller that has none yet
        super().reset()  # type: ignore[no-untyped-call]

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """Return a connection, which `release` takes back.

        Raises: redis.exceptions.ConnectionError, also when all are in use for too long.
        """
        self._checkpid()
        # Before it is looked for: who releases one meanwhile then sees that it is wanted.
        self._asking.append(None)
        try:
            while (connection := self._last_kept()) is not None:
                if _is_at_rest(connection):
                    return connection
                super().release(connection)  # type: ignore[no-untyped-call]
            return super().get_connection()  # type: ignore[no-untyped-call]
        finally:
            self._asking.pop()

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        if connection.pid == self.pid and _is_whole(connection):
            now = perf_counter()
            self._kept.append((connection, now))
            self._close_idle(now - IDLE_SECONDS)
            # A caller that is just connecting needs no place, so it does not count.
            is_wanted = len(self._asking) > self.pool.qsize()
            connection = self._last_kept() if is_wanted else None
        if connection is not None:
            super().release(connection)  # type: ignore[no-untyped-call]

    def _last_kept(self) -> Any:
        try:
            return self._kept.pop()[0]
        except IndexError:
            return None

    def _close_idle(self, until: float) -> None:
        """Close the one that was not used for longest, if that was no later than `until`."""
        try:
            if self._kept[0][1] > until:
                return
            connection, _ = self._kept.popleft()
        except IndexError:  # other threads were faster
            return
        connection.disconnect()
        super().release(connection)  # type: ignore[no-untyped-call]


def _is_whole(connection: Any) -> bool:
    return connection._get_socket() is not None and not connection.should_reconnect()


def _is_at_rest(connection: Any) -> bool:
    return _is_whole(connection) and not is_readable(connection._get_socket().fileno())


def require_writable(redis: Redis) -> None:
    """Make sure that Redis takes what it is given, which a full one or a replica does not.

    Raises: RedisError.
    """
    redis.set(WRITTEN_TO_SEE, "", px=WRITTEN_MS)


def connect(url: str, *, patience: float = PATIENCE_SECONDS, retries: int = 1) -> Redis:
    """Return a client that gives up soon: a lost Redis must not pile up requests."""
    pool = Connections.from_url(
        url,
        max_connections=CONNECTIONS,
        queue_class=PrefilledQueue,
        timeout=patience,
        socket_timeout=patience,
        socket_connect_timeout=patience,
        retry=Retry(ExponentialBackoff(cap=0.05, base=0.01), retries),
        decode_responses=True,
        driver_info=DRIVER,
        socket_read_size=READ_BYTES,
    )
    return TimedRedis.from_pool(pool)  # which closes the pool's connections with itself


def connect_impatiently(url: str) -> Redis:
    """Return a client for what a request can do without: counting, and telling of a rotation."""
    return connect(url, patience=IMPATIENCE_SECONDS, retries=0)


def for_listening(redis: Redis) -> Redis:
    """Return a client of the same server, with a connection of its own, to subscribe with.

    Its connection is asked whether it still lives, and reads whatever bytes somebody published.
    """
    pool = redis.connection_pool
    options = {
        **pool.connection_kwargs,
        "health_check_interval": ASK_SECONDS,
        "encoding_errors": "replace",
        "socket_read_size": LISTENING_READ_BYTES,
    }
    own = ConnectionPool(connection_class=pool.connection_class, max_connections=1, **options)
    return Redis.from_pool(own)
