"""Statements on mailed tokens."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken, LinkPurpose
from app.store import bulk


def find(session: Session, digest: str) -> ContactToken | None:
    """Return the token with this digest, expired or not; None if there is none."""
    return session.scalar(select(ContactToken).where(ContactToken.token_digest == digest))


def find_last(session: Session, user_id: int, purpose: LinkPurpose) -> ContactToken | None:
    """Return the account's token for this purpose, expired or not; None if there is none."""
    return session.get(ContactToken, (user_id, purpose))


def replace(session: Session, *, user_id: int, purpose: LinkPurpose, **columns: Any) -> None:
    """Store the account's only token for this purpose; the account is locked."""
    this = ContactToken.user_id == user_id, ContactToken.purpose == purpose
    bulk.change(session, delete(ContactToken).where(*this))
    session.execute(insert(ContactToken).values(user_id=user_id, purpose=purpose, **columns))


def consume(session: Session, digest: str) -> bool:
    """Consume a token. A single DELETE, so of concurrent calls only one returns True."""
    this = delete(ContactToken).where(ContactToken.token_digest == digest)
    return bulk.change(session, this) == 1


def delete_for_account(session: Session, user_id: int) -> None:
    """Delete every token of an account."""
    bulk.change(session, delete(ContactToken).where(ContactToken.user_id == user_id))


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` tokens that expired before `before`; return how many."""
    expired = select(ContactToken.token_digest).where(ContactToken.expires_at < before).limit(most)
    statement = delete(ContactToken).where(ContactToken.token_digest.in_(expired))
    return bulk.change(session, statement)
