"""Short-lived flows in Redis: opened, attempted a few times, and consumed once.

A flow is a hash under the digest of its token, so Redis never shows a token. The clock decides
expiry; the key lives on for a while, so that "expired" and "unknown" stay different answers.
Everything that must happen at most once is one script.

The Redis client asks again when an answer is lost, so a script may run twice. Whoever can win
something therefore passes a unique name, its `attempt`, which makes the second run return the same.

`put_once` and `take_once` are for a single attempt, right or wrong: reading is deleting.

All of them raise RedisError while Redis is down: nobody can continue without the flow.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, cast

from redis import Redis

from app.core.clock import Clock
from app.core.runtime import Runtime
from app.crypto.tokens import digest, random_hex
from app.store.redis import Breaker

# How long after its expiry a flow can still be found, to say what became of it.
EXPIRED_RETENTION = timedelta(minutes=10)
# More than the skew of any of our clocks: the clock decides expiry, not the TTL.
TTL_MARGIN = timedelta(minutes=1)

LIFE = {"opened_at", "expires_at"}

# What `ended_by` says once the attempts are spent; otherwise it names the attempt that consumed it.
_NO_ATTEMPTS_LEFT = "attempts"

# Takes one of the attempts of an open flow; returns its number, 0 if there is none to be had.
# ARGV: name of the attempt, most attempts.
_TAKE_ATTEMPT = """
local mine = 'attempt:' .. ARGV[1]
local data, ended_by, known, taken = unpack(
  redis.call('HMGET', KEYS[1], 'data', 'ended_by', mine, 'attempts'))
if known then return tonumber(known) end
if not data or ended_by or tonumber(taken) >= tonumber(ARGV[2]) then return 0 end
local number = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
redis.call('HSET', KEYS[1], mine, number)
return number
"""

_GIVE_BACK = """
if redis.call('HDEL', KEYS[1], 'attempt:' .. ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'attempts', -1)
end
"""

# Ends a flow; returns 1 to the one that ended it, however often it asks.
_END = """
if redis.call('HEXISTS', KEYS[1], 'data') == 0 then return 0 end
redis.call('HSETNX', KEYS[1], 'ended_by', ARGV[1])
return redis.call('HGET', KEYS[1], 'ended_by') == ARGV[1] and 1 or 0
"""

_REOPEN = """
if redis.call('HGET', KEYS[1], 'ended_by') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'ended_by')
end
"""


class FlowState(StrEnum):
    """The states in which a flow can be found."""

    OPEN = "open"
    EXPIRED = "expired"
    EXHAUSTED = "exhausted"
    CONSUMED = "consumed"


@dataclass(frozen=True)
class Flow:
    """A flow as just read. `name` is its token's digest, `data` what it was opened with."""

    name: str
    data: Mapping[str, Any] = field(repr=False)
    state: FlowState
    attempts: int
    expires_at: datetime


