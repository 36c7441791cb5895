"""The connection to Redis, and the channel names this service uses."""

from redis import BlockingConnectionPool, Redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

SETTINGS_CHANNEL = "gatehouse:settings"

PATIENCE_SECONDS = 2.0
IMPATIENCE_SECONDS = 0.25
CONNECTIONS = 64


def connect(url: str, *, patience: float = PATIENCE_SECONDS, retries: int = 1) -> Redis:
    """Return a client that gives up soon: a lost Redis must not pile up requests."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=patience,
        socket_timeout=patience,
        socket_connect_timeout=patience,
        retry=Retry(ExponentialBackoff(cap=0.05, base=0.01), retries),
        decode_responses=True,
    )
    return Redis(connection_pool=pool)


def connect_impatiently(url: str) -> Redis:
    """Return a client for what a request can do without: counting, and telling of a rotation."""
    return connect(url, patience=IMPATIENCE_SECONDS, retries=0)
