"""Statements on sessions."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session

from app.core.client import Client
from app.core.database import bulk
from app.core.database.database import Database, Reader
from app.core.db import columns_of
from app.sessions.models import LoginSession
from app.sessions.refresh_token import RefreshToken
from app.users.models import ACCOUNT_COLUMNS, Account, Status, User, with_profile

# Clients that sign in per request have thousands; listing all would stall a worker for seconds.
MAX_LISTED = 500


class Access(NamedTuple):
    """What the access check reads, in a single query."""

    revoked_at: datetime | None
    expires_at: datetime
    is_limited: bool
    account: Account


class TokenSession(NamedTuple):
    """The session a refresh token belongs to, and the state of its account."""

    id: str
    user_id: int
    refresh_digest: str
    previous_digest: str | None
    is_limited: bool
    user_agent: str | None
    last_seen_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    status: str
    must_change_password: bool


class Listed(NamedTuple):
    """One entry of the session list."""

    id: str
    refresh_digest: str
    ip_address: str | None
    user_agent: str | None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


# Built once: nearly every request runs it.
_ACCESS = with_profile(
    select(
        LoginSession.revoked_at,
        LoginSession.expires_at,
        LoginSession.is_limited,
        *ACCOUNT_COLUMNS,
    )
    .join(User, User.id == LoginSession.user_id)
    .where(LoginSession.id == bindparam("session_id"))
)


def add(session: Session, **columns: Any) -> None:
    """Insert a session."""
    session.execute(insert(LoginSession).values(**columns))


def find_access(database: Database, session_id: str) -> Access | None:
    """Return session and account in one indexed read; None if there is no session."""
    with database.connect() as connection:
        row = connection.execute(_ACCESS, {"session_id": session_id}).one_or_none()
    return Access(row[0], row[1], row[2], Account(*row[3:])) if row else None


def find_by_token(reader: Reader, token: RefreshToken) -> TokenSession | None:
    """Return the session this token belongs or belonged to; None if there is none."""
    statement = (
        select(*columns_of(TokenSession, LoginSession, User))
        .join(User, User.id == LoginSession.user_id)
        .where(LoginSession.refresh_selector == token.selector_digest)
    )
    row = reader.execute(statement).one_or_none()
    return TokenSession(*row) if row else None


def find_by_live_token(reader: Reader, token: RefreshToken) -> TokenSession | None:
    """Return the session whose live token this is, even if it has ended; None for a spent token."""
    found = find_by_token(reader, token)
    return found if found and token.is_stored_as(found.refresh_digest) else None


def rotate(
    session: Session,
    old: RefreshToken,
    successor: RefreshToken,
    client: Client,
    now: datetime,
    *,
    enforces_change: bool,
) -> tuple[str, int] | None:
    """Replace a live refresh token with its successor; return the ids of its session and user.

    None if the token is not live, its session may not continue, or, with `enforces_change`, the
    account must change its password. A single UPDATE, so of two concurrent refreshes exactly one
    wins.
    """
    account_goes_on = _account_goes_on(enforces_change=enforces_change)
    statement = (
        update(LoginSession)
        .where(
            LoginSession.refresh_selector == old.selector_digest,
            LoginSession.refresh_digest == old.digest,
            *_goes_on(now),
            exists(select(User.id).where(User.id == LoginSession.user_id, *account_goes_on)),
        )
        .values(
            refresh_digest=successor.digest,
            previous_digest=old.digest,
            last_seen_at=now,
            expires_at=successor.expires_at,
            ip_address=func.coalesce(client.address, LoginSession.ip_address),
            user_agent=func.coalesce(client.user_agent, LoginSession.user_agent),
        )
        .returning(LoginSession.id, LoginSession.user_id)
        .execution_options(synchronize_session=False)
    )
    row = session.execute(statement).one_or_none()
    return (row[0], row[1]) if row else None


def list_live(reader: Reader, user_id: int, now: datetime, current: str) -> list[Listed]:
    """Return the user's live sessions, most recently seen first.

    At most the MAX_LISTED first, and always the one whose live token has the digest `current`.
    """
    statement = (
        select(*columns_of(Listed, LoginSession))
        .where(LoginSession.user_id == user_id, *_is_live(now))
        .order_by(
            (LoginSession.refresh_digest == current).desc(),
            LoginSession.last_seen_at.desc(),
            LoginSession.id,
        )
        .limit(MAX_LISTED)
    )
    found = [Listed(*row) for row in reader.execute(statement)]
    found.sort(key=lambda listed: listed.id)
    return sorted(found, key=lambda listed: listed.last_seen_at, reverse=True)


def find_owner(reader: Reader, session_id: str) -> int | None:
    """Return the user id of a session; None if there is no such session."""
    return reader.scalar(select(LoginSession.user_id).where(LoginSession.id == session_id))


def list_open_among(
    reader: Reader, session_ids: Collection[str], now: datetime, *, enforces_change: bool
) -> set[str]:
    """Return which of these sessions may use the service.

    `enforces_change`: those of accounts that must change their password may not.
    """
    statement = (
        select(LoginSession.id)
        .join(User, User.id == LoginSession.user_id)
        .where(
            LoginSession.id.in_(session_ids),
            *_goes_on(now),
            *_account_goes_on(enforces_change=enforces_change),
        )
    )
    return {row[0] for row in reader.execute(statement)}


def is_live(session: Session, session_id: str, now: datetime) -> bool:
    """Return whether a session has neither ended nor expired."""
    statement = select(LoginSession.id).where(LoginSession.id == session_id, *_is_live(now))
    return session.scalars(statement).one_or_none() is not None


def revoke(session: Session, session_id: str, now: datetime) -> bool:
    """End one session; False if it had already ended."""
    return _revoke(session, now, LoginSession.id == session_id) == 1


def revoke_others(session: Session, user_id: int, keep_id: str, now: datetime) -> int:
    """End all live sessions but one; return how many."""
    others = LoginSession.user_id == user_id, LoginSession.id != keep_id
    return _revoke(session, now, *others, LoginSession.expires_at > now)


def revoke_all(session: Session, user_id: int, now: datetime) -> int:
    """End every session of a user and void flows and logins in progress; return how many ended.

    A pending change of address is dropped, since its link works without a session.
    The account's row is updated first: a login about to complete waits for the row lock, sees the
    new session_version and is refused.
    """
    values = {"session_version": User.session_version + 1, "pending_email": None}
    bulk.change(session, update(User).where(User.id == user_id).values(values))
    return _revoke(session, now, LoginSession.user_id == user_id)


def delete_expired(session: Session, now: datetime, most: int) -> int:
    """Delete up to `most` sessions whose tokens have all expired; return how many."""
    expired = select(LoginSession.id).where(LoginSession.expires_at < now).limit(most)
    return bulk.change(session, delete(LoginSession).where(LoginSession.id.in_(expired)))


def _is_live(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return LoginSession.revoked_at.is_(None), LoginSession.expires_at > now


def _goes_on(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return what `service.authenticate` checks of one session; see `_account_goes_on`."""
    return *_is_live(now), LoginSession.is_limited.is_(False)


def _account_goes_on(*, enforces_change: bool) -> tuple[ColumnElement[bool], ...]:
    is_active = User.status == Status.ACTIVE
    return (is_active, User.must_change_password.is_(False)) if enforces_change else (is_active,)


def _revoke(session: Session, now: datetime, *conditions: ColumnElement[bool]) -> int:
    its_rows = update(LoginSession).where(LoginSession.revoked_at.is_(None), *conditions)
    return bulk.change(session, its_rows.values(revoked_at=now))