class FlowStore:
    """The flows of one kind, such as `mfa-login`; cheap to create."""

    def __init__(self, breaker: Breaker, clock: Clock, kind: str) -> None:
        self._breaker = breaker
        self._clock = clock
        self._kind = kind

    def open(
        self, user_id: int | None, data: Mapping[str, Any], lifetime: timedelta, prefix: str
    ) -> str:
        """Store a new flow and return its token: `prefix` and 128 random bits.

        `user_id` is None if it is no account's; such a flow only ends by itself.
        """
        token = prefix + random_hex()
        name, now = digest(token), self._clock.now()
        expires_at = (now + lifetime).timestamp()
        kept_for = lifetime + EXPIRED_RETENTION
        content = {
            "data": json.dumps(data, ensure_ascii=False),
            "attempts": 0,
            "opened_at": now.timestamp(),
            "expires_at": expires_at,
        }

        def store(redis: Redis) -> None:
            with redis.pipeline() as pipeline:
                pipeline.hset(self._key(name), mapping=content)
                pipeline.expire(self._key(name), kept_for)
                if user_id is not None:
                    index = self._index(user_id)
                    # Without what Redis has forgotten meanwhile. It lives as long as its
                    # longest-lived flow.
                    pipeline.zremrangebyscore(index, "-inf", (now - EXPIRED_RETENTION).timestamp())
                    pipeline.zadd(index, {name: expires_at})
                    pipeline.expire(index, kept_for, nx=True)
                    pipeline.expire(index, kept_for, gt=True)
                pipeline.execute()

        self._breaker.call(store)
        return token

    def find(self, token: str) -> Flow | None:
        """Return the flow of a token in whatever state; None if there is none."""
        name = digest(token)
        found: Any = self._breaker.call(lambda redis: redis.hgetall(self._key(name)))
        if "data" not in found:
            return None
        expires_at = datetime.fromtimestamp(float(found["expires_at"]), UTC)
        is_open = _is_open(self._clock, found)
        state = FlowState.OPEN if is_open else FlowState.EXPIRED
        if ended_by := found.get("ended_by"):
            spent = ended_by == _NO_ATTEMPTS_LEFT
            state = FlowState.EXHAUSTED if spent else FlowState.CONSUMED
        data = json.loads(found["data"])
        return Flow(name, data, state, int(found["attempts"]), expires_at)

    def take_attempt(self, flow: Flow, attempt: str, max_attempts: int) -> int:
        """Take one of the flow's attempts before a guess is checked.

        Return its number, counted from 1; 0 if none is left or the flow has ended.
        """
        return int(self._run(_TAKE_ATTEMPT, flow, attempt, max_attempts))

    def give_back(self, flow: Flow, attempt: str) -> None:
        """Undo `take_attempt`, when no guess was checked or nothing came of the check."""
        self._run(_GIVE_BACK, flow, attempt)

    def consume(self, flow: Flow, attempt: str) -> bool:
        """Consume the flow; of concurrent attempts, one gets True."""
        return bool(self._run(_END, flow, attempt))

    def is_consumed(self, flow: Flow) -> bool:
        """Return whether the flow has been consumed since it was read."""
        ended_by = self._breaker.call(lambda redis: redis.hget(self._key(flow.name), "ended_by"))
        return ended_by not in {None, _NO_ATTEMPTS_LEFT}

    def exhaust(self, flow: Flow) -> None:
        """End a flow whose attempts are spent."""
        self._run(_END, flow, _NO_ATTEMPTS_LEFT)

    def reopen(self, flow: Flow, attempt: str) -> None:
        """Undo this attempt's `consume`, when nothing came of it; the attempt stays spent."""
        self._run(_REOPEN, flow, attempt)

    def discard_all(self, user_id: int) -> None:
        """Delete every flow of this kind that an account has."""
        index = self._index(user_id)

        def discard(redis: Redis) -> None:
            if names := cast("list[str]", redis.zrange(index, 0, -1)):
                redis.delete(*map(self._key, names))
                redis.zrem(index, *names)

        self._breaker.call(discard)

    def _run(self, script: str, flow: Flow, *arguments: str | int) -> Any:
        return self._breaker.run_script(script, [self._key(flow.name)], *arguments)

    def _key(self, name: str) -> str:
        return f"gatehouse:flow:{self._kind}:{name}"

    def _index(self, user_id: int) -> str:
        return f"gatehouse:flows-of:{self._kind}:{user_id}"


def put_once(
    rt: Runtime,
    key: str,
    data: Mapping[str, Any],
    lifetime: timedelta,
    *,
    seal: Callable[[str], str] = str,
) -> None:
    """Store `data` for `lifetime` or until it is taken; Redis sees only what `seal` returns."""
    now = rt.clock.now()
    life = {"opened_at": now.timestamp(), "expires_at": (now + lifetime).timestamp()}
    kept = seal(json.dumps({**data, **life}, ensure_ascii=False))
    rt.redis.breaker.call(lambda redis: redis.setex(key, lifetime + TTL_MARGIN, kept))


def take_once(
    rt: Runtime, key: str, *, unseal: Callable[[str], str] = str
) -> dict[str, Any] | None:
    """Return what was stored and delete it; of concurrent callers only one gets it.

    None: unknown or expired. Raises what `unseal` raises.
    """
    kept: Any = rt.redis.breaker.call(lambda redis: redis.getdel(key))
    if kept is None:
        return None
    data: dict[str, Any] = json.loads(unseal(kept))
    is_open = _is_open(rt.clock, data)
    return {name: data[name] for name in data.keys() - LIFE} if is_open else None


def _is_open(clock: Clock, life: Mapping[str, Any]) -> bool:
    """Return whether what lives from `opened_at` to `expires_at` does so now.

    0.2 did not write when it began.
    """
    began_at, ends_at = (
        datetime.fromtimestamp(float(life.get(name, 0)), UTC)
        for name in ("opened_at", "expires_at")
    )
    return ends_at > clock.now() and not clock.is_ahead(began_at)
