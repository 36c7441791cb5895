"""Statements on sessions and spent tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.core.db import Database
from app.core.prepared_read import PreparedRead
from app.sessions.models import LoginSession, SpentRefreshToken
from app.users.models import ACCOUNT_COLUMNS, Account, User, UserProfile

Reader = Connection | Session

_SESSION_COLUMNS = (LoginSession.revoked_at, LoginSession.expires_at, LoginSession.is_limited)
_ACCESS = PreparedRead(
    select(*_SESSION_COLUMNS, *ACCOUNT_COLUMNS)
    .join(User, User.id == LoginSession.user_id)
    .outerjoin(UserProfile, UserProfile.user_id == User.id)
    .where(LoginSession.id == bindparam("session_id")),
    ("session_id",),
)
_HOLDER_COLUMNS: tuple[Any, ...] = (
    LoginSession.id,
    LoginSession.user_id,
    LoginSession.revoked_at,
    LoginSession.expires_at,
    LoginSession.is_limited,
    LoginSession.user_agent,
    User.status,
    User.must_change_password,
)
_HOLDER = PreparedRead(
    select(*_HOLDER_COLUMNS)
    .join(User, User.id == LoginSession.user_id)
    .where(LoginSession.refresh_digest == bindparam("digest")),
    ("digest",),
)
_SPENT = PreparedRead(
    select(*_HOLDER_COLUMNS, SpentRefreshToken.consumed_at, SpentRefreshToken.expires_at)
    .join(LoginSession, LoginSession.id == SpentRefreshToken.session_id)
    .join(User, User.id == LoginSession.user_id)
    .where(SpentRefreshToken.token_digest == bindparam("digest")),
    ("digest",),
)


_LIST = PreparedRead(
    select(
        LoginSession.id,
        LoginSession.refresh_digest,
        LoginSession.ip_address,
        LoginSession.user_agent,
        LoginSession.created_at,
        LoginSession.last_seen_at,
        LoginSession.expires_at,
    )
    .where(
        LoginSession.user_id == bindparam("user_id"),
        LoginSession.revoked_at.is_(None),
        LoginSession.expires_at > bindparam("now"),
    )
    .order_by(LoginSession.last_seen_at.desc(), LoginSession.id),
    ("user_id", "now"),
)


# Built once: putting a statement together costs more than running it.
_sessions = cast("Table", LoginSession.__table__)
_spent = cast("Table", SpentRefreshToken.__table__)
_ROTATE = (
    update(_sessions)
    .where(
        _sessions.c.refresh_digest == bindparam("old_digest"),
        _sessions.c.revoked_at.is_(None),
        _sessions.c.expires_at > bindparam("now"),
    )
    .values(
        refresh_digest=bindparam("new_digest"),
        last_seen_at=bindparam("now"),
        expires_at=bindparam("new_expires_at"),
        ip_address=func.coalesce(bindparam("client_address"), _sessions.c.ip_address),
        user_agent=func.coalesce(bindparam("client_user_agent"), _sessions.c.user_agent),
    )
)
_SPEND = insert(_spent).values(
    token_digest=bindparam("old_digest"),
    session_id=bindparam("session_id"),
    consumed_at=bindparam("now"),
    expires_at=bindparam("old_expires_at"),
)


@dataclass(frozen=True)
class Rotation:
    """One exchange of a refresh token; None for what the client does not tell of itself."""

    session_id: str
    old_digest: str
    old_expires_at: datetime
    new_digest: str
    new_expires_at: datetime
    client_address: str | None
    client_user_agent: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of the session list."""

    id: str
    refresh_digest: str
    ip_address: str | None
    user_agent: str | None
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Access:
    """What the access check finds in its one read."""

    revoked_at: datetime | None
    expires_at: datetime
    is_limited: bool
    account: Account


