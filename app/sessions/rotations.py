"""What tells an honest race for one refresh token from a replay (decisions A6, E7).

A request that arrived before the winning rotation was committed lost an honest race. The row's own
time stamp is taken before the commit, so it cannot tell a request that arrived in between. So the
time of the commit is told among all workers, through Redis; without Redis the row's stamp has to
do, and whether the loser saw the token live. And a rotation gives simultaneous requests a moment to
arrive before it starts.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from redis.exceptions import RedisError

from app.core.lua import epoch_seconds
from app.core.runtime import Runtime

# Longer than any request can be on its way (see `web.peer.arrived_at`).
REMEMBERED_SECONDS = 120
# The winner may have committed and its word not be there yet.
LATE_NEWS_SECONDS = 0.05
# What is sent at once arrives with no longer gaps; nobody notices it once in a quarter of an hour.
RIVALS_SECONDS = 0.025
MAX_WAITS = 8

_in_progress: Counter[str] = Counter()


@dataclass(frozen=True)
class Arrival:
    """When a request reached the service, and whether it opened its connection.

    Requests that are sent at once each open a connection of their own, and the others may still be
    at it. What comes over a connection in use was sent by itself.
    """

    at: datetime
    opened_connection: bool


@contextmanager
def gathering_rivals(rt: Runtime, token_digest: str, arrival: Arrival) -> Iterator[None]:
    """Let requests with the same token that are already here, or about to be, get their stamp."""
    _in_progress[token_digest] += 1
    try:
        rt.clock.sleep(0)
        if arrival.opened_connection or _in_progress[token_digest] > 1:
            _wait_for_rivals(rt, token_digest)
        yield
    finally:
        _in_progress[token_digest] -= 1
        if not _in_progress[token_digest]:
            del _in_progress[token_digest]


def _wait_for_rivals(rt: Runtime, token_digest: str) -> None:
    """Wait until no more of them come, but not for ever."""
    for _ in range(MAX_WAITS):
        known = _in_progress[token_digest]
        rt.clock.sleep(RIVALS_SECONDS)
        if _in_progress[token_digest] <= known:
            return


def remember(rt: Runtime, spent_digest: str) -> None:
    """Tell that the rotation which spent this token is committed."""
    now = epoch_seconds(rt.clock.now())
    rt.deferred_writes.put(_key(spent_digest), now, REMEMBERED_SECONDS)


def committed_at(rt: Runtime, spent_digest: str) -> datetime | None:
    """Return when that rotation was committed; None if it is long ago or nobody could tell."""
    try:
        seconds = _read(rt, spent_digest)
        if seconds is None:
            rt.clock.sleep(LATE_NEWS_SECONDS)
            seconds = _read(rt, spent_digest)
    except RedisError:
        return None
    return datetime.fromtimestamp(float(seconds), UTC) if seconds else None


def _read(rt: Runtime, spent_digest: str) -> str | None:
    seconds = rt.impatient_breaker.call(lambda redis: redis.get(_key(spent_digest)))
    return str(seconds) if seconds else None


def _key(spent_digest: str) -> str:
    return f"gatehouse:rotated:{spent_digest}"
