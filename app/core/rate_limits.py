"""Rate limits for requests and mails: token buckets in Redis.

A network is an IPv4 address, or the /64 of an IPv6 one. One subscriber may have 65,536 of the
latter, so all of them together get ten times what each gets. Without Redis everything passes.

The library `limits` was considered for this and for `attempt_limits.py`. It has no token bucket,
takes one key at a time where a network and its subscriber must pay together or not at all, cannot
give back an entry of its moving window, and tells the time by the system's clock alone.
"""

import math
from collections.abc import Sequence

from redis.exceptions import RedisError

from app.core.addresses import subscriber_prefix
from app.core.clock import Clock
from app.core.config import Bucket
from app.core.errors import RateLimited
from app.core.redis import Breaker

# The limit of all networks of one IPv6 subscriber together, as a multiple of that of one network.
SUBSCRIBER_LIMIT_FACTOR = 10

# What exceeds a bucket's maximum by more than this was written by a fast clock, see `flask doctor`.
MAX_SKEW_SECONDS = 5

# The generic cell rate algorithm (GCRA): one number per key, the time its bucket is full again.
# Takes one token from every bucket or none; returns 0, or how many milliseconds to wait. What a
# fast clock wrote is ignored: otherwise this machine would refuse its requests as long as that one
# gets any. ARGV: now, then gap (the emission interval, in seconds) and burst of each key.
_TAKE = f"""
local now, full = tonumber(ARGV[1]), {{}}
for index, key in ipairs(KEYS) do
  local gap, burst = tonumber(ARGV[2 * index]), tonumber(ARGV[2 * index + 1])
  local full_at = math.max(tonumber(redis.call('GET', key) or now), now)
  if full_at > now + burst * gap + {MAX_SKEW_SECONDS} then full_at = now end
  full_at = full_at + gap
  local wait = full_at - burst * gap - now
  if wait > 0.0005 then return math.ceil(wait * 1000) end
  full[index] = full_at
end
for index, key in ipairs(KEYS) do
  local life = math.ceil((full[index] - now) * 1000)
  redis.call('SET', key, string.format('%.6f', full[index]), 'PX', life)
end
return 0
"""


class RateLimits:
    """Token buckets: for each name, one per network or per other party that is counted."""

    def __init__(self, breaker: Breaker, clock: Clock) -> None:
        self._breaker = breaker
        self._clock = clock

    def take(self, name: str, bucket: Bucket, subject: str) -> None:
        """Take one token; without Redis everything passes.

        Raises: RateLimited.
        """
        self._take(name, [(subject, bucket)])

    def take_for_network(self, name: str, bucket: Bucket, network: str) -> None:
        """Take one token of a network and, for IPv6, one of its subscriber's shared bucket.

        Raises: RateLimited.
        """
        buckets = [(network, bucket)]
        if site := subscriber_prefix(network):
            buckets.append((site, bucket.times(SUBSCRIBER_LIMIT_FACTOR)))
        self._take(name, buckets)

    def _take(self, name: str, buckets: Sequence[tuple[str, Bucket]]) -> None:
        keys = [f"gatehouse:rate:{name}:{subject}" for subject, _ in buckets]
        arguments = [self._clock.now().timestamp()]
        for _, bucket in buckets:
            arguments += (1 / bucket.per_second, bucket.burst)
        try:
            wait_ms = self._breaker.run_script(_TAKE, keys, *arguments)
        except RedisError:
            return
        raise_if_limited(wait_ms)


def raise_if_limited(wait_ms: int, message: str | None = None) -> None:
    """Refuse a request that has to wait; 0 lets it pass. `message` replaces the usual one.

    Raises: RateLimited.
    """
    if wait_ms:
        raise RateLimited(message, retry_after=math.ceil(wait_ms / 1000))
