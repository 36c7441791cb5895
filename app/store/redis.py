"""The Redis client with its connection pool, a circuit breaker, and the names of the channels."""

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeVar

from redis import BlockingConnectionPool, ConnectionPool, Redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import InvalidResponse, ReadOnlyError, RedisError
from redis.retry import Retry

from app.core import sentinel_urls
from app.core.clock import Clock
from app.core.logs import Outage, add_redis_wait
from app.store import sentinel

T = TypeVar("T")

log = logging.getLogger(__name__)

SETTINGS_CHANNEL = "gatehouse:settings"
SESSIONS_CHANNEL = "gatehouse:sessions"
# Shared with the file side of the product.
EVENTS_CHANNEL = "gatehouse:storage_events"
ACCOUNTS_CHANNEL = "gatehouse:account_events"

TIMEOUT_SECONDS = 2.0
FAIL_FAST_TIMEOUT_SECONDS = 0.25
# As many as the requests of a busy worker use at once; they are opened on demand. A request that
# gets none in time must treat Redis as down, and then nothing is counted: with a limit of 64, 450
# clients that never paused switched the rate limits off.
CONNECTIONS = 1024
# redis-py would keep a buffer of 64 KiB for each connection; only the listening one needs that.
READ_BYTES = 4096
LISTENING_READ_BYTES = 65_536
HEALTH_CHECK_INTERVAL_SECONDS = 2
# Written to check that Redis accepts writes; nobody reads it, and concurrent writers do no harm.
WRITE_PROBE_KEY = "gatehouse:written_to_see"
WRITE_PROBE_TTL_MS = 1000
# Shown by CLIENT LIST; created once, or each new connection would look up its version on disk.
DRIVER = DriverInfo()

# While Redis is away, one caller per this many seconds tries it, and the others fail at once.
RETRY_SECONDS = 1.0
# An older failure says nothing: everybody may try at once. Longer than one try takes to time out.
FAILURE_TTL_SECONDS = 12.0
# Without a failure for this long, recovery is logged: a full Redis serves reads but refuses writes.
RECOVERED_AFTER_SECONDS = 5.0


class TimedRedis(Redis):
    """A Redis client that records how long each request has waited for it."""

    def execute_command(self, *command: Any, **options: Any) -> Any:
        """Send a command and return the reply."""
        began = perf_counter()
        try:
            return super().execute_command(*command, **options)  # type: ignore[no-untyped-call]
        except UnicodeDecodeError as error:
            raise InvalidResponse("the answer is not UTF-8") from error
        finally:
            add_redis_wait(perf_counter() - began)


def connect(url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, retries: int = 1) -> Redis:
    """Return a client with short timeouts: requests must not pile up while Redis is down."""
    options: dict[str, Any] = {
        "max_connections": CONNECTIONS,
        "timeout": timeout_seconds,
        "socket_timeout": timeout_seconds,
        "socket_connect_timeout": timeout_seconds,
        "retry": Retry(ExponentialBackoff(cap=0.05, base=0.01), retries),
        # A connection to what has become a replica is not kept.
        "retry_on_error": [ReadOnlyError],
        "decode_responses": True,
        "driver_info": DRIVER,
        "socket_read_size": READ_BYTES,
    }
    if sentinel_urls.is_sentinel_url(url):
        options |= sentinel.connection_options(url, timeout_seconds)
        pool = BlockingConnectionPool(**options)  # type: ignore[no-untyped-call]
    else:
        pool = BlockingConnectionPool.from_url(url, **options)
    return TimedRedis.from_pool(pool)  # closing the client then closes the pool as well


def connect_fail_fast(url: str) -> Redis:
    """Return a client for what a request can do without: counting, and news of token rotations."""
    return connect(url, timeout_seconds=FAIL_FAST_TIMEOUT_SECONDS, retries=0)


def for_listening(redis: Redis) -> Redis:
    """Return a client for subscriptions to the same server, with a single connection of its own.

    The connection is health-checked, and tolerates published bytes that are not valid text. It is
    never repaired silently, since messages are missed meanwhile.
    """
    pool = redis.connection_pool
    options = {
        **pool.connection_kwargs,
        "health_check_interval": HEALTH_CHECK_INTERVAL_SECONDS,
        "encoding_errors": "replace",
        "socket_read_size": LISTENING_READ_BYTES,
        "retry": Retry(NoBackoff(), 0),
    }
    own = ConnectionPool(connection_class=pool.connection_class, max_connections=1, **options)
    return Redis.from_pool(own)


def require_writable(redis: Redis) -> None:
    """Make sure that Redis accepts writes, which a full one or a replica does not.

    Raises: RedisError.
    """
    redis.set(WRITE_PROBE_KEY, "", px=WRITE_PROBE_TTL_MS)


class RedisAway(RedisError):
    """Redis did not answer a moment ago."""


class Breaker:
    """Calls Redis, and fails fast while it is known to be down: a circuit breaker.

    Clients with different timeouts need a breaker each: a Redis too slow for one may be fast enough
    for another. pybreaker tells the time by the system's clock alone, and ours is injected.
    """

    def __init__(self, client: Redis, clock: Clock) -> None:
        self.client = client
        self._clock = clock
        self._failed_at = self._next_try_at = -math.inf
        self._outage = Outage(log, "Redis failed", "Redis answers again")
        self.is_broken = False

    def call(self, ask: Callable[[Redis], T]) -> T:
        """Return the result of `ask`.

        Raises: RedisError.
        """
        if self.is_broken:
            self._require_turn()
        try:
            answer = ask(self.client)
        except RedisError as error:
            self.is_broken = True
            self._failed_at = self._clock.monotonic()
            self._next_try_at = self._failed_at + RETRY_SECONDS
            self._outage.record_failure(f"{type(error).__name__}: {error}")
            raise
        self.is_broken = False
        if self._outage.is_ongoing and self._seconds_since_failure() >= RECOVERED_AFTER_SECONDS:
            self._outage.record_success()
        return answer

    def run_script(self, script: str, keys: Sequence[str], *arguments: str | float) -> Any:
        """Run a Lua script, whose commands Redis runs at once, and return its answer.

        The client asks again if an answer is lost, so a script may run twice.
        """
        return self.call(lambda redis: redis.register_script(script)(keys, arguments))

    def attempt(self, ask: Callable[[Redis], object]) -> None:
        """Call `ask` for its effect, which is lost while Redis is down."""
        with suppress(RedisError):
            self.call(ask)

    def _require_turn(self) -> None:
        if self._seconds_since_failure() >= FAILURE_TTL_SECONDS:
            return
        now = self._clock.monotonic()
        if now < self._next_try_at:
            raise RedisAway
        self._next_try_at = now + RETRY_SECONDS

    def _seconds_since_failure(self) -> float:
        return self._clock.monotonic() - self._failed_at


class RedisClients:
    """Two clients of one server: `client`, which waits for answers, and a fail-fast one.

    `breaker` guards the former. `fail_fast` is for what a request can do without: counting, and
    news of token rotations. `injected` replaces both clients.
    """

    def __init__(self, url: str, clock: Clock, injected: Redis | None = None) -> None:
        self.client = injected or connect(url)
        self.breaker = Breaker(self.client, clock)
        self.fail_fast = Breaker(injected or connect_fail_fast(url), clock)

    def close(self) -> None:
        """Close all connections of both clients."""
        self.client.close()
        self.fail_fast.client.close()
