"""Codes sent by e-mail for one login.

Redis keeps only the newest code of each account, as a keyed hash bound to the login and the address
it was sent for. A new code replaces the previous one, so an old mail is worthless. An expired code
is kept for a while, to distinguish "expired" from "never sent".

Functions that use Redis raise RedisError while it is unavailable.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

from redis.exceptions import RedisError

from app.core.clock import SKEW
from app.core.runtime import Runtime
from app.crypto.tokens import random_digits, random_hex
from app.mail import service as mail
from app.mail.templates import Template
from app.mfa import typed_codes
from app.mfa.errors import MfaCodeInvalid, MfaEmailCodeExpired, MfaEmailCodeRequired
from app.settings import keys
from app.store.flow_store import EXPIRED_RETENTION, Flow
from app.store.limits import raise_if_limited
from app.users.models import Account

DIGITS = 8
PURPOSE = "mfa-email-code"

# Stores a code unless another was stored within the cooldown. Returns 0, or the milliseconds to
# wait. Idempotent: a retry after a lost reply finds its own id and succeeds.
# ARGV: now, cooldown, milliseconds to keep the code, id, then the fields.
_ISSUE = f"""
if redis.call('HGET', KEYS[1], 'id') == ARGV[4] then return 0 end
local created_at = redis.call('HGET', KEYS[1], 'created_at')
if created_at then
  local wait = tonumber(created_at) + tonumber(ARGV[2]) - tonumber(ARGV[1])
  local is_ahead = tonumber(created_at) > tonumber(ARGV[1]) + {SKEW.total_seconds()}
  if wait > 0.0005 and not is_ahead then return math.ceil(wait * 1000) end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 0
"""

# Deletes the code if the given field has this value, so never a code that has replaced it.
_DELETE_IF = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('DEL', KEYS[1])
"""


@dataclass(frozen=True)
class NewCode:
    """A new code, in plain text for its mail; it is valid for `expires_in` seconds.

    Another one can be had in `resend_after` seconds.
    """

    id: str
    code: str = field(repr=False)
    expires_in: int
    resend_after: int


def normalised(typed: str) -> str | None:
    """Return the digits of a typed code; None unless they are eight, and nothing else."""
    return typed_codes.digits(typed, DIGITS)


def send(rt: Runtime, account: Account, flow: Flow, template: Template) -> NewCode:
    """Mail a new code, synchronously; a mail that cannot be sent leaves no cooldown.

    Raises: RateLimited during the cooldown, MailNotConfigured, MailDeliveryFailed.
    """
    new = issue(rt, account, flow)
    try:
        mail.send_now(
            rt,
            template,
            account.email,
            language=account.language,
            lifetime=new.expires_in,
            username=account.username,
            code=new.code,
        )
    except BaseException:
        with suppress(RedisError):  # then the cooldown remains
            delete(rt, account, "id", new.id)
        raise
    return new


def issue(rt: Runtime, account: Account, flow: Flow) -> NewCode:
    """Create a code for this login, voiding the account's previous one.

    It lives no longer than its login. Of concurrent callers only one gets a code, and none does
    while the newest code, of whatever login, is younger than the cooldown. Raises: RateLimited.
    """
    now = rt.clock.now()
    cooldown = rt.settings.get(keys.EMAIL_CODE_COOLDOWN_SECONDS)
    life = min(
        timedelta(seconds=rt.settings.get(keys.EMAIL_CODE_TTL_SECONDS)), flow.expires_at - now
    )
    kept = max(life, timedelta(seconds=cooldown)) + EXPIRED_RETENTION
    code = random_digits(DIGITS)
    new = NewCode(random_hex(), code, max(1, int(life.total_seconds())), cooldown)
    record: dict[str, str | float] = {
        "id": new.id,
        "flow": flow.name,
        "code_hash": rt.secret_box.keyed_hash(_bound(account, flow, code), PURPOSE),
        "created_at": now.timestamp(),
        "expires_at": (now + life).timestamp(),
    }
    wait_ms = rt.redis.breaker.run_script(
        _ISSUE,
        [_key(account.id)],
        now.timestamp(),
        cooldown,
        math.ceil(kept.total_seconds() * 1000),
        new.id,
        *(each for pair in record.items() for each in pair),
    )
    raise_if_limited(wait_ms, "A code was sent a moment ago.")
    return new


def find_hash(rt: Runtime, account: Account, flow: Flow) -> str:
    """Return the hash of the code that was sent for this login; an expired one is deleted.

    Raises: MfaEmailCodeRequired, MfaEmailCodeExpired.
    """
    key = _key(account.id)
    found = cast("dict[str, str]", rt.redis.breaker.call(lambda redis: redis.hgetall(key)))
    if found.get("flow") != flow.name:
        raise MfaEmailCodeRequired
    began_at = datetime.fromtimestamp(float(found["created_at"]), UTC)
    is_over = float(found["expires_at"]) <= rt.clock.now().timestamp()
    if is_over or rt.clock.is_ahead(began_at):
        delete(rt, account, "id", found["id"])
        raise MfaEmailCodeExpired
    return found["code_hash"]


def check(rt: Runtime, account: Account, flow: Flow, code_hash: str, code: str) -> None:
    """Verify a normalised code; a wrong one leaves the code that was sent valid.

    Raises: MfaCodeInvalid.
    """
    bound = _bound(account, flow, code)
    if not rt.secret_box.is_keyed_hash(bound, code_hash, PURPOSE):
        raise MfaCodeInvalid


def delete(rt: Runtime, account: Account, name: str, value: str) -> bool:
    """Delete the account's code, and with it the cooldown, if this field has this value.

    So never a code that has replaced it: `name` is `id`, `code_hash`, or `flow` for that of a
    completed login. Return whether there was one.
    """
    return bool(rt.redis.breaker.run_script(_DELETE_IF, [_key(account.id)], name, value))


def delete_for_account(rt: Runtime, user_id: int) -> None:
    """Delete the newest code of an account, whichever login it is for."""
    rt.redis.breaker.call(lambda redis: redis.delete(_key(user_id)))


def _key(user_id: int) -> str:
    return f"gatehouse:email-code:{user_id}"


def _bound(account: Account, flow: Flow, code: str) -> str:
    # Includes the address: a code mailed to a former address must not open the account.
    return f"{account.id}:{flow.name}:{account.email}:{code}"
