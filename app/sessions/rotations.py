"""Evidence that distinguishes an honest race for a refresh token from a replay (decisions A6, E7).

A request that arrived before the winning rotation was committed has lost an honest race. The row's
timestamp is taken before the commit, so it misses requests that arrived in between. Workers
therefore share the commit time through Redis; without Redis, the row's timestamp must do, along
with whether the loser saw the token live. Moreover, a rotation waits a moment before it starts, for
concurrent requests to arrive.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from redis.exceptions import RedisError

from app.core.runtime import Runtime

# Longer than any request can be in flight (see `web.peer.arrived_at`).
COMMIT_TIME_TTL_SECONDS = 120
# The winner may have committed before its commit time reaches Redis.
COMMIT_TIME_RETRY_SECONDS = 0.05
# Requests sent at once arrive with no longer gaps; a client refreshes so rarely, about every 15
# minutes, that the delay goes unnoticed.
MAX_ARRIVAL_GAP_SECONDS = 0.025
MAX_WAITS = 8

_in_progress: Counter[str] = Counter()


@contextmanager
def awaiting_concurrent_requests(rt: Runtime, token_digest: str) -> Iterator[None]:
    """Give concurrent requests with the same token time to arrive and get their timestamp."""
    _in_progress[token_digest] += 1
    try:
        rt.clock.sleep(0)
        if _in_progress[token_digest] > 1:
            _wait_for_concurrent_requests(rt, token_digest)
        yield
    finally:
        _in_progress[token_digest] -= 1
        if not _in_progress[token_digest]:
            del _in_progress[token_digest]


def _wait_for_concurrent_requests(rt: Runtime, token_digest: str) -> None:
    """Wait until no more arrive, at most MAX_WAITS times."""
    for _ in range(MAX_WAITS):
        known = _in_progress[token_digest]
        rt.clock.sleep(MAX_ARRIVAL_GAP_SECONDS)
        if _in_progress[token_digest] <= known:
            return


def record_commit(rt: Runtime, spent_digest: str) -> None:
    """Record that the rotation which spent this token is now committed."""
    now, key = rt.clock.now().timestamp(), _key(spent_digest)
    rt.fail_fast_breaker.attempt(lambda redis: redis.set(key, now, ex=COMMIT_TIME_TTL_SECONDS))


def committed_at(rt: Runtime, spent_digest: str) -> datetime | None:
    """Return when the rotation that spent this token was committed; None if long ago or unknown."""
    try:
        seconds = _read(rt, spent_digest)
        if seconds is None:
            rt.clock.sleep(COMMIT_TIME_RETRY_SECONDS)
            seconds = _read(rt, spent_digest)
    except RedisError:
        return None
    return datetime.fromtimestamp(float(seconds), UTC) if seconds else None


def _read(rt: Runtime, spent_digest: str) -> str | None:
    seconds = rt.fail_fast_breaker.call(lambda redis: redis.get(_key(spent_digest)))
    return str(seconds) if seconds else None


def _key(spent_digest: str) -> str:
    return f"gatehouse:rotated:{spent_digest}"
