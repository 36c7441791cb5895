"""Limits the open streams of each account across all workers of all instances (decisions A21, E14).

Each worker keeps its own counts in memory and in a Redis hash, and its name in a sorted set of
workers, scored by when its lease expires. So the counts of a dead worker lapse with its lease, and
a Redis that lost its data gets the counts again. While Redis is down, each worker counts only its
own streams (decision A29).

A permit is acquired or released by one atomic script. When Redis may be wrong, a worker rewrites
all its counts; a permit that changes during that may be counted twice or not at all, so it rewrites
them once more.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from app.core.runtime import Runtime
from app.core.tokens import random_hex

log = logging.getLogger(__name__)

WORKERS = "gatehouse:stream_workers"
COUNTS = "gatehouse:streams:"
LEASE_SECONDS = 45
# A field of the hash, set when all counts are written. A hash without it was created by a single
# permit after Redis had lost the others.
COMPLETE_FIELD = "whole"

# Increments this worker's count and returns 1, or returns 0 if all workers' counts together reach
# the limit. The worker passes the count it has in memory, since Redis may have lost it. The other
# workers' hashes are not declared in KEYS: only the script finds out which they are.
_ACQUIRE = """
local now, user, most, own = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local total = math.max(own, tonumber(redis.call('HGET', KEYS[2], user)) or 0)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
  if worker ~= ARGV[5] then
    total = total + (tonumber(redis.call('HGET', ARGV[6] .. worker, user)) or 0)
  end
end
if total >= most then return 0 end
redis.call('ZADD', KEYS[1], ARGV[7], ARGV[5])
redis.call('HINCRBY', KEYS[2], user, 1)
redis.call('EXPIRE', KEYS[2], ARGV[8])
return 1
"""

# Decrements this worker's count, and deletes the field at 0.
_RELEASE = """
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) <= 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
"""


class StreamLimiter:
    """The permits of one worker; each open stream holds one."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._name = self._key = ""
        self._own: Counter[int] = Counter()
        self._lock = threading.Lock()
        # Changes of permits: how many were ever begun, and how many Redis may not have seen yet.
        self._changes = self._under_way = 0
        self._is_synced = True

    def join(self) -> None:
        """Choose this worker's name; must be called after the fork, or all would share one."""
        self._name = random_hex()
        self._key = COUNTS + self._name

    def acquire(self, user_id: int) -> bool:
        """Acquire a permit; False if the account has reached its limit.

        While Redis is down, only this worker's permits count.
        """
        most = self._rt.config.sse_per_user
        with self._changing():
            with self._lock:
                own = self._own[user_id]
                if own >= most:
                    return False
                self._own[user_id] += 1
            try:
                is_free = self._acquire(user_id, own, most)
            except RedisError:
                self._is_synced = False
                return True
            if not is_free:
                self._forget(user_id)
            return is_free

    def release(self, user_id: int) -> None:
        """Release a permit."""
        with self._changing():
            self._forget(user_id)
            try:
                self._release(user_id)
            except RedisError:
                self._is_synced = False

    def renew(self) -> None:
        """Renew this worker's lease, and rewrite its counts if Redis may be wrong.

        Must be called more often than every LEASE_SECONDS.
        """
        try:
            is_complete = self._rt.fail_fast_breaker.call(self._extend_lease)
            if not is_complete or not self._is_synced:
                self._rewrite_counts()
        except RedisError as error:
            self._is_synced = False
            log.debug("open streams are counted by each worker alone: %s", error)

    def leave(self) -> None:
        """Release all permits at once, as this worker is stopping."""
        try:
            with self._rt.fail_fast_redis.pipeline() as pipeline:
                pipeline.zrem(WORKERS, self._name)
                pipeline.delete(self._key)
                pipeline.execute()
        except RedisError:
            log.debug("the counts of this worker are void in %s s", LEASE_SECONDS)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            self._changes += 1
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _acquire(self, user_id: int, own: int, most: int) -> bool:
        now = self._rt.clock.now().timestamp()
        arguments = (
            f"{now:.3f}",
            user_id,
            most,
            own,
            self._name,
            COUNTS,
            f"{now + LEASE_SECONDS:.3f}",
            LEASE_SECONDS,
        )
        return bool(
            self._rt.fail_fast_breaker.run_script(_ACQUIRE, [WORKERS, self._key], *arguments)
        )

    def _release(self, user_id: int) -> None:
        self._rt.fail_fast_breaker.run_script(_RELEASE, [self._key], user_id)

    def _forget(self, user_id: int) -> None:
        with self._lock:
            self._own[user_id] -= 1
            if not self._own[user_id]:
                del self._own[user_id]

    def _extend_lease(self, redis: Redis) -> bool:
        """Extend the lease; False if Redis has lost the counts."""
        now = self._rt.clock.now().timestamp()
        with redis.pipeline() as pipeline:
            pipeline.zremrangebyscore(WORKERS, "-inf", now)
            pipeline.zadd(WORKERS, {self._name: now + LEASE_SECONDS})
            pipeline.expire(self._key, LEASE_SECONDS)
            pipeline.hexists(self._key, COMPLETE_FIELD)
            return bool(pipeline.execute()[-1])

    def _rewrite_counts(self) -> None:
        """Rewrite all counts of this worker in Redis."""
        with self._lock:
            changes, is_exact = self._changes, not self._under_way
            counts: dict[Any, Any] = {COMPLETE_FIELD: 1, **self._own}
        with self._rt.fail_fast_redis.pipeline() as pipeline:
            pipeline.delete(self._key)
            pipeline.hset(self._key, mapping=counts)
            pipeline.expire(self._key, LEASE_SECONDS)
            pipeline.execute()
        self._is_synced = is_exact and changes == self._changes
