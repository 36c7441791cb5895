"""Statements on mailed tokens."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, exists, or_, select
from sqlalchemy.orm import Session

from app.contact_verification.models import ContactToken, Purpose
from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.database.prepared import Prepared, per_database
from app.core.db import UTCDateTime, columns_of
from app.users.models import User


class StoredToken(NamedTuple):
    """A stored token."""

    user_id: int
    purpose: Purpose
    address: str
    created_at: datetime
    expires_at: datetime


_COLUMNS = columns_of(StoredToken, ContactToken)
_LAST = Prepared(
    select(*_COLUMNS).where(
        ContactToken.user_id == bindparam("user_id"), ContactToken.purpose == bindparam("purpose")
    ),
    ("user_id", "purpose"),
)
_GIVEN = ("purpose", "token_digest", "address", "created_at", "expires_at")

# True from the moment the token with this digest is stored, including in the same transaction.
IS_STORED = exists(
    select(ContactToken.user_id).where(ContactToken.token_digest == bindparam("token_digest"))
)


def store_statement_for(condition: ColumnElement[bool], *parameters: str) -> Prepared:
    """Return the statement that stores a token for the account that matches a condition.

    It replaces the account's last token for this purpose, unless that one has not expired, was
    sent to the same address and was created after `replaces_until`. The account's row is locked
    first. A single statement, so of concurrent calls only one stores its token.
    """

    def build(insert: Any) -> Any:
        values = (bindparam(n, type_=ContactToken.__table__.c[n].type) for n in _GIVEN)
        source = select(User.id, *values).where(condition).with_for_update(of=User)
        statement = insert(ContactToken).from_select(["user_id", *_GIVEN], source)
        new = statement.excluded
        return statement.on_conflict_do_update(
            index_elements=[ContactToken.user_id, ContactToken.purpose],
            set_={name: new[name] for name in _GIVEN if name != "purpose"},
            where=or_(
                ContactToken.created_at <= bindparam("replaces_until", type_=UTCDateTime()),
                ContactToken.expires_at <= new.created_at,
                ContactToken.address != new.address,
            ),
        )

    return Prepared(per_database(build), (*_GIVEN, "replaces_until", *parameters))


STORE_FOR_ACCOUNT = store_statement_for(User.id == bindparam("account_id"), "account_id")


def find(reader: Reader, digest: str) -> StoredToken | None:
    """Return the token with this digest, expired or not; None if there is none."""
    statement = select(*_COLUMNS).where(ContactToken.token_digest == digest)
    return _token(reader.execute(statement).one_or_none())


def find_last(database: Database, user_id: int, purpose: Purpose) -> StoredToken | None:
    """Return the account's token for this purpose, expired or not; None if there is none."""
    return _token(database.row(_LAST, user_id, purpose))


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
