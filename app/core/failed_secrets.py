"""Failed passwords and codes, counted per account and network (decisions A11, E20).

A slot is taken before a secret is checked, so that concurrent guesses cannot exceed the limit. All
networks of one IPv6 subscriber also share slots, as in `rate_limits.py`. Without Redis, failures
are counted in this process, regardless of the account they target (decision A29).
"""

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from redis.exceptions import RedisError

from app.core.addresses import subscriber_prefix
from app.core.breaker import Breaker
from app.core.clock import Clock
from app.core.config import FailureLimit
from app.core.errors import AppError, Misconfigured, ServerFault, Unavailable
from app.core.lua import Script, epoch_seconds
from app.core.rate_limits import SUBSCRIBER_LIMIT_FACTOR, raise_if_limited
from app.core.secret_box import SecretBox
from app.core.tokens import random_hex

log = logging.getLogger(__name__)

MAX_LOCAL_NETWORKS = 10_000
NO_VERDICTS = (Misconfigured, ServerFault, Unavailable)

# Shared by scripts that count an attempt in sorted sets scored by time, under all keys or none.
# Returns 0, or the milliseconds to wait. The limit of the second key is SUBSCRIBER_LIMIT_FACTOR
# times that of the first. An attempt is never counted twice. No wait exceeds the window, after
# which the key has expired, whatever a machine whose clock is ahead wrote into it.
RESERVE = f"""
local function reserve_one(key, now, window, most, attempt)
  if redis.call('ZSCORE', key, attempt) then return 0 end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  if redis.call('ZCARD', key) >= most then
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local wait = math.min(tonumber(oldest[2]) + window - now, window)
    return math.max(1, math.ceil(wait * 1000))
  end
  redis.call('ZADD', key, string.format('%.6f', now), attempt)
  redis.call('PEXPIRE', key, math.ceil(window * 1000))
  return 0
end

local function reserve(keys, now, window, most, attempt)
  for index, key in ipairs(keys) do
    local wait = reserve_one(key, now, window, most, attempt)
    if wait > 0 then
      for taken = 1, index - 1 do redis.call('ZREM', keys[taken], attempt) end
      return wait
    end
    most = most * {SUBSCRIBER_LIMIT_FACTOR}
  end
  return 0
end
"""
_RESERVE = Script(f"""{RESERVE}
return reserve(KEYS, tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4])
""")


class Slots(NamedTuple):
    """The keys that count one network's attempts at an account, and their limit.

    A key is `key_prefix`, the account's digest, and one of `key_suffixes`: one for the network, one
    for its subscriber. In parts, because a script may have to read the digest from Redis first.
    """

    key_prefix: str
    key_suffixes: tuple[str, ...]
    limit: FailureLimit

    def keys(self, account_digest: str) -> list[str]:
        """Return the keys of an account, given its `FailedSecrets.account_digest`."""
        return [f"{self.key_prefix}{account_digest}{suffix}" for suffix in self.key_suffixes]


