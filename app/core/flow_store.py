"""Short-lived flows in Redis: opened, tried a few times, and used up once.

A flow is a hash under the digest of its token, so Redis never shows a token. The clock decides
expiry; the key lives on for a while, so that "expired" and "unknown" stay different answers
(decision E19). Everything that must happen at most once is one script.

Every method raises RedisError while Redis does not answer: without its flow nobody gets further.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from redis import Redis

from app.core.breaker import Breaker
from app.core.clock import Clock
from app.core.lua import Script
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
    data: Mapping[str, Any]
    state: FlowState
    attempts: int
    expires_at: datetime


# Spends an attempt of an open flow that has one left. Answers how many are spent now, or 0.
_SPEND = Script("""
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then return 0 end
if tonumber(redis.call('HGET', KEYS[1], 'expires_at')) <= tonumber(ARGV[1]) then return 0 end
if tonumber(redis.call('HGET', KEYS[1], 'attempts')) >= tonumber(ARGV[2]) then return 0 end
return redis.call('HINCRBY', KEYS[1], 'attempts', 1)
""")

# Takes an attempt back, of a flow that still is there and has one to take.
_GIVE_BACK = Script("""
if tonumber(redis.call('HGET', KEYS[1], 'attempts') or 0) < 1 then return 0 end
redis.call('HINCRBY', KEYS[1], 'attempts', -1)
return 1
""")

# Moves a flow from one state to another. Answers 1 for the one caller that did.
_MOVE = Script("""
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
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
        seconds = int((life + REMEMBERED).total_seconds()) + 1
        fields: dict[Any, Any] = {
            "data": json.dumps(data),
            "state": FlowState.OPEN.value,
            "attempts": 0,
            "expires_at": f"{expires_at.timestamp():.6f}",
        }
        index = self._index(user_id)

        def store() -> None:
            with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hset(self._key(name), mapping=fields)
                pipeline.expire(self._key(name), seconds)
                # What Redis has forgotten by itself leaves the index, too.
                pipeline.zremrangebyscore(index, "-inf", (now - REMEMBERED).timestamp())
                pipeline.zadd(index, {name: expires_at.timestamp()})
                pipeline.expire(index, seconds)
                pipeline.execute()

        self._breaker.call(store)
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

    def spend_attempt(self, flow: Flow, most: int) -> int:
        """Count an attempt before what was typed is looked at; return its number, from 1 on.

        0: none was left, or the flow has ended meanwhile; nothing may be looked at then.
        """
        now = f"{self._clock.now().timestamp():.6f}"
        return self._run(_SPEND, self._key(flow.name), now, most)

    def give_back_attempt(self, flow: Flow) -> None:
        """Undo `spend_attempt`, when nothing was looked at after all."""
        self._run(_GIVE_BACK, self._key(flow.name))

    def consume(self, flow: Flow) -> bool:
        """Use the flow up; of simultaneous callers one is told True."""
        return self._moved(flow, FlowState.OPEN, FlowState.CONSUMED)

    def is_consumed(self, flow: Flow) -> bool:
        """Tell whether somebody has used the flow up since it was read."""
        state = self._breaker.call(lambda: self._redis.hget(self._key(flow.name), "state"))
        return state == FlowState.CONSUMED

    def exhaust(self, flow: Flow) -> bool:
        """End a flow whose attempts are spent; of simultaneous callers one is told True."""
        return self._moved(flow, FlowState.OPEN, FlowState.EXHAUSTED)

    def reopen(self, flow: Flow) -> None:
        """Undo `consume`, when what it was consumed for did not happen; attempts stay spent."""
        self._moved(flow, FlowState.CONSUMED, FlowState.OPEN)

    def discard_all(self, user_id: int) -> None:
        """Forget every flow of an account."""
        self._run(_DISCARD, self._index(user_id), self._key(""))

    def _moved(self, flow: Flow, old: FlowState, new: FlowState) -> bool:
        return self._run(_MOVE, self._key(flow.name), old.value, new.value) == 1

    def _run(self, script: Script, key: str, *arguments: str | float) -> int:
        return self._breaker.call(lambda: script.run(self._redis, [key], *arguments))

    def _key(self, name: str) -> str:
        return f"gatehouse:flow:{self._kind}:{name}"

    def _index(self, user_id: int) -> str:
        return f"gatehouse:flows-of:{self._kind}:{user_id}"
