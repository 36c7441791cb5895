"""The life cycle of a mailed token: issued, redeemed once, or voided.

Invariant: the account's row is locked before any of its tokens is changed.
"""

import math
from collections.abc import Collection
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.contact_verification import queries
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.contact_verification.models import ContactToken, LinkPurpose
from app.core.runtime import Runtime
from app.core.setting_kinds import Key
from app.crypto.tokens import digest, random_token
from app.mail import service as mail
from app.mail.templates import Template
from app.settings import keys
from app.store import bulk
from app.users import queries as users_queries
from app.users.models import Account

PREFIX = "cv_"


class _Kind(NamedTuple):
    """How a token for one purpose is mailed: by which template, valid how long, how often."""

    template: Template
    lifetime: Key[int]
    cooldown: Key[int]


KINDS: dict[str, _Kind] = {
    LinkPurpose.REGISTER_ACTIVATION: _Kind(
        Template.REGISTER_ACTIVATION,
        keys.REGISTER_ACTIVATION_TTL_SECONDS,
        keys.CONTACT_COOLDOWN_SECONDS,
    ),
    LinkPurpose.CONTACT_CHANGE: _Kind(
        Template.CONTACT_CHANGE_CONFIRMATION,
        keys.CONTACT_CHANGE_TTL_SECONDS,
        keys.CONTACT_COOLDOWN_SECONDS,
    ),
    LinkPurpose.PASSWORD_RESET: _Kind(
        Template.PASSWORD_RESET, keys.PASSWORD_RESET_TTL_SECONDS, keys.RESET_COOLDOWN_SECONDS
    ),
}


def longest_life(rt: Runtime) -> int:
    """Return how many seconds the link lives that lives longest."""
    return max(rt.settings.get(kind.lifetime) for kind in KINDS.values())


def send(
    rt: Runtime,
    session: Session,
    account: Account,
    purpose: LinkPurpose,
    address: str,
    browser: str | None = None,
    *,
    is_answer: bool = True,
) -> bool:
    """Mail a new token to an address, replacing the account's last one for this purpose.

    `browser` is the digest of the id of the browser that asks for it. `is_answer`: the reader has
    just asked for it. False, and nothing is sent, within the cooldown of the last one. The caller
    has locked the account, or just created it.
    """
    now = rt.clock.now()
    if seconds_left(rt, session, account.id, purpose, address):
        return False
    seconds = rt.settings.get(KINDS[purpose].lifetime)
    expires_at = now + timedelta(seconds=seconds)
    token = PREFIX + random_token()
    queries.replace(
        session,
        user_id=account.id,
        purpose=purpose,
        token_digest=digest(token),
        address=address,
        browser_digest=browser,
        created_at=now,
        expires_at=expires_at,
    )
    mail.queue(
        rt,
        session,
        KINDS[purpose].template,
        address,
        expires_at=expires_at,
        username=account.username,
        token=token,
        language=account.language,
        is_answer=is_answer,
        lifetime=seconds,
    )
    return True


def seconds_to_wait(rt: Runtime, user_id: int, purpose: LinkPurpose, address: str) -> int:
    """Return the seconds until `send` replaces the last token; 0 if it would now.

    Call this before taking any lock, so that a refused request does not block others.
    """
    with rt.reading() as session:
        return seconds_left(rt, session, user_id, purpose, address)


def seconds_left(
    rt: Runtime, session: Session, user_id: int, purpose: LinkPurpose, address: str
) -> int:
    """Like `seconds_to_wait`, as a step of a transaction."""
    last, now = queries.find_last(session, user_id, purpose), rt.clock.now()
    if last is None or last.address != address or last.expires_at <= now:
        return 0
    if rt.clock.is_ahead(last.created_at):
        return 0
    cooldown = timedelta(seconds=rt.settings.get(KINDS[last.purpose].cooldown))
    left = min(last.created_at + cooldown, last.expires_at) - now
    return max(0, math.ceil(left.total_seconds()))


def peek(
    rt: Runtime, session: Session, token: str, purposes: Collection[LinkPurpose]
) -> ContactToken:
    """Return the stored token without consuming it.

    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    found = queries.find(session, digest(token))
    if found is None or found.purpose not in purposes:
        raise ContactVerificationInvalid
    if found.expires_at <= rt.clock.now() or rt.clock.is_ahead(found.created_at):
        raise ContactVerificationExpired
    return found


def redeem(
    rt: Runtime, session: Session, token: str, purposes: Collection[LinkPurpose]
) -> ContactToken:
    """Consume a token and return it; its account stays locked until the commit.

    If the caller raises afterwards, the rollback keeps the token usable.
    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    found = peek(rt, session, token, purposes)
    users_queries.lock(session, found.user_id)
    if not queries.consume(session, digest(token)):
        raise ContactVerificationInvalid
    return found


def void(session: Session, user_id: int) -> None:
    """Invalidate every link mailed so far, and drop a pending change of address.

    For changes that shut out an intruder who may have had access: a new password or address.
    """
    users_queries.drop_pending_email(session, user_id)
    queries.delete_for_account(session, user_id)


# For this long a late click is answered "expired" rather than "invalid".
RETENTION = timedelta(days=7)


def delete_expired(rt: Runtime) -> int:
    """Delete tokens that expired a week ago; return how many."""
    before = rt.clock.now() - RETENTION
    return bulk.delete_in_batches(rt, queries.delete_expired, before)