class FailedSecrets:
    """Limits the failed attempts at an account's password or second factor from one network.

    A slot is taken before the secret is checked, so concurrent guesses cannot exceed the limit
    (decision E20); the caller frees them all once a login is complete.
    """

    def __init__(
        self, breaker: Breaker, clock: Clock, limit: FailureLimit, secret_box: SecretBox
    ) -> None:
        self._breaker = breaker
        self._clock = clock
        self._limit = limit
        self._secret_box = secret_box
        self._local = _LocalFailures(clock, limit)

    def reserve(self, account: str, network: str, user_id: int | None) -> str:
        """Count an attempt before its secret is verified; return its id, for `give_back`.

        `account` names a known account, whose id is `user_id`, or the identifier of an unknown one.
        Raises: RateLimited.
        """
        now = epoch_seconds(self._clock.now())
        keys = self._keys(account, network)
        limit, attempt = self._limit, random_hex()
        arguments = (now, limit.window_seconds, limit.attempts, attempt)
        try:
            wait_ms = self._breaker.call(lambda redis: _RESERVE.run(redis, keys, *arguments))
        except RedisError:
            wait_ms = self._local.reserve(network, attempt)
        raise_if_guesses_limited(wait_ms, user_id, network)
        return attempt

    @contextmanager
    def counted_attempt(self, account: str, network: str, user_id: int | None) -> Iterator[str]:
        """Count an attempt as `reserve` does, for a block that verifies its secret.

        An exception that is a verdict (`is_verdict`) leaves the attempt counted. Any other means
        that nothing was verified, and the attempt is given back. Raises: RateLimited.
        """
        attempt = self.reserve(account, network, user_id)
        try:
            yield attempt
        except BaseException as error:
            if not is_verdict(error):
                self.give_back(account, network, attempt)
            raise

    def account_digest(self, account: str) -> str:
        """Return the keyed digest that stands for an account in Redis keys."""
        return self._secret_box.keyed_digest(account, "failed-secrets")

    def slots(self, network: str) -> Slots:
        """Return what a script needs to count an attempt atomically with other work."""
        names = (
            self._secret_box.keyed_digest(each, "failed-secrets-network")
            for each in _network_and_subscriber(network)
        )
        return Slots("gatehouse:failures:", tuple(f":{name}" for name in names), self._limit)

    def give_back(self, account: str, network: str, attempt: str) -> None:
        """Uncount one attempt, whose secret was right or never verified, and no other.

        For use cases that verify a secret without completing a login: clearing the failures would
        let an attacker who knows one secret guess another without limit (decision E20).
        """
        self._local.give_back(network, attempt)
        keys = self._keys(account, network)
        with suppress(RedisError):  # it expires with its window
            self._breaker.call(lambda redis: [redis.zrem(key, attempt) for key in keys])

    def clear(self, account: str, network: str, attempt: str) -> None:
        """Forget the account's attempts from this network: `attempt` completed a login."""
        self._local.give_back(network, attempt)
        keys = self._keys(account, network)
        with suppress(RedisError):  # they expire with their window
            self._breaker.call(lambda redis: redis.delete(*keys))

    def _keys(self, account: str, network: str) -> list[str]:
        # Keyed digests, so that Redis shows neither which accounts are being tried nor from where.
        return self.slots(network).keys(self.account_digest(account))


class _LocalFailures:
    """The same limits, per network and subscriber only, for while Redis is down."""

    def __init__(self, clock: Clock, limit: FailureLimit) -> None:
        self._clock = clock
        self._limit = limit
        self._lock = threading.Lock()
        # By network, least recently used first: the time of each attempt, oldest first.
        self._times: OrderedDict[str, dict[str, float]] = OrderedDict()

    def reserve(self, network: str, attempt: str) -> int:
        """Count an attempt and return 0, or return how many milliseconds to wait."""
        now, most = self._clock.monotonic(), self._limit.attempts
        with self._lock:
            counts = [self._recent(each, now) for each in _network_and_subscriber(network)]
            for times in counts:
                if len(times) >= most:
                    oldest = next(iter(times.values()))
                    return math.ceil((oldest + self._limit.window_seconds - now) * 1000)
                most *= SUBSCRIBER_LIMIT_FACTOR
            for times in counts:
                times[attempt] = now
        return 0

    def give_back(self, network: str, attempt: str) -> None:
        """Uncount one attempt, if it was counted here; it says nothing about the others."""
        with self._lock:
            for each in _network_and_subscriber(network):
                self._times.get(each, {}).pop(attempt, None)

    def _recent(self, network: str, now: float) -> dict[str, float]:
        times = self._times.setdefault(network, {})
        self._times.move_to_end(network)
        for name, time in list(times.items()):
            if time <= now - self._limit.window_seconds:
                del times[name]
        if len(self._times) > MAX_LOCAL_NETWORKS:
            self._times.popitem(last=False)
        return times


def _network_and_subscriber(network: str) -> list[str]:
    """Return a network, then its IPv6 subscriber, with SUBSCRIBER_LIMIT_FACTOR times the limit."""
    site = subscriber_prefix(network)
    return [network, site] if site else [network]


def is_verdict(error: BaseException) -> bool:
    """Return whether an error says that a secret was checked, not that it could not be."""
    return isinstance(error, AppError) and not isinstance(error, NO_VERDICTS)


def raise_if_guesses_limited(wait_ms: int, user_id: int | None, network: str) -> None:
    """Refuse an attempt at an account's secret, and log that, unless `wait_ms` is 0.

    `user_id` is None for an unknown account, whose identifier is not logged: it may be a
    password typed into the wrong field. Raises: RateLimited.
    """
    if wait_ms:
        who = "an unknown account" if user_id is None else f"account {user_id}"
        about = {} if user_id is None else {"user_id": user_id}
        log.warning(
            "too many failed attempts: %s is refused from %s for %s s",
            who,
            network,
            math.ceil(wait_ms / 1000),
            extra=about,
        )
    raise_if_limited(wait_ms)