@dataclass(frozen=True, slots=True)
class Holder:
    """The session a refresh token belongs to, and the state of its account."""

    session_id: str
    user_id: int
    revoked_at: datetime | None
    expires_at: datetime
    is_limited: bool
    user_agent: str | None
    status: str
    must_change_password: bool


@dataclass(frozen=True, slots=True)
class Spent:
    """A token that was exchanged before."""

    holder: Holder
    consumed_at: datetime
    expires_at: datetime


def find_access(database: Database, session_id: str) -> Access | None:
    """Return session and account in one indexed read (decision A7); None if there is no such."""
    row = database.row(_ACCESS, session_id)
    return Access(row[0], row[1], row[2], Account(*row[3:])) if row else None


def find_holder(database: Database, refresh_digest: str) -> Holder | None:
    """Return the session whose newest refresh token this is."""
    row = database.row(_HOLDER, refresh_digest)
    return Holder(*row) if row else None


def find_spent(database: Database, refresh_digest: str) -> Spent | None:
    """Return what is known of a token that was exchanged before."""
    row = database.row(_SPENT, refresh_digest)
    return Spent(Holder(*row[:-2]), row[-2], row[-1]) if row else None


def rotate(session: Session, rotation: Rotation) -> bool:
    """Put a new refresh token in the place of a live one; False if it no longer is.

    A single UPDATE, so of two simultaneous refreshes exactly one wins (spec, Endpoint rules 6).
    """
    connection = session.connection()
    if connection.execute(_ROTATE, vars(rotation)).rowcount != 1:
        return False
    connection.execute(_SPEND, vars(rotation))
    return True


def list_live(database: Database, user_id: int, now: datetime) -> list[Listed]:
    """Return the user's live sessions, the one seen last first."""
    return [Listed(*row) for row in database.rows(_LIST, user_id, now)]


def find_owner(reader: Reader, session_id: str) -> int | None:
    """Return whose session this is; None if there is no such session."""
    statement = select(LoginSession.user_id).where(LoginSession.id == session_id)
    return reader.execute(statement).scalar()


def revoke(session: Session, session_id: str, now: datetime) -> bool:
    """End one session; False if it had ended before."""
    return _revoke(session, now, LoginSession.id == session_id) == 1


def revoke_others(session: Session, user_id: int, keep_id: str, now: datetime) -> int:
    """End all live sessions but one; return how many."""
    return _revoke(
        session,
        now,
        LoginSession.user_id == user_id,
        LoginSession.id != keep_id,
        LoginSession.expires_at > now,
    )


def revoke_all(session: Session, user_id: int, now: datetime) -> int:
    """End every session of a user and void what was begun before; return how many ended.

    The account's row is changed first: a login that is just completing waits for it, sees the
    new version and is refused.
    """
    session.execute(
        update(User)
        .where(User.id == user_id)
        .values(session_version=User.session_version + 1)
        .execution_options(synchronize_session=False)
    )
    return _revoke(session, now, LoginSession.user_id == user_id)


def delete_expired(session: Session, now: datetime, most: int) -> int:
    """Delete up to `most` sessions and as many spent tokens that no check needs any longer."""
    sessions = select(LoginSession.id).where(LoginSession.expires_at < now).limit(most)
    tokens = (
        select(SpentRefreshToken.token_digest).where(SpentRefreshToken.expires_at < now).limit(most)
    )
    removed = 0
    for statement in (
        delete(SpentRefreshToken).where(SpentRefreshToken.token_digest.in_(tokens)),
        delete(LoginSession).where(LoginSession.id.in_(sessions)),
    ):
        removed += _row_count(session, statement)
    return removed


def _revoke(session: Session, now: datetime, *conditions: Any) -> int:
    return _row_count(
        session,
        update(LoginSession)
        .where(LoginSession.revoked_at.is_(None), *conditions)
        .values(revoked_at=now),
    )


def _row_count(session: Session, statement: Any) -> int:
    result = session.execute(statement.execution_options(synchronize_session=False))
    count: int = result.rowcount  # type: ignore[attr-defined]
    return count
