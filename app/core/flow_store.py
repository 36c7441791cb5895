"""Short-lived flows in Redis: opened, attempted a few times, and consumed once.

A flow is a hash under the digest of its token, so Redis never shows a token. The clock decides
expiry; the key lives on for a while, so that "expired" and "unknown" stay different answers
(decision E19). Everything that must happen at most once is one script.

The Redis client retries when an answer is lost, so a script may run twice. A caller that can win
something therefore passes a unique id, its `attempt`, which makes the second run return the same.

Every method raises RedisError while Redis is down: nobody can continue without the flow.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from app.core.breaker import Breaker
from app.core.clock import Clock
from app.core.failed_secrets import RESERVE, Slots
from app.core.lua import Script, epoch_seconds, pairs
from app.core.tokens import digest, random_hex

# How long after its expiry a flow can still be found, to say what became of it.
EXPIRED_RETENTION = timedelta(minutes=10)

# As stored; `counted_as` is the account's digest.
_FIELDS = ("data", "state", "attempts", "expires_at", "counted_as")


class FlowState(StrEnum):
    """The states in which a flow can be found."""

    OPEN = "open"
    EXPIRED = "expired"
    EXHAUSTED = "exhausted"
    CONSUMED = "consumed"


@dataclass(frozen=True)
class Flow:
    """A flow as just read. `name` is its token's digest, `data` what it was opened with.

    `account_digest` says whose slots its attempts take, as `FailedSecrets.account_digest` has it.
    """

    name: str
    data: Mapping[str, Any] = field(repr=False)
    state: FlowState
    attempts: int
    expires_at: datetime
    account_digest: str


class AttemptResult(NamedTuple):
    """A flow, and what one attempt at it was granted.

    `number` counts the flow's attempts from 1; it is 0 if none was left or the flow is not open.
    `wait_ms` is how long the account has to wait for a slot; unless 0, no attempt was taken either.
    """

    flow: Flow
    number: int
    wait_ms: int


# Opens a flow and adds it to its account's index. Entries whose flows have expired in Redis are
# dropped from the index, which itself lives as long as its longest-lived flow.
# ARGV: name, expires_at, TTL in seconds, expires_at of flows that are gone by now, then the fields.
_OPEN = Script("""
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
if redis.call('TTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('EXPIRE', KEYS[2], ARGV[3]) end
return 1
""")

# Returns a flow and, if it is open with an attempt left, takes that together with one of the
# account's slots, so that a request reads and spends atomically.
# ARGV: now, maximum attempts of a flow, attempt id, window in seconds, slots in the window, then
# the key prefix (`Slots.key_prefix`) and each key suffix (`Slots.key_suffixes`).
_TRY = Script(f"""{RESERVE}
local mine, now = 'attempt:' .. ARGV[3], tonumber(ARGV[1])
local found = redis.call(
  'HMGET', KEYS[1], 'data', 'state', 'attempts', 'expires_at', 'counted_as', mine)
local data, state, spent, expires_at, account_digest, known = unpack(found, 1, 6)
local number, wait_ms = 0, 0
if known then
  number = tonumber(known)
elseif state == 'open' and tonumber(expires_at) > now and tonumber(spent) < tonumber(ARGV[2]) then
  local slots = {{}}
  for index = 7, #ARGV do slots[index - 6] = ARGV[6] .. account_digest .. ARGV[index] end
  wait_ms = reserve(slots, now, tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[3])
  if wait_ms == 0 then
    number = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
    redis.call('HSET', KEYS[1], mine, number)
  end
end
return {{data, state, spent, expires_at, account_digest, number, wait_ms}}
""")

# Undoes what _TRY took.
_GIVE_BACK = Script("""
if redis.call('HDEL', KEYS[1], 'attempt:' .. ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'attempts', -1)
end
for index = 2, #KEYS do redis.call('ZREM', KEYS[index], ARGV[1]) end
return 1
""")

# Consumes an open flow, and deletes the other keys with it. Returns 1 to the one attempt that did,
# however often it asks.
_CONSUME = Script("""
local state, by = unpack(redis.call('HMGET', KEYS[1], 'state', 'consumed_by'))
if state == 'consumed' and by == ARGV[1] then return 1 end
if state ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'consumed', 'consumed_by', ARGV[1])
if #KEYS > 1 then redis.call('DEL', unpack(KEYS, 2)) end
return 1
""")

# Reopens a flow if this attempt is the one that has consumed it.
_REOPEN = Script("""
if redis.call('HGET', KEYS[1], 'consumed_by') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'consumed_by')
redis.call('HSET', KEYS[1], 'state', 'open')
return 1
""")

# Marks an open flow as exhausted.
_EXHAUST = Script("""
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'exhausted')
return 1
""")

# Deletes every flow in an index, and the index, atomically: no flow can be opened in between.
_DISCARD = Script("""
local names = redis.call('ZRANGE', KEYS[1], 0, -1)
for _, name in ipairs(names) do redis.call('DEL', ARGV[1] .. name) end
redis.call('DEL', KEYS[1])
return #names
""")


class FlowStore:
    """The flows of one kind, such as `mfa-login`; cheap to create."""

    def __init__(self, breaker: Breaker, clock: Clock, kind: str) -> None:
        self._breaker = breaker
        self._clock = clock
        self._kind = kind

    def open(
        self,
        user_id: int,
        data: Mapping[str, Any],
        lifetime: timedelta,
        prefix: str,
        *,
        account_digest: str = "",
    ) -> str:
        """Store a new flow and return its token: `prefix` and 128 random bits (spec 02 §0).

        `account_digest` is required for a flow whose attempts are taken with `attempt`.
        """
        token = prefix + random_hex()
        name, now = digest(token), self._clock.now()
        expires_at = now + lifetime
        fields: dict[str, str | float] = {
            "data": json.dumps(data, ensure_ascii=False),
            "state": FlowState.OPEN.value,
            "attempts": 0,
            "expires_at": epoch_seconds(expires_at),
            "counted_as": account_digest,
        }
        self._run(
            _OPEN,
            [self._key(name), self._index(user_id)],
            name,
            epoch_seconds(expires_at),
            int((lifetime + EXPIRED_RETENTION).total_seconds()) + 1,
            epoch_seconds(now - EXPIRED_RETENTION),
            *pairs(fields),
        )
        return token

    def find(self, token: str) -> Flow | None:
        """Return the flow of a token in whatever state; None if there is none."""
        name = digest(token)
        found: dict[str, str] = self._breaker.call(
            lambda redis: redis.hgetall(self._key(name))  # type: ignore[arg-type, return-value]
        )
        return self._flow(name, *(found.get(field) for field in _FIELDS))

    def attempt(
        self, token: str, attempt: str, max_attempts: int, slots: Slots
    ) -> AttemptResult | None:
        """Find the flow of a token and take one of its attempts, before a guess is checked.

        It also takes one of the account's `slots`: both or neither. None if there is no such flow.
        """
        name, limit = digest(token), slots.limit
        *found, number, wait_ms = self._breaker.call(
            lambda redis: _TRY.answer(
                redis,
                [self._key(name)],
                epoch_seconds(self._clock.now()),
                max_attempts,
                attempt,
                limit.window_seconds,
                limit.attempts,
                slots.key_prefix,
                *slots.key_suffixes,
            )
        )
        flow = self._flow(name, *found)
        return AttemptResult(flow, number, wait_ms) if flow else None

    def give_back(self, flow: Flow, attempt: str, slots: Slots) -> None:
        """Undo what `attempt` took, when no guess was checked or nothing came of the check."""
        self._run(_GIVE_BACK, [self._key(flow.name), *slots.keys(flow.account_digest)], attempt)

    def consume(self, flow: Flow, attempt: str, *forget: str) -> bool:
        """Consume the flow; of concurrent attempts, one gets True.

        The keys in `forget` are deleted in the same step.
        """
        return self._run(_CONSUME, [self._key(flow.name), *forget], attempt) == 1

    def is_consumed(self, flow: Flow) -> bool:
        """Return whether the flow has been consumed since it was read."""
        state = self._breaker.call(lambda redis: redis.hget(self._key(flow.name), "state"))
        return state == FlowState.CONSUMED

    def exhaust(self, flow: Flow) -> None:
        """End a flow whose attempts are spent."""
        self._run(_EXHAUST, [self._key(flow.name)])

    def reopen(self, flow: Flow, attempt: str) -> None:
        """Undo this attempt's `consume`, when nothing came of it; the attempt stays spent."""
        self._run(_REOPEN, [self._key(flow.name)], attempt)

    def discard_all(self, user_id: int) -> None:
        """Delete every flow of this kind that an account has."""
        self._run(_DISCARD, [self._index(user_id)], self._key(""))

    def _run(self, script: Script, keys: list[str], *arguments: str | float) -> int:
        return self._breaker.call(lambda redis: script.run(redis, keys, *arguments))

    def _flow(
        self,
        name: str,
        data: str | None,
        state: str | None,
        attempts: str | None,
        expires_at: str | None,
        account_digest: str | None,
    ) -> Flow | None:
        if data is None or state is None or attempts is None or expires_at is None:
            return None
        ends_at = datetime.fromtimestamp(float(expires_at), UTC)
        found_as = FlowState(state)
        if found_as is FlowState.OPEN and ends_at <= self._clock.now():
            found_as = FlowState.EXPIRED
        return Flow(name, json.loads(data), found_as, int(attempts), ends_at, account_digest or "")

    def _key(self, name: str) -> str:
        return f"gatehouse:flow:{self._kind}:{name}"

    def _index(self, user_id: int) -> str:
        return f"gatehouse:flows-of:{self._kind}:{user_id}"
