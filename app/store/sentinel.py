"""Connections to a Redis whose address its Sentinels know.

Why not those of redis-py: docs/decisions/0008.
"""

from typing import Any

import gevent
from redis import BlockingConnectionPool, Connection, Redis, SSLConnection
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError

from app.core import sentinel_urls

# The most that a new connection waits for one Sentinel before it asks the next.
TIMEOUT_SECONDS = 0.5
# They stay open. Sentinel admits a thousand where it may open as many files, and others as well.
CONNECTIONS = 4


class Sentinels:
    """The Sentinels of one service; `primary` is the address that one of them named last.

    None until the first of the service's connections is opened, which share this object.
    `timeout` in seconds is that of the clients, which does not include the DNS.
    """

    def __init__(self, clients: list[Redis], service: str, timeout: float) -> None:
        self._clients = clients
        self._service = service
        self._timeout = timeout
        self.primary: tuple[str, int] | None = None

    def find_primary(self) -> tuple[str, int]:
        """Ask one after the other, beginning with the one that answered last.

        Raises: RedisError.
        """
        reasons = []
        for client in self._clients:
            late = RedisTimeoutError("it, or the DNS, did not answer in time")
            try:
                with gevent.Timeout(2 * self._timeout, late):  # to connect, and to answer
                    state = client.sentinel_masters().get(self._service)  # type: ignore[no-untyped-call]
            except RedisError as error:
                reasons.append(str(error))
                continue
            except (KeyError, TypeError):  # redis-py's, of what no Sentinel answers
                reasons.append("it is no Sentinel")
                continue
            if state and state["is_master"] and not (state["is_sdown"] or state["is_odown"]):
                # A new list, as other requests may be going through this one.
                self._clients = [client, *(each for each in self._clients if each is not client)]
                self.primary = (state["ip"], state["port"])
                return self.primary
            reasons.append("it knows none that is up")
        raise MasterNotFoundError(f"no Sentinel names a primary ({'; '.join(reasons)})")


class PrimaryConnection(Connection):
    """A connection to what is the primary when it is opened, and when it is used again.

    A primary may live on, cut off from Sentinels and replicas, while another one takes over.
    """

    def __init__(self, *, sentinels: Sentinels, **options: Any) -> None:
        self._sentinels = sentinels
        super().__init__(**options)  # type: ignore[no-untyped-call]

    def connect(self) -> None:
        """Open it, unless it is open; the pool calls this whenever it hands the connection out."""
        if self._is_outdated():
            self.disconnect()  # type: ignore[no-untyped-call]
        super().connect()  # type: ignore[no-untyped-call]

    def can_read(self, timeout: float = 0) -> bool:
        """Wait for messages; only subscriptions do so, and what they miss must be noticed.

        Raises: RedisError.
        """
        if self._is_outdated():
            raise RedisConnectionError("another server is the primary")
        found: bool = super().can_read(timeout)  # type: ignore[no-untyped-call]
        return found

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        """Return an answer; a server that lacks replicas to write is left like a replica.

        Raises: RedisError.
        """
        try:
            return super().read_response(*arguments, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            if str(error).startswith("NOREPLICAS"):
                raise ReadOnlyError(str(error)) from error
            raise

    def _is_outdated(self) -> bool:
        return self._sentinels.primary != (self.host, self.port)

    def _connect(self) -> Any:
        self.host, self.port = self._sentinels.find_primary()
        late = RedisTimeoutError(f"{self.host}, or the DNS, did not answer in time")
        try:
            with gevent.Timeout(self.socket_connect_timeout, late):
                return super()._connect()  # type: ignore[no-untyped-call]
        except UnicodeError:
            raise RedisConnectionError("Sentinel names a host that is not valid") from None


class PrimaryTLSConnection(PrimaryConnection, SSLConnection):
    """The same with TLS."""


def connection_options(url: str, timeout_seconds: float) -> dict[str, Any]:
    """Return the options of a connection pool for a URL that leads to Sentinels."""
    parsed = sentinel_urls.parse(url)
    server: dict[str, Any] = parse_url(parsed.server_url)  # type: ignore[no-untyped-call]
    del server["host"]
    has_tls = server.get("connection_class") is SSLConnection
    tls = {name: value for name, value in server.items() if name.startswith("ssl_")}
    timeout = min(timeout_seconds, TIMEOUT_SECONDS)
    clients = [
        Redis.from_pool(
            BlockingConnectionPool(  # type: ignore[no-untyped-call]
                connection_class=SSLConnection if has_tls else Connection,
                max_connections=CONNECTIONS,
                timeout=timeout,
                host=host,
                port=port,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                retry=Retry(NoBackoff(), 0),  # the next one is asked instead
                **tls,
                **parsed.sentinel_options,
            )
        )
        for host, port in parsed.sentinels
    ]
    return {
        **server,
        "connection_class": PrimaryTLSConnection if has_tls else PrimaryConnection,
        "sentinels": Sentinels(clients, parsed.service, timeout),
    }
