"""Limits the open streams of each account across all workers of all instances.

Each stream is a member of a sorted set of its account, scored by when its permit expires. Its
worker renews the permit with every heartbeat, so those of a dead worker lapse, and a Redis that
lost its data is told again. While Redis is down, each worker counts only its own streams.
"""

from collections.abc import Collection
from itertools import count
from typing import TYPE_CHECKING

from redis import Redis
from redis.exceptions import RedisError

from app.core.runtime import Runtime
from app.core.tokens import random_hex

if TYPE_CHECKING:
    from app.events.streams import Stream

KEY = "gatehouse:user_streams:"
LEASE_SECONDS = 45

# Adds a permit and returns 1, or returns 0 if the account has reached the limit.
_ACQUIRE = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
"""


class Permits:
    """The permits of one worker; each open stream holds one."""

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
            is_free = self._rt.redis.fail_fast.run_script(_ACQUIRE, [f"{KEY}{user_id}"], *arguments)
        except RedisError:
            return permit
        return permit if is_free else None

    def renew(self, streams: "Collection[Stream]") -> None:
        """Extend the permits of these streams; due more often than every LEASE_SECONDS."""
        expires_at = self._now() + LEASE_SECONDS

        def extend(redis: Redis) -> None:
            with redis.pipeline(transaction=False) as pipeline:
                for stream in streams:
                    pipeline.zadd(f"{KEY}{stream.user_id}", {stream.permit: expires_at})
                    pipeline.expire(f"{KEY}{stream.user_id}", LEASE_SECONDS)
                pipeline.execute()

        if streams:
            self._rt.redis.fail_fast.attempt(extend)
        # Some may have ended while the others were renewed.
        self.release([stream for stream in streams if stream.has_ended])

    def release(self, streams: "Collection[Stream]") -> None:
        """Release the permits of these streams; while Redis is down, they lapse."""

        def remove(redis: Redis) -> None:
            with redis.pipeline(transaction=False) as pipeline:
                for stream in streams:
                    pipeline.zrem(f"{KEY}{stream.user_id}", stream.permit)
                pipeline.execute()

        if streams:
            self._rt.redis.fail_fast.attempt(remove)

    def _now(self) -> float:
        return self._rt.clock.now().timestamp()
