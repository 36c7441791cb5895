"""Statements on the tokens of mails."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, or_, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken, Purpose
from app.core import bulk
from app.core.db import insert_or_update

Reader = Connection | Session


class Found(NamedTuple):
    """A stored token."""

    user_id: int
    purpose: Purpose
    address: str
    created_at: datetime
    expires_at: datetime


_FOUND = (
    ContactToken.user_id,
    ContactToken.purpose,
    ContactToken.address,
    ContactToken.created_at,
    ContactToken.expires_at,
)


def put(session: Session, token: Found, digest: str, *, replaces_until: datetime) -> bool:
    """Store a token in place of the account's last one for this purpose.

    False, and nothing is changed, while the last one is alive, was sent to the same address and is
    younger than `replaces_until`. One statement, so of simultaneous calls one succeeds.
    """
    values = {**token._asdict(), "token_digest": digest}
    statement = (
        insert_or_update(session, ContactToken, values)
        .on_conflict_do_update(
            index_elements=[ContactToken.user_id, ContactToken.purpose],
            set_={name: values[name] for name in values if name not in {"user_id", "purpose"}},
            where=or_(
                ContactToken.created_at <= replaces_until,
                ContactToken.expires_at <= token.created_at,
                ContactToken.address != token.address,
            ),
        )
        .returning(ContactToken.user_id)
    )
    return session.execute(statement).one_or_none() is not None


def find(reader: Reader, digest: str) -> Found | None:
    """Return the token of this digest, expired or not; None if there is none."""
    row = reader.execute(select(*_FOUND).where(ContactToken.token_digest == digest)).one_or_none()
    return Found(row[0], Purpose(row[1]), *row[2:]) if row else None


def find_created_at(reader: Reader, user_id: int, purpose: Purpose) -> datetime | None:
    """Return when the account's token for this purpose was issued; None if there is none."""
    its_row = ContactToken.user_id == user_id, ContactToken.purpose == purpose
    return reader.execute(select(ContactToken.created_at).where(*its_row)).scalar()


def take(session: Session, digest: str, purposes: Collection[Purpose]) -> bool:
    """Use a token up; of simultaneous calls, being one statement, exactly one is told True."""
    statement = (
        delete(ContactToken)
        .where(ContactToken.token_digest == digest, ContactToken.purpose.in_(purposes))
        .returning(ContactToken.user_id)
        .execution_options(synchronize_session=False)
    )
    return session.execute(statement).one_or_none() is not None


def remove(session: Session, user_id: int) -> None:
    """Delete every token of an account."""
    session.execute(
        delete(ContactToken)
        .where(ContactToken.user_id == user_id)
        .execution_options(synchronize_session=False)
    )


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` tokens that had expired by a moment; return how many."""
    expired = select(ContactToken.token_digest).where(ContactToken.expires_at < before).limit(most)
    statement = delete(ContactToken).where(ContactToken.token_digest.in_(expired))
    return bulk.count_changed(session, statement)
