"""The life cycle of a mailed token: issued, redeemed once, or voided.

Invariant: the account's row is locked before any of its tokens is changed.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.audit import queries as audit_queries
from app.contact_verification import queries
from app.contact_verification.errors import (
    ContactVerificationExpired,
    ContactVerificationInvalid,
)
from app.contact_verification.models import Purpose
from app.contact_verification.queries import IS_STORED, StoredToken
from app.core.database.database import Reader
from app.core.database.prepared import Prepared, Step
from app.core.runtime import Runtime
from app.core.tokens import digest, random_token
from app.mail import queries as mail_queries
from app.mail import service as mail
from app.mail.templates import Template
from app.settings import keys
from app.users import queries as users_queries

PREFIX = "cv_"

TEMPLATES = {
    Purpose.REGISTER_ACTIVATION: Template.REGISTER_ACTIVATION,
    Purpose.CONTACT_CHANGE: Template.CONTACT_CHANGE_CONFIRMATION,
    Purpose.PASSWORD_RESET: Template.PASSWORD_RESET,
}
LIFETIME_SETTINGS = {
    Purpose.REGISTER_ACTIVATION: keys.REGISTER_ACTIVATION_TTL_SECONDS,
    Purpose.CONTACT_CHANGE: keys.CONTACT_CHANGE_TTL_SECONDS,
    Purpose.PASSWORD_RESET: keys.PASSWORD_RESET_TTL_SECONDS,
}
COOLDOWN_SETTINGS = {
    Purpose.REGISTER_ACTIVATION: keys.CONTACT_COOLDOWN_SECONDS,
    Purpose.CONTACT_CHANGE: keys.CONTACT_COOLDOWN_SECONDS,
    Purpose.PASSWORD_RESET: keys.RESET_COOLDOWN_SECONDS,
}

_MAIL_IF_STORED = mail_queries.add_if(IS_STORED, "token_digest")
_RECORD_IF_STORED = audit_queries.add_if(IS_STORED, "token_digest")


@dataclass(frozen=True)
class TokenSettings:
    """How long a token is valid, and how old it must be before a new one may replace it."""

    lifetime: timedelta
    cooldown: timedelta


def settings_for(rt: Runtime, purpose: Purpose) -> TokenSettings:
    """Return the current settings for a purpose."""
    return TokenSettings(
        lifetime=timedelta(seconds=rt.settings.get(LIFETIME_SETTINGS[purpose])),
        cooldown=timedelta(seconds=rt.settings.get(COOLDOWN_SETTINGS[purpose])),
    )


@dataclass(frozen=True)
class TokenMail:
    """A new token that is about to be stored and mailed.

    `store` is a no-op while the account's last token for this purpose, sent to the same address,
    is younger than the cooldown; `send` and `entry_steps` are no-ops if `store` was.
    """

    store: Step
    send: Step
    token_digest: str

    def entry_steps(self, entry: Mapping[str, Any] | None) -> list[Step]:
        """Return the step that adds an audit entry; no step if `entry` is None."""
        own = {"token_digest": self.token_digest}
        return audit_queries.entry_steps(_RECORD_IF_STORED, entry, **own)


def prepare_token_mail(
    rt: Runtime,
    purpose: Purpose,
    address: str,
    username: str,
    statement: Prepared,
    **parameters: Any,
) -> TokenMail:
    """Return the steps that mail a new token to an address, replacing the last one.

    `statement` is built by `queries.store_statement_for`; `parameters` are those of its condition.
    """
    token, now, current = PREFIX + random_token(), rt.clock.now(), settings_for(rt, purpose)
    expires_at = now + current.lifetime
    token_digest = digest(token)
    expires_in = mail.duration_in_words(int(current.lifetime.total_seconds()))
    values = {"username": username, "token": token, "expires_in": expires_in}
    store = statement.step(
        purpose=purpose,
        token_digest=token_digest,
        address=address,
        created_at=now,
        expires_at=expires_at,
        replaces_until=now - current.cooldown,
        **parameters,
    )
    template = TEMPLATES[purpose]
    send = mail.queue_step(
        rt, _MAIL_IF_STORED, template, address, values, expires_at, token_digest=token_digest
    )
    return TokenMail(store, send, token_digest)


def seconds_to_wait(rt: Runtime, user_id: int, purpose: Purpose, address: str) -> int:
    """Return the seconds until `prepare_token_mail` replaces the last token; 0 if it would now.

    Call this before taking any lock, so that a refused request does not block others.
    """
    last, now = queries.find_last(rt.database, user_id, purpose), rt.clock.now()
    if last is None or last.address != address or last.expires_at <= now:
        return 0
    left = min(last.created_at + settings_for(rt, purpose).cooldown, last.expires_at) - now
    return max(0, math.ceil(left.total_seconds()))


def peek(rt: Runtime, reader: Reader, token: str, purposes: Collection[Purpose]) -> StoredToken:
    """Return the stored token without consuming it.

    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    found = queries.find(reader, digest(token))
    if found is None or found.purpose not in purposes:
        raise ContactVerificationInvalid
    if found.expires_at <= rt.clock.now():
        raise ContactVerificationExpired
    return found


def redeem(rt: Runtime, session: Session, token: str, purposes: Collection[Purpose]) -> StoredToken:
    """Consume a token and return it; its account stays locked until the commit.

    If the caller raises afterwards, the rollback keeps the token usable.
    Raises: ContactVerificationInvalid, ContactVerificationExpired.
    """
    found = peek(rt, session, token, purposes)
    users_queries.lock(session, found.user_id)
    if not queries.consume(session, digest(token), purposes):
        raise ContactVerificationInvalid
    return found


def void(session: Session, user_id: int) -> None:
    """Invalidate every link mailed so far, and drop a pending change of address.

    For changes that shut out an intruder who may have had access: a new password or address.
    """
    users_queries.drop_pending_email(session, user_id)
    queries.delete_for_account(session, user_id)
