"""The connection to Redis, and the channel names this service uses."""

from redis import BlockingConnectionPool, Redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

SETTINGS_CHANNEL = "gatehouse:settings"

TIMEOUT_SECONDS = 2
CONNECTIONS = 64


def connect(url: str) -> Redis:
    """Return a client that gives up soon: a lost Redis must not pile up requests."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(ExponentialBackoff(cap=0.05, base=0.01), 1),
        decode_responses=True,
    )
    return Redis(connection_pool=pool)
