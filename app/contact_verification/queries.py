"""Statements on mailed tokens."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken, Purpose
from app.core.database import bulk
from app.core.database.database import Reader
from app.core.db import columns_of


class StoredToken(NamedTuple):
    """A stored token."""

    user_id: int
    purpose: Purpose
    address: str
    created_at: datetime
    expires_at: datetime


_COLUMNS = columns_of(StoredToken, ContactToken)


def find(reader: Reader, digest: str) -> StoredToken | None:
    """Return the token with this digest, expired or not; None if there is none."""
    statement = select(*_COLUMNS).where(ContactToken.token_digest == digest)
    return _token(reader.execute(statement).one_or_none())


def find_last(reader: Reader, user_id: int, purpose: Purpose) -> StoredToken | None:
    """Return the account's token for this purpose, expired or not; None if there is none."""
    this = ContactToken.user_id == user_id, ContactToken.purpose == purpose
    return _token(reader.execute(select(*_COLUMNS).where(*this)).one_or_none())


def replace(session: Session, *, user_id: int, purpose: Purpose, **columns: Any) -> None:
    """Store the account's only token for this purpose; the account is locked."""
    this = ContactToken.user_id == user_id, ContactToken.purpose == purpose
    bulk.change(session, delete(ContactToken).where(*this))
    session.execute(insert(ContactToken).values(user_id=user_id, purpose=purpose, **columns))


def consume(session: Session, digest: str, purposes: Collection[Purpose]) -> bool:
    """Consume a token. A single DELETE, so of concurrent calls only one returns True."""
    statement = delete(ContactToken).where(
        ContactToken.token_digest == digest, ContactToken.purpose.in_(purposes)
    )
    return bulk.change(session, statement) == 1


def delete_for_account(session: Session, user_id: int) -> None:
    """Delete every token of an account."""
    bulk.change(session, delete(ContactToken).where(ContactToken.user_id == user_id))


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` tokens that expired before `before`; return how many."""
    expired = select(ContactToken.token_digest).where(ContactToken.expires_at < before).limit(most)
    statement = delete(ContactToken).where(ContactToken.token_digest.in_(expired))
    return bulk.change(session, statement)


def _token(row: Any) -> StoredToken | None:
    return StoredToken(row[0], Purpose(row[1]), *row[2:]) if row else None
