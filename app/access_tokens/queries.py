"""Statements on access tokens."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, not_, or_, select, update
from sqlalchemy.orm import Session

from app.access_tokens.models import AccessToken, read_scopes
from app.core.access import Program, ProgramToken, Scope
from app.store import bulk
from app.store.database import Database
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile

# Built once, as every request with a token runs it.
_FIND = with_profile(
    select(
        AccessToken.id,
        AccessToken.name,
        AccessToken.stored_scopes,
        AccessToken.expires_at,
        AccessToken.last_used_at,
        *ACCOUNT_COLUMNS,
    )
    .join(User, User.id == AccessToken.user_id)
    .where(AccessToken.digest == bindparam("digest"))
)


def find_program(database: Database, digest: str) -> Program | None:
    """Return a token with its account in one indexed read; None if there is none."""
    with database.connect() as connection:
        row = connection.execute(_FIND, {"digest": digest}).one_or_none()
    if row is None:
        return None
    token = ProgramToken(row[0], row[1], read_scopes(row[2]), row[3], row[4])
    return Program(Account(*row[5:]), token)


def is_live(session: Session, token_id: int, now: datetime) -> bool:
    """Return whether a token has neither been removed nor expired; it stays until the commit."""
    statement = select(AccessToken.id).where(AccessToken.id == token_id, not_expired(now))
    held = statement.with_for_update(read=True, key_share=True)
    return session.scalar(held) is not None


def list_open_among(
    session: Session, token_ids: Collection[int], now: datetime, *, enforces_change: bool
) -> set[int]:
    """Return which of these tokens may use the service.

    `enforces_change`: those of accounts that must change their password may not.
    """
    statement = (
        select(AccessToken.id)
        .join(User, User.id == AccessToken.user_id)
        .where(
            AccessToken.id.in_(token_ids),
            not_expired(now),
            User.status == Status.ACTIVE,
            User.activated_at.is_not(None),
        )
    )
    if enforces_change:
        statement = statement.where(not_(User.must_change_password))
    return set(session.scalars(statement))


def list_of(session: Session, user_id: int, listed_since: datetime) -> Sequence[AccessToken]:
    """Return an account's tokens, newest first, without those that expired before a time."""
    statement = select(AccessToken).where(AccessToken.user_id == user_id, not_expired(listed_since))
    return session.scalars(statement.order_by(AccessToken.id.desc())).all()


def find(session: Session, token_id: int) -> AccessToken | None:
    """Return a token of any account; None if there is none."""
    return session.get(AccessToken, token_id)


def list_live_names(session: Session, user_id: int, now: datetime) -> dict[int, str]:
    """Return the names of an account's tokens that have not expired, by their ids."""
    columns = select(AccessToken.id, AccessToken.name)
    found = session.execute(columns.where(AccessToken.user_id == user_id, not_expired(now)))
    return {row[0]: row[1] for row in found}


def add(session: Session, token: AccessToken) -> AccessToken:
    """Insert a token; it has its id then."""
    session.add(token)
    session.flush()
    return token


def remove(session: Session, token_ids: Collection[int]) -> None:
    """Delete tokens."""
    bulk.change(session, delete(AccessToken).where(AccessToken.id.in_(token_ids)))


def remove_all(session: Session, user_id: int) -> int:
    """Delete all tokens of an account; return how many."""
    return bulk.change(session, delete(AccessToken).where(AccessToken.user_id == user_id))


def note_use(
    session: Session, token_id: int, now: datetime, address: str | None, *conditions: Any
) -> None:
    """Note when and from where a token was used, on these conditions."""
    statement = update(AccessToken).where(AccessToken.id == token_id, *conditions)
    bulk.change(session, statement.values(last_used_at=now, last_used_ip=address))


def is_used_outside(since: datetime, until: datetime) -> ColumnElement[bool]:
    """Return the condition for tokens that were not used between two times."""
    used = AccessToken.last_used_at
    return or_(used.is_(None), used < since, used > until)


def list_forgotten(
    session: Session, scope: Scope, now: datetime, *, made_before: datetime, used_before: datetime
) -> Sequence[tuple[str, str]]:
    """Return the owner's and the token's name of old or unused live tokens with a scope."""
    last_used = func.coalesce(AccessToken.last_used_at, AccessToken.created_at)
    is_forgotten = or_(AccessToken.created_at < made_before, last_used < used_before)
    statement = (
        select(User.username, AccessToken.name, AccessToken.stored_scopes)
        .join(User, User.id == AccessToken.user_id)
        .where(AccessToken.stored_scopes.contains(scope), not_expired(now), is_forgotten)
        .order_by(AccessToken.id)
    )
    found = session.execute(statement)
    return [(row[0], row[1]) for row in found if scope in read_scopes(row[2])]


def delete_expired(session: Session, before: datetime, most: int) -> int:
    """Delete up to `most` tokens that expired before a time; return how many."""
    expired = select(AccessToken.id).where(AccessToken.expires_at < before).limit(most)
    return bulk.change(session, delete(AccessToken).where(AccessToken.id.in_(expired)))


def not_expired(now: datetime) -> ColumnElement[bool]:
    """Return the condition for tokens that still count at a time."""
    return or_(AccessToken.expires_at.is_(None), AccessToken.expires_at > now)
