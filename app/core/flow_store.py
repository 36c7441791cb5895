"""Short-lived flows in Redis: opened, tried a few times, and used up once.

A flow is a hash under the digest of its token, so Redis never shows a token. The clock decides
expiry; the key lives on for a while, so that "expired" and "unknown" stay different answers
(decision E19). Everything that must happen at most once is one script.

A client whose answer was lost asks again, so a script may run twice. Whoever may win something
therefore brings a name of its own, an attempt, and the second run answers what the first one did.

Every method raises RedisError while Redis does not answer: without its flow nobody gets further.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from redis import Redis

from app.core.breaker import Breaker
from app.core.clock import Clock
from app.core.lua import Script
from app.core.rate_limits import RESERVE, Slots, refuse_for
from app.core.tokens import digest, random_hex

# How long an ended flow still says what became of it.
REMEMBERED = timedelta(minutes=10)


class FlowState(StrEnum):
    """What a flow can be found as."""

    OPEN = "open"
    EXPIRED = "expired"
    EXHAUSTED = "exhausted"
    CONSUMED = "consumed"


@dataclass(frozen=True)
class Flow:
    """A flow as it was just read. `name` is its token's digest, `data` what it was opened with."""

    name: str
    data: Mapping[str, Any] = field(repr=False)
    state: FlowState
    attempts: int
    expires_at: datetime


# Opens a flow and puts it on the list of its account's. What Redis has forgotten by itself leaves
# that list, which is kept as long as the flow of it that is kept longest.
# ARGV: name, expires_at, seconds to keep, what has been forgotten by now, then the fields.
_OPEN = Script("""
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
if redis.call('TTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('EXPIRE', KEYS[2], ARGV[3]) end
return 1
""")

# Spends an attempt of an open flow that has one left, and one of its account's slots.
# Answers the attempt's number, 0 for none left, or less than 0: milliseconds to wait for a slot.
# ARGV: now, attempts of a flow, attempt, seconds of the window, slots.
_SPEND = Script(f"""{RESERVE}
local mine = 'attempt:' .. ARGV[3]
local known = redis.call('HGET', KEYS[1], mine)
if known then return tonumber(known) end
local now = tonumber(ARGV[1])
local state, expires_at, spent = unpack(
  redis.call('HMGET', KEYS[1], 'state', 'expires_at', 'attempts'))
if state ~= 'open' or tonumber(expires_at) <= now then return 0 end
if tonumber(spent) >= tonumber(ARGV[2]) then return 0 end
local wait_ms = reserve(KEYS[2], now, tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[3])
if wait_ms > 0 then return -wait_ms end
local number = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
redis.call('HSET', KEYS[1], mine, number)
return number
""")

# Uses an open flow up. Answers 1 to the one attempt that did, however often that one asks.
_CONSUME = Script("""
local state, by = unpack(redis.call('HMGET', KEYS[1], 'state', 'consumed_by'))
if state == 'consumed' and by == ARGV[1] then return 1 end
if state ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'consumed', 'consumed_by', ARGV[1])
return 1
""")

# Opens a flow again that this attempt used up, and no other one since.
_REOPEN = Script("""
if redis.call('HGET', KEYS[1], 'consumed_by') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'consumed_by')
redis.call('HSET', KEYS[1], 'state', 'open')
return 1
""")

# Ends an open flow.
_EXHAUST = Script("""
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'exhausted')
return 1
""")

# Deletes every flow that an index names, and the index, so that none is opened in between.
_DISCARD = Script("""
local names = redis.call('ZRANGE', KEYS[1], 0, -1)
for _, name in ipairs(names) do redis.call('DEL', ARGV[1] .. name) end
redis.call('DEL', KEYS[1])
return #names
""")


class FlowStore:
    """The flows of one kind, such as `mfa-login`; costs nothing to make."""

    def __init__(self, redis: Redis, breaker: Breaker, clock: Clock, kind: str) -> None:
        self._redis = redis
        self._breaker = breaker
        self._clock = clock
        self._kind = kind

    def open(self, user_id: int, data: Mapping[str, Any], life: timedelta, prefix: str) -> str:
        """Store a new flow and return its token, `prefix` and 128 random bits (spec 02 §0)."""
        token = prefix + random_hex()
        name, now = digest(token), self._clock.now()
        expires_at = now + life
        fields: dict[str, str | float] = {
            "data": json.dumps(data),
            "state": FlowState.OPEN.value,
            "attempts": 0,
            "expires_at": _seconds(expires_at),
        }
        self._run(
            _OPEN,
            [self._key(name), self._index(user_id)],
            name,
            _seconds(expires_at),
            int((life + REMEMBERED).total_seconds()) + 1,
            _seconds(now - REMEMBERED),
            *(text for pair in fields.items() for text in pair),
        )
        return token

    def find(self, token: str) -> Flow | None:
        """Return the flow of a token, whatever became of it; None if there is none."""
        name = digest(token)
        found: dict[str, str] = self._breaker.call(
            lambda: self._redis.hgetall(self._key(name))  # type: ignore[arg-type, return-value]
        )
        if not found:
            return None
        expires_at = datetime.fromtimestamp(float(found["expires_at"]), UTC)
        state = FlowState(found["state"])
        if state is FlowState.OPEN and expires_at <= self._clock.now():
            state = FlowState.EXPIRED
        return Flow(name, json.loads(found["data"]), state, int(found["attempts"]), expires_at)

    def spend_attempt(self, flow: Flow, attempt: str, most: int, slots: Slots) -> int:
        """Count an attempt before what was typed is looked at; return its number, from 1 on.

        It is one of `most` of the flow and takes one of its account's `slots`: both or neither.
        0: none was left, or the flow has ended meanwhile; nothing may be looked at then.
        Raises: RateLimited.
        """
        limit = slots.limit
        outcome = self._run(
            _SPEND,
            [self._key(flow.name), slots.key],
            _seconds(self._clock.now()),
            most,
            attempt,
            limit.window_seconds,
            limit.attempts,
        )
        refuse_for(max(0, -outcome))
        return outcome

    def consume(self, flow: Flow, attempt: str) -> bool:
        """Use the flow up; of simultaneous attempts one is told True."""
        return self._run(_CONSUME, [self._key(flow.name)], attempt) == 1

    def is_consumed(self, flow: Flow) -> bool:
        """Tell whether somebody has used the flow up since it was read."""
        state = self._breaker.call(lambda: self._redis.hget(self._key(flow.name), "state"))
        return state == FlowState.CONSUMED

    def exhaust(self, flow: Flow) -> None:
        """End a flow whose attempts are spent."""
        self._run(_EXHAUST, [self._key(flow.name)])

    def reopen(self, flow: Flow, attempt: str) -> None:
        """Undo this attempt's `consume`, when nothing came of it; attempts stay spent."""
        self._run(_REOPEN, [self._key(flow.name)], attempt)

    def discard_all(self, user_id: int) -> None:
        """Forget every flow of an account."""
        self._run(_DISCARD, [self._index(user_id)], self._key(""))

    def _run(self, script: Script, keys: list[str], *arguments: str | float) -> int:
        return self._breaker.call(lambda: script.run(self._redis, keys, *arguments))

    def _key(self, name: str) -> str:
        return f"gatehouse:flow:{self._kind}:{name}"

    def _index(self, user_id: int) -> str:
        return f"gatehouse:flows-of:{self._kind}:{user_id}"


def _seconds(moment: datetime) -> str:
    return f"{moment.timestamp():.6f}"
