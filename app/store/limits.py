"""How often requests, mails and guesses at secrets may come, counted in Redis.

A network is an IPv4 address, or the /64 of an IPv6 one. One subscriber may have 65,536 of the
latter, so all of them together get ten times what each gets. Without Redis, every request and mail
passes, and failed guesses are counted in this process, whatever account they target. Why not the
library `limits`: docs/decisions/0008.
"""

import logging
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cachetools import LRUCache
from redis import Redis
from redis.exceptions import RedisError

from app.core.addresses import subscriber_prefix
from app.core.clock import SKEW, Clock
from app.core.config import Bucket, FailureLimit
from app.core.errors import AppError, Misconfigured, RateLimited, ServerFault, Unavailable
from app.crypto.secret_box import SecretBox
from app.crypto.tokens import random_hex
from app.store.redis import Breaker

log = logging.getLogger(__name__)

MAX_LOCAL_NETWORKS = 10_000
MAX_NETWORKS_SHOWN = 1_000
NO_VERDICTS = (Misconfigured, ServerFault, Unavailable)

# The limit of all networks of one IPv6 subscriber together, as a multiple of that of one network.
SUBSCRIBER_LIMIT_FACTOR = 10

# What lies further ahead was written by a clock that was ahead, see `Clock.is_ahead`.
MAX_SKEW_SECONDS = int(SKEW.total_seconds())

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

    def take(self, name: str, bucket: Bucket, subject: str, *, is_network: bool = False) -> None:
        """Take one token; of a network in IPv6 also one of its subscriber's shared bucket.

        Without Redis everything passes. Raises: RateLimited.
        """
        subjects = _network_and_subscriber(subject) if is_network else [subject]
        keys = [f"gatehouse:rate:{name}:{each}" for each in subjects]
        arguments = [self._clock.now().timestamp()]
        for factor in (1, SUBSCRIBER_LIMIT_FACTOR)[: len(keys)]:
            arguments += (1 / (factor * bucket.per_second), factor * bucket.burst)
        try:
            raise_if_limited(self._breaker.run_script(_TAKE, keys, *arguments))
        except RedisError:
            return


def raise_if_limited(wait_ms: int, message: str | None = None) -> None:
    """Refuse a request that has to wait; 0 lets it pass. `message` replaces the usual one.

    Raises: RateLimited.
    """
    if wait_ms:
        raise RateLimited(message, retry_after=math.ceil(wait_ms / 1000))


# Counts an attempt in sorted sets scored by time, under all keys or none. Returns 0, or the
# milliseconds to wait. The limit of the second key is SUBSCRIBER_LIMIT_FACTOR times that of the
# first. An attempt is never counted twice. No wait exceeds the window, and what lies further ahead
# is forgotten: a clock that was ahead has written it.
# The index, if there is one, has the counters of one account, each with its limit and the time of
# its last attempt. KEYS: the counters, then perhaps the index. ARGV: now, window in seconds, slots
# in the window, name of the attempt, number of counters.
_RESERVE = f"""
local now, window, most, attempt = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local counters, limit = tonumber(ARGV[5]), most
for number = 1, counters do
  local key = KEYS[number]
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  redis.call('ZREMRANGEBYSCORE', key, now + window, '+inf')
  if redis.call('ZCARD', key) >= limit and not redis.call('ZSCORE', key, attempt) then
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local wait = math.min(tonumber(oldest[2]) + window - now, window)
    return math.max(1, math.ceil(wait * 1000))
  end
  limit = limit * {SUBSCRIBER_LIMIT_FACTOR}
end
local index = KEYS[counters + 1]
if index then redis.call('ZREMRANGEBYSCORE', index, '-inf', now - window) end
limit = most
for number, key in ipairs(KEYS) do
  if number <= counters then
    redis.call('ZADD', key, 'NX', ARGV[1], attempt)
    if index then redis.call('ZADD', index, ARGV[1], limit .. ' ' .. key) end
    limit = limit * {SUBSCRIBER_LIMIT_FACTOR}
  end
  redis.call('PEXPIRE', key, math.ceil(window * 1000))
end
return 0
"""


@dataclass(frozen=True)
class Failures:
    """Failed attempts at an account: the most from one network, and until when one is refused."""

    attempts: int
    locked_until: datetime | None


