"""The life of a token from a mail: issued, redeemed once, or void.

Invariant: whoever changes a token holds its account's row, which is locked first.
"""

import math
from collections.abc import Collection
from datetime import timedelta

from sqlalchemy.orm import Session

from app.contact_verification import queries
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.contact_verification.models import Purpose
from app.contact_verification.queries import Found, Reader
from app.core.runtime import Runtime
from app.core.tokens import digest, random_token
from app.users import queries as users_queries

PREFIX = "cv_"


def issue(
    rt: Runtime,
    session: Session,
    user_id: int,
    purpose: Purpose,
    address: str,
    *,
    life: timedelta,
    cooldown: timedelta,
) -> str | None:
    """Return a new token, which replaces the last; None while the last one is too young.

    The cooldown holds for the same address only.
    """
    token, now = PREFIX + random_token(), rt.clock.now()
    new = Found(user_id, purpose, address, created_at=now, expires_at=now + life)
    return (
        token if queries.put(session, new, digest(token), replaces_until=now - cooldown) else None
    )


def seconds_to_wait(
    rt: Runtime,
    reader: Reader,
    user_id: int,
    purpose: Purpose,
    address: str,
    *,
    cooldown: timedelta,
) -> int:
    """Return after how many seconds `issue` would replace the last token; 0 when it would now."""
    last, now = queries.find_last(reader, user_id, purpose), rt.clock.now()
    if last is None or last.address != address or last.expires_at <= now:
        return 0
    left = min(last.created_at + cooldown, last.expires_at) - now
    return max(0, math.ceil(left.total_seconds()))


def redeem(rt: Runtime, session: Session, token: str, purposes: Collection[Purpose]) -> Found:
    """Use a token up and return what it stood for; its account is locked until the commit.

    An error that the caller raises afterwards keeps the token, since nothing is committed.
    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    name = digest(token)
    found = queries.find(session, name)
    if found is None or found.purpose not in purposes:
        raise ContactVerificationInvalid
    users_queries.lock(session, found.user_id)
    if not queries.take(session, name, purposes):
        raise ContactVerificationInvalid
    if found.expires_at <= rt.clock.now():
        raise ContactVerificationExpired
    return found


def void(session: Session, user_id: int) -> None:
    """Make every link sent so far worthless, and drop a change of address that was asked for.

    For whatever shuts out somebody who may have had the account: a new password, a new address.
    """
    users_queries.drop_pending_email(session, user_id)
    queries.remove(session, user_id)
