"""Failed passwords and codes, counted per account and network (decisions A11, E20).

A slot is taken before a secret is looked at, so that simultaneous guesses cannot overtake the
limit. The networks of one IPv6 subscriber also share slots, as in `rate_limits.py`. Without Redis
failures are counted in this process, whichever account they are at (decision A29).
"""

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from redis.exceptions import RedisError

from app.core.addresses import site_of
from app.core.breaker import Breaker
from app.core.clock import Clock
from app.core.config import FailureLimit
from app.core.errors import AppError, Misconfigured, ServerFault, Unavailable
from app.core.lua import Script, epoch_seconds
from app.core.rate_limits import NETWORKS_TOGETHER, refuse_for
from app.core.secret_box import SecretBox
from app.core.tokens import random_hex

log = logging.getLogger(__name__)

MAX_LOCAL_NETWORKS = 10_000
NO_VERDICTS = (Misconfigured, ServerFault, Unavailable)

# For scripts that count an attempt in sorted sets by time, under every key or under none: answers
# 0, or the milliseconds to wait. The second key has NETWORKS_TOGETHER times what the first has. An
# attempt that is counted already is not counted again. Nobody waits for longer than the window,
# after which the key is gone, whatever time a clock that is ahead wrote into it.
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
    most = most * {NETWORKS_TOGETHER}
  end
  return 0
end
"""
_RESERVE = Script(f"""{RESERVE}
return reserve(KEYS, tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4])
""")


class Slots(NamedTuple):
    """Where the attempts of one network are counted, and how many there may be in the window.

    An account's keys are `before`, the account's name, and each of `after`: the network's, and that
    of its subscriber. A script may learn the name itself.
    """

    before: str
    after: tuple[str, ...]
    limit: FailureLimit

    def keys(self, counted_as: str) -> list[str]:
        """Return the keys of the account that `FailedSecrets.counted_as` gave this name."""
        return [f"{self.before}{counted_as}{after}" for after in self.after]


class FailedSecrets:
    """Attempts at an account's password or second factor from one network.

    A slot is taken before the secret is looked at, so parallel guesses cannot overtake the limit
    (decision E20); the caller gives all slots back when a login is complete.
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
        """Count an attempt before its secret is verified; return its name, for `give_back`.

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
        refuse_guess_for(wait_ms, user_id, network)
        return attempt

    @contextmanager
    def judging(self, account: str, network: str, user_id: int | None) -> Iterator[str]:
        """Count an attempt as `reserve` does, and have its secret verified in the block.

        A refusal that is raised there is a verdict. Whatever else is raised means that nothing was
        verified, and gives the attempt back. Raises: RateLimited.
        """
        attempt = self.reserve(account, network, user_id)
        try:
            yield attempt
        except BaseException as error:
            if not is_verdict(error):
                self.give_back(account, network, attempt)
            raise

    def counted_as(self, account: str) -> str:
        """Return the name of an account in keys."""
        return self._secret_box.keyed_digest(account, "failed-secrets")

    def slots(self, network: str) -> Slots:
        """Return what a script needs to count an attempt together with something else."""
        names = (
            self._secret_box.keyed_digest(each, "failed-secrets-network")
            for each in _counted_together(network)
        )
        return Slots("gatehouse:failures:", tuple(f":{name}" for name in names), self._limit)

    def give_back(self, account: str, network: str, attempt: str) -> None:
        """Uncount one attempt, whose secret was right, and none of those that were wrong.

        For what proves a secret without completing a login: to forget the others would let whoever
        knows one secret guess at another without end (decision E20).
        """
        self._local.give_back(network, attempt)
        keys = self._keys(account, network)
        with suppress(RedisError):  # it is forgotten when its window has passed
            self._breaker.call(lambda redis: [redis.zrem(key, attempt) for key in keys])

    def clear(self, account: str, network: str, attempt: str) -> None:
        """Forget the account's attempts: the login is complete, by `attempt`."""
        self._local.give_back(network, attempt)
        keys = self._keys(account, network)
        with suppress(RedisError):  # they are forgotten when their window has passed
            self._breaker.call(lambda redis: redis.delete(*keys))

    def _keys(self, account: str, network: str) -> list[str]:
        # Keyed, so that Redis never shows which accounts are being tried, nor from where.
        return self.slots(network).keys(self.counted_as(account))


class _LocalFailures:
    """The same limits by network and by subscriber alone, for while Redis is away."""

    def __init__(self, clock: Clock, limit: FailureLimit) -> None:
        self._clock = clock
        self._limit = limit
        self._lock = threading.Lock()
        # Times by attempt, the oldest first, by network.
        self._times: OrderedDict[str, dict[str, float]] = OrderedDict()

    def reserve(self, network: str, attempt: str) -> int:
        """Return 0, or how many milliseconds to wait."""
        now, most = self._clock.monotonic(), self._limit.attempts
        with self._lock:
            counts = [self._recent(each, now) for each in _counted_together(network)]
            for times in counts:
                if len(times) >= most:
                    oldest = next(iter(times.values()))
                    return math.ceil((oldest + self._limit.window_seconds - now) * 1000)
                most *= NETWORKS_TOGETHER
            for times in counts:
                times[attempt] = now
        return 0

    def give_back(self, network: str, attempt: str) -> None:
        """Uncount one attempt, if it was counted here; that it was right says nothing of others."""
        with self._lock:
            for each in _counted_together(network):
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


def _counted_together(network: str) -> list[str]:
    """Return a network, and behind it that of its subscriber, which has NETWORKS_TOGETHER times."""
    site = site_of(network)
    return [network, site] if site else [network]


def is_verdict(error: BaseException) -> bool:
    """Tell whether an error says something about a secret, not just that nobody looked at it."""
    return isinstance(error, AppError) and not isinstance(error, NO_VERDICTS)


def refuse_guess_for(wait_ms: int, user_id: int | None, network: str) -> None:
    """Refuse an attempt at an account's secret that has to wait so long; the log tells operators.

    `user_id` is None where there is no such account: what was typed there may be a password.
    Raises: RateLimited.
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
    refuse_for(wait_ms)
