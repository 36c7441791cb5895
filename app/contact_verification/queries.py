"""Statements on the tokens of mails."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, or_, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken, Purpose
from app.core import bulk
from app.core.db import per_database

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


def _put(insert: Any) -> Any:
    statement = insert(ContactToken)
    new = statement.excluded
    names = ("token_digest", "address", "created_at", "expires_at")
    return (
        statement.values({name: bindparam(name) for name in ("user_id", "purpose", *names)})
        .on_conflict_do_update(
            index_elements=[ContactToken.user_id, ContactToken.purpose],
            set_={name: new[name] for name in names},
            where=or_(
                ContactToken.created_at <= bindparam("replaces_until"),
                ContactToken.expires_at <= new.created_at,
                ContactToken.address != new.address,
            ),
        )
        .returning(ContactToken.user_id)
    )


_PUT = per_database(_put)


def put(session: Session, token: Found, digest: str, *, replaces_until: datetime) -> bool:
    """Store a token in place of the account's last one for this purpose.

    False, and nothing is changed, while the last one is alive, was sent to the same address and is
    younger than `replaces_until`. One statement, so of simultaneous calls one succeeds.
    """
    values = {**token._asdict(), "token_digest": digest, "replaces_until": replaces_until}
    return session.execute(_PUT(session), values).one_or_none() is not None


def find(reader: Reader, digest: str) -> Found | None:
    """Return the token of this digest, expired or not; None if there is none."""
    statement = select(*_FOUND).where(ContactToken.token_digest == digest)
    return _found(reader.execute(statement).one_or_none())


def find_last(reader: Reader, user_id: int, purpose: Purpose) -> Found | None:
    """Return the account's token for this purpose, expired or not; None if there is none."""
    its_row = ContactToken.user_id == user_id, ContactToken.purpose == purpose
    return _found(reader.execute(select(*_FOUND).where(*its_row)).one_or_none())


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


def _found(row: Any) -> Found | None:
    return Found(row[0], Purpose(row[1]), *row[2:]) if row else None
