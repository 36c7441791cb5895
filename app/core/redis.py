"""The Redis client with its connection pool, and the channel names this service uses."""

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
# Shared with the file side of the product (decision A22).
EVENTS_CHANNEL = "gatehouse:storage_events"

TIMEOUT_SECONDS = 2.0
FAIL_FAST_TIMEOUT_SECONDS = 0.25
# As many as the requests of a worker under load use at once; they are opened on demand. A request
# that gets none in time must treat Redis as down, and then nothing is counted: with a limit of 64,
# 450 clients that never paused switched the rate limits off.
CONNECTIONS = 1024
# A connection idle for this long is closed, or the peaks of all workers would add up.
IDLE_SECONDS = 60.0
# redis-py would keep a buffer of 64 KiB for each connection; only the listening one needs that.
READ_BYTES = 4096
LISTENING_READ_BYTES = 65_536
HEALTH_CHECK_INTERVAL_SECONDS = 2
# Written to check that Redis accepts writes; nobody reads it, and concurrent writers do no harm.
WRITE_PROBE_KEY = "gatehouse:written_to_see"
WRITE_PROBE_TTL_MS = 1000
# Shown by CLIENT LIST; created once, or each new connection would look up its version on disk.
DRIVER = DriverInfo()


class TimedRedis(Redis):
    """A Redis client that records how long each request has waited for it."""

    def execute_command(self, *command: Any, **options: Any) -> Any:
        """Send a command and return the reply."""
        began = perf_counter()
        try:
            return self._ask(command, options)
        finally:
            wait_times.add_redis(perf_counter() - began)

    def _ask(self, command: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Do what redis-py does, without its metrics of every command."""
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
    """Starts with an empty slot for each connection; redis-py would add them one by one."""

    def _init(self, maxsize: int) -> None:
        self.queue = [None] * maxsize


class Connections(BlockingConnectionPool):
    """A pool that hands out the most recently used connection as it is.

    redis-py reads from each connection first and does some bookkeeping, which together costs half
    as much as a command. Here one goes back to redis-py's own pool only if it has something to
    read, i.e. EOF or an unclaimed reply, or while a caller is blocked waiting for one. As the most
    recently used are reused, surplus connections grow old: each release closes one of those.
    """

    def reset(self) -> None:
        """Start without any connection; also called after a fork."""
        self._kept: deque[tuple[Any, float]] = deque()  # each with the time of its release
        self._asking: list[None] = []  # one for each caller still without a connection
        super().reset()  # type: ignore[no-untyped-call]

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """Return a connection, to be given back with `release`.

        Raises: redis.exceptions.ConnectionError, also when all stay in use for too long.
        """
        self._checkpid()
        # Before looking for one, so that whoever releases one meanwhile sees that it is wanted.
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
            # While slots are free, whoever asks is connecting, not blocked, and does not count.
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
        """Close the least recently used connection, if it was released no later than `until`."""
        try:
            if self._kept[0][1] > until:
                return
            connection, _ = self._kept.popleft()
        except IndexError:  # another thread was faster
            return
        connection.disconnect()
        super().release(connection)  # type: ignore[no-untyped-call]


def _is_whole(connection: Any) -> bool:
    return connection._get_socket() is not None and not connection.should_reconnect()


def _is_at_rest(connection: Any) -> bool:
    return _is_whole(connection) and not is_readable(connection._get_socket().fileno())


def require_writable(redis: Redis) -> None:
    """Make sure that Redis accepts writes, which a full one or a replica does not.

    Raises: RedisError.
    """
    redis.set(WRITE_PROBE_KEY, "", px=WRITE_PROBE_TTL_MS)


def connect(url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, retries: int = 1) -> Redis:
    """Return a client with short timeouts: requests must not pile up while Redis is down."""
    pool = Connections.from_url(
        url,
        max_connections=CONNECTIONS,
        queue_class=PrefilledQueue,
        timeout=timeout_seconds,
        socket_timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        retry=Retry(ExponentialBackoff(cap=0.05, base=0.01), retries),
        decode_responses=True,
        driver_info=DRIVER,
        socket_read_size=READ_BYTES,
    )
    return TimedRedis.from_pool(pool)  # closing the client then closes the pool as well


def connect_fail_fast(url: str) -> Redis:
    """Return a client for what a request can do without: counting, and news of token rotations."""
    return connect(url, timeout_seconds=FAIL_FAST_TIMEOUT_SECONDS, retries=0)


def for_listening(redis: Redis) -> Redis:
    """Return a client for subscriptions to the same server, with a single connection of its own.

    The connection is health-checked, and tolerates published bytes that are not valid text.
    """
    pool = redis.connection_pool
    options = {
        **pool.connection_kwargs,
        "health_check_interval": HEALTH_CHECK_INTERVAL_SECONDS,
        "encoding_errors": "replace",
        "socket_read_size": LISTENING_READ_BYTES,
    }
    own = ConnectionPool(connection_class=pool.connection_class, max_connections=1, **options)
    return Redis.from_pool(own)
