"""The connection to Redis, and the channel names this service uses."""

import os
from time import monotonic, perf_counter
from typing import Any

from redis import BlockingConnectionPool, ConnectionPool, Redis
from redis.backoff import ExponentialBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

from app.core import waits

SETTINGS_CHANNEL = "gatehouse:settings"
SESSIONS_CHANNEL = "gatehouse:sessions"
# Known to the file side of the product as well (decision A22).
EVENTS_CHANNEL = "gatehouse:storage_events"

PATIENCE_SECONDS = 2.0
IMPATIENCE_SECONDS = 0.25
CONNECTIONS = 64
ASK_SECONDS = 2
TRUSTED_SECONDS = 1.0
# What CLIENT LIST shows; made once, or each new connection would look its version up on disk.
DRIVER = DriverInfo()


class Client(Redis):
    """Redis, which tells requests how long they waited for it."""

    def execute_command(self, *command: Any, **options: Any) -> Any:
        """Send a command and return the answer."""
        began = perf_counter()
        try:
            return self._ask(command, options)
        finally:
            waits.add_redis(perf_counter() - began)

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


class Connections(BlockingConnectionPool):
    """Hands the connection that was used last on as it is.

    redis-py asks each time whether it still lives, and keeps books of it, which together cost as
    much as half a command. What was in use within the last second is trusted: should it have died
    since, its command fails, and is tried again where that is wanted.
    """

    def reset(self) -> None:
        """Begin with no connection, as also after a fork."""
        self._kept: list[tuple[Any, float]] = []
        super().reset()  # type: ignore[no-untyped-call]

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """Return a connection, which `release` takes back.

        Raises: redis.exceptions.ConnectionError, also when all are in use for too long.
        """
        while self._kept and self.pid == os.getpid():
            connection, since = self._kept.pop()
            if monotonic() - since < TRUSTED_SECONDS:
                return connection
            super().release(connection)  # type: ignore[no-untyped-call]
        return super().get_connection()  # type: ignore[no-untyped-call]

    def release(self, connection: Any) -> None:
        """Take a connection back; the first of those who wait gets it, if all were in use."""
        if self.pool.queue and connection.pid == self.pid:
            self._kept.append((connection, monotonic()))
        else:
            super().release(connection)  # type: ignore[no-untyped-call]


def connect(url: str, *, patience: float = PATIENCE_SECONDS, retries: int = 1) -> Redis:
    """Return a client that gives up soon: a lost Redis must not pile up requests."""
    pool = Connections.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=patience,
        socket_timeout=patience,
        socket_connect_timeout=patience,
        retry=Retry(ExponentialBackoff(cap=0.05, base=0.01), retries),
        decode_responses=True,
        driver_info=DRIVER,
    )
    return Client.from_pool(pool)  # which closes the pool's connections with itself


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
    }
    own = ConnectionPool(connection_class=pool.connection_class, max_connections=1, **options)
    return Redis.from_pool(own)
