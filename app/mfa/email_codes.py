"""Codes sent by e-mail for one login (spec 02 §1.3; decisions A27, E17).

Redis keeps the newest code of each account: a keyed hash, bound to the login it was sent for and
to the address it was sent to. A new code takes the place of the one before, so that an old mail is
worth nothing. An expired code is kept for a while, to be told from none at all (decision E19).

Every function but the pure ones raises RedisError while Redis does not answer.
"""

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from app.core.flow_store import REMEMBERED, Flow
from app.core.lua import Script, epoch_seconds, pairs
from app.core.rate_limits import refuse_for
from app.core.runtime import Runtime
from app.core.tokens import random_digits, random_hex
from app.mfa.errors import MfaCodeInvalid, MfaEmailCodeExpired, MfaEmailCodeRequired
from app.users.models import Account

DIGITS = 8
PURPOSE = "mfa-email-code"

# Stores a code unless another was stored a moment ago. Answers 0, or how many milliseconds to wait.
# A client whose answer was lost asks again: its own code is no other one.
# ARGV: now, cooldown, milliseconds to keep it, id, then the fields.
_ISSUE = Script("""
if redis.call('HGET', KEYS[1], 'id') == ARGV[4] then return 0 end
local created_at = redis.call('HGET', KEYS[1], 'created_at')
if created_at then
  local wait = tonumber(created_at) + tonumber(ARGV[2]) - tonumber(ARGV[1])
  if wait > 0.0005 then return math.ceil(wait * 1000) end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 0
""")

# Deletes a code whose field has this value, unless another code has taken its place.
_DROP = Script("""
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('DEL', KEYS[1])
""")


@dataclass(frozen=True)
class SentCode:
    """A code as it is kept: `code_hash` is keyed."""

    id: str
    user_id: int
    code_hash: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True)
class NewCode:
    """A code that was just made, for the mail, and what is kept of it."""

    code: str = field(repr=False)
    life: timedelta
    sent: SentCode


def normalised(typed: str) -> str | None:
    """Return the eight digits of a code; None if it is not eight digits."""
    code = typed.strip()
    return code if len(code) == DIGITS and code.isascii() and code.isdigit() else None


def issue(
    rt: Runtime, account: Account, flow: Flow, *, life: timedelta, cooldown: timedelta
) -> NewCode:
    """Make the account's newest code and void the one before.

    It lives for `life`, but no longer than its login. Of simultaneous callers one gets a code, and
    nobody gets one while the newest is younger than `cooldown`, for whichever login it was.
    Raises: RateLimited.
    """
    now, code = rt.clock.now(), random_digits(DIGITS)
    life = min(life, flow.expires_at - now)
    sent = SentCode(
        id=random_hex(),
        user_id=account.id,
        code_hash=rt.secret_box.keyed_hash(_bound(account, flow, code), PURPOSE),
        expires_at=now + life,
    )
    kept = max(life, cooldown) + REMEMBERED
    record = {
        "id": sent.id,
        "flow": flow.name,
        "code_hash": sent.code_hash,
        "created_at": epoch_seconds(now),
        "expires_at": epoch_seconds(sent.expires_at),
    }
    wait_ms = _run(
        rt,
        _ISSUE,
        account.id,
        epoch_seconds(now),
        cooldown.total_seconds(),
        math.ceil(kept.total_seconds() * 1000),
        sent.id,
        *pairs(record),
    )
    refuse_for(wait_ms, "A code was sent a moment ago.")
    return NewCode(code, life, sent)


def find(rt: Runtime, account: Account, flow: Flow) -> SentCode:
    """Return the code that was sent for this login; an expired one is forgotten with that.

    Raises: MfaEmailCodeRequired, MfaEmailCodeExpired.
    """
    found: dict[str, str] = rt.breaker.call(
        lambda redis: redis.hgetall(_key(account.id))  # type: ignore[arg-type, return-value]
    )
    if found.get("flow") != flow.name:
        raise MfaEmailCodeRequired
    expires_at = datetime.fromtimestamp(float(found["expires_at"]), UTC)
    sent = SentCode(found["id"], account.id, found["code_hash"], expires_at)
    if sent.expires_at <= rt.clock.now():
        drop(rt, sent)
        raise MfaEmailCodeExpired
    return sent


def check(rt: Runtime, account: Account, flow: Flow, sent: SentCode, code: str) -> None:
    """Check a code, which stays good if it was mistyped.

    Raises: MfaCodeInvalid.
    """
    if not rt.secret_box.is_keyed_hash(_bound(account, flow, code), sent.code_hash, PURPOSE):
        raise MfaCodeInvalid


def drop(rt: Runtime, sent: SentCode) -> None:
    """Forget a code, and with it the cooldown, unless another has taken its place."""
    _run(rt, _DROP, sent.user_id, "id", sent.id)


def use_up(rt: Runtime, account: Account, flow: Flow) -> None:
    """Forget the code of a login that is complete, unless another login has one by now."""
    _run(rt, _DROP, account.id, "flow", flow.name)


def forget(rt: Runtime, user_id: int) -> None:
    """Forget the newest code of an account, whichever login it was for."""
    rt.breaker.call(lambda redis: redis.delete(_key(user_id)))


def _run(rt: Runtime, script: Script, user_id: int, *arguments: Any) -> int:
    return rt.breaker.call(lambda redis: script.run(redis, [_key(user_id)], *arguments))


def _key(user_id: int) -> str:
    return f"gatehouse:email-code:{user_id}"


def _bound(account: Account, flow: Flow, code: str) -> str:
    # With the address, too: a code that went to an old one must not open the account.
    return f"{account.id}:{flow.name}:{account.email}:{code}"