class AttemptLimits:
    """Limits the failed attempts at an account's password or second factor from one network.

    `account` names a known account, or is the identifier of an unknown one. The caller frees all
    of an account's slots once a login is complete.
    """

    def __init__(
        self, breaker: Breaker, clock: Clock, limit: FailureLimit, secret_box: SecretBox
    ) -> None:
        self._breaker = breaker
        self._clock = clock
        self._limit = limit
        self._secret_box = secret_box
        self._lock = threading.Lock()
        # By network: the time of each attempt that Redis could not count.
        self._local: LRUCache[str, dict[str, float]] = LRUCache(MAX_LOCAL_NETWORKS)

    def reserve(self, account: str, network: str, user_id: int | None, *, attempt: str) -> None:
        """Count an attempt, under a unique name, before its secret is verified.

        `user_id` is None for an unknown account. Raises: RateLimited.
        """
        now, limit = self._clock.now().timestamp(), self._limit
        keys = self._keys(account, network)
        arguments = (now, limit.window_seconds, limit.attempts, attempt, len(keys))
        if user_id is not None:
            keys = [*keys, self._index(account)]
        try:
            wait_ms = self._breaker.run_script(_RESERVE, keys, *arguments)
        except RedisError:
            wait_ms = self._reserve_locally(network, attempt)
        if wait_ms:
            # The identifier of an unknown account may be a password typed into the wrong field.
            who = "an unknown account" if user_id is None else f"account {user_id}"
            extra = {} if user_id is None else {"user_id": user_id}
            seconds = math.ceil(wait_ms / 1000)
            message = "too many failed attempts: %s is refused from %s for %s s"
            log.warning(message, who, network, seconds, extra=extra)
        raise_if_limited(wait_ms)

    @contextmanager
    def counted_attempt(self, account: str, network: str, user_id: int | None) -> Iterator[str]:
        """Count an attempt for a block that verifies its secret; yield its name, for `give_back`.

        An exception that is a verdict (`is_verdict`) leaves the attempt counted. Any other means
        that nothing was verified, and the attempt is given back. Raises: RateLimited.
        """
        attempt = random_hex()
        self.reserve(account, network, user_id, attempt=attempt)
        try:
            yield attempt
        except BaseException as error:
            if not is_verdict(error):
                self.give_back(account, network, attempt)
            raise

    def give_back(self, account: str, network: str, attempt: str) -> None:
        """Uncount one attempt, whose secret was right or never verified, and no other.

        For use cases that verify a secret without completing a login: clearing the failures would
        let an attacker who knows one secret guess another without limit. Without Redis it expires
        with its window.
        """
        self._give_back_locally(network, attempt)
        keys = self._keys(account, network)
        self._breaker.attempt(lambda redis: [redis.zrem(key, attempt) for key in keys])

    def clear(self, account: str, network: str, attempt: str) -> None:
        """Forget the account's attempts from this network: `attempt` completed a login."""
        self._give_back_locally(network, attempt)
        keys = self._keys(account, network)
        self._breaker.attempt(lambda redis: redis.delete(*keys))

    def clear_all(self, account: str) -> None:
        """Forget the attempts at a known account from everywhere.

        Raises: RedisError.
        """
        index = self._index(account)

        def forget(redis: Redis) -> None:
            members: Any = redis.zrange(index, 0, -1)
            counters = [member.partition(" ")[2] for member in members]
            redis.delete(index, *counters)

        self._breaker.call(forget)

    def find_failures(self, account: str) -> Failures | None:
        """Return how often a known account has failed of late; None while Redis is away."""
        now, window = self._clock.now().timestamp(), self._limit.window_seconds
        index = self._index(account)

        def read(redis: Redis) -> list[tuple[int, list[float]]]:
            newest: Any = redis.zrange(index, 0, MAX_NETWORKS_SHOWN - 1, desc=True)
            counters = [member.split(" ", 1) for member in newest]
            with redis.pipeline(transaction=False) as pipeline:
                for _, counter in counters:
                    pipeline.zrange(counter, 0, -1, withscores=True)
                found = pipeline.execute()
            return [
                (int(limit), [at for _, at in each if abs(now - at) < window])
                for (limit, _), each in zip(counters, found, strict=True)
            ]

        try:
            counted = self._breaker.call(read)
        except RedisError:
            return None
        ends = [min(*times, now) + window for limit, times in counted if len(times) >= limit]
        until = datetime.fromtimestamp(max(ends), UTC) if ends else None
        return Failures(max((len(times) for _, times in counted), default=0), until)

    def _keys(self, account: str, network: str) -> list[str]:
        box = self._secret_box
        return [
            f"{self._index(account)}:{box.keyed_digest(each, 'failed-secrets-network')}"
            for each in _network_and_subscriber(network)
        ]

    def _index(self, account: str) -> str:
        # Keyed digests, so that Redis shows neither which accounts are being tried nor from where.
        return f"gatehouse:failures:{self._secret_box.keyed_digest(account, 'failed-secrets')}"

    def _reserve_locally(self, network: str, attempt: str) -> int:
        window, most = self._limit.window_seconds, self._limit.attempts
        now = self._clock.monotonic()
        counts = {}
        with self._lock:
            for each in _network_and_subscriber(network):
                times = self._local.get(each, {})
                counts[each] = {name: at for name, at in times.items() if at > now - window}
                if len(counts[each]) >= most:
                    return math.ceil((min(counts[each].values()) + window - now) * 1000)
                most *= SUBSCRIBER_LIMIT_FACTOR
            for each, times in counts.items():
                self._local[each] = {**times, attempt: now}
        return 0

    def _give_back_locally(self, network: str, attempt: str) -> None:
        with self._lock:
            for each in _network_and_subscriber(network):
                self._local.get(each, {}).pop(attempt, None)


def is_verdict(error: BaseException) -> bool:
    """Return whether an error says that a secret was checked, not that it could not be."""
    return isinstance(error, AppError) and not isinstance(error, NO_VERDICTS)


def _network_and_subscriber(network: str) -> list[str]:
    """Return a network, then its IPv6 subscriber, with SUBSCRIBER_LIMIT_FACTOR times the limit."""
    site = subscriber_prefix(network)
    return [network, site] if site else [network]
